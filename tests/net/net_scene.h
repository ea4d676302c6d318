/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * net_scene.h: the gateway on one side of a net_pair with all its stores, the client on the other;
 * and what both the proofs and their counter-proofs measure.
 *
 * Three routes lead to three stores: /embedded/, /text/ and /meta/; the latter two are one
 * memcached, with prefixes of their own. The memcached is on the gateway's side, too.
 */
#ifndef KVGATE_TESTS_NET_SCENE_H
#define KVGATE_TESTS_NET_SCENE_H

#include "gateway.h"
#include "memcached_process.h"
#include "net_capture.h"
#include "net_pair.h"
#include "slice.h"

/*
 * Above this, something has waited for a delayed ACK, which is 40 ms at the least on Linux; below
 * it is the noise of a busy machine.
 */
#define NET_STALL_NS (20 * 1000000LL)

/* How often a thing is measured. A stall comes every time, noise does not: the median is judged. */
#define NET_REPEAT 9

struct net_scene {
    struct net_pair pair;
    struct memcached_process memcached;
    struct gateway gateway;
    struct net_capture front; /* what passes the client's device */
    struct net_capture wire; /* what passes loopback on the gateway's side: to memcached and back */
};

/* The names of the routes, NULL-terminated. */
extern const char *const net_scene_stores[];

/*
 * Opens the pair, makes loopback like it, and begins both records. True also where the pair is not
 * permitted: then each test skips by net_scene_require_pair.
 */
bool net_scene_open(struct net_scene *scene);

/* Skips the test, and says why, where there is no pair. */
void net_scene_require_pair(const struct net_scene *scene);

/*
 * Starts memcached, unless it runs, and the gateway after it, on the gateway's side. Where the pair
 * could not be opened, everything is on the one side that there is, and only 127.0.0.1 leads to it.
 * SWITCHED_OFF names rules that do not apply to this gateway, see preload/switch_off.c; NULL: those
 * that KVGATE_SWITCH_OFF names, so that a person can watch any of these tests fail.
 */
bool net_scene_start(struct net_scene *scene, const char *switched_off);

/* Ends the gateway, and leaves the rest for another start; true if it ended well or did not run. */
bool net_scene_stop_gateway(struct net_scene *scene);

/* Ends everything, pair and records, too; true if the gateway ended well or did not run. */
bool net_scene_stop(struct net_scene *scene);

/* The library that switches rules off, beside the test's binary. False: it is not there. */
bool net_scene_find_switch(char *path, size_t size);

/* Connects to ADDRESS from the side where this thread is. With NAGLE as clients are by default. */
bool net_scene_connect(struct http_client *c, const char *address, uint16_t port, bool nagle);

/* The port of C's own end. */
uint16_t net_scene_port(const struct http_client *c);

/* PUT of LEN bytes in one write on C, and the whole answer. */
bool net_scene_put(struct http_client *c, const char *target, size_t len);

/* GET on C: 200 with LEN bytes. */
bool net_scene_get(struct http_client *c, const char *target, size_t len);

/*
 * Requests on C until its kernel has left the eager acknowledgement of a connection's beginning and
 * delays its ACKs: whoever measures before that finds nothing.
 */
bool net_scene_settle(struct http_client *c, const char *target);

/*
 * Sends HALF, waits for the acknowledgement of its last byte, then sends REST and takes in the
 * answer. Returns the nanoseconds from the passing of HALF's last segment to that of its ACK; -1:
 * anything else happened.
 */
int64_t net_scene_half(struct net_scene *scene, struct http_client *c, struct slice half,
                       struct slice rest);

/*
 * Two sets by two clients through STORE while memcached is halted, and so answers nothing. Returns
 * the nanoseconds from the passing of the first command to that of the second; -1: anything else
 * happened.
 */
int64_t net_scene_second_command(struct net_scene *scene, const char *store);

/*
 * How many bytes come of the answers to COUNT GETs of TARGET, sent in one segment, while nothing
 * of them is acknowledged; in *TOTAL, how many there are. LEN: of the value, which is stored
 * first. -1: no connection.
 */
ssize_t net_scene_silent_get(struct net_scene *scene, const char *target, size_t len, int count,
                             size_t *total);

/* Unless OK, shows the segments of RECORD and fails with WHAT. */
void net_scene_check(bool ok, const struct net_capture *record, const char *what, const char *store,
                     size_t len);

/* The median of COUNT numbers, which are sorted by it. */
int64_t net_median(int64_t *numbers, size_t count);

#endif
