/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * memcached_receive.c: how replies come in on a lane. One read fills in[]; replies are taken off
 * its front and matched to the ops in the order of sending. A value that does not fit is read
 * straight into the buffer that the caller gets, and what follows it into in[], by one readv.
 */
#include "memcached_lane.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "memcached_lane_priv.h"
#include "memcached_server.h"

/* Reads of one lane in one turn, so that a fast server does not starve the clients. */
#define LANE_READS_MAX 16

/* The oldest op is answered. DATA's reference moves. */
static void
complete_head(struct memcached_lane *lane, const struct memcached_reply *reply, struct buffer *data)
{
    struct store_op *op = op_queue_pop(&lane->sent);
    struct memcached_server *server = lane->server;

    lane_forget_big(lane, op);
    if (lane->counted_big) {
        lane->big--;
        lane->counted_big = false;
    }
    lane->last_used_ms = server->loop->now_ms;
    if (!reply->close) {
        lane->served = true;
    }
    if (!lane->has_replied) {
        lane->has_replied = true;
        memcached_server_alive(server);
    }
    op->value_len = reply->value_len;
    op->out_flags = reply->flags;
    op->out_cas = reply->cas;
    op->ttl_left_s = reply->ttl_left_s;
    op->number = reply->number;
    if (reply->status == STORE_UNSUPPORTED && !reply->close && lane->dialect == &memcached_text &&
        store_verb_reads(op->verb) && op->opaque == 0) {
        memcached_server_without_cas(server, op);
        return;
    }
    memcached_server_complete(server, op, reply->status, data);
}

/* The value is in, and its tail: check, hand over. False: the lane has failed. */
static bool
finish_value(struct memcached_lane *lane)
{
    struct buffer *value = lane->value;
    struct slice tail = lane->reply.tail;

    if (memcmp(value->data + lane->reply.value_len, tail.ptr, tail.len) != 0) {
        lane_fail(lane, STORE_BAD_REPLY, "a value is not followed by its end");
        return false;
    }
    lane->value = NULL;
    value->len = lane->reply.value_len;
    if (lane->sent.head->verb != STORE_GET) {
        buffer_unref(value);
        value = NULL;
    }
    complete_head(lane, &lane->reply, value);
    return true;
}

/*
 * A reply announces a value: take what is in in[] from OFFSET on, receive the rest later. Returns
 * the bytes taken, or -1 when the lane has failed.
 */
static ssize_t
begin_value(struct memcached_lane *lane, size_t offset)
{
    size_t want = lane->reply.value_len + lane->reply.tail.len;
    size_t have = lane->in_len - offset;

    if (lane->reply.value_len > lane->server->value_limit) {
        lane_fail(lane, STORE_BAD_REPLY, "a value is longer than item_max");
        return -1;
    }
    lane->value = buffer_create(want);
    if (lane->value == NULL) {
        lane_fail(lane, STORE_NO_MEMORY, "no memory for a value");
        return -1;
    }
    if (have > want) {
        have = want;
    }
    memcpy(lane->value->data, lane->in + offset, have);
    lane->value->len = have;
    lane->value_want = want;
    if (lane->reply.value_len > MEMCACHED_BIG_VALUE) {
        lane->big++;
        lane->counted_big = true;
    }
    return (ssize_t)have;
}

/* One reply at in[OFFSET]. Returns the bytes used, 0 for "need more", -1: the lane has failed. */
static ssize_t
parse_one(struct memcached_lane *lane, size_t offset)
{
    struct store_op *op = lane->sent.head;
    struct memcached_context context = { .opaque = op->opaque, .no_cas = op->opaque != 0 };
    const char *refusal =
        lane->has_replied ? NULL : lane_refusal(lane->in + offset, lane->in_len - offset);
    size_t used;
    ssize_t taken;

    if (refusal != NULL) {
        lane_fail(lane, STORE_UNAVAILABLE, refusal);
        return -1;
    }
    switch (lane->dialect->decode(op, &context, lane->in + offset, lane->in_len - offset,
                                  &lane->reply)) {
    case MEMCACHED_MORE:
        return 0;
    case MEMCACHED_NONSENSE:
        lane_fail(lane, STORE_BAD_REPLY, "a reply does not fit its request");
        return -1;
    case MEMCACHED_REPLY:
        break;
    }
    used = lane->reply.line_len;
    if (!lane->reply.has_value) {
        bool leaving = lane->reply.close;
        complete_head(lane, &lane->reply, NULL);
        if (leaving) {
            lane->in_len -= offset + used; /* what is left is the next reply's, if anything */
            lane_fail(lane, STORE_UNAVAILABLE, "the server refused a command");
            return -1;
        }
        return (ssize_t)used;
    }
    taken = begin_value(lane, offset + used);
    if (taken < 0) {
        return -1;
    }
    if (lane->value->len == lane->value_want && !finish_value(lane)) {
        return -1;
    }
    return (ssize_t)used + taken;
}

