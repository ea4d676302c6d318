/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * answer.c: the framing of HTTP answers.
 */
#include "answer.h"

#include <string.h>

#include "slice.h"

void
answer_init(struct answer *a)
{
    /* Not the whole struct: LINE needs no clearing, and this runs before every measurement. */
    a->state = ANSWER_STATUS;
    a->status = 0;
    a->interim = 0;
    a->begun = a->head_done = a->keep_alive = a->chunked = a->has_length = false;
    a->left = a->body_len = 0;
    a->line_len = 0;
}

static struct slice
trim(struct slice s)
{
    while (s.len > 0 && (*s.ptr == ' ' || *s.ptr == '\t')) {
        s.ptr++;
        s.len--;
    }
    while (s.len > 0 && (s.ptr[s.len - 1] == ' ' || s.ptr[s.len - 1] == '\t')) {
        s.len--;
    }
    return s;
}

/* "HTTP/1.x 200 ..." */
static void
read_status(struct answer *a, struct slice line)
{
    uint64_t status;

    if (line.len < 12 || !slice_starts_with(line, SLICE("HTTP/1.")) || line.ptr[8] != ' ' ||
        !slice_to_u64(slice_of(line.ptr + 9, 3), &status) || status < 100 ||
        (line.len > 12 && line.ptr[12] != ' ')) {
        a->state = ANSWER_NONSENSE;
        return;
    }
    a->status = (int)status;
    a->keep_alive = line.ptr[7] != '0';
    a->chunked = a->has_length = false;
    a->left = 0;
    a->state = ANSWER_HEADER;
}

static void
read_header(struct answer *a, struct slice line)
{
    const char *colon = memchr(line.ptr, ':', line.len);
    struct slice name, value;

    if (colon == NULL) {
        a->state = ANSWER_NONSENSE;
        return;
    }
    name = slice_of(line.ptr, (size_t)(colon - line.ptr));
    value = trim(slice_of(colon + 1, line.len - name.len - 1));
    if (slice_equal_nocase(name, SLICE("Content-Length"))) {
        a->has_length = true;
        if (!slice_to_u64(value, &a->left)) {
            a->state = ANSWER_NONSENSE;
        }
    } else if (slice_equal_nocase(name, SLICE("Transfer-Encoding"))) {
        a->chunked = slice_equal_nocase(value, SLICE("chunked"));
    } else if (slice_equal_nocase(name, SLICE("Connection"))) {
        if (slice_equal_nocase(value, SLICE("close"))) {
            a->keep_alive = false;
        } else if (slice_equal_nocase(value, SLICE("keep-alive"))) {
            a->keep_alive = true;
        }
    }
}

/* The empty line behind the header: what comes now? */
static void
end_header(struct answer *a)
{
    if (a->status < 200 && a->status != 101) {
        a->interim++;
        a->state = ANSWER_STATUS;
        return;
    }
    a->head_done = true;
    if (a->status == 204 || a->status == 304) {
        a->state = ANSWER_DONE;
    } else if (a->status == 101) {
        a->state = ANSWER_NONSENSE; /* nobody asked for an upgrade */
    } else if (a->chunked) {
        a->state = ANSWER_CHUNK_SIZE;
    } else if (a->has_length) {
        a->state = a->left == 0 ? ANSWER_DONE : ANSWER_SIZED;
    } else {
        a->state = ANSWER_UNTIL_CLOSE;
        a->keep_alive = false;
    }
}

static void
read_chunk_size(struct answer *a, struct slice line)
{
    uint64_t size = 0;
    size_t i = 0;

    for (; i < line.len && i < 16; i++) {
        static const char digits[] = "0123456789abcdef";
        const char *digit = strchr(digits, line.ptr[i] | 0x20);

        if (line.ptr[i] == '\0' || digit == NULL) {
            break;
        }
        size = size << 4 | (uint64_t)(digit - digits);
    }
    if (i == 0 || (i < line.len && line.ptr[i] != ';' && line.ptr[i] != ' ')) {
        a->state = ANSWER_NONSENSE;
        return;
    }
    a->left = size;
    a->state = size == 0 ? ANSWER_TRAILER : ANSWER_CHUNK;
}

static void
read_line(struct answer *a, struct slice line)
{
    switch (a->state) {
    case ANSWER_STATUS:
        read_status(a, line);
        break;
    case ANSWER_HEADER:
        if (line.len == 0) {
            end_header(a);
        } else {
            read_header(a, line);
        }
        break;
    case ANSWER_CHUNK_SIZE:
        read_chunk_size(a, line);
        break;
    case ANSWER_CHUNK_END:
        a->state = line.len == 0 ? ANSWER_CHUNK_SIZE : ANSWER_NONSENSE;
        break;
    case ANSWER_TRAILER:
        if (line.len == 0) {
            a->state = ANSWER_DONE;
        }
        break;
    default:
        a->state = ANSWER_NONSENSE;
        break;
    }
}

/* Takes bytes into the line, and reads it when it is whole. Returns how many were taken. */
static size_t
feed_line(struct answer *a, const char *data, size_t len)
{
    const char *newline = memchr(data, '\n', len);
    size_t take = newline == NULL ? len : (size_t)(newline - data) + 1;
    size_t text = newline == NULL ? take : take - 1;

    if (text > sizeof(a->line) - a->line_len) {
        a->state = ANSWER_NONSENSE;
        return take;
    }
    memcpy(a->line + a->line_len, data, text);
    a->line_len += text;
    if (newline != NULL) {
        size_t line_len = a->line_len;

        if (line_len > 0 && a->line[line_len - 1] == '\r') {
            line_len--;
        }
        a->line_len = 0;
        read_line(a, slice_of(a->line, line_len));
    }
    return take;
}

static size_t
feed_body(struct answer *a, size_t len)
{
    if (a->state == ANSWER_UNTIL_CLOSE) {
        a->body_len += len;
        return len;
    }
    if (len > a->left) {
        len = (size_t)a->left;
    }
    a->left -= len;
    a->body_len += len;
    if (a->left == 0) {
        a->state = a->state == ANSWER_CHUNK ? ANSWER_CHUNK_END : ANSWER_DONE;
    }
    return len;
}

size_t
answer_feed(struct answer *a, const char *data, size_t len)
{
    unsigned interim = a->interim;
    size_t used = 0;

    while (used < len && a->interim == interim && a->state < ANSWER_DONE) {
        if (a->state == ANSWER_SIZED || a->state == ANSWER_CHUNK ||
            a->state == ANSWER_UNTIL_CLOSE) {
            used += feed_body(a, len - used);
        } else {
            used += feed_line(a, data + used, len - used);
        }
    }
    /* Between interim and final answer nothing has begun; a status below 200 is not final. */
    a->begun = a->begun || a->head_done ||
               (a->state == ANSWER_HEADER && (a->status >= 200 || a->status == 101));
    return used;
}

bool
answer_end(struct answer *a)
{
    if (a->state == ANSWER_UNTIL_CLOSE) {
        a->state = ANSWER_DONE;
    }
    return a->state == ANSWER_DONE;
}
