/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * memcached_server.c: one server, its lanes, and the decisions about them: which lane an op takes,
 * when to dial, what is sent again. No byte is read or written here.
 *
 *   submit --> queue --(flush: pick a lane)--> lane --> complete
 *                ^                              |
 *                |        not sent yet, or a    |
 *                '------- read, once -----------'  broken
 */
#include "memcached_server.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "log.h"

/* The pause after a failed dial doubles from the first to the last; jitter takes off up to a half.
 */
#define DIAL_PAUSE_FIRST_MS 50
#define DIAL_PAUSE_LAST_MS  1000

/* A lane other than the first that had nothing to do for so long is closed. */
#define LANE_IDLE_MS 10000

/* Ops whose lane fails while they are assigned get another one, so often in one turn. */
#define ASSIGN_ROUNDS 3

/*
 * A server may hold larger values than our item_max lets in, if it was started so; more than that
 * is not believed, since memory is set aside on the announcement.
 */
#define VALUE_LIMIT_MIN (64U * 1024 * 1024)

int
memcached_server_init(struct memcached_server *server, const struct config_store *config,
                      struct memcached_server_shared *shared, struct loop *loop)
{
    *server = (struct memcached_server){
        .config = config,
        .shared = shared,
        .loop = loop,
        .value_limit = config->item_max > VALUE_LIMIT_MIN ? config->item_max : VALUE_LIMIT_MIN,
        .jitter = (uint64_t)clock_wall_ms() ^ (uint64_t)(uintptr_t)server,
    };
    server->lanes = calloc(config->lanes, sizeof(*server->lanes));
    if (server->lanes == NULL) {
        return -1;
    }
    for (uint32_t i = 0; i < config->lanes; i++) {
        lane_init(&server->lanes[i], server);
    }
    return 0;
}

/* ---- completion ------------------------------------------------------------------------------ */

void
memcached_server_complete(struct memcached_server *server, struct store_op *op,
                          enum store_status status, struct buffer *data)
{
    struct store_op *joined = op->joined;

    assert(server->ops > 0);
    server->ops--;
    op->joined = NULL;
    op->status = status;
    op->data = data;
    while (joined != NULL) {
        struct store_op *twin = joined;
        joined = twin->joined;
        twin->joined = NULL;
        twin->status = status;
        twin->data = data == NULL ? NULL : buffer_ref(data);
        twin->value_len = op->value_len;
        twin->out_flags = op->out_flags;
        twin->out_cas = op->out_cas;
        twin->ttl_left_s = op->ttl_left_s;
        twin->done(twin);
    }
    op->done(op);
}

/* Ops that have their status already, and waited for a moment when `done` may be called. */
static void
complete_finished(struct memcached_server *server)
{
    struct store_op *op;

    while ((op = op_queue_pop(&server->finished)) != NULL) {
        memcached_server_complete(server, op, op->status, NULL);
    }
}

void
memcached_server_without_cas(struct memcached_server *server, struct store_op *op)
{
    if (!server->no_cas) {
        server->no_cas = true;
        log_info("server %s: has no gets; values come without their cas",
                 address_book_name(server->shared->book));
    }
    op_queue_push(&server->queue, op);
}

void
memcached_server_broken(struct memcached_server *server, struct store_op *op,
                        enum store_status status, bool reply_begun)
{
    bool silent = status == STORE_UNAVAILABLE || status == STORE_TIMEOUT;

    if (silent && store_verb_reads(op->verb) && !op->retried && !reply_begun &&
        op->deadline_ms > server->loop->now_ms && !server->closing) {
        op->retried = true;
        op_queue_push(&server->queue, op);
        return;
    }
    memcached_server_complete(server, op, status, NULL);
}

/* ---- dialling -------------------------------------------------------------------------------- */

void
memcached_server_alive(struct memcached_server *server)
{
    server->failures = 0;
    server->address_next = 0;
    server->dial_after_ms = 0;
    if (atomic_load_explicit(&server->shared->down, memory_order_relaxed) &&
        atomic_exchange(&server->shared->down, false)) {
        log_info("server %s: is back", address_book_name(server->shared->book));
    }
}

/* xorshift: nobody needs these numbers to be good, only different from worker to worker. */
static int64_t
pause_ms(struct memcached_server *server)
{
    int64_t pause = DIAL_PAUSE_LAST_MS;

    if (server->failures < 6 && (DIAL_PAUSE_FIRST_MS << server->failures) < pause) {
        pause = DIAL_PAUSE_FIRST_MS << server->failures;
    }
    server->jitter |= 1;
    server->jitter ^= server->jitter << 13;
    server->jitter ^= server->jitter >> 7;
    server->jitter ^= server->jitter << 17;
    return pause - (int64_t)(server->jitter % (uint64_t)(pause / 2));
}

void
memcached_server_in_trouble(struct memcached_server *server, const char *reason)
{
    if (server->closing) {
        return;
    }
    server->address_next = 0;
    server->dial_after_ms = server->loop->now_ms + pause_ms(server);
    server->failures++;
    if (!atomic_exchange(&server->shared->down, true)) {
        log_warn("server %s: %s; its keys are unavailable until it is back",
                 address_book_name(server->shared->book), reason);
    }
}

void
memcached_server_dial_failed(struct memcached_server *server, size_t address, const char *reason)
{
    if (address != server->address_next) {
        return; /* several lanes dialled together: the first to fail has moved on */
    }
    server->address_next++;
    if (server->address_next >= server->address_count) {
        memcached_server_in_trouble(server, reason);
    }
}

