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
                      struct memcached_server_shared *shared, struct loop *loop, unsigned *changes)
{
    *server = (struct memcached_server){
        .config = config,
        .shared = shared,
        .loop = loop,
        .value_limit = config->item_max > VALUE_LIMIT_MIN ? config->item_max : VALUE_LIMIT_MIN,
        .changes = changes,
        .fresh = true,
    };
    memcached_health_init(&server->health, (uint64_t)clock_wall_ms() ^ (uint64_t)(uintptr_t)server);
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

    assert(server->ops > 0 && server->bytes >= op->value.len);
    server->ops--;
    server->bytes -= op->value.len;
    if (server->config->on_failure == CONFIG_MISS && store_verb_reads(op->verb) &&
        (status == STORE_UNAVAILABLE || status == STORE_TIMEOUT)) {
        status = STORE_MISS; /* the operator wants it so: a cache that is gone is an empty one */
    }
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

/* ---- health ---------------------------------------------------------------------------------- */

void
memcached_server_alive(struct memcached_server *server)
{
    server->address_next = 0;
    server->fresh = false;
    if (!memcached_health_alive(&server->health)) {
        return;
    }
    ++*server->changes;
    if (atomic_fetch_sub(&server->shared->down, 1) == 1) {
        log_info("server %s: is back", address_book_name(server->shared->book));
    }
}

/* The first worker that finds it DOWN says so. */
static void
went_down(struct memcached_server *server, const char *reason)
{
    static const char *const consequences[] = {
        [CONFIG_FAIL] = "its keys are unavailable until it is back",
        [CONFIG_REHASH] = "the other servers have its keys until it is back",
        [CONFIG_MISS] = "its keys are missing until it is back",
    };

    server->fresh = false;
    ++*server->changes;
    if (atomic_fetch_add(&server->shared->down, 1) == 0) {
        log_warn("server %s: %s; %s", address_book_name(server->shared->book), reason,
                 consequences[server->config->on_failure]);
    }
}

/* Whether there is a connection on which the server has said something. */
static bool
has_good_lane(const struct memcached_server *server)
{
    for (uint32_t i = 0; i < server->config->lanes; i++) {
        if (server->lanes[i].state == LANE_READY && server->lanes[i].has_replied) {
            return true;
        }
    }
    return false;
}

static bool
has_lane(const struct memcached_server *server)
{
    for (uint32_t i = 0; i < server->config->lanes; i++) {
        if (server->lanes[i].state != LANE_CLOSED) {
            return true;
        }
    }
    return false;
}

void
memcached_server_lane_broken(struct memcached_server *server, const struct memcached_lane *lane,
                             const char *reason)
{
    if (!server->closing && !has_good_lane(server) &&
        memcached_health_broken(&server->health, lane->opened_ms, lane->served,
                                server->loop->now_ms)) {
        went_down(server, reason);
    }
}

static void
dials_failed(struct memcached_server *server, const char *reason)
{
    server->address_next = 0;
    if (server->closing) {
        return;
    }
    if (has_good_lane(server)) {
        log_debug("server %s: another connection: %s", address_book_name(server->shared->book),
                  reason);
        memcached_health_pause(&server->health, server->loop->now_ms);
    } else if (memcached_health_dial_failed(&server->health, server->loop->now_ms)) {
        went_down(server, reason);
    }
}

static void
probe_done(struct store_op *op)
{
    struct memcached_server *server = op->arg;

    server->probing = false;
}

/* Where no handshake has asked the server anything, an op of our own does. */
void
memcached_server_connected(struct memcached_server *server, struct memcached_lane *lane)
{
    if (!memcached_server_is_down(server) || server->probing) {
        return;
    }
    store_op_init(&server->probe, STORE_HEAD, SLICE("kvgate:probe"));
    server->probe.deadline_ms = server->loop->now_ms + server->config->op_timeout_ms;
    server->probe.arg = server;
    server->probe.done = probe_done;
    server->probe.joined = NULL;
    server->probe.retried = true; /* never a second time on its own */
    server->probing = true;
    server->ops++;
    lane_assign(lane, &server->probe);
}

/* ---- dialling -------------------------------------------------------------------------------- */

void
memcached_server_dial_failed(struct memcached_server *server, size_t address, const char *reason)
{
    if (address != server->address_next) {
        return; /* several lanes dialled together: the first to fail has moved on */
    }
    server->address_next++;
    if (server->address_next >= server->address_count) {
        dials_failed(server, reason);
    }
}

/* Opens LANE to the next address that does not refuse at once. */
static bool
dial(struct memcached_server *server, struct memcached_lane *lane)
{
    int64_t now = server->loop->now_ms;

    if (now < server->health.dial_after_ms) {
        return false;
    }
    if (server->address_next == 0) {
        server->address_count = address_book_read(server->shared->book, server->addresses);
    }
    if (server->address_count == 0) {
        dials_failed(server, "no address is known");
        return false;
    }
    while (now >= server->health.dial_after_ms) {
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

    if (memcached_server_is_down(server)) {
        return NULL; /* what lanes there are carry probes */
    }
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
    server->bytes += op->value.len;
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
    if (server->ops >= server->config->ops_max ||
        (op->value.len > 0 && server->bytes > 0 &&
         server->bytes + op->value.len > server->config->bytes_max)) {
        memcached_server_refuse(server, op, STORE_OVERLOADED);
        return;
    }
    server->ops++;
    server->bytes += op->value.len;
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

/*
 * The server is dialled without an op that asks for it: at the start, so that the operator learns
 * at once what is wrong, and while it is DOWN.
 */
static bool
wants_dial(const struct memcached_server *server)
{
    return (server->fresh || memcached_server_is_down(server)) && !has_lane(server);
}

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
    if (wants_dial(server) && server->health.dial_after_ms < next) {
        next = server->health.dial_after_ms;
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
    if (wants_dial(server)) {
        dial(server, &server->lanes[0]);
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
