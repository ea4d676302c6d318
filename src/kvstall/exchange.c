/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * exchange.c: plays one exchange and times it. It compares nothing with anything.
 *
 *     start             writes                100 (Expect only)   first read      last read
 *       |---- cut ---- cut ---- cut ------------------|--------------|---------------|
 *       |                                         continue_ns     first_ns       total_ns
 */
#include "exchange.h"

#include <errno.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "interrupt.h"
#include "timing.h"

/* Bytes of one read: more than a small answer has, so that a whole one can come in one read. */
#define READ_SIZE 65536

/* One exchange under way. */
struct play {
    struct exchange_connection *c;    /* (ref) */
    const struct exchange_request *r; /* (ref) */
    struct exchange_result *result;   /* (ref) */
    bool awaiting;                    /* the body waits for 100 Continue */
    int64_t start_ns;                 /* when the first write began */
    struct answer answer;             /* what has come */
    char block[READ_SIZE];            /* one read */
};

void
exchange_close(struct exchange_connection *c)
{
    int error = errno;

    if (c->fd != -1) {
        close(c->fd);
        c->fd = -1;
    }
    errno = error;
}

static enum exchange_outcome
open_connection(struct exchange_target *target, struct exchange_connection *c)
{
    int64_t start = timing_now_ns(), took;

    c->fd = net_connect(&target->address, start + EXCHANGE_TIMEOUT_NS);
    if (c->fd == -1) {
        return interrupt_pending() ? EXCHANGE_INTERRUPTED : EXCHANGE_UNREACHABLE;
    }
    took = timing_now_ns() - start;
    if (took < target->rtt_ns || target->rtt_ns == 0) {
        target->rtt_ns = took;
    }
    net_set_nodelay(c->fd, c->nodelay);
    return EXCHANGE_ANSWERED;
}

static enum exchange_outcome
outcome_of(enum net_result result)
{
    switch (result) {
    case NET_OK:
    case NET_INPUT:
        return EXCHANGE_ANSWERED;
    case NET_CLOSED:
        return EXCHANGE_CLOSED;
    case NET_TIMEOUT:
        return EXCHANGE_TIMED_OUT;
    case NET_INTERRUPTED:
        return EXCHANGE_INTERRUPTED;
    case NET_FAILED:
        break;
    }
    return EXCHANGE_FAILED;
}

/* Notes what the bytes of one read were. */
static void
take_in(struct play *p, size_t got)
{
    int64_t now = timing_now_ns() - p->start_ns;
    size_t used = 0;

    while (used < got && p->answer.state < ANSWER_DONE) {
        unsigned interim = p->answer.interim;
        bool had_begun = p->answer.begun;

        used += answer_feed(&p->answer, p->block + used, got - used);
        if (p->awaiting && interim == 0 && p->answer.interim > 0) {
            p->result->continue_ns = now;
        }
        if (!had_begun && p->answer.begun) {
            p->result->first_ns = now;
            p->result->together = p->answer.state == ANSWER_DONE;
        }
    }
    p->result->total_ns = now;
    if (used < got) {
        p->answer.keep_alive = false; /* more than was asked for: who knows what it is */
    }
}

/* One read. ANSWERED: go on; the state of the answer says how far it is. */
static enum exchange_outcome
read_some(struct play *p, int64_t deadline_ns)
{
    size_t got;
    enum net_result result;

    net_set_quickack(p->c->fd, p->c->quickack);
    result = net_read(p->c->fd, p->block, sizeof(p->block), &got, deadline_ns);
    if (result == NET_OK) {
        take_in(p, got);
        if (p->c->quickack && p->answer.state < ANSWER_DONE) {
            net_set_quickack(p->c->fd, true); /* the ACK that the read has left to be sent */
        }
        return p->answer.state == ANSWER_NONSENSE ? EXCHANGE_NONSENSE : EXCHANGE_ANSWERED;
    }
    if (result == NET_CLOSED && answer_end(&p->answer)) {
        return EXCHANGE_ANSWERED;
    }
    return outcome_of(result);
}

