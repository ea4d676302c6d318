/* SPDX-License-Identifier: BSD-2-Clause */
/* http_reply.c: builds responses. What they say is decided in reply.c, when they go out in http.c. */
#include "http_reply.h"

#include <assert.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>

#include "clock.h"
#include "etag.h"
#include "log.h"

/* The longest header that http_reply_raw writes. */
#define RAW_HEADER_MAX 256

static void
add_header(struct MHD_Response *response, const char *name, const char *value)
{
    if (response != NULL && MHD_add_response_header(response, name, value) == MHD_NO) {
        log_error("no memory for a response header");
    }
}

/* A reply without a value. ALLOW is NULL unless it has that header. */
static struct MHD_Response *
make_plain(enum reply_id id, const char *allow)
{
    char body[REPLY_BODY_MAX];
    size_t len = reply_body(id, body);
    struct MHD_Response *response =
        MHD_create_response_from_buffer(len, body, MHD_RESPMEM_MUST_COPY);

    if (reply_content_type(id) != NULL) {
        add_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, reply_content_type(id));
    }
    if (reply_retry_after(id)) {
        add_header(response, MHD_HTTP_HEADER_RETRY_AFTER, "1");
    }
    if (reply_closes(id)) {
        add_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
    }
    if (allow != NULL) {
        add_header(response, MHD_HTTP_HEADER_ALLOW, allow);
    }
    return response;
}

static void
free_value(void *cls)
{
    buffer_unref(cls);
}

/* HEAD: the length is told, the bytes are never asked for. */
static ssize_t
no_bytes(void *cls, uint64_t pos, char *buf, size_t max)
{
    (void)cls;
    (void)pos;
    (void)buf;
    (void)max;
    return MHD_CONTENT_READER_END_WITH_ERROR;
}

/* What a value, and a 304 in its place, says about itself. */
static void
describe_value(struct MHD_Response *response, const struct reply *reply)
{
    char text[32];

    if (reply->cas != 0) {
        etag_print(reply->cas, text);
        add_header(response, MHD_HTTP_HEADER_ETAG, text);
    }
    if (reply->ttl_left_s >= 0) {
        snprintf(text, sizeof(text), "max-age=%lld", (long long)reply->ttl_left_s);
        add_header(response, "KV-TTL", text + sizeof("max-age=") - 1);
        if (reply->caches_ttl) {
            add_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, text);
        }
    }
    if (reply->cache_control != NULL) {
        add_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, reply->cache_control);
    }
}

/* Bytes FIRST to TOTAL-1 are not there: only their number is told (RFC 9110, section 14.4). */
static void
add_content_range(struct MHD_Response *response, const struct reply *reply)
{
    char text[80];

    if (reply->id == REPLY_PART) {
        snprintf(text, sizeof(text), "bytes %zu-%zu/%zu", reply->first,
                 reply->first + reply->count - 1, reply->value_len);
    } else {
        snprintf(text, sizeof(text), "bytes */%zu", reply->value_len);
    }
    add_header(response, MHD_HTTP_HEADER_CONTENT_RANGE, text);
}

/* A value or a part of one, without a copy. */
static struct MHD_Response *
make_value(const struct reply *reply)
{
    struct MHD_Response *response;

    if (reply->data != NULL) {
        response = MHD_create_response_from_buffer_with_free_callback_cls(
            reply->count, reply->data->data + reply->first, free_value, buffer_ref(reply->data));
        if (response == NULL) {
            buffer_unref(reply->data);
        }
    } else {
        response = MHD_create_response_from_callback(reply->value_len, 1, no_bytes, NULL, NULL);
    }
    add_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, reply->content_type);
    if (reply->is_item) {
        add_header(response, MHD_HTTP_HEADER_ACCEPT_RANGES, "bytes");
        add_header(response, "X-Content-Type-Options", "nosniff");
    }
    if (reply->id == REPLY_PART) {
        add_content_range(response, reply);
    }
    describe_value(response, reply);
    return response;
}

