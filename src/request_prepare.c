/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * request_prepare.c: from a request's header to a store operation, or to the reason why not. The
 * order of the checks is the order in which a client learns what is wrong: connection, framing,
 * target, method, parameters, preconditions, length.
 */
#include <string.h>

#include "etag.h"
#include "media_type.h"
#include "mget.h"
#include "request_priv.h"

/* REPLY_ID_COUNT: nothing is wrong. Framing that two readers could take differently is refused
   (RFC 9112, section 6.3): a proxy in front may have taken it the other way. */
static enum reply_id
check_framing(const struct request_head *head)
{
    if (head->bad_header) {
        return REPLY_BAD_HEADER;
    }
    if (head->lengths > 1 || head->bad_length || (head->lengths > 0 && head->transfers > 0)) {
        return REPLY_BAD_LENGTH;
    }
    if (head->transfers > 1 || head->bad_transfer || (head->transfers > 0 && !head->version_1_1)) {
        return REPLY_BAD_TRANSFER; /* HTTP/1.0 has none: section 6.1 calls it faulty framing */
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

/* ---- parameters ------------------------------------------------------------------------------ */

/* The seconds of `max-age` (RFC 9111, section 5.2), quoted or not. False: malformed. */
static bool
read_max_age(struct slice cache_control, uint64_t *seconds)
{
    static const struct slice name = SLICE_LITERAL("max-age");

    while (cache_control.len > 0) {
        const char *end = memchr(cache_control.ptr, ',', cache_control.len);
        size_t len = end == NULL ? cache_control.len : (size_t)(end - cache_control.ptr);
        struct slice one = slice_trim(slice_of(cache_control.ptr, len));

        if (one.len >= name.len && slice_equal_nocase(slice_of(one.ptr, name.len), name) &&
            (one.len == name.len || one.ptr[name.len] == '=')) {
            size_t skip = one.len == name.len ? name.len : name.len + 1;
            return slice_to_u64(slice_unquote(slice_of(one.ptr + skip, one.len - skip)), seconds);
        }
        len += end == NULL ? 0 : 1;
        cache_control = slice_of(cache_control.ptr + len, cache_control.len - len);
    }
    return true;
}

/* `ttl` of the query, else max-age, else the route's default; no more than the route's maximum. */
static enum reply_id
read_ttl(const struct request *request, const struct request_head *head, uint64_t *ttl_s)
{
    const struct config_route *route = request->at.route;
    struct slice text;
    bool ok;

    *ttl_s = route->ttl_s;
    if (route_parameter(request->at.query, SLICE("ttl"), &text)) {
        ok = slice_to_u64(text, ttl_s);
    } else {
        ok = read_max_age(head->cache_control, ttl_s);
    }
    if (!ok || *ttl_s > STORE_TTL_MAX) {
        return REPLY_BAD_TTL;
    }
    if (route->ttl_max_s > 0 && (*ttl_s == 0 || *ttl_s > route->ttl_max_s)) {
        *ttl_s = route->ttl_max_s;
    }
    return REPLY_ID_COUNT;
}

/* Parameter NAME as a number, if it is there. False: it is there, and is none. */
static bool
read_number(const struct request *request, struct slice name, uint64_t *number, bool *is_there)
{
    struct slice text;

    *is_there = route_parameter(request->at.query, name, &text);
    return !*is_there || slice_to_u64(text, number);
}

/* ---- writes ---------------------------------------------------------------------------------- */

/* What `If-Match: TEXT` makes of a write or a delete; ANY is the verb for "*", ONE that for a tag. */
static enum reply_id
choose_match(struct slice text, struct store_op *op, enum store_verb any, enum store_verb one)
{
    switch (etag_single(text, &op->cas)) {
    case ETAG_SINGLE_ANY:
        op->verb = any;
        return REPLY_ID_COUNT;
    case ETAG_SINGLE_CAS:
        op->verb = one;
        return REPLY_ID_COUNT;
    case ETAG_SINGLE_NEVER:
        return REPLY_PRECONDITION;
    default:
        return REPLY_BAD_PRECONDITION;
    }
}

/* The verb of a write under its preconditions (RFC 9110, section 13.1), atomic in the store. */
static enum reply_id
choose_write(const struct request_head *head, struct store_op *op)
{
    op->verb = STORE_SET;
    if (head->if_none_match.ptr != NULL) {
        op->verb = STORE_ADD;
        return head->if_match.ptr == NULL && slice_equal(head->if_none_match, SLICE("*"))
                   ? REPLY_ID_COUNT
                   : REPLY_BAD_PRECONDITION;
    }
    return head->if_match.ptr == NULL ? REPLY_ID_COUNT
                                      : choose_match(head->if_match, op, STORE_REPLACE, STORE_CAS);
}

/* With `If-Match: *` a miss is the store's own answer: 404 says it better than 412. */
static enum reply_id
choose_delete(const struct request_head *head, struct store_op *op)
{
    op->verb = STORE_DELETE;
    if (head->if_none_match.ptr != NULL) {
        return REPLY_BAD_PRECONDITION;
    }
    return head->if_match.ptr == NULL
               ? REPLY_ID_COUNT
               : choose_match(head->if_match, op, STORE_DELETE, STORE_DELETE);
}

/* How much body a write may have, and that it says so. */
static enum reply_id
expect_body(struct request *request, const struct request_head *head)
{
    const struct config_route *route = request->at.route;
    const struct store_shared *shared = request->context->shared[route->store];

    if (head->lengths == 0 && !head->chunked) {
        return REPLY_LENGTH_REQUIRED;
    }
    request->body_max = shared->type->value_max(shared, request->at.key_len, request->op.flags);
    if (route->body_max != 0 && route->body_max < request->body_max) {
        request->body_max = route->body_max;
    }
    if (request->context->config->bytes_in_flight < request->body_max) {
        request->body_max = request->context->config->bytes_in_flight; /* it would never fit */
    }
    return head->content_length > request->body_max ? REPLY_TOO_LARGE : REPLY_ID_COUNT;
}

/* The type that is kept with the value; the answer tells of one that is not. */
static void
keep_type(struct request *request, const struct request_head *head)
{
    struct slice type = head->content_type;

    if (!request->at.route->keeps_types || type.ptr == NULL ||
        slice_equal_nocase(type, SLICE(REQUEST_TYPE_DEFAULT))) {
        return; /* flags of 0 are the default's, and every client reads such a value */
    }
    request->op.flags = media_type_to_flags(type);
    if (request->op.flags == 0) {
        request->reply.kept_type = REQUEST_TYPE_DEFAULT;
    }
}

static enum reply_id
prepare_write(struct request *request, const struct request_head *head)
{
    enum reply_id refusal = read_ttl(request, head, &request->op.ttl_s);

    if (head->partial) {
        return REPLY_PARTIAL; /* RFC 9110, section 14.5: it would take the place of the whole */
    }
    if (refusal == REPLY_ID_COUNT) {
        refusal = choose_write(head, &request->op);
    }
    if (refusal != REPLY_ID_COUNT) {
        return refusal;
    }
    keep_type(request, head);
    return expect_body(request, head);
}

/* ---- ops: POST ?op= -------------------------------------------------------------------------- */

/* incr and decr: `by`, and `initial` for a counter that is not there, with its ttl. */
static enum reply_id
prepare_counter(struct request *request, const struct request_head *head)
{
    struct store_op *op = &request->op;
    struct slice ttl;
    bool has_by;

    request->drop_body = true;
    op->delta = 1;
    if (!read_number(request, SLICE("by"), &op->delta, &has_by) ||
        !read_number(request, SLICE("initial"), &op->initial, &op->create)) {
        return REPLY_BAD_NUMBER;
    }
    if (op->create) {
        return read_ttl(request, head, &op->ttl_s);
    }
    return route_parameter(request->at.query, SLICE("ttl"), &ttl) ? REPLY_TTL_STAYS
                                                                  : REPLY_ID_COUNT;
}

static enum reply_id
prepare_join(struct request *request, const struct request_head *head)
{
    struct slice ttl;

    return route_parameter(request->at.query, SLICE("ttl"), &ttl) ? REPLY_TTL_STAYS
                                                                  : expect_body(request, head);
}

static enum reply_id
prepare_touch(struct request *request, const struct request_head *head)
{
    request->drop_body = true;
    return read_ttl(request, head, &request->op.ttl_s);
}

/*
 * A write that carries `op`, which goes with POST. Any other is refused: it would do something that
 * its sender does not mean.
 */
static enum reply_id
prepare_op(struct request *request, const struct request_head *head, struct slice name,
           unsigned method)
{
    static const struct {
        struct slice name;
        enum store_verb verb;
        enum reply_id (*prepare)(struct request *request, const struct request_head *head);
    } ops[] = {
        { SLICE_LITERAL("incr"), STORE_INCR, prepare_counter },
        { SLICE_LITERAL("decr"), STORE_DECR, prepare_counter },
        { SLICE_LITERAL("append"), STORE_APPEND, prepare_join },
        { SLICE_LITERAL("prepend"), STORE_PREPEND, prepare_join },
        { SLICE_LITERAL("touch"), STORE_TOUCH, prepare_touch },
    };

    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
        if (method == CONFIG_POST && slice_equal(ops[i].name, name)) {
            request->op.verb = ops[i].verb;
            if (head->if_match.ptr != NULL || head->if_none_match.ptr != NULL) {
                return REPLY_BAD_PRECONDITION;
            }
            return ops[i].prepare(request, head);
        }
    }
    return REPLY_BAD_OPERATION;
}

/* ---- reads ----------------------------------------------------------------------------------- */

/* The conditions are about the value: request_answer.c looks at them when it is there. */
static enum reply_id
prepare_read(struct request *request, const struct request_head *head, unsigned method)
{
    request->drop_body = true;
    request->op.verb = method == CONFIG_HEAD ? STORE_HEAD : STORE_GET;
    if (head->if_match.ptr == NULL && head->if_none_match.ptr == NULL && head->range.ptr == NULL) {
        return REPLY_ID_COUNT;
    }
    request->is_conditional = true;
    request->conditions = (struct conditions){
        .if_match = head->if_match,
        .if_none_match = head->if_none_match,
        .range = head->range,
        .if_range = head->if_range,
    };
    if ((head->if_match.ptr != NULL && etag_list_has(head->if_match, 0, false) == ETAG_MALFORMED) ||
        (head->if_none_match.ptr != NULL &&
         etag_list_has(head->if_none_match, 0, true) == ETAG_MALFORMED)) {
        return REPLY_BAD_PRECONDITION;
    }
    return REPLY_ID_COUNT;
}

/* ---- requests -------------------------------------------------------------------------------- */

/* A request on a key: its verb and inputs. REPLY_ID_COUNT: go on. */
static enum reply_id
prepare_key(struct request *request, const struct request_head *head, unsigned method)
{
    const struct config_route *route = request->at.route;
    struct slice key = slice_of(request->at.key, request->at.key_len), op;

    if ((route->methods & method) == 0) {
        request->reply.allow = route->methods;
        return REPLY_METHOD;
    }
    store_op_init(&request->op, STORE_GET, key);
    request->store = route->store;
    request->reply.content_type = route->content_type;
    if ((method & (CONFIG_GET | CONFIG_HEAD)) != 0) {
        return prepare_read(request, head, method);
    }
    if (route_parameter(request->at.query, SLICE("op"), &op)) {
        return prepare_op(request, head, op, method);
    }
    if (method == CONFIG_DELETE) {
        request->drop_body = true;
        return choose_delete(head, &request->op);
    }
    return prepare_write(request, head);
}

/* GET takes its keys from the query at once, POST from the body when it is in. */
static enum reply_id
prepare_mget(struct request *request, const struct request_head *head, unsigned method)
{
    request->purpose = FOR_MGET;
    if (method == CONFIG_POST) {
        if (head->lengths == 0 && !head->chunked) {
            return REPLY_LENGTH_REQUIRED;
        }
        request->body_max = MGET_BODY_MAX;
        return head->content_length > request->body_max ? REPLY_TOO_LARGE : REPLY_ID_COUNT;
    }
    request->drop_body = true;
    if (method != CONFIG_GET) {
        request->reply.allow = CONFIG_GET | CONFIG_POST;
        return REPLY_METHOD;
    }
    return mget_create_from_query(request->context, request->at.query, &request->mget);
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
prepare_options(struct request *request, enum route_result result)
{
    request->drop_body = true;
    request->reply.allow = CONFIG_METHODS_ALL;
    if (result == ROUTE_HEALTH || result == ROUTE_READY) {
        request->reply.allow = CONFIG_GET | CONFIG_HEAD;
    } else if (result == ROUTE_MGET) {
        request->reply.allow = CONFIG_GET | CONFIG_POST;
    } else if (request->at.route != NULL) {
        request->reply.allow = request->at.route->methods;
    }
    return REPLY_OPTIONS;
}

enum reply_id
request_prepare(struct request *request, const struct request_head *head)
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
        return prepare_options(request, result);
    }
    if (result == ROUTE_BAD_TARGET && method == 0) {
        request->drop_body = true; /* CONNECT: its target is right, it is the method that is not */
        request->reply.allow = CONFIG_METHODS_ALL;
        return REPLY_METHOD;
    }
    if (result == ROUTE_MGET) {
        return prepare_mget(request, head, method);
    }
    if (result != ROUTE_KEY) {
        return prepare_own(request, result, method);
    }
    return prepare_key(request, head, method);
}
