/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * http.c: libmicrohttpd's callbacks to requests, and replies to its responses. The only file that
 * knows it. What a request means is request.c's business.
 *
 * A connection's life, by the hooks that libmicrohttpd has:
 *
 *   on_connection(STARTED) --> IDLE --on_target--> RECEIVING --on_request(end)--> ANSWERING
 *   on_connection(CLOSED)  <--   ^                  | first call: request_begin       |
 *                                |                  | pieces:     request_body        | repeated
 * calls: |                  |                                 | until done, then
 *                                '------------------+--------- on_completed <---------'  answer()
 *
 * Three rules keep every answer in one gathered write and every connection in use:
 *   - Values are buffer responses: libmicrohttpd sends header and body of those in one sendmsg.
 *   - A reply is queued in the final call, or a repeat of it: queued in the first call it would
 * close.
 *   - A request that has begun and not ended is acknowledged at once (TCP_QUICKACK, http_run),
 *     because its client may hold back the rest until then.
 */
#include "http.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <microhttpd.h>

#include "clock.h"
#include "log.h"
#include "loop.h"

/* libmicrohttpd stops to accept at its own limit; ours must come first, since it has an answer. */
#define CONNECTIONS_SPARE 256

/* Passes that a stop spends on connections that the kernel has accepted and we have not. */
#define QUIESCE_PASSES 64

/* The longest header that answer_raw writes. */
#define RAW_HEADER_MAX 256

struct connection;

/* Connections in the order in which they came to it: the head has waited longest. */
struct connection_list {
    struct connection *head; /* (ref) */
    struct connection *tail; /* (ref) */
    size_t count;            /* connections on it */
};

struct connection {
    struct http *http;               /* (ref) */
    struct MHD_Connection *mhd;      /* (ref) */
    int fd;                          /* (ref) the socket, libmicrohttpd's */
    bool is_tcp;                     /* TCP_QUICKACK means something */
    enum quota_verdict quota;        /* whether it is one too many */
    struct connection_list *list;    /* (ref) idle, receiving or answering */
    struct connection *previous;     /* (ref) on the list: older */
    struct connection *next;         /* (ref) on the list: newer */
    struct connection *touched_next; /* (ref) on http->touched */
    bool is_touched;                 /* it is on http->touched */
    int64_t since_ms;                /* when it came to its list */
    struct request *request; /* the request under way (owned); NULL: none, or no header yet */
    bool ended;              /* the request was received completely */
    bool answered;           /* its reply is queued */
    bool linger;             /* close it slowly: its client may still be writing */
    size_t swallowed;        /* bytes of body that came after a refusal */
    char *target;            /* the request target, as it came (owned) */
    size_t target_len;       /* bytes */
    size_t target_cap;       /* bytes allocated */
    const char *target_end;  /* where it ended in libmicrohttpd's memory; only compared */
};

struct http {
    struct request_context *context;  /* (ref) */
    struct lingers *lingers;          /* (ref) */
    struct MHD_Daemon *daemon;        /* (owned) */
    int listen_fd;                    /* (ref) */
    bool stopping;                    /* answers are the last of their connections */
    struct connection_list idle;      /* no request line yet */
    struct connection_list receiving; /* a request has begun and not ended */
    struct connection_list answering; /* a request is complete, its answer not yet sent */
    struct connection *touched;       /* (ref) those that received something in this pass */
    struct MHD_Response *fixed[REPLY_ID_COUNT]; /* replies without a value, made when first used */
    struct MHD_Response *shared;      /* the last value's response, for the rest of the pass */
    const struct buffer *shared_data; /* its value (ref, compared only) */
    const char *shared_type;          /* its content type (ref, compared only) */
};

/* ---- lists ------------------------------------------------------------------------------------
 */

static void
list_remove(struct connection *c)
{
    struct connection_list *list = c->list;

    *(c->previous != NULL ? &c->previous->next : &list->head) = c->next;
    *(c->next != NULL ? &c->next->previous : &list->tail) = c->previous;
    list->count--;
    c->list = NULL;
}

static void
list_move(struct connection *c, struct connection_list *list)
{
    if (c->list != NULL) {
        list_remove(c);
    }
    c->since_ms = c->http->context->loop->now_ms;
    c->list = list;
    c->previous = list->tail;
    c->next = NULL;
    *(list->tail != NULL ? &list->tail->next : &list->head) = c;
    list->tail = c;
    list->count++;
}

