/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * store_memcached.c: the store on a fleet of memcached servers. Finds the server of each key, lets
 * GETs of one key share one answer, and passes everything else on to memcached_server.c.
 *
 * Coalescing. Two GETs of the same key, submitted in the same turn before anything was sent, become
 * one command and share one buffer. Both leave at the same moment, so neither reader can see a
 * value that is older than a write which was acknowledged before it asked. A GET never joins one
 * that has left.
 */
#include "store.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memcached_server.h"
#include "ring.h"

/*
 * What memcached stores with a value, in bytes: its item header (48), the CAS (8), the key's NUL
 * and the value's CRLF, as 1.6.18 on a 64-bit machine has it; and the flags, unless they are 0.
 */
#define ITEM_OVERHEAD (48 + 8 + 1 + 2)
#define ITEM_FLAGS    4

/* Places for keys that were asked for in this turn. One key a place: the newest wins. */
#define TURN_SLOTS 1024

struct memcached_shared {
    struct store_shared base;
    struct ring *ring;                       /* (owned) */
    struct memcached_server_shared *servers; /* base.config->server_count of them (owned) */
};

struct turn_slot {
    uint64_t turn;          /* the turn in which it was filled; older ones are empty */
    int64_t deadline_ms;    /* with the store's own time-out: only equal ones are shared */
    struct store_op *first; /* (ref) the GET that others may join */
};

struct memcached_store {
    struct store base;
    const struct memcached_shared *shared; /* (ref) */
    struct memcached_server *servers;      /* one of each (owned) */
    unsigned changes;                      /* counts what goes DOWN and comes back */
    struct ring *rest;                     /* on_failure = rehash: of what is not DOWN (owned) */
    unsigned rest_changes;                 /* `changes` when `rest` was made */
    uint64_t turn;                         /* counts flushes */
    struct turn_slot slots[TURN_SLOTS];    /* by hash of the key */
};

static void
memcached_teardown(struct store_shared *base)
{
    struct memcached_shared *shared = (struct memcached_shared *)base;

    for (size_t i = 0; shared->servers != NULL && i < base->config->server_count; i++) {
        address_book_destroy(shared->servers[i].book);
    }
    free(shared->servers);
    ring_destroy(shared->ring);
    free(shared);
}

static struct store_shared *
memcached_setup(const struct config_store *config, char error[CONFIG_ERROR_MAX])
{
    struct memcached_shared *shared = calloc(1, sizeof(*shared));

    if (shared == NULL) {
        snprintf(error, CONFIG_ERROR_MAX, "store %s: no memory", config->name);
        return NULL;
    }
    shared->base = (struct store_shared){ &store_memcached, config };
    shared->servers = calloc(config->server_count, sizeof(*shared->servers));
    shared->ring = ring_create(config, error);
    if (shared->servers == NULL || shared->ring == NULL) {
        memcached_teardown(&shared->base);
        return NULL;
    }
    for (size_t i = 0; i < config->server_count; i++) {
        shared->servers[i].book = address_book_create(&config->servers[i]);
        if (shared->servers[i].book == NULL) {
            snprintf(error, CONFIG_ERROR_MAX, "store %s: server %s: no memory, or path too long",
                     config->name, config->servers[i].host);
            memcached_teardown(&shared->base);
            return NULL;
        }
    }
    return &shared->base;
}

static void
memcached_close(struct store *base)
{
    struct memcached_store *store = (struct memcached_store *)base;
    size_t count = store->shared->base.config->server_count;

    for (size_t i = 0; store->servers != NULL && i < count; i++) {
        memcached_server_deinit(&store->servers[i]);
    }
    ring_destroy(store->rest);
    free(store->servers);
    free(store);
}

static struct store *
memcached_open(struct store_shared *base, struct loop *loop)
{
    struct memcached_shared *shared = (struct memcached_shared *)base;
    const struct config_store *config = base->config;
    struct memcached_store *store = calloc(1, sizeof(*store));

    if (store == NULL) {
        return NULL;
    }
    store->base = (struct store){ &store_memcached, loop };
    store->shared = shared;
    store->turn = 1;
    store->servers = calloc(config->server_count, sizeof(*store->servers));
    for (size_t i = 0; store->servers != NULL && i < config->server_count; i++) {
        if (memcached_server_init(&store->servers[i], config, &shared->servers[i], loop,
                                  &store->changes) < 0) {
            memcached_close(&store->base);
            return NULL;
        }
    }
    if (store->servers == NULL) {
        memcached_close(&store->base);
        return NULL;
    }
    return &store->base;
}

