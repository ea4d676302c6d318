/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sweep_mark.h: finds the stalls among latencies by size. Pure.
 */
#ifndef KVSTALL_SWEEP_MARK_H
#define KVSTALL_SWEEP_MARK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sweep_point {
    uint64_t bytes;    /* size of the value */
    int64_t median_ns; /* of the rounds; 0: none was measured */
    int64_t worst_ns;  /* the longest round */
    int status;        /* of the last answer; 0: not played */
    bool stalled;      /* set by sweep_mark */
};

/*
 * Marks the points that take a delayed ACK longer than their size explains. POINTS are in order of
 * size. Returns how many were marked.
 */
size_t sweep_mark(struct sweep_point *points, size_t count);

/* Whether all points take so long that a stall at every size cannot be told from a slow server. */
bool sweep_all_slow(const struct sweep_point *points, size_t count);

#endif