/* C received something: after the pass it is seen whether its request is complete. */
static void
touch(struct connection *c)
{
    c->http->context->loop->progress = true;
    if (!c->is_touched && c->is_tcp) {
        c->is_touched = true;
        c->touched_next = c->http->touched;
        c->http->touched = c;
    }
}

/* Acknowledges half-received requests now: the kernel would wait up to 40 ms for something to send.
 */
static void
acknowledge_touched(struct http *http)
{
    int on = 1;

    while (http->touched != NULL) {
        struct connection *c = http->touched;
        http->touched = c->touched_next;
        c->is_touched = false;
        if (c->list == &http->receiving) {
            setsockopt(c->fd, IPPROTO_TCP, TCP_QUICKACK, &on, sizeof(on));
        }
    }
}

static void
untouch(struct connection *c)
{
    struct connection **link = &c->http->touched;

    if (!c->is_touched) {
        return;
    }
    while (*link != c) {
        link = &(*link)->touched_next;
    }
    *link = c->touched_next;
    c->is_touched = false;
}

/* ---- replies ----------------------------------------------------------------------------------
 */

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

static struct MHD_Response *
make_value(const struct reply *reply)
{
    struct MHD_Response *response;
    char text[32];

    if (reply->data != NULL) {
        response = MHD_create_response_from_buffer_with_free_callback_cls(
            reply->value_len, reply->data->data, free_value, buffer_ref(reply->data));
        if (response == NULL) {
            buffer_unref(reply->data);
        }
    } else {
        response = MHD_create_response_from_callback(reply->value_len, 1, no_bytes, NULL, NULL);
    }
    add_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, reply->content_type);
    if (reply->cas != 0) {
        snprintf(text, sizeof(text), "\"%llu\"", (unsigned long long)reply->cas);
        add_header(response, MHD_HTTP_HEADER_ETAG, text);
    }
    if (reply->ttl_left_s >= 0) {
        snprintf(text, sizeof(text), "%lld", (long long)reply->ttl_left_s);
        add_header(response, "KV-TTL", text);
    }
    return response;
}

static void
forget_shared(struct http *http)
{
    if (http->shared != NULL) {
        MHD_destroy_response(http->shared);
    }
    http->shared = NULL;
    http->shared_data = NULL;
}

/* GETs that shared one buffer share one response, too. The caller does not own it. */
static struct MHD_Response *
value_response(struct http *http, const struct reply *reply)
{
    if (http->shared != NULL && reply->data != NULL && http->shared_data == reply->data &&
        http->shared_type == reply->content_type) {
        return http->shared;
    }
    forget_shared(http);
    http->shared = make_value(reply);
    http->shared_data = reply->data;
    http->shared_type = reply->content_type;
    return http->shared;
}

/* The response to REPLY. The caller does not own it. NULL: no memory. */
static struct MHD_Response *
response_of(struct http *http, const struct reply *reply)
{
    char allow[REPLY_ALLOW_MAX];

    if (reply->id == REPLY_VALUE) {
        return value_response(http, reply);
    }
    if (reply->allow != 0) {
        forget_shared(http);
        reply_allow(reply->allow, allow);
        http->shared = make_plain(reply->id, allow);
        return http->shared;
    }
    if (http->fixed[reply->id] == NULL) {
        http->fixed[reply->id] = make_plain(reply->id, NULL);
    }
    return http->fixed[reply->id];
}

/* Queues the reply of a request that is done. */
static enum MHD_Result
answer(struct connection *c)
{
    const struct reply *reply = request_reply(c->request);
    struct MHD_Response *response = response_of(c->http, reply);

    if (response == NULL) {
        return MHD_NO;
    }
    c->answered = true;
    c->http->context->loop->progress = true;
    return MHD_queue_response(c->mhd, reply_status(reply->id), response);
}

/*
 * Writes an answer past libmicrohttpd, which cannot take one between the header and the end of a
 * body; nothing has been sent for this request, so the socket has room. The connection must be
 * closed after it.
 */
