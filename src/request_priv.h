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
enum purpose { FOR_KEY, FOR_READY };

struct request {
    struct request_context *context; /* (ref) the worker's */
    struct request *next;            /* among the spare ones */
    enum request_state state;
    enum purpose purpose;
    bool is_head;          /* HEAD: the answer has no body */
    size_t store;          /* index of the store that the op goes to */
    struct store_op op;    /* its key and value lie below */
    struct route_match at; /* route and key; `query` is only valid in request_begin */
    struct buffer *body;   /* what was received (owned); NULL: nothing yet */
    size_t body_max;       /* bytes that are taken */
    size_t counted;        /* bytes taken from the quota */
    bool drop_body;        /* the body means nothing to this method */
    size_t dropped;        /* bytes of it so far */
    struct reply reply;    /* valid when DONE; its data is owned */
};

/*
 * Decides from HEAD what REQUEST is for: purpose, store, verb and inputs of its op, how much body
 * is taken. REPLY_ID_COUNT: go on; anything else is the refusal.
 */
enum reply_id request_prepare(struct request *request, const struct request_head *head);

#endif
