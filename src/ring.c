/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ring.c: which server has a key, as libmemcached says; with binary_client.c the only file that uses
 * it.
 *
 * Its handle is a calculator here: it never connects. Asking it for a server only reads it, so one
 * handle serves every worker. Servers keep the order of the configuration.
 */
#include "ring.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <libmemcached/memcached.h>

#include "ring_priv.h"

/* libmemcached ends the process when it is asked to put more servers on a ketama ring. */
#define KETAMA_SERVERS_MAX 100

struct ring {
    memcached_st *handle;              /* NULL: there is one server, and nothing to decide */
    uint16_t index[CONFIG_SERVER_MAX]; /* of the ring's servers, in the configuration */
};

static memcached_return_t
add_server(memcached_st *handle, const struct config_server_address *server)
{
    if (server->port == 0) {
        return memcached_server_add_unix_socket_with_weight(handle, server->host, server->weight);
    }
    return memcached_server_add_with_weight(handle, server->host, server->port, server->weight);
}

static memcached_return_t
set_hash(memcached_st *handle, enum config_hash hash)
{
    memcached_hash_t number;

    switch (hash) {
    case CONFIG_HASH_MD5:
        number = MEMCACHED_HASH_MD5;
        break;
    case CONFIG_HASH_ONE_AT_A_TIME:
        number = MEMCACHED_HASH_DEFAULT;
        break;
    case CONFIG_HASH_FNV1A_64:
        number = MEMCACHED_HASH_FNV1A_64;
        break;
    default: /* the distribution has brought its own */
        return MEMCACHED_SUCCESS;
    }
    return memcached_behavior_set(handle, MEMCACHED_BEHAVIOR_HASH, number);
}

/*
 * Servers first, then the distribution, which is worked out anew with every change; the hash last,
 * because ketama sets its own.
 */
static memcached_return_t
set_up(memcached_st *handle, const uint16_t *index, size_t count, const struct config_store *store)
{
    memcached_return_t result = memcached_behavior_set(handle, MEMCACHED_BEHAVIOR_SORT_HOSTS, 0);

    for (size_t i = 0; result == MEMCACHED_SUCCESS && i < count; i++) {
        result = add_server(handle, &store->servers[index[i]]);
    }
    if (result != MEMCACHED_SUCCESS) {
        return result;
    }
    if (store->distribution == CONFIG_KETAMA) {
        result = memcached_behavior_set(handle, MEMCACHED_BEHAVIOR_KETAMA_WEIGHTED, 1);
    } else {
        result = memcached_behavior_set(handle, MEMCACHED_BEHAVIOR_DISTRIBUTION,
                                        MEMCACHED_DISTRIBUTION_MODULA);
    }
    return result == MEMCACHED_SUCCESS ? set_hash(handle, store->hash) : result;
}

/* Gives HANDLE the COUNT servers that INDEX names. */
static bool
set_up_checked(memcached_st *handle, const uint16_t *index, size_t count,
               const struct config_store *store, char error[CONFIG_ERROR_MAX])
{
    memcached_return_t result;

    if (store->distribution == CONFIG_KETAMA && count > KETAMA_SERVERS_MAX) {
        snprintf(error, CONFIG_ERROR_MAX, "%zu servers: a ketama ring takes %d at the most", count,
                 KETAMA_SERVERS_MAX);
        return false;
    }
    result = set_up(handle, index, count, store);
    if (result != MEMCACHED_SUCCESS) {
        snprintf(error, CONFIG_ERROR_MAX, "server list: %s", memcached_strerror(handle, result));
    }
    return result == MEMCACHED_SUCCESS;
}

bool
ring_set_up(struct memcached_st *handle, const struct config_store *store,
            char error[CONFIG_ERROR_MAX])
{
    uint16_t index[CONFIG_SERVER_MAX];

    for (size_t i = 0; i < store->server_count; i++) {
        index[i] = (uint16_t)i;
    }
    return set_up_checked(handle, index, store->server_count, store, error);
}

struct ring *
ring_create(const struct config_store *store, char error[CONFIG_ERROR_MAX])
{
    static const bool none[CONFIG_SERVER_MAX];

    return ring_create_without(store, none, error);
}

struct ring *
ring_create_without(const struct config_store *store, const bool left_out[CONFIG_SERVER_MAX],
                    char error[CONFIG_ERROR_MAX])
{
    struct ring *ring = calloc(1, sizeof(*ring));
    size_t count = 0;

    assert(store->server_count >= 1 && store->server_count <= CONFIG_SERVER_MAX);
    if (ring == NULL) {
        snprintf(error, CONFIG_ERROR_MAX, "out of memory");
        return NULL;
    }
    for (size_t i = 0; i < store->server_count; i++) {
        if (!left_out[i]) {
            ring->index[count++] = (uint16_t)i;
        }
    }
    assert(count > 0);
    if (count == 1) {
        return ring;
    }
    ring->handle = memcached_create(NULL);
    if (ring->handle == NULL) {
        snprintf(error, CONFIG_ERROR_MAX, "out of memory");
        goto fail;
    }
    if (!set_up_checked(ring->handle, ring->index, count, store, error)) {
        goto fail;
    }
    return ring;

fail:
    ring_destroy(ring);
    return NULL;
}

void
ring_destroy(struct ring *ring)
{
    if (ring == NULL) {
        return;
    }
    if (ring->handle != NULL) {
        memcached_free(ring->handle);
    }
    free(ring);
}

size_t
ring_lookup(const struct ring *ring, struct slice key)
{
    if (ring->handle == NULL) {
        return ring->index[0];
    }
    return ring->index[memcached_generate_hash(ring->handle, key.ptr, key.len)];
}
