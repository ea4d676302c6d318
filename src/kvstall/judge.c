/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * judge.c: compares the rounds of two clients. Pure: times in, judgement out.
 */
#include "judge.h"

/*
 * How long the well-behaved client may take. The upper quartile, so that a single spike hides no
 * stall; but where the times are scattered, the longest: such a server must exceed itself.
 */
static int64_t
good_bound(struct samples *good)
{
    int64_t usual = samples_quantile(good, 750);

    if (usual - samples_quantile(good, 0) < JUDGE_SCATTER_NS) {
        return usual;
    }
    return samples_quantile(good, 1000);
}

struct judgement
judge(struct samples *suspect, struct samples *good, int64_t rtt_ns)
{
    struct judgement j = {
        .median_ns = samples_quantile(suspect, 500),
        .worst_ns = samples_quantile(suspect, 1000),
        .good_ns = samples_quantile(good, 500),
        .rounds = suspect->count,
    };
    int64_t limit = good_bound(good) + rtt_ns + JUDGE_STALL_NS;

    for (size_t i = 0; i < suspect->count; i++) {
        if (suspect->ns[i] >= limit) {
            j.stalled++;
        }
    }
    if (j.rounds == 0) {
        j.result = JUDGE_UNSTEADY;
    } else if (j.stalled * 2 >= j.rounds) {
        j.result = JUDGE_STALL;
    } else if (j.stalled * 4 >= j.rounds || j.median_ns - j.good_ns - rtt_ns >= JUDGE_QUIET_NS) {
        j.result = JUDGE_UNSTEADY;
    } else {
        j.result = JUDGE_QUIET;
    }
    return j;
}
