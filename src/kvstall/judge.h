/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * judge.h: what counts as a stall. All thresholds are here.
 *
 * A client under suspicion is never judged by its times alone, but against a client that gives the
 * server no cause to stall and was played in turn with it: so a slow server is slow for both, and
 * a busy machine disturbs both.
 */
#ifndef KVSTALL_JUDGE_H
#define KVSTALL_JUDGE_H

#include <stddef.h>
#include <stdint.h>

#include "samples.h"
#include "timing.h"

/*
 * A round is stalled if it took this much longer than a good round, and the network's round trip.
 * The shortest delay of an ACK in use is 40 ms (Linux; others wait 100 or 200 ms). Less is asked
 * for, because the timer ticks in steps of up to 10 ms and may have been running already.
 */
#define JUDGE_STALL_NS (25 * NS_PER_MS)

/* A difference under this is no difference: even a busy machine wakes a process within it. */
#define JUDGE_QUIET_NS (5 * NS_PER_MS)

/*
 * Where the well-behaved client's quicker rounds differ by more than this, the server's times are
 * scattered: a quarter of the rounds is more than a busy machine delays this much.
 */
#define JUDGE_SCATTER_NS (10 * NS_PER_MS)

/*
 * The first rounds on a connection are not judged: Linux acknowledges at once until it has seen
 * that the two sides take turns.
 */
#define JUDGE_WARMUP 2

/* Fewer rounds than this say nothing. */
#define JUDGE_ROUNDS_MIN 3

enum judge_result {
    JUDGE_QUIET,    /* no stall */
    JUDGE_STALL,    /* at least half of the rounds stalled */
    JUDGE_UNSTEADY, /* neither: the times are scattered too widely to tell */
};

struct judgement {
    enum judge_result result;
    int64_t median_ns; /* of the client under suspicion */
    int64_t worst_ns;  /* its longest round */
    int64_t good_ns;   /* the median of the well-behaved client */
    size_t stalled;    /* rounds that stalled */
    size_t rounds;     /* rounds that were judged */
};

/* RTT_NS is the network's round trip, which Nagle costs on top even if no ACK is delayed. */
struct judgement judge(struct samples *suspect, struct samples *good, int64_t rtt_ns);

#endif