/* Whether nobody asked for what has come. */
static bool
is_unasked(struct memcached_lane *lane, size_t offset)
{
    const char *reason = lane_refusal(lane->in + offset, lane->in_len - offset);

    if (lane->sent.head != NULL) {
        return false;
    }
    lane_fail(lane, reason == NULL ? STORE_BAD_REPLY : STORE_UNAVAILABLE,
              reason == NULL ? "a reply that nobody asked for" : reason);
    return true;
}

/*
 * Takes all complete replies off the front of in[]. False: the lane has failed. A reply whose
 * command has not left completely waits: its value is still the kernel's to read.
 */
bool
lane_parse(struct memcached_lane *lane)
{
    size_t offset = 0;
    ssize_t used = 1;

    while (offset < lane->in_len && lane->value == NULL && used > 0) {
        if (is_unasked(lane, offset)) {
            return false;
        }
        if (lane->sent.head->stream_end > lane->bytes_sent) {
            lane_watch_for(lane, true, true);
            break;
        }
        used = parse_one(lane, offset);
        if (used < 0) {
            return false;
        }
        offset += (size_t)used;
    }
    lane->in_len -= offset;
    if (offset > 0 && lane->in_len > 0) {
        memmove(lane->in, lane->in + offset, lane->in_len);
    }
    return true;
}

/* What has come into the value and behind it. False: the lane has failed. */
static bool
received(struct memcached_lane *lane, size_t n)
{
    struct buffer *value = lane->value;

    if (value != NULL) {
        size_t part = lane->value_want - value->len;
        if (part > n) {
            part = n;
        }
        value->len += part;
        n -= part;
        lane->in_len += n;
        if (value->len < lane->value_want) {
            return true;
        }
        return finish_value(lane) && lane_parse(lane);
    }
    lane->in_len += n;
    return lane_is_opening(lane) ? lane_handshake(lane) : lane_parse(lane);
}

/* One read. False: nothing more now, or the lane has failed. */
static bool
receive_once(struct memcached_lane *lane)
{
    struct buffer *value = lane->value;
    struct iovec iov[2];
    int count = 0;
    size_t room = LANE_IN_CAP - lane->in_len;
    ssize_t n;

    if (value != NULL) {
        iov[count++] = (struct iovec){ value->data + value->len, lane->value_want - value->len };
        room += lane->value_want - value->len;
    }
    iov[count++] = (struct iovec){ lane->in + lane->in_len, LANE_IN_CAP - lane->in_len };
    n = readv(lane->watch.fd, iov, count);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return false;
    }
    if (n <= 0) {
        const char *closed =
            lane_is_opening(lane)
                ? "it closes at the first word; servers that want TLS or SASL do so"
                : "closed by the server";
        lane_fail(lane, STORE_UNAVAILABLE, n < 0 ? strerror(errno) : closed);
        return false;
    }
    return received(lane, (size_t)n) && (size_t)n == room && !lane->in_paused;
}

/*
 * A reply that has begun and not ended is acknowledged now. A server that writes a reply in pieces under
 * Nagle's algorithm holds the rest back until then, and one that has filled a receive window which
 * is still small does so, too; the kernel would let it wait for 40 ms.
 */
static void
acknowledge_half_reply(struct memcached_lane *lane)
{
    int on = 1;

    if (lane->value != NULL || lane->in_len > 0) {
        setsockopt(lane->watch.fd, IPPROTO_TCP, TCP_QUICKACK, &on, sizeof(on));
    }
}

void
lane_receive(struct memcached_lane *lane)
{
    for (int reads = 0; reads < LANE_READS_MAX && receive_once(lane); reads++) {
    }
    acknowledge_half_reply(lane);
}
