/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * request_answer.c: from a completed operation to the reply. A read is answered under its
 * conditions, in the order of RFC 9110, section 13.2.2: If-Match, If-None-Match, Range with If-Range.
 * Those of a write were the store's to decide.
 */
#include <stdio.h>
#include <string.h>

#include "etag.h"
#include "media_type.h"
#include "range.h"
#include "request_priv.h"

/* A number of 64 bits in figures, with a NUL. */
#define NUMBER_MAX 21

/* If-Range is the ETag that the client's part has; a date never fits, since values have none. */
static bool
is_same_value(struct slice if_range, uint64_t cas)
{
    uint64_t wanted;

    return if_range.ptr == NULL || (etag_parse_one(if_range, &wanted) && wanted == cas);
}

/* REPLY_VALUE, or what the conditions make of it. */
static enum reply_id
check_conditions(const struct request *request, struct reply *reply)
{
    const struct conditions *wanted = &request->conditions;
    uint64_t first, count;

    if (wanted->if_match.ptr != NULL &&
        etag_list_has(wanted->if_match, reply->cas, false) != ETAG_YES) {
        return REPLY_PRECONDITION;
    }
    if (wanted->if_none_match.ptr != NULL &&
        etag_list_has(wanted->if_none_match, reply->cas, true) == ETAG_YES) {
        return REPLY_NOT_MODIFIED;
    }
    if (request->is_head || wanted->range.ptr == NULL ||
        !is_same_value(wanted->if_range, reply->cas)) {
        return REPLY_VALUE;
    }
    switch (range_parse(wanted->range, reply->value_len, &first, &count)) {
    case RANGE_PART:
        reply->first = (size_t)first;
        reply->count = (size_t)count;
        return REPLY_PART;
    case RANGE_UNSATISFIABLE:
        return REPLY_RANGE;
    default:
        return REPLY_VALUE;
    }
}

/* The reply to a read. */
static enum reply_id
take_value(struct request *request)
{
    const struct config_route *route = request->at.route;
    const struct store_op *op = &request->op;
    struct reply *reply = &request->reply;

    reply->data = op->data;
    reply->value_len = reply->count = op->value_len;
    reply->ttl_left_s = op->ttl_left_s;
    reply->is_item = true;
    reply->caches_ttl = route->caches_ttl;
    if (route->cache_control[0] != '\0' && !route->caches_ttl) {
        reply->cache_control = route->cache_control;
    }
    if (route->keeps_types) {
        const char *type = media_type_from_flags(op->out_flags);
        reply->content_type = type == NULL ? REQUEST_TYPE_DEFAULT : type;
    }
    if (op->data != NULL) {
        quota_add(request->context->quota, op->value_len);
        request->counted += op->value_len;
    }
    return request->is_conditional ? check_conditions(request, reply) : REPLY_VALUE;
}

/* The reply to INCR and DECR: the new number, in figures. */
static enum reply_id
take_number(struct request *request)
{
    struct reply *reply = &request->reply;

    reply->data = buffer_create(NUMBER_MAX);
    if (reply->data == NULL) {
        return REPLY_INTERNAL;
    }
    reply->data->len = (size_t)snprintf(reply->data->data, NUMBER_MAX, "%llu",
                                        (unsigned long long)request->op.number);
    reply->value_len = reply->count = reply->data->len;
    reply->content_type = "text/plain";
    return REPLY_VALUE;
}

void
request_take_result(struct request *request)
{
    struct store_op *op = &request->op;
    enum reply_id id = reply_from_store(op->verb, op->status);

    request->reply.cas = op->out_cas;
    if (id == REPLY_VALUE) {
        id = store_verb_reads(op->verb) ? take_value(request) : take_number(request);
    }
    request_finish(request, id);
}
