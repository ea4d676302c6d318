/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * memcached_codec_priv.h: what the two dialects of memcached_codec.h share, for them alone.
 *
 * Writing is a chain of `put`s into a buffer that is known to be large enough. Reading is a chain
 * of `take`s from a line that is known to be complete: each takes what it names off the front of
 * the slice, or answers false, and then the line is nonsense.
 */
#ifndef KVGATE_MEMCACHED_CODEC_PRIV_H
#define KVGATE_MEMCACHED_CODEC_PRIV_H

#include "memcached_codec.h"

/* A longer data block is no answer of any server: memcached's own items end at 1 GiB. Bytes. */
#define MEMCACHED_VALUE_MAX (UINT64_C(1) << 30)

static inline char *
memcached_put(char *out, struct slice text)
{
    memcpy(out, text.ptr, text.len);
    return out + text.len;
}

/* N in decimal; at most 20 bytes. Returns the end. */
char *memcached_put_u64(char *out, uint64_t n);

/* OP's TTL as exptime. */
char *memcached_put_exptime(char *out, const struct store_op *op,
                            const struct memcached_context *context);

/*
 * Finds the line that DATA begins with. MEMCACHED_REPLY: *LINE is it without its CRLF, so that
 * LINE->len + 2 bytes are used up.
 */
enum memcached_parse memcached_find_line(const char *data, size_t len, struct slice *line);

static inline bool
memcached_take_char(struct slice *s, char c)
{
    if (s->len == 0 || *s->ptr != c) {
        return false;
    }
    s->ptr++;
    s->len--;
    return true;
}

static inline bool
memcached_take(struct slice *s, struct slice text)
{
    if (!slice_starts_with(*s, text)) {
        return false;
    }
    s->ptr += text.len;
    s->len -= text.len;
    return true;
}

/* Digits up to the first byte that is none; false if there is none, or for more than MAX. */
bool memcached_take_u64(struct slice *s, uint64_t max, uint64_t *n);

/*
 * The new value of a counter, which is all of S: a decimal number, and then maybe the spaces that
 * some servers pad a decremented one with.
 */
bool memcached_take_counter(struct slice s, uint64_t *n);

/* A reply with STATUS and nothing else known, whose line is LINE. */
void memcached_reply_init(struct memcached_reply *reply, enum store_status status,
                          struct slice line);

/*
 * LINE as one of the error lines that both dialects have, in answer to OP. NONSENSE: it is none.
 */
enum memcached_parse memcached_error_reply(const struct store_op *op, struct slice line,
                                           struct memcached_reply *reply);

#endif
