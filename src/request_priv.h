/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * request_priv.h: the inside of a request, for request.c (its states) and request_prepare.c (what
 * its header asks for).
 */
#ifndef KVGATE_REQUEST_PRIV_H
#define KVGATE_REQUEST_PRIV_H

#include "request.h"

enum request_state { REQUEST_BODY, REQUEST_WAITING, REQUEST_DONE, REQUEST_ORPHAN };

/* What a request is for. */
enum purpose { FOR_KEY, FOR_READY, FOR_MGET };

struct mget;

/* What a read wants to be so. They point into the request's header. */
struct conditions {
    struct slice if_match; /* ptr is NULL where the header is not there; so for all */
    struct slice if_none_match;
    struct slice range;
    struct slice if_range;
};

struct request {
    struct request_context *context; /* (ref) the worker's */
    struct request *next;            /* among the spare ones */
    enum request_state state;
    enum purpose purpose;
    void (*notify)(void *arg); /* called when it is DONE; NULL: nobody wants to know */
    void *notify_arg;          /* (ref) */
    bool is_head;              /* HEAD: the answer has no body */
    size_t store;              /* index of the store that the op goes to */
    struct store_op op;        /* its key and value lie below */
    struct route_match at;     /* route and key; `query` is only valid in request_begin */
    bool was_joining;          /* nothing was joined; the op asks whether the value is there */
    bool is_conditional;       /* a read with conditions; otherwise they are not set */
    struct conditions conditions;
    struct mget *mget;   /* FOR_MGET: the keys (owned); NULL before the body is in */
    struct buffer *body; /* what was received (owned); NULL: nothing yet */
    bool has_length;     /* its length was told: there is room for all of it */
    size_t body_max;     /* bytes that are taken */
    size_t counted;      /* bytes taken from the quota */
    bool drop_body;      /* the body means nothing to this method */
    size_t dropped;      /* bytes of it so far */
    struct reply reply;  /* valid when DONE; its data is owned */
};

/*
 * Decides from HEAD what REQUEST is for: purpose, store, verb and inputs of its op, how much body
 * is taken. REPLY_ID_COUNT: go on; anything else is the refusal.
 */
enum reply_id request_prepare(struct request *request, const struct request_head *head);

/* Moves what the op brought into the reply, under the request's conditions: DONE. */
void request_take_result(struct request *request);

/* DONE, with this answer. */
void request_finish(struct request *request, enum reply_id id);

/* The Content-Type of a value whose own is not known. */
#define REQUEST_TYPE_DEFAULT "application/octet-stream"

#endif
