/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * clock.h: the two clocks. Deadlines are monotonic milliseconds, so that a step of the wall
 * clock moves none of them; expiry dates are seconds or milliseconds since 1970 (UTC).
 */
#ifndef KVGATE_CLOCK_H
#define KVGATE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* "No deadline", in the unit of clock_monotonic_ms. */
#define CLOCK_NEVER INT64_MAX

static inline int64_t
clock_read_ms(clockid_t id)
{
    struct timespec ts;

    clock_gettime(id, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* Milliseconds since some fixed moment; never steps back. */
static inline int64_t
clock_monotonic_ms(void)
{
    return clock_read_ms(CLOCK_MONOTONIC);
}

/* Milliseconds since 1970-01-01 00:00 UTC, as the machine believes it to be. */
static inline int64_t
clock_wall_ms(void)
{
    return clock_read_ms(CLOCK_REALTIME);
}

#endif
