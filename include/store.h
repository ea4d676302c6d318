/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * store.h: THE contract between requests and the places where values live.
 *
 * A store type is one file that fills in a struct store_type. Of each configured store there is
 * one `struct store_shared` per process (a database, a list of servers) and one `struct store` per
 * worker, which only that worker's thread touches and which lives on that worker's loop.
 *
 *   setup --> open (per worker) --> submit, submit, ..., flush --> ... --> close --> teardown
 *                                      |                  ^
 *                                      v                  | once per turn of the loop
 *                               done, exactly once per op
 *
 * Rules of an operation:
 *   - The caller owns it, and everything that it points to, and keeps both still from submit until
 * it is complete. Then the memory is the caller's again.
 *   - It completes exactly once, on the worker's own thread: either submit returns true, then the
 *     results are in the op and `done` is not called (a store that answers from memory); or submit
 *     returns false, and `done` is called later, never from inside submit.
 *   - `done` may submit again; it must not close the store. The store does not touch the op
 *     after calling it.
 *   - There is no cancel: whoever loses interest lets the op complete into nothing. All ops
 *     have a deadline, so that is soon.
 *
 * STORE_MISS means that the store said so. A store that cannot be reached, is silent or talks
 * nonsense is never a miss.
 */
#ifndef KVGATE_STORE_H
#define KVGATE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buffer.h"
#include "config.h"
#include "slice.h"

struct loop;

/* Longest key, route prefix included: memcached's limit, kept by every store. Bytes. */
#define STORE_KEY_MAX 250

enum store_verb {
    STORE_GET,     /* value, flags, cas, ttl */
    STORE_HEAD,    /* as GET without the value: value_len only */
    STORE_SET,     /* whatever was there */
    STORE_ADD,     /* only if absent, else NOT_STORED */
    STORE_REPLACE, /* only if present, else NOT_STORED */
    STORE_CAS,     /* only if the item's cas is still op->cas: else EXISTS; MISS if it is gone */
    STORE_APPEND,  /* value after the old one; flags and ttl stay; NOT_STORED if absent */
    STORE_PREPEND, /* value before the old one; likewise */
    STORE_DELETE,  /* MISS if absent; with op->cas != 0 only if unchanged, else EXISTS */
    STORE_INCR,    /* adds op->delta modulo 2^64; MISS, or created with op->initial */
    STORE_DECR,    /* subtracts, not below 0; likewise */
    STORE_TOUCH,   /* new ttl; MISS if absent */
    STORE_VERB_COUNT
};

enum store_status {
    STORE_OK,
    STORE_MISS,        /* the store said: no such key */
    STORE_EXISTS,      /* CAS, DELETE: changed since */
    STORE_NOT_STORED,  /* ADD: present; REPLACE, APPEND, PREPEND: absent */
    STORE_TOO_LARGE,   /* over what the store takes; the old value is as it was, unless the store
                          refused what it should take by our configuration */
    STORE_BAD_VALUE,   /* INCR, DECR: the value is not a number */
    STORE_NO_MEMORY,   /* the store, or this process, is full */
    STORE_UNAVAILABLE, /* no connection to be had, or it broke */
    STORE_TIMEOUT,     /* the store was silent for too long */
    STORE_BAD_REPLY,   /* it talked nonsense, or refused without saying why */
    STORE_OVERLOADED,  /* too many operations are waiting on it; nothing was sent */
    STORE_CANCELLED,   /* the store was closed first */
    STORE_UNSUPPORTED, /* this store does not have this verb */
    STORE_STATUS_COUNT
};

/* store_op.ttl_left_s of a value that never expires, and of one whose store does not tell. */
#define STORE_TTL_NEVER   (-1)
#define STORE_TTL_UNKNOWN (-2)

/* Longest time to live, in seconds: some 100 years. More is refused before it gets here. */
#define STORE_TTL_MAX UINT64_C(3155760000)

