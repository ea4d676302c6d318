/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * limits.c: counts, and says when it is too much. What the answer is then, request.c and http.c
 * decide.
 */
#include "limits.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Lists of addresses; a list is as long as there are addresses that share its place. */
#define PEER_SLOTS 4096

struct peer {
    struct peer *next;         /* in the same slot (owned) */
    unsigned connections;      /* open now; the entry goes when it comes to 0 */
    unsigned char address[16]; /* IPv6, or IPv4 as an IPv4-mapped address */
};

struct limits_peers {
    pthread_mutex_t mutex;          /* guards the table */
    struct peer *slots[PEER_SLOTS]; /* by hash of the address (owned) */
};

int
limits_init(struct limits *limits, const struct config *config)
{
    limits->config = config;
    atomic_init(&limits->connections, 0);
    atomic_init(&limits->bytes, 0);
    limits->peers = NULL;
    if (config->connections_per_address == 0) {
        return 0;
    }
    limits->peers = calloc(1, sizeof(*limits->peers));
    if (limits->peers == NULL) {
        return -1;
    }
    pthread_mutex_init(&limits->peers->mutex, NULL);
    return 0;
}

void
limits_deinit(struct limits *limits)
{
    if (limits->peers == NULL) {
        return;
    }
    for (size_t i = 0; i < PEER_SLOTS; i++) {
        struct peer *peer = limits->peers->slots[i];
        while (peer != NULL) {
            struct peer *next = peer->next;
            free(peer);
            peer = next;
        }
    }
    pthread_mutex_destroy(&limits->peers->mutex);
    free(limits->peers);
    limits->peers = NULL;
}

/* False: a unix socket, where everybody is the same. */
static bool
peer_address(const struct sockaddr *address, unsigned char out[16])
{
    if (address != NULL && address->sa_family == AF_INET6) {
        memcpy(out, &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr, 16);
        return true;
    }
    if (address != NULL && address->sa_family == AF_INET) {
        memset(out, 0, 10);
        memset(out + 10, 0xff, 2);
        memcpy(out + 12, &((const struct sockaddr_in *)(const void *)address)->sin_addr, 4);
        return true;
    }
    return false;
}

/* The link that points to ADDRESS's entry, or the one at which it would be put. */
static struct peer **
find_peer(struct limits_peers *peers, const unsigned char address[16])
{
    uint32_t hash = 2166136261U;
    struct peer **link;

    for (size_t i = 0; i < 16; i++) {
        hash = (hash ^ address[i]) * 16777619U;
    }
    link = &peers->slots[hash % PEER_SLOTS];
    while (*link != NULL && memcmp((*link)->address, address, 16) != 0) {
        link = &(*link)->next;
    }
    return link;
}

/* One more connection of ADDRESS. Returns how many there are; 0 when there is no memory to count.
 */
static unsigned
count_peer(struct limits_peers *peers, const unsigned char address[16])
{
    struct peer **link;
    unsigned connections = 0;

    pthread_mutex_lock(&peers->mutex);
    link = find_peer(peers, address);
    if (*link == NULL) {
        *link = calloc(1, sizeof(**link));
        if (*link != NULL) {
            memcpy((*link)->address, address, 16);
        }
    }
    if (*link != NULL) {
        connections = ++(*link)->connections;
    }
    pthread_mutex_unlock(&peers->mutex);
    return connections;
}

static void
discount_peer(struct limits_peers *peers, const unsigned char address[16])
{
    struct peer **link;

    pthread_mutex_lock(&peers->mutex);
    link = find_peer(peers, address);
    if (*link != NULL && --(*link)->connections == 0) {
        struct peer *gone = *link;
        *link = gone->next;
        free(gone);
    }
    pthread_mutex_unlock(&peers->mutex);
}

enum limits_verdict
limits_connect(struct limits *limits, const struct sockaddr *address)
{
    unsigned open = atomic_fetch_add_explicit(&limits->connections, 1, memory_order_relaxed) + 1;
    unsigned char peer[16];

    if (limits->peers != NULL && peer_address(address, peer) &&
        count_peer(limits->peers, peer) > limits->config->connections_per_address) {
        return LIMITS_ADDRESS;
    }
    return open > limits->config->connections ? LIMITS_CONNECTIONS : LIMITS_OK;
}

void
limits_disconnect(struct limits *limits, const struct sockaddr *address)
{
    unsigned char peer[16];

    atomic_fetch_sub_explicit(&limits->connections, 1, memory_order_relaxed);
    if (limits->peers != NULL && peer_address(address, peer)) {
        discount_peer(limits->peers, peer);
    }
}

bool
limits_take(struct limits *limits, size_t n)
{
    size_t before = atomic_fetch_add_explicit(&limits->bytes, n, memory_order_relaxed);

    if (n > limits->config->bytes_in_flight || before > limits->config->bytes_in_flight - n) {
        limits_give(limits, n);
        return false;
    }
    return true;
}

void
limits_add(struct limits *limits, size_t n)
{
    atomic_fetch_add_explicit(&limits->bytes, n, memory_order_relaxed);
}

void
limits_give(struct limits *limits, size_t n)
{
    atomic_fetch_sub_explicit(&limits->bytes, n, memory_order_relaxed);
}
