/* SPDX-License-Identifier: BSD-2-Clause */
/* memcached_health.c: see the drawing in memcached_health.h. */
#include "memcached_health.h"

/*
 * The pause before the next dial doubles from the first to the last; jitter takes off up to a half.
 * A server that is back is found within the last and the time that a connection takes.
 */
#define PAUSE_FIRST_MS 50
#define PAUSE_LAST_MS  1000

/* Incidents in a row that a server may have before it is DOWN by them; a dial in vain is enough alone. */
#define INCIDENTS_MAX 1

void
memcached_health_init(struct memcached_health *health, uint64_t seed)
{
    *health = (struct memcached_health){ .state = MEMCACHED_SUSPECT, .jitter = seed | 1 };
}

bool
memcached_health_alive(struct memcached_health *health)
{
    bool was_down = health->state == MEMCACHED_DOWN;

    health->state = MEMCACHED_UP;
    health->dial_after_ms = 0;
    return was_down;
}

/* xorshift: nobody needs these numbers to be good, only different from worker to worker. */
static int64_t
next_pause(struct memcached_health *health)
{
    unsigned doublings = health->failures > 2 ? health->failures - 2 : 0;
    int64_t pause = PAUSE_LAST_MS;

    if (doublings < 6 && (PAUSE_FIRST_MS << doublings) < pause) {
        pause = PAUSE_FIRST_MS << doublings;
    }
    health->jitter ^= health->jitter << 13;
    health->jitter ^= health->jitter >> 7;
    health->jitter ^= health->jitter << 17;
    return pause - (int64_t)(health->jitter % (uint64_t)(pause / 2));
}

void
memcached_health_pause(struct memcached_health *health, int64_t now_ms)
{
    health->failures++;
    health->dial_after_ms = now_ms + next_pause(health);
}

static bool
go_down(struct memcached_health *health, int64_t now_ms)
{
    bool was_down = health->state == MEMCACHED_DOWN;

    health->state = MEMCACHED_DOWN;
    health->dial_after_ms = now_ms + next_pause(health);
    return !was_down;
}

bool
memcached_health_broken(struct memcached_health *health, int64_t opened_ms, bool served,
                        int64_t now_ms)
{
    if (health->failures > 0 && opened_ms < health->incident_ms) {
        return false; /* the incident that was counted already */
    }
    if (served) {
        health->failures = 0; /* what was before this connection is over */
    }
    health->failures++;
    health->incident_ms = now_ms;
    if (health->failures > INCIDENTS_MAX) {
        return go_down(health, now_ms);
    }
    health->state = MEMCACHED_SUSPECT;
    return false;
}

bool
memcached_health_dial_failed(struct memcached_health *health, int64_t now_ms)
{
    health->failures++;
    health->incident_ms = now_ms;
    return go_down(health, now_ms);
}
