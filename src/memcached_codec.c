/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * memcached_codec.c: what the dialects share: numbers, lines, dates, error lines, the handshake.
 *
 * Pure functions. What a command or its good replies look like is the dialects' own business.
 */
#include "memcached_codec_priv.h"

#include <assert.h>

/* Up to here memcached reads exptime as seconds from now, beyond it as a date. */
#define RELATIVE_MAX UINT64_C(2592000)

/* The last date that memcached knows: it keeps exptime in 32 bits with a sign. */
#define DATE_MAX INT64_C(2147483647)

#define TEXT_ERROR        SLICE("ERROR")
#define TEXT_CLIENT_ERROR SLICE("CLIENT_ERROR")
#define TEXT_SERVER_ERROR SLICE("SERVER_ERROR")

/* ---- writing ---- */

char *
memcached_put_u64(char *out, uint64_t n)
{
    char digits[20];
    char *p = digits + sizeof(digits);

    do {
        *--p = (char)('0' + n % 10);
        n /= 10;
    } while (n != 0);
    return memcached_put(out, slice_of(p, (size_t)(digits + sizeof(digits) - p)));
}

int64_t
memcached_exptime(uint64_t ttl_s, int64_t now_s)
{
    int64_t date;

    if (ttl_s <= RELATIVE_MAX) {
        return (int64_t)ttl_s;
    }
    if (now_s < 0) {
        now_s = 0;
    }
    if (now_s >= DATE_MAX || ttl_s > (uint64_t)(DATE_MAX - now_s)) {
        date = DATE_MAX;
    } else {
        date = now_s + (int64_t)ttl_s;
    }
    /* Close to the last date, and after it, the longest span from now reaches further. */
    return date - now_s < (int64_t)RELATIVE_MAX ? (int64_t)RELATIVE_MAX : date;
}

char *
memcached_put_exptime(char *out, const struct store_op *op, const struct memcached_context *context)
{
    return memcached_put_u64(out, (uint64_t)memcached_exptime(op->ttl_s, context->now_s));
}

/* ---- reading ---- */

enum memcached_parse
memcached_find_line(const char *data, size_t len, struct slice *line)
{
    size_t window = len < MEMCACHED_LINE_MAX ? len : MEMCACHED_LINE_MAX;
    const char *newline = window == 0 ? NULL : memchr(data, '\n', window);

    if (newline == NULL) {
        return len < MEMCACHED_LINE_MAX ? MEMCACHED_MORE : MEMCACHED_NONSENSE;
    }
    if (newline == data || newline[-1] != '\r') {
        return MEMCACHED_NONSENSE;
    }
    *line = slice_of(data, (size_t)(newline - 1 - data));
    return MEMCACHED_REPLY;
}

bool
memcached_take_u64(struct slice *s, uint64_t max, uint64_t *n)
{
    uint64_t value = 0;
    size_t i;

    for (i = 0; i < s->len; i++) {
        unsigned digit = (unsigned)(unsigned char)s->ptr[i] - '0';
        if (digit > 9) {
            break;
        }
        /* Once over 20 digits, even zeros: no server prints such a number. */
        if (i == 20 || value > (UINT64_MAX - digit) / 10) {
            return false;
        }
        value = value * 10 + digit;
    }
    if (i == 0 || value > max) {
        return false;
    }
    s->ptr += i;
    s->len -= i;
    *n = value;
    return true;
}

bool
memcached_take_counter(struct slice s, uint64_t *n)
{
    if (!memcached_take_u64(&s, UINT64_MAX, n)) {
        return false;
    }
    while (memcached_take_char(&s, ' ')) {
    }
    return s.len == 0;
}

void
memcached_reply_init(struct memcached_reply *reply, enum store_status status, struct slice line)
{
    *reply = (struct memcached_reply){
        .status = status,
        .line_len = line.len + 2,
        .ttl_left_s = STORE_TTL_UNKNOWN,
    };
}

/*
 * A known command that the server has no mind to follow. It has read the data block, if there was
 * one, so the connection goes on.
 */
