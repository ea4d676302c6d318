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
 *   - A request that has begun and not ended is acknowledged at once (TCP_QUICKACK, http_acknowledge),
 *     because its client may hold back the rest until then.
 */
#include "http.h"

#include <assert.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <microhttpd.h>

#include "clock.h"
#include "http_connection.h"
#include "http_head.h"
#include "loop.h"

/* libmicrohttpd stops to accept at its own limit; ours must come first, since it has an answer. */
#define CONNECTIONS_SPARE 256

/* How long a connection that is one too many may be silent before it gets its answer unasked. */
#define REFUSED_MS 1000

/* When a request has waited long; see waits_long. A store of the neighbourhood takes less, even when it is busy. */
#define SUSPEND_AFTER_MS 20

/* Passes that a stop spends on connections that the kernel has accepted and we have not. */
#define QUIESCE_PASSES 64

/* ---- requests -------------------------------------------------------------------------------- */

/* Queues the reply of a request that is done. */
static enum MHD_Result
answer(struct connection *c)
{
    const struct reply *reply = request_reply(c->request);
    struct MHD_Response *response = http_replies_get(&c->http->replies, reply);

    if (response == NULL) {
        return MHD_NO;
    }
    c->answered = true;
    c->http->context->loop->progress = true;
    return MHD_queue_response(c->mhd, reply_status(reply->id), response);
}

/* An answer past libmicrohttpd, after which the connection is closed slowly. */
static void
answer_raw(struct connection *c, enum reply_id id)
{
    http_reply_raw(c->fd, id);
    c->linger = true;
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
    http_head_read(c->mhd, &head);
    has_body = head.content_length > 0 || head.lengths > 1 || head.transfers > 0;
    if (has_body) {
        connection_touch(c);
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
    size_t placed = upload_take(c, len);

    connection_touch(c);
    data += placed;
    len -= placed;
    if (len == 0) {
        return MHD_YES;
    }
    if (request_body(c->request, data, len)) {
        upload_begin(c);
        return MHD_YES;
    }
    c->swallowed += len;
    if (c->swallowed <= REQUEST_SWALLOW_MAX) {
        return MHD_YES;
    }
    answer_raw(c, request_reply(c->request)->id);
    return MHD_NO;
}

/*
 * To be called in each pass costs a waiting request some 30 ns, to be suspended two epoll_ctl and a place on a list that
 * libmicrohttpd walks whenever it resumes one. So that is for those that wait long, where many do.
 */
static bool
waits_long(const struct connection *c)
{
    const struct request_context *context = c->http->context;

    return context->waiting - context->suspended >= REQUEST_MANY_WAITING &&
           context->loop->now_ms - c->since_ms >= SUSPEND_AFTER_MS;
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
    if (c->linger && !c->answered) {
        return MHD_NO; /* it has had its answer, in http_expire */
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
        connection_move(c, &c->http->answering);
        c->http->context->loop->progress = true;
        request_end(c->request);
    }
    if (request_is_done(c->request)) {
        return answer(c);
    }
    if (waits_long(c)) {
        connection_suspend(c);
    }
    return MHD_YES;
}

/* The request line is in. What is returned comes back as *request_cls. */
static void *
on_target(void *cls, const char *uri, struct MHD_Connection *mhd)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct connection *c = info->socket_context;

    (void)cls;
    if (c == NULL || !connection_keep_target(c, uri)) {
        return NULL;
    }
    assert(c->request == NULL);
    c->ended = c->answered = false;
    c->swallowed = 0;
    connection_move(c, &c->http->receiving);
    connection_touch(c);
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
    assert(!c->is_suspended);
    upload_end(c);
    if (c->request != NULL) {
        request_release(c->request);
        c->request = NULL;
    }
    *request_cls = NULL;
    connection_move(c, &c->http->idle);
    c->http->context->loop->progress = true;
    if (c->http->stopping || c->hung_up) {
        shutdown(c->fd, SHUT_RD);
    }
}

/* ---- connections ----------------------------------------------------------------------------- */

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

/* ---- the front ------------------------------------------------------------------------------- */

/*
 * How long a connection may be silent, in seconds: idle_timeout, but no less than a store may take to answer,
 * since libmicrohttpd counts that as silence, too.
 */