/* FNV-1a: short keys, and a wrong place costs only a missed chance to share. */
static struct turn_slot *
slot_of(struct memcached_store *store, struct slice key)
{
    uint32_t hash = 2166136261U;

    for (size_t i = 0; i < key.len; i++) {
        hash = (hash ^ (unsigned char)key.ptr[i]) * 16777619U;
    }
    return &store->slots[(hash ^ (hash >> 15)) % TURN_SLOTS];
}

/* True: OP shares the answer of an earlier GET of this turn. */
static bool
join(struct memcached_store *store, struct store_op *op)
{
    struct turn_slot *slot = slot_of(store, op->key);
    int64_t deadline_ms = store->base.loop->now_ms + store->shared->base.config->op_timeout_ms;

    if (op->deadline_ms < deadline_ms) {
        deadline_ms = op->deadline_ms;
    }
    if (slot->turn != store->turn || slot->deadline_ms != deadline_ms ||
        !slice_equal(slot->first->key, op->key)) {
        slot->turn = store->turn;
        slot->deadline_ms = deadline_ms;
        slot->first = op;
        return false;
    }
    op->joined = slot->first->joined;
    slot->first->joined = op;
    return true;
}

static size_t
memcached_value_max(const struct store_shared *base, size_t key_len, uint32_t flags)
{
    size_t overhead = ITEM_OVERHEAD + key_len + (flags == 0 ? 0 : ITEM_FLAGS);

    return base->config->item_max > overhead ? base->config->item_max - overhead : 0;
}

/*
 * The ring of the servers that are not DOWN; NULL: there are none, or no memory. Only keys of servers
 * that are DOWN are looked up on it: those of the others stay where they are.
 */
static struct ring *
rest_of_ring(struct memcached_store *store)
{
    const struct config_store *config = store->shared->base.config;
    bool down[CONFIG_SERVER_MAX] = { false };
    char error[CONFIG_ERROR_MAX];
    size_t left = 0;

    if (store->rest != NULL && store->rest_changes == store->changes) {
        return store->rest;
    }
    for (size_t i = 0; i < config->server_count; i++) {
        down[i] = memcached_server_is_down(&store->servers[i]);
        left += !down[i];
    }
    ring_destroy(store->rest);
    store->rest = left == 0 ? NULL : ring_create_without(config, down, error);
    store->rest_changes = store->changes;
    return store->rest;
}

static struct memcached_server *
server_of(struct memcached_store *store, struct slice key)
{
    struct memcached_server *server = &store->servers[ring_lookup(store->shared->ring, key)];
    struct ring *rest;

    if (store->shared->base.config->on_failure != CONFIG_REHASH ||
        !memcached_server_is_down(server)) {
        return server;
    }
    rest = rest_of_ring(store);
    return rest == NULL ? server : &store->servers[ring_lookup(rest, key)];
}

static bool
memcached_submit(struct store *base, struct store_op *op)
{
    struct memcached_store *store = (struct memcached_store *)base;
    struct memcached_server *server;

    assert(op->key.len >= 1 && op->key.len <= STORE_KEY_MAX);
    op->joined = NULL;
    if (op->verb == STORE_GET && join(store, op)) {
        return false;
    }
    server = server_of(store, op->key);
    if (store_verb_has_value(op->verb) &&
        op->value.len > memcached_value_max(&store->shared->base, op->key.len, op->flags)) {
        /* memcached would refuse it, too, but a `set` has deleted the old value by then */
        memcached_server_refuse(server, op, STORE_TOO_LARGE);
        return false;
    }
    memcached_server_submit(server, op);
    return false;
}

static void
memcached_flush(struct store *base)
{
    struct memcached_store *store = (struct memcached_store *)base;

    store->turn++;
    for (size_t i = 0; i < store->shared->base.config->server_count; i++) {
        memcached_server_flush(&store->servers[i]);
    }
    store->turn++; /* a GET that was submitted by a `done` in there may have left by now */
}

static int64_t
memcached_next_deadline(const struct store *base)
{
    const struct memcached_store *store = (const struct memcached_store *)base;
    int64_t next = INT64_MAX;

    for (size_t i = 0; i < store->shared->base.config->server_count; i++) {
        int64_t deadline = memcached_server_next_deadline(&store->servers[i]);
        next = deadline < next ? deadline : next;
    }
    return next;
}

static void
memcached_expire(struct store *base)
{
    struct memcached_store *store = (struct memcached_store *)base;

    for (size_t i = 0; i < store->shared->base.config->server_count; i++) {
        memcached_server_expire(&store->servers[i]);
    }
}

const struct store_type store_memcached = {
    .name = "memcached",
    .setup = memcached_setup,
    .teardown = memcached_teardown,
    .open = memcached_open,
    .close = memcached_close,
    .submit = memcached_submit,
    .flush = memcached_flush,
    .next_deadline = memcached_next_deadline,
    .expire = memcached_expire,
    .value_max = memcached_value_max,
};
