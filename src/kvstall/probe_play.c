/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * probe_play.c: plays the clients against the server.
 *
 * Each cell is played in pairs: a round of the well-behaved client, a round of the client under
 * suspicion, and so on. Both see the same server at the same time, and no connection rests long
 * enough for the kernel to fall back to acknowledging at once.
 *
 *     for each cell                  the most telling first, so that little time tells most
 *         warm up                    JUDGE_WARMUP pairs, not judged
 *         play pairs                 until there are enough, or the cell's share of time is over
 *         judge                      unsteady: play again, PLAY_TRIES times in all
 */
#include <inttypes.h>
#include <stdlib.h>
#include <sysexits.h>

#include "interrupt.h"
#include "probe.h"
#include "report.h"
#include "samples.h"
#include "timing.h"

/* A busy machine scatters the times; it is rarely busy three times in a row. */
#define PLAY_TRIES 3

/* Each missing 100 Continue costs EXCHANGE_CONTINUE_NS: after so many it is clear. */
#define CONTINUE_TRIES 2

static const struct probe_kind kinds[] = {
    { "put-apart-nagle", "header and body apart", true, EXCHANGE_APART, false, PROBE_FIRST },
    { "get-answer", "answer to GET", false, EXCHANGE_ONE_WRITE, true, PROBE_ANSWER },
    { "get-lines-nagle", "GET, line by line", false, EXCHANGE_LINES, false, PROBE_FIRST },
    { "put-answer", "answer to the write", true, EXCHANGE_ONE_WRITE, true, PROBE_ANSWER },
    { "put-expect-nagle", "Expect: 100-continue", true, EXCHANGE_EXPECT, false, PROBE_CONTINUE },
    { "put-lines-nagle", "line by line", true, EXCHANGE_LINES, false, PROBE_FIRST },
    { "put-pieces-nagle", "in 4 pieces", true, EXCHANGE_PIECES, false, PROBE_FIRST },
    { "put-one-write-nagle", "one write", true, EXCHANGE_ONE_WRITE, false, PROBE_FIRST },
    { "get-one-write-nagle", "GET, one write", false, EXCHANGE_ONE_WRITE, false, PROBE_FIRST },
    { "put-apart-nodelay", "header and body apart", true, EXCHANGE_APART, true, PROBE_FIRST },
    { "get-lines-nodelay", "GET, line by line", false, EXCHANGE_LINES, true, PROBE_FIRST },
    { "put-expect-nodelay", "Expect: 100-continue", true, EXCHANGE_EXPECT, true, PROBE_CONTINUE },
    { "put-lines-nodelay", "line by line", true, EXCHANGE_LINES, true, PROBE_FIRST },
    { "put-pieces-nodelay", "in 4 pieces", true, EXCHANGE_PIECES, true, PROBE_FIRST },
};

#define KIND_COUNT (sizeof(kinds) / sizeof(kinds[0]))

_Static_assert(KIND_COUNT <= PROBE_CELLS, "a cell for each kind");

/* One side of a pair. */
struct side {
    struct exchange_connection connection;
    struct exchange_request request; /* (owned) */
    struct samples times;            /* of the judged rounds (owned) */
};

/* A cell being played. */
struct pair {
    struct probe *p;         /* (ref) */
    struct probe_cell *cell; /* (ref) */
    struct side suspect;
    struct side good; /* one write, Nagle off, acknowledges at once */
    int64_t end_ns;   /* when the cell's share of time is over */
};

static bool
make_request(const struct probe *p, bool write, enum exchange_style style,
             struct exchange_request *request)
{
    const struct service *s = &p->service;

    if (write) {
        return exchange_request_init(request, s->method, s->url.path, s->key, s->url.host,
                                     (int64_t)p->size, style);
    }
    /* Where nothing can be stored, what is there is read: the URL itself. */
    return exchange_request_init(request, "GET", p->writes ? service_read_path(s) : s->url.path,
                                 p->writes ? s->key : "", s->url.host, -1, style);
}

/* Plays one exchange. Returns EX_OK, or the exit code after a message. */
static int
play(struct probe *p, struct side *side, const char *name, bool write,
     struct exchange_result *result)
{
    enum exchange_outcome outcome =
        exchange_play(&p->service.target, &side->connection, &side->request, result);

    if (write) {
        service_note_write(&p->service, outcome, result->status);
    }
    if (outcome == EXCHANGE_ANSWERED) {
        return EX_OK;
    }
    if (outcome != EXCHANGE_INTERRUPTED) {
        report_error("%s (%s): %s", write ? p->service.method : "GET", name,
                     exchange_outcome_text(outcome));
    }
    return exchange_outcome_code(outcome);
}

static bool
side_init(struct side *side, const struct probe *p, const struct probe_kind *kind,
          enum exchange_style style)
{
    *side = (struct side){ .connection = { .fd = -1 } };
    return samples_init(&side->times, (size_t)p->rounds) &&
           make_request(p, kind->write, style, &side->request);
}

static void
side_deinit(struct side *side)
{
    exchange_close(&side->connection);
    exchange_request_deinit(&side->request);
    samples_deinit(&side->times);
}

/* The time that this cell is about. */
static int64_t
measured(enum probe_measure measure, const struct exchange_result *result)
{
    switch (measure) {
    case PROBE_ANSWER:
        return result->total_ns - result->first_ns;
    case PROBE_CONTINUE:
        if (result->continue_ns >= 0) {
            return result->continue_ns;
        }
        return result->first_ns;
    case PROBE_FIRST:
        break;
    }
    return result->first_ns;
}