/* An answer without a value that says something of its own all the same; NULL: it does not. */
static struct MHD_Response *
make_special(const struct reply *reply)
{
    char allow[REPLY_ALLOW_MAX];
    struct MHD_Response *response;

    if (reply->allow != 0) {
        reply_allow(reply->allow, allow);
        return make_plain(reply->id, allow);
    }
    switch (reply->id) {
    case REPLY_NOT_MODIFIED: /* its Content-Length is that of the value that is not sent */
        response = MHD_create_response_from_callback(reply->value_len, 1, no_bytes, NULL, NULL);
        describe_value(response, reply);
        return response;
    case REPLY_RANGE:
        response = make_plain(reply->id, NULL);
        add_content_range(response, reply);
        return response;
    case REPLY_STORED:
    case REPLY_CREATED:
        if (reply->cas == 0 && reply->kept_type == NULL) {
            return NULL;
        }
        response = MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
        describe_value(response, reply);
        if (reply->kept_type != NULL) {
            add_header(response, "KV-Content-Type", reply->kept_type);
        }
        return response;
    default:
        return NULL;
    }
}

void
http_replies_forget(struct http_replies *replies)
{
    if (replies->shared != NULL) {
        MHD_destroy_response(replies->shared);
    }
    replies->shared = NULL;
    replies->shared_reply.data = NULL;
}

/* GETs that shared one buffer share one response, too. The caller does not own it. */
static struct MHD_Response *
value_response(struct http_replies *replies, const struct reply *reply)
{
    const struct reply *last = &replies->shared_reply;

    if (replies->shared != NULL && reply->data != NULL && last->data == reply->data &&
        last->content_type == reply->content_type && last->cache_control == reply->cache_control &&
        last->caches_ttl == reply->caches_ttl) {
        return replies->shared;
    }
    http_replies_forget(replies);
    replies->shared = make_value(reply);
    replies->shared_reply = *reply;
    return replies->shared;
}

struct MHD_Response *
http_replies_get(struct http_replies *replies, const struct reply *reply)
{
    struct MHD_Response *special;

    if (reply->id == REPLY_VALUE && !reply->is_item) {
        special = make_value(reply);
    } else if (reply->id == REPLY_VALUE) {
        return value_response(replies, reply);
    } else if (reply->id == REPLY_PART) {
        special = make_value(reply);
    } else {
        special = make_special(reply);
    }
    if (special != NULL) {
        http_replies_forget(replies);
        replies->shared = special;
        return special;
    }
    if (replies->fixed[reply->id] == NULL) {
        replies->fixed[reply->id] = make_plain(reply->id, NULL);
    }
    return replies->fixed[reply->id];
}

void
http_replies_deinit(struct http_replies *replies)
{
    http_replies_forget(replies);
    for (size_t i = 0; i < REPLY_ID_COUNT; i++) {
        if (replies->fixed[i] != NULL) {
            MHD_destroy_response(replies->fixed[i]);
        }
    }
}

void
http_reply_raw(int fd, enum reply_id id)
{
    char text[RAW_HEADER_MAX + REPLY_BODY_MAX], body[REPLY_BODY_MAX], date[40];
    size_t body_len = reply_body(id, body);
    time_t now = (time_t)(clock_wall_ms() / 1000);
    struct tm utc;
    int len;

    gmtime_r(&now, &utc);
    strftime(date, sizeof(date), "%a, %d %b %Y %H:%M:%S GMT", &utc);
    len = snprintf(text, sizeof(text),
                   "HTTP/1.1 %u %s\r\nDate: %s\r\nConnection: close\r\nContent-Type: %s\r\n"
                   "Content-Length: %zu\r\n%s\r\n%.*s",
                   reply_status(id), reply_reason(id), date, reply_content_type(id), body_len,
                   reply_retry_after(id) ? "Retry-After: 1\r\n" : "", (int)body_len, body);
    assert(len > 0 && (size_t)len < sizeof(text));
    if (send(fd, text, (size_t)len, MSG_NOSIGNAL | MSG_DONTWAIT) != len) {
        log_debug("a client did not take the answer %u", reply_status(id));
    }
}