/* Waits for 100 Continue. A while without one is no error, nor is a final answer instead. */
static enum exchange_outcome
await_continue(struct play *p)
{
    int64_t deadline = timing_now_ns() + EXCHANGE_CONTINUE_NS;
    enum exchange_outcome outcome = EXCHANGE_ANSWERED;

    p->awaiting = true;
    while (outcome == EXCHANGE_ANSWERED && p->answer.interim == 0 && !p->answer.begun) {
        outcome = read_some(p, deadline);
    }
    p->awaiting = false;
    if (outcome == EXCHANGE_TIMED_OUT) {
        return EXCHANGE_ANSWERED;
    }
    p->result->early = outcome == EXCHANGE_ANSWERED && p->answer.begun && p->answer.interim == 0;
    return outcome;
}

static enum exchange_outcome
send_request(struct play *p, int64_t deadline_ns)
{
    const struct exchange_request *r = p->r;
    size_t from = 0;

    for (size_t i = 0; i < r->cut_count; i++) {
        enum net_result result =
            net_write(p->c->fd, r->bytes + from, r->cuts[i] - from, deadline_ns);

        if (result == NET_CLOSED || result == NET_INPUT) {
            p->result->kept = false;
            return EXCHANGE_ANSWERED; /* the answer may be waiting: a refusal, most likely */
        }
        if (result != NET_OK) {
            return outcome_of(result);
        }
        from = r->cuts[i];
        if (r->style == EXCHANGE_EXPECT && from == r->head_len && from < r->len) {
            enum exchange_outcome outcome = await_continue(p);

            if (outcome != EXCHANGE_ANSWERED || p->result->early) {
                return outcome;
            }
        }
    }
    return EXCHANGE_ANSWERED;
}

/* Plays R on the open connection. */
static enum exchange_outcome
play_once(struct play *p)
{
    enum exchange_outcome outcome;
    int64_t deadline;

    answer_init(&p->answer);
    *p->result = (struct exchange_result){ .continue_ns = -1, .kept = true };
    net_set_quickack(p->c->fd, p->c->quickack);
    p->start_ns = timing_now_ns();
    deadline = p->start_ns + EXCHANGE_TIMEOUT_NS;
    outcome = send_request(p, deadline);
    while (outcome == EXCHANGE_ANSWERED && p->answer.state < ANSWER_DONE) {
        outcome = read_some(p, deadline);
    }
    if (outcome == EXCHANGE_ANSWERED) {
        p->result->status = p->answer.status;
        p->result->body_len = p->answer.body_len;
        /* A refused Expect leaves it open whether the server still waits for the body. */
        p->result->kept = p->result->kept && p->answer.keep_alive && !p->result->early;
    }
    return outcome;
}

enum exchange_outcome
exchange_play(struct exchange_target *target, struct exchange_connection *c,
              const struct exchange_request *r, struct exchange_result *result)
{
    struct play p = { .c = c, .r = r, .result = result };
    enum exchange_outcome outcome = EXCHANGE_ANSWERED;
    bool again;

    do {
        bool kept = c->fd != -1;

        if (!kept) {
            outcome = open_connection(target, c);
        }
        if (outcome == EXCHANGE_ANSWERED) {
            outcome = play_once(&p);
        }
        /* A server may close a connection that it kept at any time: that is no failure. */
        again = outcome == EXCHANGE_CLOSED && kept && !p.answer.begun;
        if (outcome != EXCHANGE_ANSWERED || !result->kept) {
            exchange_close(c);
        }
        if (again) {
            outcome = EXCHANGE_ANSWERED;
        }
    } while (again);
    return outcome;
}

const char *
exchange_outcome_text(enum exchange_outcome outcome)
{
    switch (outcome) {
    case EXCHANGE_ANSWERED:
        return "it was answered";
    case EXCHANGE_CLOSED:
        return "the server closed the connection without a whole answer";
    case EXCHANGE_TIMED_OUT:
        return "the server did not answer within 5 seconds";
    case EXCHANGE_NONSENSE:
        return "what the server sent is no HTTP/1 answer";
    case EXCHANGE_INTERRUPTED:
        return "interrupted";
    case EXCHANGE_UNREACHABLE:
    case EXCHANGE_FAILED:
        break;
    }
    return strerror(errno);
}

int
exchange_outcome_code(enum exchange_outcome outcome)
{
    switch (outcome) {
    case EXCHANGE_ANSWERED:
        return EX_OK;
    case EXCHANGE_UNREACHABLE:
        return EX_UNAVAILABLE;
    case EXCHANGE_FAILED:
        return EX_IOERR;
    default:
        return EX_PROTOCOL;
    }
}
