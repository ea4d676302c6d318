/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fault_load.h: HTTP clients that go on asking while something breaks, and keep the account: what
 * they got by status, what was wrong, how long the longest answer took.
 *
 * Each client has one connection and one key of its own. Values describe themselves: key, serial,
 * length, filler; a value that is not the last one acknowledged, or a later one whose write was in doubt, is
 * wrong. But a write that was answered 504 may take effect at any later time, even after others: a
 * server that was stopped still has it in its buffers, on a connection that nobody holds any more. One round is one request on each connection, all at once.
 */
#ifndef KVGATE_TESTS_FAULT_LOAD_H
#define KVGATE_TESTS_FAULT_LOAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "http_client.h"

#define FAULT_VALUE_MAX 200000

/* Writes that were answered 504, of one client, that are remembered. */
#define FAULT_DOUBTS 64

struct fault_client {
    struct http_client http;
    char target[32];
    unsigned serial;               /* of the last write that was sent; 0: none */
    unsigned certain;              /* the newest that was acknowledged */
    bool may_be_gone;              /* a write is in doubt */
    unsigned kills;                /* of the load, when the last write was sent */
    unsigned doubts[FAULT_DOUBTS]; /* serials of writes that timed out: see the head */
    size_t doubt_count;            /* of them, ever */
    bool writes;                   /* the request under way is a PUT */
    int64_t sent_ms;               /* monotonic */
};

struct fault_load {
    struct fault_client *clients; /* owned */
    size_t count;
    size_t value_len;  /* bytes of what is written */
    bool only_reads;   /* no PUT: what is there was put there by others */
    atomic_uint kills; /* servers that were killed so far, counted before: they forget */
    unsigned rounds;
    unsigned requests;
    unsigned by_status[600];
    unsigned hangs;     /* no answer, or none that is HTTP */
    unsigned wrong;     /* values and misses that cannot be */
    unsigned unretried; /* 503 without Retry-After */
    int64_t longest_ms;
};

/* COUNT connections to PORT. False: cannot connect. */
bool fault_load_open(struct fault_load *load, uint16_t port, size_t count, size_t value_len);
void fault_load_close(struct fault_load *load);

/* One request on each connection. True: all were answered 200, 201 or 204. */
bool fault_load_round(struct fault_load *load);

/* Rounds for MS milliseconds. */
void fault_load_run(struct fault_load *load, int64_t ms);

/* Rounds until one is all well; the milliseconds that took, or -1: it did not in LIMIT_MS. */
int64_t fault_load_recover(struct fault_load *load, int64_t limit_ms);

/* A line of the table. RECOVERED_MS: -1 prints a dash. */
void fault_load_print(const struct fault_load *load, const char *name, int64_t recovered_ms);

/* Begins a PUT and a GET on connections of their own and drops them in the middle. */
void fault_load_break_off(uint16_t port);

/* Adds what FROM has counted to TO. */
void fault_load_add(struct fault_load *to, const struct fault_load *from);

/* Forgets what was counted; the clients go on. */
void fault_load_reset(struct fault_load *load);

#endif