struct store_op {
    /* in: the caller fills this in before submit (see store_op_init) */
    enum store_verb verb;
    struct slice key;   /* (ref) 1..STORE_KEY_MAX bytes, none of them <= 0x20 or 0x7f */
    struct slice value; /* (ref) SET ADD REPLACE CAS APPEND PREPEND */
    uint32_t flags;     /* SET ADD REPLACE CAS: kept with the value */
    uint64_t ttl_s;     /* seconds to live, from now; 0: for ever; SET.. TOUCH, INCR that creates */
    uint64_t cas;       /* CAS: what it must be; DELETE: the same, 0 for any */
    uint64_t delta;     /* INCR DECR */
    uint64_t initial;   /* INCR DECR: the value of a counter that is created */
    bool create;        /* INCR DECR: create a missing counter, in one step */
    /*
     * Monotonic ms; CLOCK_NEVER: the store's own time-out alone. A store that answers in order may notice
     * it late, when what was sent before it is answered; never later than its own time-out.
     */
    int64_t deadline_ms;
    void (*done)(struct store_op *op); /* the completion; see the rules above */
    void *arg;                         /* the caller's own */

    /* out: valid once complete */
    enum store_status status;
    struct buffer *data; /* GET, OK: the value; the caller holds this reference */
    size_t value_len;    /* GET HEAD, OK: bytes of the value */
    uint32_t out_flags;  /* GET HEAD, OK */
    uint64_t out_cas;    /* GET HEAD and, where the store tells, every write; 0: not known */
    int64_t ttl_left_s;  /* GET HEAD, OK: seconds, STORE_TTL_NEVER or STORE_TTL_UNKNOWN */
    uint64_t number;     /* INCR DECR, OK: the new value */

    /* private to the store from submit to completion */
    struct store_op *next;   /* (ref) queue link */
    struct store_op *joined; /* (ref) GETs of the same key that share this one's answer */
    void *home;              /* (ref) the store's handle, for a store with a thread */
    uint32_t opaque;         /* matches a reply to its request */
    uint64_t stream_begin;   /* where its command begins in the connection's stream of bytes */
    uint64_t stream_end;     /* where it ends */
    bool retried;            /* a read is sent a second time, never a third */
};

/* One process's share of a configured store, and one worker's. Each type embeds them. */
struct store_shared {
    const struct store_type *type;
    const struct config_store *config; /* (ref) outlives it */
};

struct store {
    const struct store_type *type;
    struct loop *loop; /* (ref) the worker's */
};

struct store_type {
    const char *name; /* as in the configuration's `type =` */

    /*
     * Once, in the main thread, before any worker. NULL: ERROR says why. A server that does not
     * answer is no error; a directory that cannot be made is.
     */
    struct store_shared *(*setup)(const struct config_store *config, char error[CONFIG_ERROR_MAX]);
    /* Once, in the main thread, after every worker has closed. */
    void (*teardown)(struct store_shared *shared);

    /* In the worker's thread. NULL: no memory. SHARED and LOOP outlive the handle. */
    struct store *(*open)(struct store_shared *shared, struct loop *loop);
    /* Completes every pending op (CANCELLED, if it could not be done before), then frees. */
    void (*close)(struct store *store);

    /* Takes OP. True: complete already, `done` will not be called. See the rules above. */
    bool (*submit)(struct store *store, struct store_op *op);
    /* Once per turn: everything submitted since goes out together. */
    void (*flush)(struct store *store);
    /* When `expire` must be called next (monotonic ms), or CLOCK_NEVER. */
    int64_t (*next_deadline)(const struct store *store);
    /* Once per turn: completes what has waited too long by loop->now_ms. */
    void (*expire)(struct store *store);

    /*
     * The longest value that this store takes under a key of KEY_LEN bytes, so that a body that is
     * too large is refused before it is read. Any thread.
     */
    size_t (*value_max)(const struct store_shared *shared, size_t key_len, uint32_t flags);
};

extern const struct store_type store_embedded;
extern const struct store_type store_memcached;
extern const struct store_type store_binary; /* type = memcached, dialect = binary */

/* The type that CONFIG asks for. */
const struct store_type *store_type_of(const struct config_store *config);

/* An op with its inputs empty: no value, no flags, for ever, CLOCK_NEVER; outputs as "not known".
 */
void store_op_init(struct store_op *op, enum store_verb verb, struct slice key);

/* True for GET and HEAD: asking twice does no harm. */
static inline bool
store_verb_reads(enum store_verb verb)
{
    return verb == STORE_GET || verb == STORE_HEAD;
}

/* True for the verbs that carry a value to the store. */
static inline bool
store_verb_has_value(enum store_verb verb)
{
    return verb >= STORE_SET && verb <= STORE_PREPEND;
}

/* "get", "set" ...; "ok", "miss" ...: for logs, tests and metrics. Never NULL. */
const char *store_verb_name(enum store_verb verb);
const char *store_status_name(enum store_status status);

#endif
