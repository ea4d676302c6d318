/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * probe_verdict.c: what the judged cells mean together. Pure: no I/O.
 */
#include "probe.h"

/* As many rounds without 100 Continue as this make "never"; one may be lost. */
#define NEVER_ROUNDS 2

bool
probe_shows(const struct probe_cell *cell, enum probe_finding finding)
{
    const struct probe_kind *kind = cell->kind;
    bool stalled = cell->played && cell->judgement.result == JUDGE_STALL;

    switch (finding) {
    case PROBE_HALF_REQUEST:
        return stalled && kind->measure == PROBE_FIRST && !kind->nodelay;
    case PROBE_SLOW_PIECES:
        return stalled && kind->measure == PROBE_FIRST && kind->nodelay;
    case PROBE_SPLIT_ANSWER:
        return stalled && kind->measure == PROBE_ANSWER;
    case PROBE_CONTINUE_LATE:
        return stalled && kind->measure == PROBE_CONTINUE;
    case PROBE_CONTINUE_NEVER:
        return cell->played && kind->measure == PROBE_CONTINUE &&
               cell->continue_none >= NEVER_ROUNDS;
    case PROBE_FINDINGS:
        break;
    }
    return false;
}

void
probe_judge(const struct probe_cell *cells, size_t count, bool writes,
            struct probe_verdict *verdict)
{
    *verdict = (struct probe_verdict){ 0 };
    for (size_t i = 0; i < count; i++) {
        const struct probe_cell *cell = &cells[i];

        if (!cell->played) {
            verdict->skipped += !cell->kind->write || writes;
            continue;
        }
        for (int f = 0; f < PROBE_FINDINGS; f++) {
            verdict->found[f] = verdict->found[f] || probe_shows(cell, (enum probe_finding)f);
        }
        if (cell->judgement.result == JUDGE_UNSTEADY && !probe_shows(cell, PROBE_CONTINUE_NEVER)) {
            verdict->unsteady++;
        }
    }
    /*
     * If a client waits with Nagle off, it is not Nagle that it waits for, and what the clients
     * with Nagle on wait for cannot be told until that is mended.
     */
    if (verdict->found[PROBE_SLOW_PIECES]) {
        verdict->found[PROBE_HALF_REQUEST] = false;
    }
}

bool
probe_found(const struct probe_verdict *verdict)
{
    for (int f = 0; f < PROBE_FINDINGS; f++) {
        if (verdict->found[f]) {
            return true;
        }
    }
    return false;
}