static void
answer_raw(struct connection *c, enum reply_id id)
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
    if (send(c->fd, text, (size_t)len, MSG_NOSIGNAL | MSG_DONTWAIT) != len) {
        log_debug("a client did not take the answer %u", reply_status(id));
    }
    c->linger = true;
}

/* ---- requests ---------------------------------------------------------------------------------
 */

/* One header: the few that decide something. */
static enum MHD_Result
on_header(void *cls, enum MHD_ValueKind kind, const char *name, size_t name_len, const char *value,
          size_t value_len)
{
    struct request_head *head = cls;
    struct slice key = slice_of(name, name_len);
    struct slice text = slice_of(value == NULL ? "" : value, value_len);

    (void)kind;
    if (name_len == 0 || name[name_len - 1] == ' ' || name[name_len - 1] == '\t') {
        head->bad_name = true;
        return MHD_YES;
    }
    switch (name_len) {
    case sizeof("Host") - 1:
        head->hosts += slice_equal_nocase(key, SLICE("Host"));
        break;
    case sizeof("Expect") - 1:
        if (slice_equal_nocase(key, SLICE("Expect"))) {
            head->expect = text;
        }
        break;
    case sizeof("If-Match") - 1:
        if (slice_equal_nocase(key, SLICE("If-Match"))) {
            head->if_match = text;
        }
        break;
    case sizeof("If-None-Match") - 1:
        if (slice_equal_nocase(key, SLICE("If-None-Match"))) {
            head->if_none_match = text;
        }
        break;
    case sizeof("Content-Length") - 1:
        if (slice_equal_nocase(key, SLICE("Content-Length"))) {
            head->lengths++;
            head->bad_length |= !slice_to_u64(text, &head->content_length);
        }
        break;
    case sizeof("Transfer-Encoding") - 1:
        if (slice_equal_nocase(key, SLICE("Transfer-Encoding"))) {
            head->transfers++;
            head->chunked = slice_equal_nocase(text, SLICE("chunked"));
            head->bad_transfer |= !head->chunked;
        }
        break;
    default:
        break;
    }
    return MHD_YES;
}

/* The header is in. A refusal that cannot wait for the body, or must close, is queued here. */
static enum MHD_Result
begin(struct connection *c, const char *method, const char *version)
{
    struct request_head head = {
        .method = slice_from_string(method),
        .target = slice_of(c->target, c->target_len),
        .version_1_1 = strcmp(version, MHD_HTTP_VERSION_1_0) != 0,
        .quota = c->quota,
    };
    bool has_body;

    /* A NUL would hide the rest of the target: between its end and the version is one byte. */
    head.target_damaged = c->target_end == NULL || version != c->target_end + 1 ||
                          memchr(c->target, ' ', c->target_len) != NULL;
    MHD_get_connection_values_n(c->mhd, MHD_HEADER_KIND, on_header, &head);
    has_body = head.content_length > 0 || head.lengths > 1 || head.transfers > 0;
    if (has_body) {
        touch(c);
    }
    c->http->context->loop->progress = true;
    c->request = request_begin(c->http->context, &head);
    if (c->request == NULL) {
        answer_raw(c, REPLY_INTERNAL);
        return MHD_NO;
    }
    if (!request_is_done(c->request)) {
        return MHD_YES;
    }
    if (reply_closes(request_reply(c->request)->id) ||
        (has_body && (head.transfers > 0 || head.expect.ptr != NULL ||
                      head.content_length > REQUEST_SWALLOW_MAX))) {
        c->linger = has_body;
        return answer(c);
    }
    return MHD_YES;
}

/* A piece of body. What follows a refusal is dropped, up to a point. */
static enum MHD_Result
take_body(struct connection *c, const char *data, size_t len)
{
    touch(c);
    if (len == 0 || request_body(c->request, data, len)) {
        return MHD_YES;
    }
    c->swallowed += len;
    if (c->swallowed <= REQUEST_SWALLOW_MAX) {
        return MHD_YES;
    }
    answer_raw(c, request_reply(c->request)->id);
    return MHD_NO;
}

/* libmicrohttpd's handler: first call, pieces of body, the end, and again until there is an answer.
 */
