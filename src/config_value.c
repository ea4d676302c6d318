/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * config_value.c: the kinds of values that are one number, one word or one text: from text to a
 * field and back. Addresses are in config_address.c.
 */
#include "config_priv.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "slice.h"

/* Room for a number of 64 bits with its unit. */
#define NUMBER_MAX 32

struct unit {
    const char *name;
    uint64_t factor;
};

/* Both tables go from the largest unit to the smallest, for printing. */
static const struct unit size_units[] = {
    { "GB", UINT64_C(1) << 30 },
    { "MB", UINT64_C(1) << 20 },
    { "KB", UINT64_C(1) << 10 },
    { "", 1 },
};
static const struct unit time_units[] = {
    { "d", 86400000 }, { "h", 3600000 }, { "m", 60000 }, { "s", 1000 }, { "ms", 1 },
};
#define SIZE_UNITS (sizeof(size_units) / sizeof(size_units[0]))
#define TIME_UNITS (sizeof(time_units) / sizeof(time_units[0]))

static const char *const method_names[] = { "GET", "HEAD", "PUT", "POST", "DELETE" };
#define METHODS (sizeof(method_names) / sizeof(method_names[0]))

/* Enums and method bits are written through one type. */
_Static_assert(sizeof(enum config_store_type) == sizeof(unsigned), "an enum is an unsigned");

bool
config_fail(char *to, size_t size, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(to, size, format, args);
    va_end(args);
    return false;
}

void
config_text_copy(char to[CONFIG_TEXT_MAX], const char *text)
{
    size_t len = strlen(text);

    memset(to, 0, CONFIG_TEXT_MAX);
    memcpy(to, text, len < CONFIG_TEXT_MAX ? len : CONFIG_TEXT_MAX - 1);
}

/* Digits, then one of UNITS. False for anything else and for more than 64 bits. */
static bool
quantity_parse(const char *text, const struct unit *units, size_t count, uint64_t *value)
{
    size_t digits = strspn(text, "0123456789");
    uint64_t number = 0;

    if (!slice_to_u64(slice_of(text, digits), &number)) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (strcmp(text + digits, units[i].name) == 0) {
            *value = number * units[i].factor;
            return number <= UINT64_MAX / units[i].factor;
        }
    }
    return false;
}

/* VALUE in the largest of UNITS that divides it. Returns TO. */
static const char *
quantity_format(char to[NUMBER_MAX], uint64_t value, const struct unit *units, size_t count)
{
    size_t i = 0;

    if (value == 0) {
        return "0";
    }
    while (i + 1 < count && value % units[i].factor != 0) {
        i++;
    }
    snprintf(to, NUMBER_MAX, "%" PRIu64 "%s", value / units[i].factor, units[i].name);
    return to;
}

static void
line_print(const struct config_directive *d, const char *value, FILE *out)
{
    fprintf(out, "%s =%s%s\n", d->name, value[0] == '\0' ? "" : " ", value);
}

/* ---- plain numbers --------------------------------------------------------------------------- */

static bool
count_set(const struct config_directive *d, void *field, const char *text, char why[CONFIG_WHY_MAX])
{
    uint64_t value = 0;

    if (!slice_to_u64(slice_from_string(text), &value) || value < d->min || value > d->max) {
        return config_fail(why, CONFIG_WHY_MAX, "a number from %" PRIu64 " to %" PRIu64, d->min,
                           d->max);
    }
    *(uint32_t *)field = (uint32_t)value;
    return true;
}

static void
count_print(const struct config_directive *d, const void *field, FILE *out)
{
    fprintf(out, "%s = %" PRIu32 "\n", d->name, *(const uint32_t *)field);
}

/* ---- sizes ----------------------------------------------------------------------------------- */

static bool
size_set(const struct config_directive *d, void *field, const char *text, char why[CONFIG_WHY_MAX])
{
    char min[NUMBER_MAX], max[NUMBER_MAX];
    uint64_t value = 0;

    if (!quantity_parse(text, size_units, SIZE_UNITS, &value) || value < d->min || value > d->max) {
        return config_fail(why, CONFIG_WHY_MAX,
                           "a size from %s to %s: a number of bytes, KB, MB or GB",
                           quantity_format(min, d->min, size_units, SIZE_UNITS),
                           quantity_format(max, d->max, size_units, SIZE_UNITS));
    }
    *(uint64_t *)field = value;
    return true;
}

static void
size_print(const struct config_directive *d, const void *field, FILE *out)
{
    char text[NUMBER_MAX];

    line_print(d, quantity_format(text, *(const uint64_t *)field, size_units, SIZE_UNITS), out);
}

/* ---- durations ------------------------------------------------------------------------------- */

