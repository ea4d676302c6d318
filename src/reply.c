/* SPDX-License-Identifier: BSD-2-Clause */
/* reply.c: the table of answers, and the two tables that lead to it. Knows nothing of HTTP's wire.
 */
#include "reply.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "config.h"

/* Flags of a row. */
enum { RETRY = 1, CLOSE = 2, PLAIN = 4 };

struct row {
    unsigned status;
    unsigned flags;     /* RETRY, CLOSE; PLAIN: the detail is the whole body, as text */
    const char *title;  /* the reason phrase, unless it says more */
    const char *detail; /* NULL: no body */
};

/* clang-format off */
static const struct row rows[REPLY_ID_COUNT] = {
    [REPLY_VALUE]                 = { 200, 0, "OK", NULL },
    [REPLY_PART]                  = { 206, 0, "Partial Content", NULL },
    [REPLY_NOT_MODIFIED]          = { 304, 0, "Not Modified", NULL },
    [REPLY_STORED]                = { 204, 0, "No Content", NULL },
    [REPLY_CREATED]               = { 201, 0, "Created", NULL },
    [REPLY_DELETED]               = { 204, 0, "No Content", NULL },
    [REPLY_OPTIONS]               = { 204, 0, "No Content", NULL },
    [REPLY_HEALTHY]               = { 200, PLAIN, "OK", "ok\n" },
    [REPLY_READY]                 = { 200, PLAIN, "OK", "ready\n" },
    [REPLY_BAD_TARGET]            = { 400, 0, "Bad Request", "The request target is not a path." },
    [REPLY_BAD_ESCAPE]            = { 400, 0, "Bad Request", "A % in the path is not followed by two hexadecimal digits." },
    [REPLY_EMPTY_KEY]             = { 400, 0, "Bad Request", "The key is empty: give one after the route's prefix." },
    [REPLY_BAD_KEY]               = { 400, 0, "Bad Request", "The key has a space or a control character in it." },
    [REPLY_BAD_TTL]               = { 400, 0, "Bad Request", "ttl, and max-age, is a whole number of seconds, at the most 100 years; 0 is for ever." },
    [REPLY_TTL_STAYS]             = { 400, 0, "Bad Request", "This op keeps the time to live that the value has." },
    [REPLY_BAD_NUMBER]            = { 400, 0, "Bad Request", "by and initial are whole numbers of up to 64 bits." },
    [REPLY_BAD_OPERATION]         = { 400, 0, "Bad Request", "There is no such op, or it does not go with this method." },
    [REPLY_BAD_PRECONDITION]      = { 400, 0, "Bad Request", "If-Match and If-None-Match are * or ETags in quotes; a write takes If-None-Match: *, or If-Match with * or one ETag; an op takes none." },
    [REPLY_PARTIAL]               = { 400, 0, "Bad Request", "A part of a value cannot be stored: send the whole, without Content-Range." },
    [REPLY_BAD_KEYS]              = { 400, 0, "Bad Request", "mget takes 1 to 1000 keys: key=a&key=b, or POST with one on each line." },
    [REPLY_BAD_LENGTH]            = { 400, CLOSE, "Bad Request", "The length of the body is given twice, or in two ways." },
    [REPLY_BAD_TRANSFER]          = { 400, CLOSE, "Bad Request", "The only Transfer-Encoding is chunked." },
    [REPLY_BAD_HOST]              = { 400, CLOSE, "Bad Request", "A request has one Host." },
    [REPLY_BAD_HEADER]            = { 400, CLOSE, "Bad Request", "A header is malformed." },
    [REPLY_MISS]                  = { 404, 0, "Not Found", "There is no value under this key." },
    [REPLY_NO_ROUTE]              = { 404, 0, "Not Found", "No route of this gateway matches the path." },
    [REPLY_NO_PAGE]               = { 404, 0, "Not Found", "The gateway has no page of this name." },
    [REPLY_METHOD]                = { 405, 0, "Method Not Allowed", "This method is not allowed here; see Allow." },
    [REPLY_SLOW]                  = { 408, CLOSE, "Request Timeout", "The request took too long to arrive." },
    [REPLY_NOT_A_NUMBER]          = { 409, 0, "Conflict", "The value is not a number." },
    [REPLY_LENGTH_REQUIRED]       = { 411, CLOSE, "Length Required", "A body needs a Content-Length or Transfer-Encoding: chunked." },
    [REPLY_PRECONDITION]          = { 412, 0, "Precondition Failed", "The value is not as the request wants it to be." },
    [REPLY_TOO_LARGE]             = { 413, 0, "Content Too Large", "The value is larger than this route or its store takes." },
    [REPLY_KEY_TOO_LONG]          = { 414, 0, "URI Too Long", "The key, with the route's key prefix, is longer than 250 bytes." },
    [REPLY_RANGE]                 = { 416, 0, "Range Not Satisfiable", "The value ends before this range." },
    [REPLY_EXPECTATION]           = { 417, CLOSE, "Expectation Failed", "The only expectation is 100-continue." },
    [REPLY_TOO_MANY_FROM_ADDRESS] = { 429, RETRY | CLOSE, "Too Many Requests", "There are too many connections from this address." },
    [REPLY_INTERNAL]              = { 500, 0, "Internal Server Error", "The gateway has no memory for this request." },
    [REPLY_UNSUPPORTED]           = { 501, 0, "Not Implemented", "The store of this key cannot do this." },
    [REPLY_NO_TOUCH]              = { 501, 0, "Not Implemented", "The store of this key cannot change a time to live alone." },
    [REPLY_NO_CAS]                = { 501, 0, "Not Implemented", "The store of this key cannot compare ETags for this." },
    [REPLY_NO_INITIAL]            = { 501, 0, "Not Implemented", "The store of this key cannot create a counter in one step." },
    [REPLY_STORE_NONSENSE]        = { 502, 0, "Bad Gateway", "The store refused, or gave an answer that makes no sense." },
    [REPLY_TOO_MANY_CONNECTIONS]  = { 503, RETRY | CLOSE, "Service Unavailable", "There are too many connections." },
    [REPLY_OVERLOADED]            = { 503, RETRY, "Service Unavailable", "Too much is under way; nothing was done." },
    [REPLY_STORE_DOWN]            = { 503, RETRY, "Service Unavailable", "The store of this key cannot be reached." },
    [REPLY_NOT_READY]             = { 503, RETRY | PLAIN, "Service Unavailable", "not ready\n" },
    [REPLY_STOPPING]              = { 503, RETRY | CLOSE, "Service Unavailable", "The gateway is being stopped." },
    [REPLY_STORE_SILENT]          = { 504, 0, "Gateway Timeout", "The store did not answer in time." },
    [REPLY_STORE_FULL]            = { 507, 0, "Insufficient Storage", "The store has no room." },
};

