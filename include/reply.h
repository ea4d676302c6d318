/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reply.h: everything that the gateway can answer, in one table: status code, title, detail.
 *
 * Whoever refuses a request names the reason (an enum reply_id); nobody else knows a status code.
 * Errors are application/problem+json (RFC 9457). The detail says what the client can do something
 * about; it never tells a server's address or what a store said.
 */
#ifndef KVGATE_REPLY_H
#define KVGATE_REPLY_H

#include <stdbool.h>
#include <stddef.h>

#include "buffer.h"
#include "route.h"
#include "store.h"

enum reply_id {
    REPLY_VALUE,        /* a value, or what HEAD tells of it */
    REPLY_PART,         /* a range of a value */
    REPLY_NOT_MODIFIED, /* the client has it already */
    REPLY_STORED,
    REPLY_CREATED,
    REPLY_DELETED,
    REPLY_OPTIONS,
    REPLY_HEALTHY,
    REPLY_READY,
    REPLY_BAD_TARGET,
    REPLY_BAD_ESCAPE,
    REPLY_EMPTY_KEY,
    REPLY_BAD_KEY,
    REPLY_BAD_TTL,
    REPLY_TTL_STAYS,
    REPLY_BAD_NUMBER,
    REPLY_BAD_OPERATION,
    REPLY_BAD_PRECONDITION,
    REPLY_PARTIAL,
    REPLY_BAD_KEYS,
    REPLY_BAD_LENGTH,
    REPLY_BAD_TRANSFER,
    REPLY_BAD_HOST,
    REPLY_BAD_HEADER,
    REPLY_MISS,
    REPLY_NO_ROUTE,
    REPLY_NO_PAGE,
    REPLY_METHOD,
    REPLY_SLOW,
    REPLY_NOT_A_NUMBER,
    REPLY_LENGTH_REQUIRED,
    REPLY_PRECONDITION,
    REPLY_TOO_LARGE,
    REPLY_KEY_TOO_LONG,
    REPLY_RANGE,
    REPLY_EXPECTATION,
    REPLY_TOO_MANY_FROM_ADDRESS,
    REPLY_INTERNAL,
    REPLY_UNSUPPORTED,
    REPLY_NO_TOUCH,
    REPLY_NO_CAS,
    REPLY_NO_INITIAL,
    REPLY_STORE_NONSENSE,
    REPLY_TOO_MANY_CONNECTIONS,
    REPLY_OVERLOADED,
    REPLY_STORE_DOWN,
    REPLY_NOT_READY,
    REPLY_STOPPING,
    REPLY_STORE_SILENT,
    REPLY_STORE_FULL,
    REPLY_ID_COUNT
};

/* What a request is answered with. Filled in by request.c, put on the wire by http.c. */
struct reply {
    enum reply_id id;
    unsigned allow; /* METHOD, OPTIONS: the config_method bits that would do */
    /* of values and parts, and the first also of writes */
    uint64_t cas;              /* becomes the ETag; 0: not known */
    struct buffer *data;       /* the value (owned); NULL for HEAD */
    size_t value_len;          /* bytes of the whole value */
    size_t first;              /* where a part begins in it */
    size_t count;              /* bytes of the part */
    int64_t ttl_left_s;        /* becomes KV-TTL; STORE_TTL_NEVER and STORE_TTL_UNKNOWN do not */
    const char *content_type;  /* (ref) */
    const char *cache_control; /* (ref) NULL: none */
    bool caches_ttl;           /* max-age is ttl_left_s */
    bool is_item;              /* a value of the store: it has ranges, and is not to be sniffed */
    const char *kept_type;     /* (ref) writes: what stands for the type that was sent, or NULL */
};

/* Room for the body and for the Allow header of any reply, with a NUL. */
#define REPLY_BODY_MAX  512
#define REPLY_ALLOW_MAX 64

unsigned reply_status(enum reply_id id);

/* "Not Found": the reason phrase of a status code in the table. */
const char *reply_reason(enum reply_id id);

/* The sentence that says what happened; NULL where there is none. */
const char *reply_detail(enum reply_id id);

/* Content-Type of the body, or NULL where there is none (204, and values, which have their own). */
const char *reply_content_type(enum reply_id id);

/* Whether the answer carries "Retry-After: 1": trouble that passes. */
bool reply_retry_after(enum reply_id id);

/* Whether the connection cannot be used after this answer: where the next request begins is not
 * known. */
bool reply_closes(enum reply_id id);

/* Writes the body of ID to OUT and returns its length; 0 where there is none. */
size_t reply_body(enum reply_id id, char out[REPLY_BODY_MAX]);

/* Writes "GET, HEAD, OPTIONS" for METHODS to OUT. */
void reply_allow(unsigned methods, char out[REPLY_ALLOW_MAX]);

/* The answer to a target that is no key; ROUTE_KEY is not asked for. */
enum reply_id reply_from_route(enum route_result result);

/* The answer to a completed op. */
enum reply_id reply_from_store(enum store_verb verb, enum store_status status);

#endif