/* MIN, MAX, STEP and *VALUE in milliseconds. */
static bool
duration_parse(const char *text, uint64_t min, uint64_t max, uint64_t step, uint64_t *value,
               char why[CONFIG_WHY_MAX])
{
    char low[NUMBER_MAX], high[NUMBER_MAX];

    if (strcmp(text, "0") == 0 && min == 0) {
        *value = 0;
        return true;
    }
    if (quantity_parse(text, time_units, TIME_UNITS, value) && *value >= min && *value <= max &&
        *value % step == 0) {
        return true;
    }
    return config_fail(why, CONFIG_WHY_MAX, "a time from %s to %s%s: a number with %ss, m, h or d",
                       quantity_format(low, min, time_units, TIME_UNITS),
                       quantity_format(high, max, time_units, TIME_UNITS),
                       step == 1 ? "" : " in whole seconds", step == 1 ? "ms, " : "");
}

static bool
ms_set_step(const struct config_directive *d, void *field, const char *text, uint64_t step,
            char why[CONFIG_WHY_MAX])
{
    uint64_t value = 0;

    if (!duration_parse(text, d->min, d->max, step, &value, why)) {
        return false;
    }
    *(uint32_t *)field = (uint32_t)value;
    return true;
}

static bool
ms_set(const struct config_directive *d, void *field, const char *text, char why[CONFIG_WHY_MAX])
{
    return ms_set_step(d, field, text, 1, why);
}

static bool
ms_whole_set(const struct config_directive *d, void *field, const char *text,
             char why[CONFIG_WHY_MAX])
{
    return ms_set_step(d, field, text, 1000, why);
}

static void
ms_print(const struct config_directive *d, const void *field, FILE *out)
{
    char text[NUMBER_MAX];

    line_print(d, quantity_format(text, *(const uint32_t *)field, time_units, TIME_UNITS), out);
}

static bool
seconds_set(const struct config_directive *d, void *field, const char *text,
            char why[CONFIG_WHY_MAX])
{
    uint64_t value = 0;

    if (!duration_parse(text, d->min * 1000, d->max * 1000, 1000, &value, why)) {
        return false;
    }
    *(uint64_t *)field = value / 1000;
    return true;
}

static void
seconds_print(const struct config_directive *d, const void *field, FILE *out)
{
    char text[NUMBER_MAX];
    uint64_t value = *(const uint64_t *)field * 1000;

    line_print(d, quantity_format(text, value, time_units, TIME_UNITS), out);
}

/* ---- words ----------------------------------------------------------------------------------- */

static bool
word_set(const struct config_directive *d, void *field, const char *text, char why[CONFIG_WHY_MAX])
{
    size_t len = 0;

    for (unsigned i = 0; d->words[i] != NULL; i++) {
        if (strcmp(text, d->words[i]) == 0) {
            *(unsigned *)field = i;
            return true;
        }
    }
    why[0] = '\0';
    for (unsigned i = 0; d->words[i] != NULL; i++) {
        const char *comma = i == 0 ? "" : d->words[i + 1] == NULL ? " or " : ", ";
        len += (size_t)snprintf(why + len, CONFIG_WHY_MAX - len, "%s%s", comma, d->words[i]);
    }
    return false;
}

static void
word_print(const struct config_directive *d, const void *field, FILE *out)
{
    line_print(d, d->words[*(const unsigned *)field], out);
}

static bool
level_set(const struct config_directive *d, void *field, const char *text, char why[CONFIG_WHY_MAX])
{
    (void)d;
    return log_level_parse(text, field) ||
           config_fail(why, CONFIG_WHY_MAX, "error, warn, info or debug");
}

static void
level_print(const struct config_directive *d, const void *field, FILE *out)
{
    line_print(d, log_level_name(*(const enum log_level *)field), out);
}

/* ---- methods: a list of names, to bits ------------------------------------------------------- */

static unsigned
method_bit(struct slice name)
{
    for (size_t i = 0; i < METHODS; i++) {
        if (slice_equal(name, slice_from_string(method_names[i]))) {
            return 1u << i;
        }
    }
    return 0;
}

static bool
methods_set(const struct config_directive *d, void *field, const char *text,
            char why[CONFIG_WHY_MAX])
{
    unsigned bits = 0;

    (void)d;
    for (const char *at = text + strspn(text, ", \t"); *at != '\0'; at += strspn(at, ", \t")) {
        size_t len = strcspn(at, ", \t");
        unsigned bit = method_bit(slice_of(at, len));

        if (bit == 0 || (bits & bit) != 0) {
            bits = 0;
            break;
        }
        bits |= bit;
        at += len;
    }
    if (bits == 0) {
        return config_fail(why, CONFIG_WHY_MAX,
                           "one or more of GET HEAD PUT POST DELETE, each once");
    }
    *(unsigned *)field = bits;
    return true;
}

static void
methods_print(const struct config_directive *d, const void *field, FILE *out)
{
    unsigned bits = *(const unsigned *)field;

    fprintf(out, "%s =", d->name);
    for (size_t i = 0; i < METHODS; i++) {
        if ((bits & 1u << i) != 0) {
            fprintf(out, " %s", method_names[i]);
        }
    }
    fputc('\n', out);
}

/* ---- texts ----------------------------------------------------------------------------------- */

/*
 * Whether TEXT is short enough, without control characters and without what a file cannot hold:
 * blanks at either end, and a ";" after a blank, which begins a comment.
 */