static const enum reply_id by_route[] = {
    [ROUTE_HEALTH]       = REPLY_HEALTHY,
    [ROUTE_READY]        = REPLY_READY,
    [ROUTE_MGET]         = REPLY_BAD_KEYS,
    [ROUTE_ASTERISK]     = REPLY_BAD_TARGET,
    [ROUTE_NO_PAGE]      = REPLY_NO_PAGE,
    [ROUTE_NO_ROUTE]     = REPLY_NO_ROUTE,
    [ROUTE_BAD_TARGET]   = REPLY_BAD_TARGET,
    [ROUTE_BAD_ESCAPE]   = REPLY_BAD_ESCAPE,
    [ROUTE_EMPTY_KEY]    = REPLY_EMPTY_KEY,
    [ROUTE_BAD_KEY]      = REPLY_BAD_KEY,
    [ROUTE_KEY_TOO_LONG] = REPLY_KEY_TOO_LONG,
};

/* What a status means where the verb makes no difference. OK, MISS and NOT_STORED depend on it. */
static const enum reply_id by_status[STORE_STATUS_COUNT] = {
    [STORE_OK]          = REPLY_STORED,
    [STORE_MISS]        = REPLY_MISS,
    [STORE_EXISTS]      = REPLY_PRECONDITION,
    [STORE_NOT_STORED]  = REPLY_PRECONDITION,
    [STORE_TOO_LARGE]   = REPLY_TOO_LARGE,
    [STORE_BAD_VALUE]   = REPLY_NOT_A_NUMBER,
    [STORE_NO_MEMORY]   = REPLY_STORE_FULL,
    [STORE_UNAVAILABLE] = REPLY_STORE_DOWN,
    [STORE_TIMEOUT]     = REPLY_STORE_SILENT,
    [STORE_BAD_REPLY]   = REPLY_STORE_NONSENSE,
    [STORE_OVERLOADED]  = REPLY_OVERLOADED,
    [STORE_CANCELLED]   = REPLY_STOPPING,
    [STORE_UNSUPPORTED] = REPLY_UNSUPPORTED,
};
/* clang-format on */

