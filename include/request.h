/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * request.h: one HTTP request, from its header to its answer, without a word about how HTTP is
 * read or written (http.c) or where values live (store.h).
 *
 *   request_begin -> request_body* -> request_end -> (poll request_is_done) -> reply ->
 * request_release
 */
#ifndef KVGATE_REQUEST_H
#define KVGATE_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config.h"
#include "quota.h"
#include "reply.h"
#include "slice.h"
#include "store.h"

struct loop;
struct request;

/* What the requests of one worker share. The worker owns it and fills in all but `spare`. */
struct request_context {
    const struct config *config;                         /* (ref) */
    struct quota *quota;                                 /* (ref) of all workers */
    struct loop *loop;                                   /* (ref) the worker's */
    struct store *stores[CONFIG_STORE_MAX];              /* (ref) by config index */
    const struct store_shared *shared[CONFIG_STORE_MAX]; /* (ref) by config index */
    struct request *spare;                               /* requests to be used again (owned) */
    size_t waiting;                                      /* requests whose op is under way */
    size_t suspended;                                    /* those of them that are not polled */
};

/*
 * The parts of the header that decide something. The struct is only read inside request_begin; what
 * its conditions and range point to stays until request_release, since they are about the value.
 */
struct request_head {
    struct slice method;
    struct slice target;     /* raw, as on the request line */
    bool version_1_1;        /* HTTP/1.1: Host is needed, expectations count */
    bool target_damaged;     /* there was a NUL or a space in it */
    bool bad_header;         /* malformed: a space behind a name, folded, cut by a NUL */
    bool chunked;            /* Transfer-Encoding: chunked */
    unsigned transfers;      /* Transfer-Encoding headers */
    unsigned lengths;        /* Content-Length headers */
    unsigned hosts;          /* Host headers */
    bool partial;            /* Content-Range: the body is a part of a value */
    bool bad_transfer;       /* one of them is not exactly "chunked" */
    bool bad_length;         /* one of them is not a number */
    uint64_t content_length; /* bytes; valid with lengths == 1 */
    struct slice expect;     /* ptr is NULL where the header is not there; so for those below */
    struct slice if_match;
    struct slice if_none_match;
    struct slice if_range;
    struct slice range;
    struct slice cache_control;
    struct slice content_type;
    enum quota_verdict quota; /* of the connection that it came on */
};

/* From so many on, waiting requests are looked at less often. */
#define REQUEST_MANY_WAITING 256

/* A body of a refused request, up to this many bytes, is read and dropped to keep the connection.
 */
#define REQUEST_SWALLOW_MAX (64 * 1024)

/* Frees what `spare` holds. Requests under way must be complete. */
void request_context_deinit(struct request_context *context);

/*
 * A new request, which decides at once what can be decided from the header. NULL: no memory.
 * The caller gives it back with request_release.
 */
struct request *request_begin(struct request_context *context, const struct request_head *head);

/*
 * A piece of the body. False: the body is too large by now, or there is no memory for it; the
 * request is done (its reply says why) and nothing more of it is wanted.
 */
bool request_body(struct request *request, const char *data, size_t len);

/*
 * Where the next bytes of the body belong, and in LEN how many are still to come, for who can put them there without a
 * copy. NULL and 0: how many is not known, or none are wanted; request_body takes what comes.
 */
char *request_body_space(const struct request *request, size_t *len);

/* LEN bytes were put there. */
void request_body_placed(struct request *request, size_t len);

/* The body is complete: the op goes to its store. Call it once, also for a request without a body.
 */
void request_end(struct request *request);

/* Whether the reply stands. Before request_end: the request was refused on its header. */
bool request_is_done(const struct request *request);

/*
 * Instead of asking again and again: calls DONE(ARG) once, when the reply of a request that waits for its store stands.
 * Not from inside this call. DONE NULL: no more.
 */
void request_notify(struct request *request, void (*done)(void *arg), void *arg);

/* The reply of a request that is done; its buffer still belongs to the request. */
struct reply *request_reply(struct request *request);

/* Whether an answer without its body is wanted (HEAD). */
bool request_is_head(const struct request *request);

/* The caller will not ask again. What its op still holds is freed when that completes. */
void request_release(struct request *request);

#endif