static bool
text_plain(const char *text)
{
    for (const char *at = text; *at != '\0'; at++) {
        unsigned char c = (unsigned char)*at;
        if (c < 0x20 || c == 0x7f || (c == ' ' && (at == text || at[1] == ';' || at[1] == '\0'))) {
            return false;
        }
    }
    return strlen(text) <= CONFIG_VALUE_MAX && text[0] != ';';
}

static bool
path_set(const struct config_directive *d, void *field, const char *text, char why[CONFIG_WHY_MAX])
{
    (void)d;
    if (text[0] == '\0' || !text_plain(text)) {
        return config_fail(why, CONFIG_WHY_MAX,
                           "a path of 1 to %d bytes without control characters", CONFIG_VALUE_MAX);
    }
    config_text_copy(field, text);
    return true;
}

static bool
optional_path_set(const struct config_directive *d, void *field, const char *text,
                  char why[CONFIG_WHY_MAX])
{
    if (text[0] == '\0') {
        *(char *)field = '\0';
        return true;
    }
    return path_set(d, field, text, why);
}

bool
config_store_name_valid(const char *text)
{
    size_t len = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");

    return len > 0 && len <= CONFIG_VALUE_MAX && text[len] == '\0';
}

static bool
store_name_set(const struct config_directive *d, void *field, const char *text,
               char why[CONFIG_WHY_MAX])
{
    (void)d;
    if (!config_store_name_valid(text)) {
        return config_fail(why, CONFIG_WHY_MAX,
                           "the name of a store: letters, digits, \".\", \"_\" and \"-\"");
    }
    config_text_copy(field, text);
    return true;
}

/*
 * What memcached takes in a key, as every store here does. The limit leaves the path at least 70 of
 * the 250 bytes that a key has.
 */
static bool
key_prefix_set(const struct config_directive *d, void *field, const char *text,
               char why[CONFIG_WHY_MAX])
{
    (void)d;
    if (!text_plain(text) || strchr(text, ' ') != NULL) {
        return config_fail(why, CONFIG_WHY_MAX,
                           "up to %d bytes without blanks and control characters",
                           CONFIG_VALUE_MAX);
    }
    config_text_copy(field, text);
    return true;
}

/* A name that goes before its password, with a blank or a NUL between them. */
static bool
user_name_set(const struct config_directive *d, void *field, const char *text,
              char why[CONFIG_WHY_MAX])
{
    return key_prefix_set(d, field, text, why);
}

/* The length of the token (RFC 9110, 5.6.2) that TEXT begins with. */
static size_t
token_len(const char *text)
{
    return strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                        "!#$%&'*+-.^_`|~");
}

/* What is sent as a header is ASCII. */
static bool
is_header(const char *text)
{
    for (const char *at = text; *at != '\0'; at++) {
        if ((unsigned char)*at >= 0x80) {
            return false;
        }
    }
    return text_plain(text);
}

static bool
header_set(const struct config_directive *d, void *field, const char *text,
           char why[CONFIG_WHY_MAX])
{
    (void)d;
    if (!is_header(text)) {
        return config_fail(why, CONFIG_WHY_MAX, "up to %d bytes of ASCII", CONFIG_VALUE_MAX);
    }
    config_text_copy(field, text);
    return true;
}

static bool
media_type_set(const struct config_directive *d, void *field, const char *text,
               char why[CONFIG_WHY_MAX])
{
    size_t type = token_len(text);
    size_t subtype = text[type] == '/' ? token_len(text + type + 1) : 0;
    const char *rest = text + type + 1 + subtype;
    bool ok = type > 0 && subtype > 0 && (*rest == '\0' || *rest == ';') && is_header(text);

    (void)d;
    if (!ok && strcmp(text, "stored") != 0) {
        return config_fail(why, CONFIG_WHY_MAX,
                           "a media type such as text/html; charset=utf-8, of up to %d bytes, or "
                           "stored",
                           CONFIG_VALUE_MAX);
    }
    config_text_copy(field, text);
    return true;
}

static void
text_print(const struct config_directive *d, const void *field, FILE *out)
{
    line_print(d, field, out);
}

const struct config_kind config_kind_count = { count_set, count_print, false };
const struct config_kind config_kind_size = { size_set, size_print, false };
const struct config_kind config_kind_ms = { ms_set, ms_print, false };
const struct config_kind config_kind_ms_whole = { ms_whole_set, ms_print, false };
const struct config_kind config_kind_seconds = { seconds_set, seconds_print, false };
const struct config_kind config_kind_word = { word_set, word_print, false };
const struct config_kind config_kind_level = { level_set, level_print, false };
const struct config_kind config_kind_methods = { methods_set, methods_print, false };
const struct config_kind config_kind_path = { path_set, text_print, false };
const struct config_kind config_kind_optional_path = { optional_path_set, text_print, false };
const struct config_kind config_kind_user_name = { user_name_set, text_print, false };
const struct config_kind config_kind_store_name = { store_name_set, text_print, false };
const struct config_kind config_kind_key_prefix = { key_prefix_set, text_print, false };
const struct config_kind config_kind_header = { header_set, text_print, false };
const struct config_kind config_kind_media_type = { media_type_set, text_print, false };
