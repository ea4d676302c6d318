/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * memcached_send.c: how ops leave on a lane. A batch is everything that waits when the turn ends;
 * its iovec interleaves runs of commands[] with the callers' values, which are never copied:
 *
 *   commands[]   set k1 ...\r\n | \r\nget k2\r\nset k3 ...\r\n | \r\n
 *   iovec             [0]     [1]            [2]            [3]  [4]
 *   callers                 value of k1                  value of k3
 *
 * It leaves in one sendmsg, or in as many as a full socket makes of it: no piece of a command ever
 * waits for the acknowledgement of another.
 */
#include "memcached_lane.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "clock.h"
#include "memcached_lane_priv.h"
#include "memcached_server.h"

/* Ops of one sendmsg: two iovecs each and one more stay below the kernel's IOV_MAX of 1024. */
#define LANE_BATCH_MAX 500

void
lane_assign(struct memcached_lane *lane, struct store_op *op)
{
    if (op->value.len > MEMCACHED_BIG_VALUE) {
        lane->big++;
    }
    op_queue_push(&lane->unsent, op);
}

static bool
reserve_batch(struct memcached_lane *lane, size_t ops)
{
    size_t commands = ops * (MEMCACHED_COMMAND_MAX + 2);
    size_t iov = ops * 2 + 1;

    if (commands > lane->commands_cap) {
        char *grown = realloc(lane->commands, commands);
        if (grown == NULL) {
            return false;
        }
        lane->commands = grown;
        lane->commands_cap = commands;
    }
    if (iov > lane->iov_cap) {
        struct iovec *grown = realloc(lane->iov, iov * sizeof(*grown));
        if (grown == NULL) {
            return false;
        }
        lane->iov = grown;
        lane->iov_cap = iov;
    }
    return true;
}

static void
add_piece(struct memcached_lane *lane, const char *ptr, size_t len)
{
    if (len > 0) {
        lane->iov[lane->iov_count++] = (struct iovec){ (char *)(uintptr_t)ptr, len };
        lane->bytes_queued += len;
    }
}

/* Turns unsent ops into the batch. Those that the dialect lacks are completed by the server. */
static void
build_batch(struct memcached_lane *lane)
{
    struct memcached_server *server = lane->server;
    struct memcached_context context = {
        .now_s = clock_wall_ms() / 1000,
        .no_cas = server->no_cas,
    };
    size_t count = lane->unsent.count < LANE_BATCH_MAX ? lane->unsent.count : LANE_BATCH_MAX;
    char *run, *end;

    lane->iov_count = lane->iov_pos = 0;
    if (!reserve_batch(lane, count)) {
        return;
    }
    run = end = lane->commands;
    while (count-- > 0) {
        struct store_op *op = op_queue_pop(&lane->unsent);
        /* An opaque that repeats after 2^32 ops of a lane has long been answered. Text: whether
           the op leaves as `get`, for memcached_server_without_cas. */
        context.opaque = lane->dialect == &memcached_text ? server->no_cas : ++server->opaque;
        op->opaque = context.opaque;
        uint64_t begin = lane->bytes_queued + (uint64_t)(end - run);
        size_t len = lane->dialect->encode(op, &context, end);
        if (len == 0) {
            lane_forget_big(lane, op);
            op->status = STORE_UNSUPPORTED;
            op_queue_push(&server->finished, op);
            continue;
        }
        end += len;
        if (store_verb_has_value(op->verb)) {
            add_piece(lane, run, (size_t)(end - run));
            add_piece(lane, op->value.ptr, op->value.len);
            run = end;
            *end++ = '\r';
            *end++ = '\n';
        }
        op->stream_begin = begin;
        op->stream_end = lane->bytes_queued + (uint64_t)(end - run);
        op_queue_push(&lane->sent, op);
    }
    add_piece(lane, run, (size_t)(end - run));
}

/* Says what the socket is to be watched for. */
void
lane_watch_for(struct memcached_lane *lane, bool out, bool pause)
{
    if (out != lane->want_out || pause != lane->in_paused) {
        lane->want_out = out;
        lane->in_paused = pause;
        loop_rewatch(lane->server->loop, &lane->watch,
                     (pause ? 0U : EPOLLIN) | (out ? EPOLLOUT : 0U));
    }
}

/* Takes N bytes off the front of the batch. */
static void
advance(struct memcached_lane *lane, size_t n)
{
    lane->bytes_sent += n;
    while (n > 0) {
        struct iovec *piece = &lane->iov[lane->iov_pos];
        if (n < piece->iov_len) {
            piece->iov_base = (char *)piece->iov_base + n;
            piece->iov_len -= n;
            return;
        }
        n -= piece->iov_len;
        lane->iov_pos++;
    }
}

/* Sends the rest of the batch. False: the socket is full, or the lane has failed. */
static bool
send_batch(struct memcached_lane *lane)
{
    while (lane->iov_pos < lane->iov_count) {
        struct msghdr message = {
            .msg_iov = lane->iov + lane->iov_pos,
            .msg_iovlen = lane->iov_count - lane->iov_pos,
        };
        ssize_t n = sendmsg(lane->watch.fd, &message, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0 && errno == EAGAIN) {
            lane_watch_for(lane, true, lane->in_paused);
            return false;
        }
        if (n < 0) {
            lane_fail(lane, STORE_UNAVAILABLE, strerror(errno));
            return false;
        }
        advance(lane, (size_t)n);
    }
    return true;
}

void
lane_flush(struct memcached_lane *lane)
{
    while (lane->state == LANE_READY && lane->iov_pos == lane->iov_count &&
           lane->unsent.count > 0) {
        build_batch(lane);
        if (lane->iov_count == 0 && lane->unsent.count > 0) {
            return; /* no memory: they stay, until their deadline */
        }
        if (!send_batch(lane)) {
            return;
        }
    }
}

/* EPOLLOUT: the rest of the batch, and then replies that were held back for it. */
void
lane_resume_send(struct memcached_lane *lane)
{
    bool resumed;

    if (!send_batch(lane)) {
        return;
    }
    resumed = lane->in_paused;
    lane_watch_for(lane, false, false);
    if (resumed) {
        lane_parse(lane);
    }
}
