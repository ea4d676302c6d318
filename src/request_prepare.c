/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * request_prepare.c: from a request's header to a store operation, or to the reason why not. The
 * order of the checks is the order in which a client learns what is wrong: connection, framing,
 * target, method, parameters, preconditions, length.
 */
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

/* An ETag is a CAS in quotes. 0 is none: to a store it would mean "any". */
static bool
parse_etag(struct slice text, uint64_t *cas)
{
    if (text.len < 3 || text.ptr[0] != '"' || text.ptr[text.len - 1] != '"') {
        return false;
    }
    return slice_to_u64(slice_of(text.ptr + 1, text.len - 2), cas) && *cas != 0;
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

/* With `If-Match: *` a miss is the store's own answer: 404 says it better than 412. */
static enum reply_id
choose_delete(const struct request_head *head, struct store_op *op)
{
    op->verb = STORE_DELETE;
    if (head->if_none_match.ptr != NULL) {
        return REPLY_BAD_PRECONDITION;
    }
    if (head->if_match.ptr == NULL || slice_equal(head->if_match, SLICE("*"))) {
        return REPLY_ID_COUNT;
    }
    return parse_etag(head->if_match, &op->cas) ? REPLY_ID_COUNT : REPLY_BAD_PRECONDITION;
}

/*
 * `op` of the query, which goes with POST. Counters, joins and touch are known by name, and not built yet.
 * Any other write that carries it is refused: it would do something that its sender does not mean.
 */
static enum reply_id
check_operation(const struct request *request, unsigned method)
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
        if (method == CONFIG_POST && slice_equal(names[i], op)) {
            return REPLY_UNSUPPORTED;
        }
    }
    return REPLY_BAD_OPERATION;
}

static enum reply_id
prepare_write(struct request *request, const struct request_head *head, unsigned method)
{
    const struct config_route *route = request->at.route;
    enum reply_id refusal = check_operation(request, method);

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
    if (request->context->config->bytes_in_flight < request->body_max) {
        request->body_max = request->context->config->bytes_in_flight; /* it would never fit */
    }
    return head->content_length > request->body_max ? REPLY_TOO_LARGE : REPLY_ID_COUNT;
}

/* A request on a key: its verb and inputs. REPLY_ID_COUNT: go on. */
static enum reply_id
prepare_key(struct request *request, const struct request_head *head, unsigned method)
{
    const struct config_route *route = request->at.route;
    struct slice key = slice_of(request->at.key, request->at.key_len);
    enum reply_id refusal;

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
        refusal = check_operation(request, method);
        return refusal == REPLY_ID_COUNT ? choose_delete(head, &request->op) : refusal;
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
prepare_options(struct request *request, enum route_result result)
{
    request->drop_body = true;
    request->reply.allow = CONFIG_METHODS_ALL;
    if (result == ROUTE_HEALTH || result == ROUTE_READY) {
        request->reply.allow = CONFIG_GET | CONFIG_HEAD;
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
    if (result != ROUTE_KEY) {
        return prepare_own(request, result, method);
    }
    return prepare_key(request, head, method);
}
