/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * timing.h: the clock that everything here measures with: monotonic nanoseconds, signed, so that
 * differences are plain subtractions.
 */
#ifndef KVSTALL_TIMING_H
#define KVSTALL_TIMING_H

#include <stdint.h>
#include <time.h>

#define NS_PER_MS INT64_C(1000000)
#define NS_PER_S  INT64_C(1000000000)

/* "No deadline", in the unit of timing_now_ns. */
#define TIMING_NEVER INT64_MAX

static inline int64_t
timing_now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

static inline struct timespec
timing_to_timespec(int64_t ns)
{
    struct timespec ts = { .tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S) };

    return ts;
}

/* For printing. */
static inline double
timing_ms(int64_t ns)
{
    return (double)ns / (double)NS_PER_MS;
}

#endif