/* Opens LANE to the next address that does not refuse at once. */
static bool
dial(struct memcached_server *server, struct memcached_lane *lane)
{
    int64_t now = server->loop->now_ms;
    unsigned failures = server->failures;

    if (now < server->dial_after_ms) {
        return false;
    }
    if (server->address_next == 0) {
        server->address_count = address_book_read(server->shared->book, server->addresses);
    }
    if (server->address_count == 0) {
        memcached_server_in_trouble(server, "no address is known");
        return false;
    }
    while (server->failures == failures) {
        lane->address = server->address_next;
        if (lane_open(lane, &server->addresses[lane->address],
                      now + server->config->connect_timeout_ms)) {
            return true;
        }
        memcached_server_dial_failed(server, lane->address, strerror(errno));
    }
    return false;
}

/* ---- lanes ----------------------------------------------------------------------------------- */

/*
 * The lane for the next op: the first without a big value on it, opened if need be; where all have
 * one, the lane with the least to do. NULL: no connection is to be had now.
 */
static struct memcached_lane *
pick_lane(struct memcached_server *server)
{
    struct memcached_lane *closed = NULL, *opening = NULL, *least = NULL;

    for (uint32_t i = 0; i < server->config->lanes; i++) {
        struct memcached_lane *lane = &server->lanes[i];
        if (lane->state == LANE_CLOSED) {
            closed = closed == NULL ? lane : closed;
        } else if (lane->big > 0) {
            least = least == NULL || lane_load(lane) < lane_load(least) ? lane : least;
        } else if (lane->state == LANE_READY) {
            return lane;
        } else {
            opening = opening == NULL ? lane : opening;
        }
    }
    if (opening != NULL) {
        return opening;
    }
    return closed != NULL && dial(server, closed) ? closed : least;
}

static void
assign_queue(struct memcached_server *server)
{
    struct op_queue queue = op_queue_take(&server->queue);
    struct store_op *op;

    while ((op = op_queue_pop(&queue)) != NULL) {
        struct memcached_lane *lane = pick_lane(server);
        if (lane != NULL) {
            lane_assign(lane, op);
            continue;
        }
        op->status = STORE_UNAVAILABLE;
        op_queue_push(&server->finished, op);
    }
}

void
memcached_server_refuse(struct memcached_server *server, struct store_op *op,
                        enum store_status status)
{
    server->ops++;
    op->status = status;
    op_queue_push(&server->finished, op);
}

void
memcached_server_submit(struct memcached_server *server, struct store_op *op)
{
    int64_t deadline = server->loop->now_ms + server->config->op_timeout_ms;

    if (deadline < op->deadline_ms) {
        op->deadline_ms = deadline;
    }
    op->retried = false;
    if (server->ops >= server->config->ops_max) {
        memcached_server_refuse(server, op, STORE_OVERLOADED);
        return;
    }
    server->ops++;
    op_queue_push(&server->queue, op);
}

void
memcached_server_flush(struct memcached_server *server)
{
    if (server->ops == 0) {
        return;
    }
    for (int round = 0; round < ASSIGN_ROUNDS; round++) {
        assign_queue(server);
        for (uint32_t i = 0; i < server->config->lanes; i++) {
            lane_flush(&server->lanes[i]);
        }
        if (server->queue.count == 0) {
            break;
        }
    }
    complete_finished(server);
}

/* ---- deadlines ------------------------------------------------------------------------------- */

/* When LANE, which is not the first, has been idle for long enough; CLOCK_NEVER if it is not idle.
 */
static int64_t
idle_deadline(const struct memcached_server *server, const struct memcached_lane *lane)
{
    if (lane == server->lanes || lane->state != LANE_READY || lane_load(lane) > 0) {
        return CLOCK_NEVER;
    }
    return lane->last_used_ms + LANE_IDLE_MS;
}

int64_t
memcached_server_next_deadline(const struct memcached_server *server)
{
    int64_t next = CLOCK_NEVER;

    if (server->queue.count > 0 || server->finished.count > 0) {
        return server->loop->now_ms;
    }
    for (uint32_t i = 0; i < server->config->lanes; i++) {
        int64_t lane = lane_next_deadline(&server->lanes[i]);
        int64_t idle = idle_deadline(server, &server->lanes[i]);
        next = lane < next ? lane : next;
        next = idle < next ? idle : next;
    }
    return next;
}

void
memcached_server_expire(struct memcached_server *server)
{
    int64_t now = server->loop->now_ms;

    for (uint32_t i = 0; i < server->config->lanes; i++) {
        lane_expire(&server->lanes[i], now);
        if (idle_deadline(server, &server->lanes[i]) <= now) {
            lane_fail(&server->lanes[i], STORE_UNAVAILABLE, "idle");
        }
    }
}

void
memcached_server_deinit(struct memcached_server *server)
{
    struct store_op *op;

    if (server->lanes == NULL) {
        return;
    }
    server->closing = true;
    for (uint32_t i = 0; i < server->config->lanes; i++) {
        if (server->lanes[i].state != LANE_CLOSED) {
            lane_fail(&server->lanes[i], STORE_CANCELLED, "the gateway stops");
        }
    }
    complete_finished(server);
    while ((op = op_queue_pop(&server->queue)) != NULL) {
        memcached_server_complete(server, op, STORE_CANCELLED, NULL);
    }
    for (uint32_t i = 0; i < server->config->lanes; i++) {
        lane_deinit(&server->lanes[i]);
    }
    free(server->lanes);
    server->lanes = NULL;
}