static unsigned
silence_limit_s(const struct config *config)
{
    uint32_t limit_ms = config->idle_timeout_ms;

    for (size_t i = 0; i < config->store_count; i++) {
        const struct config_store *store = &config->stores[i];
        if (store->type == CONFIG_STORE_MEMCACHED && store->op_timeout_ms + 1000 > limit_ms) {
            limit_ms = store->op_timeout_ms + 1000;
        }
    }
    return (limit_ms + 999U) / 1000U;
}

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
    connection_list_init(&http->idle);
    connection_list_init(&http->refused);
    connection_list_init(&http->receiving);
    connection_list_init(&http->answering);
    http->daemon = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_USE_TURBO | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, on_request, http,
        MHD_OPTION_LISTEN_SOCKET, listen_fd, MHD_OPTION_CONNECTION_LIMIT,
        config->connections + CONNECTIONS_SPARE, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)config->connection_buffer, MHD_OPTION_CONNECTION_TIMEOUT, silence_limit_s(config),
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
    uploads_run(http);
    http_replies_forget(&http->replies);
}

void
http_acknowledge(struct http *http)
{
    connection_acknowledge_touched(http);
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
    return http->idle.count + http->refused.count + http_busy(http);
}

size_t
http_busy(const struct http *http)
{
    return http->receiving.count + http->answering.count;
}

/* ---- time ------------------------------------------------------------------------------------ */

/* When a connection without a request line is closed. libmicrohttpd closes silent ones before that;
   this is for those that send it byte by byte. */
static int64_t
idle_limit(const struct http *http)
{
    const struct config *config = http->context->config;

    return (int64_t)config->idle_timeout_ms + config->request_timeout_ms;
}

/* When the connection that has been on LIST for longest has been there for LIMIT_MS. */
static int64_t
list_deadline(const struct connection_list *list, int64_t limit_ms)
{
    const struct connection *oldest = TAILQ_FIRST(&list->connections);

    return oldest == NULL ? CLOCK_NEVER : oldest->since_ms + limit_ms;
}

int64_t
http_next_deadline(const struct http *http)
{
    int64_t idle = list_deadline(&http->idle, idle_limit(http));
    int64_t receiving = list_deadline(&http->receiving, http->context->config->request_timeout_ms);

    int64_t refused = list_deadline(&http->refused, REFUSED_MS);

    idle = idle < refused ? idle : refused;
    return idle < receiving ? idle : receiving;
}

/* Ends C: libmicrohttpd reads the end of the stream and closes. */
static void
cut_off(struct connection *c, struct connection_list *list)
{
    shutdown(c->fd, SHUT_RD);
    connection_move(c, list);
}

void
http_expire(struct http *http)
{
    int64_t now = http->context->loop->now_ms;
    int64_t timeout = http->context->config->request_timeout_ms;

    while (list_deadline(&http->idle, idle_limit(http)) <= now) {
        cut_off(TAILQ_FIRST(&http->idle.connections), &http->idle);
    }
    while (list_deadline(&http->refused, REFUSED_MS) <= now) {
        struct connection *c = TAILQ_FIRST(&http->refused.connections);
        answer_raw(c, c->quota == QUOTA_ADDRESS ? REPLY_TOO_MANY_FROM_ADDRESS
                                                : REPLY_TOO_MANY_CONNECTIONS);
        cut_off(c, &http->idle);
    }
    while (list_deadline(&http->receiving, timeout) <= now) {
        struct connection *c = TAILQ_FIRST(&http->receiving.connections);
        if (!c->answered && !c->linger) {
            answer_raw(c, REPLY_SLOW);
        }
        cut_off(c, &http->receiving);
    }
}

/* ---- stop ------------------------------------------------------------------------------------ */

void
http_quiesce(struct http *http)
{
    struct pollfd pending = { .fd = http->listen_fd, .events = POLLIN };
    struct connection *c;

    for (int i = 0; i < QUIESCE_PASSES && poll(&pending, 1, 0) > 0; i++) {
        http_run(http);
    }
    http->stopping = true;
    MHD_quiesce_daemon(http->daemon);
    shutdown(http->listen_fd, SHUT_RD); /* who comes now is refused, not left waiting */
    TAILQ_FOREACH (c, &http->idle.connections, link) {
        shutdown(c->fd, SHUT_RD);
    }
}

void
http_destroy(struct http *http)
{
    struct connection *c;

    if (http == NULL) {
        return;
    }
    if (!http->stopping) {
        MHD_quiesce_daemon(http->daemon); /* or it would close the listening socket */
    }
    TAILQ_FOREACH (c, &http->answering.connections, link) {
        connection_resume(c); /* libmicrohttpd aborts at a stop with suspended ones */
    }
    http_replies_deinit(&http->replies);
    MHD_stop_daemon(http->daemon);
    uploads_deinit(&http->uploads);
    free(http);
}
