/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * quota.c: counts, and says when it is too much. What the answer is then, request.c and http.c
 * decide.
 */
#include "quota.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "log.h"

/* Between two lines about limits. */
#define QUIET_MS 10000

/* Lists of addresses; a list is as long as there are addresses that share its place. */
#define PEER_SLOTS 4096

struct peer {
    struct peer *next;         /* in the same slot (owned) */
    unsigned connections;      /* open now; the entry goes when it comes to 0 */
    unsigned char address[16]; /* IPv6, or IPv4 as an IPv4-mapped address */
};

struct quota_peers {
    pthread_mutex_t mutex;          /* guards the table */
    struct peer *slots[PEER_SLOTS]; /* by hash of the address (owned) */
};

int
quota_init(struct quota *quota, const struct config *config)
{
    quota->config = config;
    quota->connections_max = config->connections;
    atomic_init(&quota->connections, 0);
    atomic_init(&quota->bytes, 0);
    atomic_init(&quota->quiet_until_ms, 0);
    quota->peers = NULL;
    if (config->connections_per_address == 0) {
        return 0;
    }
    quota->peers = calloc(1, sizeof(*quota->peers));
    if (quota->peers == NULL) {
        return -1;
    }
    pthread_mutex_init(&quota->peers->mutex, NULL);
    return 0;
}

void
quota_deinit(struct quota *quota)
{
    if (quota->peers == NULL) {
        return;
    }
    for (size_t i = 0; i < PEER_SLOTS; i++) {
        struct peer *peer = quota->peers->slots[i];
        while (peer != NULL) {
            struct peer *next = peer->next;
            free(peer);
            peer = next;
        }
    }
    pthread_mutex_destroy(&quota->peers->mutex);
    free(quota->peers);
    quota->peers = NULL;
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
find_peer(struct quota_peers *peers, const unsigned char address[16])
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
count_peer(struct quota_peers *peers, const unsigned char address[16])
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
discount_peer(struct quota_peers *peers, const unsigned char address[16])
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

/* The text of a limit that was reached, at the most every QUIET_MS. */
static void
complain(struct quota *quota, const char *what)
{
    long long now = clock_monotonic_ms();
    long long until = atomic_load_explicit(&quota->quiet_until_ms, memory_order_relaxed);

    if (now >= until &&
        atomic_compare_exchange_strong(&quota->quiet_until_ms, &until, now + QUIET_MS)) {
        log_warn("limit reached: %s; clients are refused", what);
    }
}

enum quota_verdict
quota_connect(struct quota *quota, const struct sockaddr *address)
{
    unsigned open = atomic_fetch_add_explicit(&quota->connections, 1, memory_order_relaxed) + 1;
    unsigned char peer[16];

    if (quota->peers != NULL && peer_address(address, peer) &&
        count_peer(quota->peers, peer) > quota->config->connections_per_address) {
        complain(quota, "connections_per_address");
        return QUOTA_ADDRESS;
    }
    if (open > quota->connections_max) {
        complain(quota, "connections");
        return QUOTA_CONNECTIONS;
    }
    return QUOTA_OK;
}

void
quota_disconnect(struct quota *quota, const struct sockaddr *address)
{
    unsigned char peer[16];

    atomic_fetch_sub_explicit(&quota->connections, 1, memory_order_relaxed);
    if (quota->peers != NULL && peer_address(address, peer)) {
        discount_peer(quota->peers, peer);
    }
}

bool
quota_take(struct quota *quota, size_t n)
{
    size_t before = atomic_fetch_add_explicit(&quota->bytes, n, memory_order_relaxed);

    if (n > quota->config->bytes_in_flight || before > quota->config->bytes_in_flight - n) {
        quota_give(quota, n);
        complain(quota, "bytes_in_flight");
        return false;
    }
    return true;
}

void
quota_add(struct quota *quota, size_t n)
{
    atomic_fetch_add_explicit(&quota->bytes, n, memory_order_relaxed);
}

void
quota_give(struct quota *quota, size_t n)
{
    atomic_fetch_sub_explicit(&quota->bytes, n, memory_order_relaxed);
}
