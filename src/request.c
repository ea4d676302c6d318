/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * request.c: the state machine of a request, and the mapping of HTTP to store operations.
 *
 *             request_begin        request_end          store: done
 *   (spare) --------------> BODY --------------> WAITING -----------> DONE ---> (spare)
 *                            |       |                                  ^    request_release
 *                            |       '---- store answers at once ------>|
 *                            '---- refused: header, body too large ---->'
 *
 *   request_release while WAITING makes an ORPHAN: its op completes into nothing, and it goes back
 * to the spare ones then. The op's key and value lie in the request, so they stay as long as the
 * store needs.
 *
 * Who decides what: route.c which key, this file which verb and whether it may be, reply.c which
 * status.
 */
#include "request.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "loop.h"

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

/* ---- life -------------------------------------------------------------------------------------
 */

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
    request->body = NULL;
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

static void
finish(struct request *request, enum reply_id id)
{
    request->reply.id = id;
    request->state = REQUEST_DONE;
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

/* ---- the header -------------------------------------------------------------------------------
 */

/* REPLY_ID_COUNT: nothing is wrong. Framing that two readers could take differently is refused
   (RFC 9112, section 6.3): a proxy in front may have taken it the other way. */
static enum reply_id
check_framing(const struct request_head *head)
{
    if (head->bad_name) {
        return REPLY_BAD_HEADER;
    }
    if (head->lengths > 1 || head->bad_length || (head->lengths > 0 && head->transfers > 0)) {
        return REPLY_BAD_LENGTH;
    }
    if (head->transfers > 1 || head->bad_transfer) {
        return REPLY_BAD_TRANSFER;
    }
    if (head->hosts > 1 || (head->hosts == 0 && head->version_1_1)) {
        return REPLY_BAD_HOST;
    }
    if (head->expect.ptr != NULL && head->version_1_1 &&
        !slice_equal_nocase(head->expect, SLICE("100-continue"))) {
        return REPLY_EXPECTATION;
    }
    return REPLY_ID_COUNT;
}

/* `ttl` of the query, else the route's default. False: not a number of seconds. */
static bool
read_ttl(const struct request *request, uint64_t *ttl_s)
{
    struct slice text;

    *ttl_s = request->at.route->ttl_s;
    if (!route_parameter(request->at.query, SLICE("ttl"), &text)) {
        return true;
    }
    return slice_to_u64(text, ttl_s) && *ttl_s <= STORE_TTL_MAX;
}

/* An ETag is a CAS in quotes. */
static bool
parse_etag(struct slice text, uint64_t *cas)
{
    if (text.len < 3 || text.ptr[0] != '"' || text.ptr[text.len - 1] != '"') {
        return false;
    }
    return slice_to_u64(slice_of(text.ptr + 1, text.len - 2), cas);
}

/* The verb of a write under its preconditions (RFC 9110, section 13.1), atomic in the store. */
static enum reply_id
choose_write(const struct request_head *head, struct store_op *op)
{
    op->verb = STORE_SET;
    if (head->if_match.ptr != NULL && head->if_none_match.ptr != NULL) {
        return REPLY_BAD_PRECONDITION;
    }
    if (head->if_none_match.ptr != NULL) {
        op->verb = STORE_ADD;
        return slice_equal(head->if_none_match, SLICE("*")) ? REPLY_ID_COUNT
                                                            : REPLY_BAD_PRECONDITION;
    }
    if (head->if_match.ptr == NULL) {
        return REPLY_ID_COUNT;
    }
    if (slice_equal(head->if_match, SLICE("*"))) {
        op->verb = STORE_REPLACE;
        return REPLY_ID_COUNT;
    }
    op->verb = STORE_CAS;
    return parse_etag(head->if_match, &op->cas) ? REPLY_ID_COUNT : REPLY_BAD_PRECONDITION;
}

static enum reply_id
choose_delete(const struct request_head *head, struct store_op *op)
{
    op->verb = STORE_DELETE;
    if (head->if_none_match.ptr != NULL ||
        (head->if_match.ptr != NULL && !parse_etag(head->if_match, &op->cas))) {
        return REPLY_BAD_PRECONDITION;
    }
    return REPLY_ID_COUNT;
}

/* `op` of the query. Counters, joins and touch are known by name, and not built yet. */
static enum reply_id
check_operation(const struct request *request)
{
    static const struct slice names[] = {
        SLICE_LITERAL("incr"),    SLICE_LITERAL("decr"),  SLICE_LITERAL("append"),
        SLICE_LITERAL("prepend"), SLICE_LITERAL("touch"),
    };
    struct slice op;

    if (!route_parameter(request->at.query, SLICE("op"), &op)) {
        return REPLY_ID_COUNT;
    }
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (slice_equal(names[i], op)) {
            return REPLY_UNSUPPORTED;
        }
    }
    return REPLY_BAD_OPERATION;
}

static enum reply_id
prepare_write(struct request *request, const struct request_head *head, unsigned method)
{
    const struct config_route *route = request->at.route;
    enum reply_id refusal = REPLY_ID_COUNT;

    if (method == CONFIG_POST) {
        refusal = check_operation(request);
    }
    if (refusal == REPLY_ID_COUNT && !read_ttl(request, &request->op.ttl_s)) {
        refusal = REPLY_BAD_TTL;
    }
    if (refusal == REPLY_ID_COUNT) {
        refusal = choose_write(head, &request->op);
    }
    if (refusal != REPLY_ID_COUNT) {
        return refusal;
    }
    if (head->lengths == 0 && !head->chunked) {
        return REPLY_LENGTH_REQUIRED;
    }
    const struct store_shared *shared = request->context->shared[route->store];
    request->body_max = shared->type->value_max(shared, request->at.key_len, 0);
    if (route->body_max != 0 && route->body_max < request->body_max) {
        request->body_max = route->body_max;
    }
    return head->content_length > request->body_max ? REPLY_TOO_LARGE : REPLY_ID_COUNT;
}

