/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * request.c: the state machine of a request, and the life of its op.
 *
 *             request_begin        request_end          store: done
 *   (spare) --------------> BODY --------------> WAITING -----------> DONE ---> (spare)
 *                            |       |                                  ^    request_release
 *                            |       '---- store answers at once ------>|
 *                            '---- refused: header, body too large ---->'
 *
 * request_release while WAITING makes an ORPHAN: its op completes into nothing, and it goes back to the
 * spare ones then. The op's key and value lie in the request, so they stay as long as the store needs.
 *
 * Who decides what: route.c which key, request_prepare.c which verb and whether it may be, reply.c which
 * status.
 */
#include "request.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "loop.h"
#include "mget.h"
#include "request_priv.h"

/* ---- life ------------------------------------------------------------------------------------ */

/* All but the key, which would be 250 bytes for nothing. */
static struct request *
get_spare(struct request_context *context)
{
    struct request *request = context->spare;

    if (request == NULL) {
        request = malloc(sizeof(*request));
        if (request == NULL) {
            return NULL;
        }
    } else {
        context->spare = request->next;
    }
    request->context = context;
    request->next = NULL;
    request->state = REQUEST_BODY;
    request->purpose = FOR_KEY;
    request->notify = NULL;
    request->is_conditional = false;
    request->was_joining = false;
    request->mget = NULL;
    request->body = NULL;
    request->has_length = false;
    request->body_max = 0;
    request->counted = 0;
    request->store = 0;
    request->drop_body = false;
    request->dropped = 0;
    request->reply = (struct reply){ .ttl_left_s = STORE_TTL_UNKNOWN };
    return request;
}

static void
put_spare(struct request *request)
{
    struct request_context *context = request->context;

    buffer_unref(request->body);
    buffer_unref(request->reply.data);
    mget_destroy(request->mget);
    if (request->counted > 0) {
        quota_give(context->quota, request->counted);
    }
    request->next = context->spare;
    context->spare = request;
}

void
request_context_deinit(struct request_context *context)
{
    while (context->spare != NULL) {
        struct request *request = context->spare;
        context->spare = request->next;
        free(request);
    }
}

void
request_finish(struct request *request, enum reply_id id)
{
    void (*notify)(void *) = request->notify;

    request->reply.id = id;
    request->state = REQUEST_DONE;
    request->notify = NULL;
    if (notify != NULL) {
        notify(request->notify_arg);
    }
}

void
request_notify(struct request *request, void (*done)(void *arg), void *arg)
{
    request->notify = done;
    request->notify_arg = arg;
}

bool
request_is_done(const struct request *request)
{
    return request->state == REQUEST_DONE;
}

struct reply *
request_reply(struct request *request)
{
    assert(request->state == REQUEST_DONE);
    return &request->reply;
}

bool
request_is_head(const struct request *request)
{
    return request->is_head;
}

void
request_release(struct request *request)
{
    if (request->state == REQUEST_WAITING) {
        request->state = REQUEST_ORPHAN;
        return;
    }
    put_spare(request);
}

/* ---- the header and the body ----------------------------------------------------------------- */

struct request *
request_begin(struct request_context *context, const struct request_head *head)
{
    struct request *request = get_spare(context);
    enum reply_id refusal;

    if (request == NULL) {
        return NULL;
    }
    refusal = request_prepare(request, head);
    if (refusal == REPLY_ID_COUNT && request->drop_body &&
        head->content_length > REQUEST_SWALLOW_MAX) {
        refusal = REPLY_TOO_LARGE;
    }
    if (refusal == REPLY_ID_COUNT && !request->drop_body && head->content_length > 0) {
        if (!quota_take(context->quota, head->content_length)) {
            refusal = REPLY_OVERLOADED;
        } else {
            request->counted = head->content_length;
            request->has_length = true;
            request->body = buffer_create(head->content_length);
            refusal = request->body == NULL ? REPLY_INTERNAL : REPLY_ID_COUNT;
        }
    }
    if (refusal != REPLY_ID_COUNT) {
        request_finish(request, refusal);
    }
    return request;
}

/* ---- the body -------------------------------------------------------------------------------- */

/* Makes room for LEN more bytes of a body whose length was not told. REPLY_ID_COUNT: there is. */
static enum reply_id
grow_body(struct request *request, size_t len)
{
    size_t need = (request->body == NULL ? 0 : request->body->len) + len;
    size_t cap = request->body == NULL ? 4096 : request->body->cap;

    if (need > request->body_max) {
        return REPLY_TOO_LARGE;
    }
    if (request->body != NULL && need <= cap) {
        return REPLY_ID_COUNT;
    }
    while (cap < need) {
        cap *= 2;
    }
    if (!quota_take(request->context->quota, cap - request->counted)) {
        return REPLY_OVERLOADED;
    }
    request->counted = cap;
    if (request->body == NULL) {
        request->body = buffer_create(cap);
        return request->body == NULL ? REPLY_INTERNAL : REPLY_ID_COUNT;
    }
    return buffer_reserve(&request->body, cap) < 0 ? REPLY_INTERNAL : REPLY_ID_COUNT;
}

