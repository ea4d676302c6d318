/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mget.h: many keys in one request: one GET of each to its store, all in the same turn, and one
 * JSON text with the answers in the order in which they were asked for:
 *
 *   {"values":[{"key":"a","status":200,"value":"text","etag":"\"7\"","ttl":60},
 *              {"key":"b","status":200,"base64":"AP8=","etag":"\"8\""},
 *              {"key":"c","status":404,"detail":"There is no value under this key."}]}
 *
 * A key is written as in the path of a GET, percent-encoded; its first slash may be left out. The
 * rules of its route hold for it. What goes wrong with one key is said of that key alone.
 */
#ifndef KVGATE_MGET_H
#define KVGATE_MGET_H

#include <stddef.h>

#include "reply.h"
#include "request.h"
#include "slice.h"

/* Keys in one request; the memory for them is taken at once. */
#define MGET_KEYS_MAX 1000

/* Bytes of a POST's body: a key's 250 bytes and a route's prefix, all of it percent-encoded, and CRLF. */
#define MGET_BODY_MAX (MGET_KEYS_MAX * (3 * (STORE_KEY_MAX + CONFIG_TEXT_MAX) + 2))

struct mget;

/*
 * The keys of "key=a&key=b", or of lines that end with LF or CRLF; empty lines are none. TEXT stays
 * where it is until mget_destroy. REPLY_ID_COUNT: *MGET is the caller's; anything else is the
 * refusal.
 */
enum reply_id mget_create_from_query(struct request_context *context, struct slice text,
                                     struct mget **mget);
enum reply_id mget_create_from_lines(struct request_context *context, struct slice text,
                                     struct mget **mget);

/*
 * Asks the stores. False: DONE(ARG) will be called when the last has answered, not from in here.
 * True: all have answered already.
 */
bool mget_submit(struct mget *mget, void (*done)(void *arg), void *arg);

/* The answer, in one buffer, the caller's. NULL: no memory. */
struct buffer *mget_json(const struct mget *mget);

/* All must have answered. NULL is allowed. */
void mget_destroy(struct mget *mget);

#endif