static enum MHD_Result
on_request(void *cls, struct MHD_Connection *mhd, const char *url, const char *method,
           const char *version, const char *upload_data, size_t *upload_data_size,
           void **request_cls)
{
    struct connection *c = *request_cls;

    (void)cls;
    (void)mhd;
    (void)url;
    if (c == NULL) {
        return MHD_NO; /* there was no memory for it */
    }
    if (c->request == NULL) {
        return begin(c, method, version);
    }
    if (upload_data != NULL) {
        size_t len = *upload_data_size;
        *upload_data_size = 0;
        return take_body(c, upload_data, len);
    }
    if (!c->ended) {
        c->ended = true;
        list_move(c, &c->http->answering);
        c->http->context->loop->progress = true;
        request_end(c->request);
    }
    return request_is_done(c->request) ? answer(c) : MHD_YES;
}

/* Keeps a copy: libmicrohttpd cuts its own up. */
static bool
keep_target(struct connection *c, const char *uri)
{
    size_t len = uri == NULL ? 0 : strlen(uri);

    if (len > c->target_cap) {
        char *grown = realloc(c->target, len);
        if (grown == NULL) {
            return false;
        }
        c->target = grown;
        c->target_cap = len;
    }
    if (len > 0) {
        memcpy(c->target, uri, len);
    }
    c->target_len = len;
    c->target_end = uri == NULL ? NULL : uri + len;
    return true;
}

/* The request line is in. What is returned comes back as *request_cls. */
static void *
on_target(void *cls, const char *uri, struct MHD_Connection *mhd)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct connection *c = info->socket_context;

    (void)cls;
    if (c == NULL || !keep_target(c, uri)) {
        return NULL;
    }
    assert(c->request == NULL);
    c->ended = c->answered = false;
    c->swallowed = 0;
    list_move(c, &c->http->receiving);
    touch(c);
    return c;
}

/* The answer has been sent, or the connection is gone. */
static void
on_completed(void *cls, struct MHD_Connection *mhd, void **request_cls,
             enum MHD_RequestTerminationCode code)
{
    struct connection *c = *request_cls;

    (void)cls;
    (void)mhd;
    (void)code;
    if (c == NULL) {
        return;
    }
    if (c->request != NULL) {
        request_release(c->request);
        c->request = NULL;
    }
    *request_cls = NULL;
    list_move(c, &c->http->idle);
    c->http->context->loop->progress = true;
    if (c->http->stopping) {
        shutdown(c->fd, SHUT_RD);
    }
}

/* ---- connections ------------------------------------------------------------------------------
 */

static struct connection *
connection_create(struct http *http, struct MHD_Connection *mhd)
{
    struct connection *c = calloc(1, sizeof(*c));
    const struct sockaddr *address =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS)->client_addr;

    if (c == NULL) {
        return NULL;
    }
    c->http = http;
    c->mhd = mhd;
    c->fd = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    c->is_tcp = address != NULL && address->sa_family != AF_UNIX;
    c->quota = quota_connect(http->context->quota, address);
    list_move(c, &http->idle);
    return c;
}

static void
connection_destroy(struct connection *c)
{
    struct http *http = c->http;

    quota_disconnect(
        http->context->quota,
        MHD_get_connection_info(c->mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS)->client_addr);
    if (c->linger) {
        int fd = dup(c->fd); /* libmicrohttpd closes its own in a moment */
        if (fd >= 0) {
            linger_start(http->lingers, fd);
        }
    }
    untouch(c);
    list_remove(c);
    free(c->target);
    free(c);
}

static void
on_connection(void *cls, struct MHD_Connection *mhd, void **socket_context,
              enum MHD_ConnectionNotificationCode code)
{
    struct http *http = cls;

    http->context->loop->progress = true;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        *socket_context = connection_create(http, mhd);
    } else if (*socket_context != NULL) {
        connection_destroy(*socket_context);
        *socket_context = NULL;
    }
}

/* route.c decodes; libmicrohttpd must not, since a decoded NUL would end its string. */
static size_t
leave_escaped(void *cls, struct MHD_Connection *mhd, char *text)
{
    (void)cls;
    (void)mhd;
    return strlen(text);
}

/* ---- the front --------------------------------------------------------------------------------
 */

