/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * http_reply.h: replies as libmicrohttpd's responses. Private to the HTTP front (http.c).
 *
 * Header and body of an answer leave in one sendmsg, which libmicrohttpd does for buffer responses only; so
 * every reply is one. Replies without a value are made once per front and queued again and again; GETs
 * that shared one buffer in a turn share one response, too.
 */
#ifndef KVGATE_HTTP_REPLY_H
#define KVGATE_HTTP_REPLY_H

#include <microhttpd.h>

#include "reply.h"

struct http_replies {
    struct MHD_Response *fixed[REPLY_ID_COUNT]; /* replies without a value, made when first used */
    struct MHD_Response *shared; /* the last value's response, for the rest of the pass */
    struct reply shared_reply;   /* what it answered; compared only */
};

/* The response to REPLY, which stays valid until http_replies_forget. NULL: no memory. */
struct MHD_Response *http_replies_get(struct http_replies *replies, const struct reply *reply);

/* The pass is over: lets go of the shared response. */
void http_replies_forget(struct http_replies *replies);

/* Frees all of them. */
void http_replies_deinit(struct http_replies *replies);

/*
 * Writes an answer to the socket past libmicrohttpd, which cannot take one between the header and the end
 * of a body. Nothing has been sent for this request, so the socket has room. The connection must be closed
 * after it.
 */
void http_reply_raw(int fd, enum reply_id id);

#endif
