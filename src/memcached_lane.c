/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * memcached_lane.c: the life of one pipelined connection: connect, serve events, expire, fail. How
 * it comes to READY is in memcached_handshake.c; which op goes where, and what happens after a
 * failure, is memcached_server.c's business.
 */
#include "memcached_lane.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "address_book.h"
#include "clock.h"
#include "log.h"
#include "memcached_lane_priv.h"
#include "memcached_server.h"

/* A connection that was closed sooner, and never said anything, was a dial in vain. */
#define LANE_OLD_MS 1000

static void lane_ready(struct watch *watch, uint32_t events);

void
lane_init(struct memcached_lane *lane, struct memcached_server *server)
{
    *lane = (struct memcached_lane){
        .watch = { .fd = -1, .ready = lane_ready },
        .server = server,
        .state = LANE_CLOSED,
    };
}

/* Back to CLOSED; keeps the ops and the memory for the next connection. */
static void
close_socket(struct memcached_lane *lane)
{
    if (lane->watch.fd >= 0) {
        loop_unwatch(lane->server->loop, &lane->watch);
        close(lane->watch.fd);
        lane->watch.fd = -1;
    }
    buffer_unref(lane->value);
    lane->value = NULL;
    lane->state = LANE_CLOSED;
    lane->in_len = 0;
    lane->iov_count = lane->iov_pos = 0;
    lane->bytes_queued = lane->bytes_sent = 0;
    lane->big = 0;
    lane->counted_big = lane->want_out = lane->in_paused = lane->has_replied = false;
    lane->handshake_meta = false;
}

void
lane_deinit(struct memcached_lane *lane)
{
    assert(lane_load(lane) == 0);
    close_socket(lane);
    free(lane->commands);
    free(lane->iov);
    free(lane->in);
    lane->commands = lane->in = NULL;
    lane->iov = NULL;
    lane->commands_cap = lane->iov_cap = 0;
}

void
lane_fail(struct memcached_lane *lane, enum store_status status, const char *reason)
{
    struct memcached_server *server = lane->server;
    struct op_queue sent = op_queue_take(&lane->sent);
    bool reply_begun = lane->in_len > 0 || lane->value != NULL;
    bool has_replied = lane->has_replied;
    bool is_old =
        lane->state == LANE_READY && server->loop->now_ms - lane->opened_ms >= LANE_OLD_MS;
    uint64_t bytes_sent = lane->bytes_sent;
    struct store_op *op;

    log_debug("server %s: connection closed: %s", address_book_name(server->shared->book), reason);
    close_socket(lane);
    op_queue_append(&server->queue, &lane->unsent);
    if (is_old && sent.count == 0) {
        log_debug("server %s: it was idle", address_book_name(server->shared->book));
    } else if (!has_replied) {
        memcached_server_dial_failed(server, lane->address, reason);
    } else if (sent.count > 0 || status == STORE_BAD_REPLY) {
        memcached_server_lane_broken(server, lane, reason);
    }
    while ((op = op_queue_pop(&sent)) != NULL) {
        if (op->stream_begin >= bytes_sent) {
            op_queue_push(&server->queue, op);
        } else {
            memcached_server_broken(server, op, status, reply_begun);
        }
        reply_begun = false;
    }
}

/* ---- connecting ------------------------------------------------------------------------------ */

/* Sockets that fail before they are watched: memory and connect(2) errors alike. */
static bool
start_connect(struct memcached_lane *lane, int fd, const struct address *address)
{
    int on = 1;

    if (lane->in == NULL) {
        lane->in = malloc(LANE_IN_CAP);
    }
    if (lane->in == NULL) {
        return false;
    }
    if (address->socket.any.sa_family != AF_UNIX) {
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    }
    if (connect(fd, &address->socket.any, address->len) < 0 && errno != EINPROGRESS) {
        return false;
    }
    lane->watch.fd = fd;
    lane->want_out = true;
    return loop_watch(lane->server->loop, &lane->watch, EPOLLIN | EPOLLOUT) == 0;
}

bool
lane_open(struct memcached_lane *lane, const struct address *address, int64_t deadline_ms)
{
    int fd = socket(address->socket.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    assert(lane->state == LANE_CLOSED);
    if (fd < 0) {
        return false;
    }
    if (!start_connect(lane, fd, address)) {
        int reason = errno;
        lane->watch.fd = -1;
        lane->want_out = false;
        close(fd);
        errno = reason;
        return false;
    }
    lane->state = LANE_CONNECTING;
    lane->opened_ms = lane->server->loop->now_ms;
    lane->served = false;
    lane->deadline_ms = deadline_ms;
    return true;
}

/* EPOLLOUT, EPOLLERR or EPOLLHUP while CONNECTING. */
static void
finish_connect(struct memcached_lane *lane)
{
    int error = 0;
    socklen_t len = sizeof(error);

    if (getsockopt(lane->watch.fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0) {
        error = errno;
    }
    if (error != 0) {
        lane_fail(lane, STORE_UNAVAILABLE, strerror(error));
        return;
    }
    lane->want_out = false;
    loop_rewatch(lane->server->loop, &lane->watch, EPOLLIN);
    lane_connected(lane);
}

/* ---- events ---------------------------------------------------------------------------------- */

static void
lane_ready(struct watch *watch, uint32_t events)
{
    struct memcached_lane *lane = (struct memcached_lane *)watch; /* its first member */

    if (lane->state == LANE_CONNECTING) {
        finish_connect(lane);
        return;
    }
    if ((events & EPOLLOUT) != 0) {
        lane_resume_send(lane);
    }
    if (lane->state == LANE_CLOSED) {
        return;
    }
    if (lane->in_paused && (events & (EPOLLERR | EPOLLHUP)) != 0) {
        lane_fail(lane, STORE_UNAVAILABLE, "closed by the server");
        return;
    }
    if ((events & (EPOLLIN | EPOLLERR | EPOLLHUP)) != 0 && !lane->in_paused) {
        lane_receive(lane);
    }
}

/* ---- deadlines ------------------------------------------------------------------------------- */

int64_t
lane_next_deadline(const struct memcached_lane *lane)
{
    int64_t next = CLOCK_NEVER;

    if (lane_is_opening(lane)) {
        next = lane->deadline_ms;
    }
    if (lane->sent.head != NULL && lane->sent.head->deadline_ms < next) {
        next = lane->sent.head->deadline_ms;
    }
    if (lane->unsent.head != NULL && lane->unsent.head->deadline_ms < next) {
        next = lane->unsent.head->deadline_ms;
    }
    return next;
}

void
lane_expire(struct memcached_lane *lane, int64_t now_ms)
{
    if (lane_is_opening(lane) && lane->deadline_ms <= now_ms) {
        lane_fail(
            lane, STORE_TIMEOUT,
            lane->state == LANE_CONNECTING
                ? "connecting takes too long"
                : "it takes connections and says nothing; servers that want TLS or SASL do so");
        return;
    }
    if (lane->sent.head != NULL && lane->sent.head->deadline_ms <= now_ms) {
        lane_fail(lane, STORE_TIMEOUT, "no answer in time");
        return;
    }
    while (lane->unsent.head != NULL && lane->unsent.head->deadline_ms <= now_ms) {
        struct store_op *op = op_queue_pop(&lane->unsent);
        lane_forget_big(lane, op);
        memcached_server_complete(lane->server, op, STORE_TIMEOUT, NULL);
    }
}