static enum store_status
server_error_status(const struct store_op *op, struct slice text)
{
    if (store_verb_has_value(op->verb) && slice_starts_with(text, SLICE("object too large"))) {
        return STORE_TOO_LARGE;
    }
    if (slice_starts_with(text, SLICE("out of memory")) ||
        slice_starts_with(text, SLICE("Out of memory"))) {
        return STORE_NO_MEMORY;
    }
    return STORE_BAD_REPLY;
}

/* A command that the server did not understand: a data block behind it will run as commands. */
static void
client_error(const struct store_op *op, struct slice text, struct memcached_reply *reply)
{
    bool counts = op->verb == STORE_INCR || op->verb == STORE_DECR;

    if (counts && slice_starts_with(text, SLICE("cannot increment"))) {
        reply->status = STORE_BAD_VALUE;
    } else {
        reply->status = STORE_BAD_REPLY;
        reply->close = true;
    }
}

/* The bare word says that the server lacks the command; it has not expected a data block. */
static void
plain_error(const struct store_op *op, struct slice text, struct memcached_reply *reply)
{
    if (text.len == 0) {
        reply->status = STORE_UNSUPPORTED;
        reply->close = store_verb_has_value(op->verb);
    } else if (slice_starts_with(text, SLICE("Too many open connections"))) {
        reply->status = STORE_UNAVAILABLE;
        reply->close = true;
    } else {
        reply->status = STORE_BAD_REPLY;
        reply->close = true;
    }
}

/* Takes WORD off *TEXT, and the space behind it if more follows. */
static bool
take_word(struct slice *text, struct slice word)
{
    struct slice rest = *text;

    if (!memcached_take(&rest, word) || (rest.len > 0 && !memcached_take_char(&rest, ' '))) {
        return false;
    }
    *text = rest;
    return true;
}

enum memcached_parse
memcached_error_reply(const struct store_op *op, struct slice line, struct memcached_reply *reply)
{
    struct slice text = line;

    memcached_reply_init(reply, STORE_BAD_REPLY, line);
    if (take_word(&text, TEXT_SERVER_ERROR)) {
        reply->status = server_error_status(op, text);
    } else if (take_word(&text, TEXT_CLIENT_ERROR)) {
        client_error(op, text, reply);
    } else if (take_word(&text, TEXT_ERROR)) {
        plain_error(op, text, reply);
    } else {
        return MEMCACHED_NONSENSE;
    }
    return MEMCACHED_REPLY;
}

/* ---- the handshake ---- */

/*
 * 1.6.13 and later. A first number other than 1 is that of some other store (Infinispan's 15.0):
 * memcached has never had one. Such a store may still speak `text`.
 */
static bool
version_has_meta(struct slice text)
{
    uint64_t major, minor, patch;

    if (!memcached_take_u64(&text, UINT64_MAX, &major) || !memcached_take_char(&text, '.') ||
        !memcached_take_u64(&text, UINT64_MAX, &minor)) {
        return false;
    }
    if (major != 1 || minor != 6) {
        return major == 1 && minor > 6;
    }
    return memcached_take_char(&text, '.') && memcached_take_u64(&text, UINT64_MAX, &patch) &&
           patch >= 13;
}

enum memcached_parse
memcached_version_parse(const char *data, size_t len, bool *meta, size_t *line_len)
{
    struct slice line;
    enum memcached_parse found = memcached_find_line(data, len, &line);

    if (found != MEMCACHED_REPLY) {
        return found;
    }
    *line_len = line.len + 2;
    if (memcached_take(&line, SLICE("VERSION "))) {
        *meta = version_has_meta(line);
        return MEMCACHED_REPLY;
    }
    *meta = false;
    return take_word(&line, TEXT_ERROR) || take_word(&line, TEXT_CLIENT_ERROR) ||
                   take_word(&line, TEXT_SERVER_ERROR)
               ? MEMCACHED_REPLY
               : MEMCACHED_NONSENSE;
}