/* A request on a key: its verb and inputs. REPLY_ID_COUNT: go on. */
static enum reply_id
prepare_key(struct request *request, const struct request_head *head, unsigned method)
{
    const struct config_route *route = request->at.route;
    struct slice key = slice_of(request->at.key, request->at.key_len);

    if ((route->methods & method) == 0) {
        request->reply.allow = route->methods;
        return REPLY_METHOD;
    }
    store_op_init(&request->op, STORE_GET, key);
    request->store = route->store;
    request->reply.content_type = route->content_type;
    switch (method) {
    case CONFIG_PUT:
    case CONFIG_POST:
        return prepare_write(request, head, method);
    case CONFIG_DELETE:
        request->drop_body = true;
        return choose_delete(head, &request->op);
    case CONFIG_HEAD:
        request->op.verb = STORE_HEAD;
        break;
    default:
        break;
    }
    request->drop_body = true;
    return REPLY_ID_COUNT;
}

/* The gateway's own pages: only GET and HEAD. REPLY_ID_COUNT: ask the stores. */
static enum reply_id
prepare_own(struct request *request, enum route_result result, unsigned method)
{
    bool is_page = result == ROUTE_HEALTH || result == ROUTE_READY;

    request->drop_body = true;
    if (is_page && (method & (CONFIG_GET | CONFIG_HEAD)) == 0) {
        request->reply.allow = CONFIG_GET | CONFIG_HEAD;
        return REPLY_METHOD;
    }
    if (result != ROUTE_READY) {
        return reply_from_route(result);
    }
    request->purpose = FOR_READY;
    return REPLY_ID_COUNT;
}

static enum reply_id
prepare(struct request *request, const struct request_head *head)
{
    enum reply_id refusal = check_framing(head);
    enum route_result result;
    unsigned method = route_method(head->method);

    request->is_head = method == CONFIG_HEAD;
    request->at.route = NULL;
    if (head->quota != QUOTA_OK) {
        return head->quota == QUOTA_ADDRESS ? REPLY_TOO_MANY_FROM_ADDRESS
                                            : REPLY_TOO_MANY_CONNECTIONS;
    }
    if (refusal != REPLY_ID_COUNT) {
        return refusal;
    }
    if (head->target_damaged) {
        return REPLY_BAD_TARGET;
    }
    result = route_find(request->context->config, head->target, &request->at);
    if (slice_equal(head->method, SLICE("OPTIONS"))) {
        request->drop_body = true;
        request->reply.allow =
            request->at.route != NULL ? request->at.route->methods : CONFIG_METHODS_ALL;
        return REPLY_OPTIONS;
    }
    if (result != ROUTE_KEY) {
        return prepare_own(request, result, method);
    }
    return prepare_key(request, head, method);
}

struct request *
request_begin(struct request_context *context, const struct request_head *head)
{
    struct request *request = get_spare(context);
    enum reply_id refusal;

    if (request == NULL) {
        return NULL;
    }
    refusal = prepare(request, head);
    if (refusal == REPLY_ID_COUNT && request->drop_body &&
        head->content_length > REQUEST_SWALLOW_MAX) {
        refusal = REPLY_TOO_LARGE;
    }
    if (refusal == REPLY_ID_COUNT && !request->drop_body && head->content_length > 0) {
        if (!quota_take(context->quota, head->content_length)) {
            refusal = REPLY_OVERLOADED;
        } else {
            request->counted = head->content_length;
            request->body = buffer_create(head->content_length);
            refusal = request->body == NULL ? REPLY_INTERNAL : REPLY_ID_COUNT;
        }
    }
    if (refusal != REPLY_ID_COUNT) {
        finish(request, refusal);
    }
    return request;
}

/* ---- the body ---------------------------------------------------------------------------------
 */

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
        finish(request, refusal);
        return false;
    }
    if (!request->drop_body) {
        memcpy(request->body->data + request->body->len, data, len);
        request->body->len += len;
    }
    return true;
}

/* ---- the store --------------------------------------------------------------------------------
 */

static void on_done(struct store_op *op);

/* Moves what the op brought into the reply. */
static void
take_result(struct request *request)
{
    struct store_op *op = &request->op;

    request->reply.data = op->data;
    request->reply.value_len = op->value_len;
    request->reply.cas = op->out_cas;
    request->reply.ttl_left_s = op->ttl_left_s;
    if (op->data != NULL) {
        quota_add(request->context->quota, op->value_len);
        request->counted += op->value_len;
    }
    finish(request, reply_from_store(op->verb, op->status));
}

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

/* /-/ready asks every store in use for a key, one after the other; that it has none is an answer.
 */
static void
ask_next_store(struct request *request, size_t index)
{
    request->store = next_used_store(request->context->config, index);
    if (request->store == request->context->config->store_count) {
        finish(request, REPLY_READY);
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
    if (request->purpose == FOR_KEY) {
        take_result(request);
    } else if (op->status == STORE_OK || op->status == STORE_MISS) {
        ask_next_store(request, request->store + 1);
    } else {
        finish(request, REPLY_NOT_READY);
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
    if (request->body != NULL) {
        request->op.value = slice_of(request->body->data, request->body->len);
    }
    submit(request);
}
