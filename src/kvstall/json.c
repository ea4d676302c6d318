/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * json.c: a writer of JSON. It does not check that the calls make sense.
 */
#include "json.h"

#include <inttypes.h>

#include "timing.h"

static void
write_text(FILE *out, const char *text)
{
    fputc('"', out);
    for (const unsigned char *at = (const unsigned char *)text; *at != '\0'; at++) {
        if (*at == '"' || *at == '\\') {
            fprintf(out, "\\%c", *at);
        } else if (*at < ' ' || *at >= 0x7f) {
            fprintf(out, "\\u%04x", *at); /* bytes above ASCII are read as Latin-1 */
        } else {
            fputc(*at, out);
        }
    }
    fputc('"', out);
}

/* What stands before a value: a comma, a new line, the key. */
static void
begin(struct json *j, const char *key)
{
    if (j->depth > 0) {
        fputs(j->first ? "\n" : ",\n", j->out);
        for (unsigned i = 0; i < j->depth; i++) {
            fputs("  ", j->out);
        }
    }
    j->first = false;
    if (key != NULL) {
        write_text(j->out, key);
        fputs(": ", j->out);
    }
}

void
json_open(struct json *j, const char *key, char bracket)
{
    begin(j, key);
    fputc(bracket, j->out);
    j->depth++;
    j->first = true;
}

void
json_close(struct json *j, char bracket)
{
    j->depth--;
    if (!j->first) {
        fputc('\n', j->out);
        for (unsigned i = 0; i < j->depth; i++) {
            fputs("  ", j->out);
        }
    }
    fputc(bracket, j->out);
    j->first = false;
    if (j->depth == 0) {
        fputc('\n', j->out);
    }
}

void
json_string(struct json *j, const char *key, const char *text)
{
    begin(j, key);
    if (text == NULL) {
        fputs("null", j->out);
    } else {
        write_text(j->out, text);
    }
}

void
json_integer(struct json *j, const char *key, int64_t number)
{
    begin(j, key);
    fprintf(j->out, "%" PRId64, number);
}

void
json_bool(struct json *j, const char *key, bool value)
{
    begin(j, key);
    fputs(value ? "true" : "false", j->out);
}

void
json_ms(struct json *j, const char *key, int64_t ns)
{
    begin(j, key);
    fprintf(j->out, "%.3f", timing_ms(ns));
}
