/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * memcached_health.h: what one worker thinks of one server, and when it may be dialled. Pure: the
 * clock is an argument, and nothing is sent.
 *
 *             broken once                dial failed, or broken again at once
 *      UP -----------------> SUSPECT ----------------------------------------> DOWN
 *       ^                       |                                               |
 *       '-------- reply --------'<------------------ reply to a probe ----------'
 *
 * SUSPECT: the next op is the test, on a new connection. DOWN: ops are refused at once; only probes,
 * in the background and with growing pauses, find out whether the server is back. One incident
 * counts once: connections that were opened before it and break later belong to it.
 */
#ifndef KVGATE_MEMCACHED_HEALTH_H
#define KVGATE_MEMCACHED_HEALTH_H

#include <stdbool.h>
#include <stdint.h>

enum memcached_state {
    MEMCACHED_SUSPECT, /* also at the start: nothing is known yet */
    MEMCACHED_UP,
    MEMCACHED_DOWN
};

struct memcached_health {
    enum memcached_state state;
    unsigned failures;     /* incidents, and no op answered between them */
    int64_t incident_ms;   /* monotonic: when the last one was counted */
    int64_t dial_after_ms; /* monotonic: no dial before this moment */
    uint64_t jitter;       /* state of the generator that spreads the dials of many workers */
};

/* SUSPECT; may be dialled at once. SEED tells the workers apart. */
void memcached_health_init(struct memcached_health *health, uint64_t seed);

/* A reply came: UP. True: it was DOWN. */
bool memcached_health_alive(struct memcached_health *health);

/*
 * A connection that was good, dialled at OPENED_MS, broke with ops on it, and there is no other.
 * SERVED: it had answered ops before. True: the server is DOWN by that, and was not.
 */
bool memcached_health_broken(struct memcached_health *health, int64_t opened_ms, bool served,
                             int64_t now_ms);

/* All its addresses were dialled in vain, and there is no connection. True: as above. */
bool memcached_health_dial_failed(struct memcached_health *health, int64_t now_ms);

/* No dial for a while, whatever the state: the server takes no more connections. */
void memcached_health_pause(struct memcached_health *health, int64_t now_ms);

#endif