unsigned
reply_status(enum reply_id id)
{
    return rows[id].status;
}

const char *
reply_reason(enum reply_id id)
{
    return rows[id].title;
}

const char *
reply_detail(enum reply_id id)
{
    return rows[id].detail;
}

const char *
reply_content_type(enum reply_id id)
{
    if (rows[id].detail == NULL) {
        return NULL;
    }
    return (rows[id].flags & PLAIN) != 0 ? "text/plain" : "application/problem+json";
}

bool
reply_retry_after(enum reply_id id)
{
    return (rows[id].flags & RETRY) != 0;
}

bool
reply_closes(enum reply_id id)
{
    return (rows[id].flags & CLOSE) != 0;
}

size_t
reply_body(enum reply_id id, char out[REPLY_BODY_MAX])
{
    const struct row *row = &rows[id];
    int len;

    if (row->detail == NULL) {
        return 0;
    }
    if ((row->flags & PLAIN) != 0) {
        len = snprintf(out, REPLY_BODY_MAX, "%s", row->detail);
    } else {
        len = snprintf(out, REPLY_BODY_MAX, "{\"title\":\"%s\",\"status\":%u,\"detail\":\"%s\"}\n",
                       row->title, row->status, row->detail);
    }
    assert(len > 0 && len < REPLY_BODY_MAX);
    return (size_t)len;
}

void
reply_allow(unsigned methods, char out[REPLY_ALLOW_MAX])
{
    snprintf(out, REPLY_ALLOW_MAX, "%s%s%s%s%sOPTIONS", (methods & CONFIG_GET) ? "GET, " : "",
             (methods & CONFIG_HEAD) ? "HEAD, " : "", (methods & CONFIG_PUT) ? "PUT, " : "",
             (methods & CONFIG_POST) ? "POST, " : "", (methods & CONFIG_DELETE) ? "DELETE, " : "");
}

enum reply_id
reply_from_route(enum route_result result)
{
    assert(result != ROUTE_KEY);
    return by_route[result];
}

/* What exactly the store lacks. */
static enum reply_id
unsupported(enum store_verb verb)
{
    switch (verb) {
    case STORE_TOUCH:
        return REPLY_NO_TOUCH;
    case STORE_CAS:
    case STORE_DELETE: /* it has a plain one */
        return REPLY_NO_CAS;
    case STORE_INCR:
    case STORE_DECR:
        return REPLY_NO_INITIAL;
    default:
        return REPLY_UNSUPPORTED;
    }
}

enum reply_id
reply_from_store(enum store_verb verb, enum store_status status)
{
    if (status == STORE_OK) {
        switch (verb) {
        case STORE_GET:
        case STORE_HEAD:
        case STORE_INCR:
        case STORE_DECR:
            return REPLY_VALUE;
        case STORE_ADD:
            return REPLY_CREATED;
        case STORE_DELETE:
            return REPLY_DELETED;
        default:
            return REPLY_STORED;
        }
    }
    if (status == STORE_NOT_STORED && (verb == STORE_APPEND || verb == STORE_PREPEND)) {
        return REPLY_MISS;
    }
    if (status == STORE_MISS && verb == STORE_CAS) {
        return REPLY_PRECONDITION;
    }
    if (status == STORE_UNSUPPORTED) {
        return unsupported(verb);
    }
    return by_status[status];
}