struct http *
http_create(struct request_context *context, struct lingers *lingers, int listen_fd)
{
    const struct config *config = context->config;
    struct http *http = calloc(1, sizeof(*http));

    if (http == NULL) {
        return NULL;
    }
    http->context = context;
    http->lingers = lingers;
    http->listen_fd = listen_fd;
    http->daemon = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_USE_TURBO, 0, NULL, NULL, on_request, http, MHD_OPTION_LISTEN_SOCKET,
        listen_fd, MHD_OPTION_CONNECTION_LIMIT, config->connections + CONNECTIONS_SPARE,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)config->connection_buffer,
        MHD_OPTION_CONNECTION_TIMEOUT, (config->idle_timeout_ms + 999U) / 1000U,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, http, MHD_OPTION_NOTIFY_COMPLETED,
        on_completed, http, MHD_OPTION_URI_LOG_CALLBACK, on_target, http,
        MHD_OPTION_UNESCAPE_CALLBACK, leave_escaped, NULL,
        /* the lenient end refuses a space before a header's colon; the rest is checked here */
        MHD_OPTION_STRICT_FOR_CLIENT, -1, MHD_OPTION_END);
    if (http->daemon == NULL) {
        free(http);
        return NULL;
    }
    return http;
}

int
http_epoll_fd(const struct http *http)
{
    return MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
}

void
http_run(struct http *http)
{
    MHD_run(http->daemon);
    acknowledge_touched(http);
    forget_shared(http);
}

bool
http_has_backlog(struct http *http)
{
    MHD_UNSIGNED_LONG_LONG timeout = 1;

    return MHD_get_timeout(http->daemon, &timeout) == MHD_YES && timeout == 0;
}

size_t
http_connections(const struct http *http)
{
    return http->idle.count + http_busy(http);
}

size_t
http_busy(const struct http *http)
{
    return http->receiving.count + http->answering.count;
}

/* ---- time -------------------------------------------------------------------------------------
 */

/* When a connection without a request line is closed. libmicrohttpd closes silent ones before that;
   this is for those that send it byte by byte. */
static int64_t
idle_limit(const struct http *http)
{
    const struct config *config = http->context->config;

    return (int64_t)config->idle_timeout_ms + config->request_timeout_ms;
}

int64_t
http_next_deadline(const struct http *http)
{
    int64_t next = CLOCK_NEVER, receiving;

    if (http->idle.head != NULL) {
        next = http->idle.head->since_ms + idle_limit(http);
    }
    if (http->receiving.head != NULL) {
        receiving = http->receiving.head->since_ms + http->context->config->request_timeout_ms;
        next = receiving < next ? receiving : next;
    }
    return next;
}

/* Ends C: libmicrohttpd reads the end of the stream and closes. */
static void
cut_off(struct connection *c, struct connection_list *list)
{
    shutdown(c->fd, SHUT_RD);
    list_move(c, list);
}

void
http_expire(struct http *http)
{
    int64_t now = http->context->loop->now_ms;
    int64_t timeout = http->context->config->request_timeout_ms;

    while (http->idle.head != NULL && http->idle.head->since_ms + idle_limit(http) <= now) {
        cut_off(http->idle.head, &http->idle);
    }
    while (http->receiving.head != NULL && http->receiving.head->since_ms + timeout <= now) {
        struct connection *c = http->receiving.head;
        if (!c->answered && !c->linger) {
            answer_raw(c, REPLY_SLOW);
        }
        cut_off(c, &http->receiving);
    }
}

/* ---- stop -------------------------------------------------------------------------------------
 */

void
http_quiesce(struct http *http)
{
    struct pollfd pending = { .fd = http->listen_fd, .events = POLLIN };

    for (int i = 0; i < QUIESCE_PASSES && poll(&pending, 1, 0) > 0; i++) {
        http_run(http);
    }
    http->stopping = true;
    MHD_quiesce_daemon(http->daemon);
    for (struct connection *c = http->idle.head; c != NULL; c = c->next) {
        shutdown(c->fd, SHUT_RD);
    }
}

void
http_destroy(struct http *http)
{
    if (http == NULL) {
        return;
    }
    if (!http->stopping) {
        MHD_quiesce_daemon(http->daemon); /* or it would close the listening socket */
    }
    forget_shared(http);
    for (size_t i = 0; i < REPLY_ID_COUNT; i++) {
        if (http->fixed[i] != NULL) {
            MHD_destroy_response(http->fixed[i]);
        }
    }
    MHD_stop_daemon(http->daemon);
    free(http);
}