bool
request_body(struct request *request, const char *data, size_t len)
{
    enum reply_id refusal;

    if (request->state == REQUEST_DONE) {
        return false;
    }
    assert(request->state == REQUEST_BODY);
    if (request->drop_body) {
        request->dropped += len;
        refusal = request->dropped > REQUEST_SWALLOW_MAX ? REPLY_TOO_LARGE : REPLY_ID_COUNT;
    } else {
        refusal = grow_body(request, len);
    }
    if (refusal != REPLY_ID_COUNT) {
        request_finish(request, refusal);
        return false;
    }
    if (!request->drop_body) {
        memcpy(request->body->data + request->body->len, data, len);
        request->body->len += len;
    }
    return true;
}

char *
request_body_space(const struct request *request, size_t *len)
{
    struct buffer *body = request->body;

    *len = 0;
    if (request->state != REQUEST_BODY || body == NULL || !request->has_length) {
        return NULL;
    }
    *len = body->cap - body->len;
    return body->data + body->len;
}

void
request_body_placed(struct request *request, size_t len)
{
    assert(len <= request->body->cap - request->body->len);
    request->body->len += len;
}

/* ---- the store ------------------------------------------------------------------------------- */

static void on_done(struct store_op *op);

static void
submit(struct request *request)
{
    struct store *store = request->context->stores[request->store];

    request->op.arg = request;
    request->op.done = on_done;
    request->op.data = NULL;
    request->state = REQUEST_WAITING;
    request->context->waiting++;
    if (store->type->submit(store, &request->op)) {
        on_done(&request->op);
    }
}

/*
 * A store does not say why it has joined nothing: the value may be absent, or too large with what was
 * to be joined. Whether it is there says which.
 */
static bool
ask_why_not_joined(struct request *request)
{
    struct store_op *op = &request->op;
    bool joins = op->verb == STORE_APPEND || op->verb == STORE_PREPEND;

    if (request->was_joining && op->status == STORE_OK) {
        request_finish(request, REPLY_TOO_LARGE);
        return true;
    }
    if (!joins || op->status != STORE_NOT_STORED) {
        return false;
    }
    request->was_joining = true;
    store_op_init(op, STORE_HEAD, slice_of(request->at.key, request->at.key_len));
    submit(request);
    return true;
}

/* The next store that a route uses, from INDEX on; store_count: there is none. */
static size_t
next_used_store(const struct config *config, size_t index)
{
    for (; index < config->store_count; index++) {
        for (size_t i = 0; i < config->route_count; i++) {
            if (config->routes[i].store == index) {
                return index;
            }
        }
    }
    return index;
}

/* mget: all have answered. */
static void
on_mget_done(void *arg)
{
    struct request *request = arg;
    struct reply *reply = &request->reply;

    request->context->waiting--;
    request->context->loop->progress = true;
    if (request->state == REQUEST_ORPHAN) {
        put_spare(request);
        return;
    }
    reply->data = mget_json(request->mget);
    if (reply->data == NULL) {
        request_finish(request, REPLY_INTERNAL);
        return;
    }
    reply->value_len = reply->count = reply->data->len;
    reply->content_type = "application/json";
    quota_add(request->context->quota, reply->value_len);
    request->counted += reply->value_len;
    request_finish(request, REPLY_VALUE);
}

/* The keys of a POST are in its body, which is in now. */
static void
submit_mget(struct request *request)
{
    if (request->mget == NULL) {
        struct slice lines = request->body == NULL
                                 ? slice_of(NULL, 0)
                                 : slice_of(request->body->data, request->body->len);
        enum reply_id refusal = mget_create_from_lines(request->context, lines, &request->mget);

        if (refusal != REPLY_ID_COUNT) {
            request_finish(request, refusal);
            return;
        }
    }
    request->state = REQUEST_WAITING;
    request->context->waiting++;
    if (mget_submit(request->mget, on_mget_done, request)) {
        on_mget_done(request);
    }
}

/* /-/ready asks every store in use for a key, one after the other; that it has none is an answer.
 */
static void
ask_next_store(struct request *request, size_t index)
{
    request->store = next_used_store(request->context->config, index);
    if (request->store == request->context->config->store_count) {
        request_finish(request, REPLY_READY);
        return;
    }
    store_op_init(&request->op, STORE_HEAD, SLICE("kvgate:ready"));
    submit(request);
}

static void
on_done(struct store_op *op)
{
    struct request *request = op->arg;

    request->context->waiting--;
    request->context->loop->progress = true;
    if (request->state == REQUEST_ORPHAN) {
        buffer_unref(op->data);
        put_spare(request);
        return;
    }
    assert(request->state == REQUEST_WAITING);
    if (request->purpose == FOR_KEY && ask_why_not_joined(request)) {
        return;
    }
    if (request->purpose == FOR_KEY) {
        request_take_result(request);
    } else if (op->status == STORE_OK || op->status == STORE_MISS) {
        ask_next_store(request, request->store + 1);
    } else {
        request_finish(request, REPLY_NOT_READY);
    }
}

void
request_end(struct request *request)
{
    if (request->state == REQUEST_DONE) {
        return;
    }
    assert(request->state == REQUEST_BODY);
    if (request->purpose == FOR_READY) {
        ask_next_store(request, 0);
        return;
    }
    if (request->purpose == FOR_MGET) {
        submit_mget(request);
        return;
    }
    if (request->body != NULL) {
        request->op.value = slice_of(request->body->data, request->body->len);
    }
    submit(request);
}