/* Notes what else was seen of the client under suspicion. */
static void
note(struct probe_cell *cell, const struct exchange_result *result)
{
    cell->rounds++;
    cell->status = result->status;
    cell->together += result->together;
    if (cell->kind->measure == PROBE_CONTINUE) {
        cell->early += result->early;
        cell->continue_none += result->continue_ns < 0 && !result->early;
    }
}

/* One round of each client. JUDGED: the times count. */
static int
play_pair(struct pair *pair, bool judged)
{
    const struct probe_kind *kind = pair->cell->kind;
    struct exchange_result good = { 0 }, suspect = { 0 };
    int code = play(pair->p, &pair->good, "well-behaved", kind->write, &good);

    if (code == EX_OK) {
        code = play(pair->p, &pair->suspect, kind->name, kind->write, &suspect);
    }
    if (code != EX_OK) {
        return code;
    }
    pair->cell->good_status = good.status;
    pair->p->kept = pair->p->kept && good.kept;
    note(pair->cell, &suspect);
    if (judged) {
        enum probe_measure against = kind->measure == PROBE_CONTINUE ? PROBE_FIRST : kind->measure;

        samples_add(&pair->good.times, measured(against, &good));
        samples_add(&pair->suspect.times, measured(kind->measure, &suspect));
    }
    return EX_OK;
}

/* Whether the cell needs no more rounds, or cannot have them. */
static bool
enough(const struct pair *pair)
{
    size_t judged = pair->suspect.times.count;

    if (pair->cell->continue_none >= CONTINUE_TRIES) {
        return true;
    }
    return judged >= pair->p->rounds ||
           (judged >= JUDGE_ROUNDS_MIN && timing_now_ns() >= pair->end_ns) ||
           timing_now_ns() >= pair->p->end_ns;
}

/* Plays the rounds of a cell once, and judges them. */
static int
play_try(struct pair *pair, int try)
{
    struct probe_cell *cell = pair->cell;
    int code = EX_OK, warm = try == 0 ? JUDGE_WARMUP : 0;

    pair->suspect.times.count = pair->good.times.count = 0;
    while (code == EX_OK && !enough(pair)) {
        report_progress("%s%s%s, Nagle %s: round %zu of %" PRIu64,
                        cell->kind->write ? pair->p->service.method : "",
                        cell->kind->write ? ", " : "", cell->kind->name,
                        cell->kind->nodelay ? "off" : "on", pair->suspect.times.count + 1,
                        pair->p->rounds);
        code = play_pair(pair, warm <= 0);
        warm--;
    }
    cell->played =
        pair->suspect.times.count >= JUDGE_ROUNDS_MIN || cell->continue_none >= CONTINUE_TRIES;
    /* Nagle costs a round trip of the network even where no ACK is delayed. */
    cell->judgement =
        judge(&pair->suspect.times, &pair->good.times, pair->p->service.target.rtt_ns);
    return code;
}

/* Plays a cell in SHARE_NS, and if it must be, somewhat longer. */
static int
play_cell(struct probe *p, struct probe_cell *cell, int64_t share_ns)
{
    struct pair pair = { .p = p, .cell = cell, .end_ns = timing_now_ns() + share_ns };
    const struct probe_kind *kind = cell->kind;
    int code = EX_OK;

    if (side_init(&pair.suspect, p, kind, kind->style) &&
        side_init(&pair.good, p, kind, EXCHANGE_ONE_WRITE)) {
        pair.suspect.connection.nodelay = kind->nodelay;
        /* A client that acknowledges at once keeps the stalls of answers out of the other cells. */
        pair.suspect.connection.quickack = kind->measure != PROBE_ANSWER;
        pair.good.connection.nodelay = pair.good.connection.quickack = true;
        for (int try = 0; code == EX_OK && try < PLAY_TRIES; try++) {
            code = play_try(&pair, try);
            if (cell->judgement.result != JUDGE_UNSTEADY || timing_now_ns() >= pair.end_ns ||
                cell->continue_none >= CONTINUE_TRIES) {
                break;
            }
        }
    } else {
        report_error("no memory");
        code = EX_OSERR;
    }
    side_deinit(&pair.suspect);
    side_deinit(&pair.good);
    return code;
}

/* Asks once, with the best manners: are writes taken, what does a read answer? */
static int
play_first(struct probe *p, bool write, int *status)
{
    struct side side = { .connection = { .fd = -1, .nodelay = true, .quickack = true } };
    struct exchange_result result = { 0 };
    int code = EX_OSERR;

    if (make_request(p, write, EXCHANGE_ONE_WRITE, &side.request)) {
        code = play(p, &side, "well-behaved", write, &result);
    } else {
        report_error("no memory");
    }
    *status = result.status;
    side_deinit(&side);
    return code;
}

int
probe_play(struct probe *p)
{
    int code = play_first(p, true, &p->write_status);

    p->writes = code == EX_OK && p->write_status < 400;
    p->kept = true;
    if (code == EX_OK) {
        code = play_first(p, false, &p->read_status);
    }
    p->cell_count = KIND_COUNT;
    for (size_t i = 0; i < KIND_COUNT; i++) {
        p->cells[i] = (struct probe_cell){ .kind = &kinds[i] };
    }
    for (size_t i = 0; i < KIND_COUNT && code == EX_OK; i++) {
        int64_t left = p->end_ns - timing_now_ns();

        if ((!kinds[i].write || p->writes) && left > 0) {
            code = play_cell(p, &p->cells[i], left / (int64_t)(KIND_COUNT - i));
        }
    }
    return code;
}
