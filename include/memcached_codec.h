/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * memcached_codec.h: operations to memcached commands, and replies back: two dialects, one shape.
 *
 * Pure functions: bytes in, struct out; no I/O, no memory, no clock. `text` is the classic protocol
 * (memcached's doc/protocol.txt, "Commands" on) that every compatible store speaks; `meta` is that
 * document's "Meta Commands", as memcached 1.6.13 and later speak it.
 *
 * A storage command on the wire is   command line | value | CRLF   of which the codec writes the
 * first; the connection sends the value from where it lies.
 */
#ifndef KVGATE_MEMCACHED_CODEC_H
#define KVGATE_MEMCACHED_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "slice.h"
#include "store.h"

/* Room that `encode` needs: the longest key and every number at its longest, CRLF included. */
#define MEMCACHED_COMMAND_MAX 512

/* No reply line is longer than this; more without an end of line is nonsense. */
#define MEMCACHED_LINE_MAX 2048

/* What the encoder must know besides the op. */
struct memcached_context {
    int64_t now_s;   /* wall clock, seconds since 1970: long TTLs are sent as dates */
    uint32_t opaque; /* meta: echoed by the server, compared by the decoder */
    bool no_cas;     /* text: the server has no `gets`; read with `get`, out_cas is not known */
};

enum memcached_parse {
    MEMCACHED_MORE,    /* a valid beginning; ask again with more bytes */
    MEMCACHED_REPLY,   /* *reply is filled in */
    MEMCACHED_NONSENSE /* cannot be the answer to this op; *reply is not filled in */
};

struct memcached_reply {
    enum store_status status;
    size_t line_len;   /* bytes used up so far: all of the reply, or all before the data block */
    bool has_value;    /* a data block of value_len bytes follows, and then `tail` */
    size_t value_len;  /* bytes of the data block; of the item, for a HEAD on meta */
    struct slice tail; /* what must follow the data block, byte for byte (static) */
    uint32_t flags;
    uint64_t cas;       /* 0: not told */
    int64_t ttl_left_s; /* or STORE_TTL_NEVER, STORE_TTL_UNKNOWN */
    uint64_t number;    /* INCR, DECR */
    bool close;         /* the server may be out of step, or is leaving: close after this reply */
};

struct memcached_dialect {
    const char *name;
    /*
     * Writes OP's command line with its CRLF to OUT. Returns its length, or 0 when the dialect does
     * not have the verb (or not with these inputs): UNSUPPORTED, and nothing must be sent.
     */
    size_t (*encode)(const struct store_op *op, const struct memcached_context *context,
                     char out[MEMCACHED_COMMAND_MAX]);
    /*
     * Reads the beginning of a reply to OP from DATA. Never looks past LEN. Strict: another key,
     * another opaque, a number out of range, a bare LF, text after the last token: all are
     * nonsense.
     */
    enum memcached_parse (*decode)(const struct store_op *op,
                                   const struct memcached_context *context, const char *data,
                                   size_t len, struct memcached_reply *reply);
};

extern const struct memcached_dialect memcached_text;
extern const struct memcached_dialect memcached_meta;

/*
 * TTL_S seconds from NOW_S as memcached's exptime: as it is up to 30 days, as a date beyond that
 * (memcached reads larger numbers so), never beyond 2^31-1, which is the last date that it knows.
 * When that date is less than 30 days away, or past, long times are cut to 30 days.
 */
int64_t memcached_exptime(uint64_t ttl_s, int64_t now_s);

/*
 * The `version` handshake: "VERSION 1.6.18\r\n" -> whether the meta protocol can be trusted
 * (1.6.13 and later). Text after the numbers is allowed. *META is only set on MEMCACHED_REPLY;
 * *LINE_LEN are the bytes used up. Any other line is a REPLY without meta if it starts with ERROR,
 * CLIENT_ERROR or SERVER_ERROR, and NONSENSE if not.
 */
enum memcached_parse memcached_version_parse(const char *data, size_t len, bool *meta,
                                             size_t *line_len);

#endif
