/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sweep_mark.c: which latencies stand out.
 *
 * Two bounds hold for a server that does not stall: a value takes no longer than a larger one, and
 * not more than proportionally longer than a smaller one. A slow server keeps both.
 */
#include "sweep_mark.h"

#include "judge.h"

/* The least median among the sizes above that of point I; INT64_MAX: there is none. */
static int64_t
bound_above(const struct sweep_point *points, size_t count, size_t i)
{
    int64_t bound = INT64_MAX;

    for (size_t k = i + 1; k < count; k++) {
        if (points[k].median_ns > 0 && points[k].median_ns < bound) {
            bound = points[k].median_ns;
        }
    }
    return bound;
}

/* The median of the next smaller size without a stall, grown to the size of point I. */
static int64_t
bound_below(const struct sweep_point *points, size_t i)
{
    for (size_t k = i; k-- > 0;) {
        if (points[k].median_ns > 0 && !points[k].stalled && points[k].bytes > 0) {
            return (int64_t)((double)points[k].median_ns * (double)points[i].bytes /
                             (double)points[k].bytes);
        }
    }
    return INT64_MAX;
}

size_t
sweep_mark(struct sweep_point *points, size_t count)
{
    size_t marked = 0;

    for (size_t i = 0; i < count; i++) {
        int64_t above = bound_above(points, count, i), below = bound_below(points, i);
        int64_t bound = above < below ? above : below;

        points[i].stalled = points[i].median_ns > 0 && bound < INT64_MAX - JUDGE_STALL_NS &&
                            points[i].median_ns >= bound + JUDGE_STALL_NS;
        marked += points[i].stalled;
    }
    return marked;
}

bool
sweep_all_slow(const struct sweep_point *points, size_t count)
{
    size_t measured = 0;

    for (size_t i = 0; i < count; i++) {
        if (points[i].median_ns > 0 && points[i].median_ns < JUDGE_STALL_NS) {
            return false;
        }
        measured += points[i].median_ns > 0;
    }
    return measured > 0;
}
