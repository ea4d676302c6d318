/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * store_rig.h: one store on one loop, driven by hand, for tests that care about turns.
 *
 * The test plays the worker: it submits, flushes and turns the loop when it wants to. The rig
 * checks what holds for every op of every store: that it completes, once, and not before its time.
 */
#ifndef KVGATE_TESTS_STORE_RIG_H
#define KVGATE_TESTS_STORE_RIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config.h"
#include "loop.h"
#include "store.h"

/* How long a test waits for what must come: far more than it takes, so that only a hang fails. */
#define RIG_PATIENCE_MS 10000

struct rig {
    struct config_store config;
    struct loop loop;
    struct store_shared *shared; /* owned */
    struct store *store;         /* owned */
    int64_t skew_ms;             /* how far the store's clock is ahead: a test may move it on */
    size_t submitted;            /* ops */
    size_t completed;            /* ops */
};

/* An op of a test, with its history. Reused with the next rig_submit, once complete. */
struct call {
    struct store_op op;
    struct rig *rig;                 /* (ref) */
    unsigned completions;            /* 1 once complete; more is wrong */
    int64_t submitted_ms;            /* monotonic */
    int64_t completed_ms;            /* monotonic */
    void (*then)(struct call *call); /* called at completion, may be NULL */
    void *arg;                       /* the test's own */
};

/* A memcached store on 127.0.0.1:PORT; the test may change CONFIG before rig_open. */
void rig_config(struct rig *rig, enum config_dialect dialect, uint16_t port);
void rig_open(struct rig *rig);

/* Closes the store; every op must have completed then. */
void rig_close(struct rig *rig);

/* Fills in CALL's op; `prepare` alone, for a test that sets more of it before `submit`. */
void rig_prepare(struct rig *rig, struct call *call, enum store_verb verb, const char *key);
void rig_submit(struct call *call);

/* Both: a GET, and a write of VALUE, which must stay. */
void rig_get(struct rig *rig, struct call *call, const char *key);
void rig_write(struct rig *rig, struct call *call, enum store_verb verb, const char *key,
               struct slice value);

/* The end of a turn: flush, expire. */
void rig_flush(struct rig *rig);

/* The beginning of the next, waiting for CAP_MS at the most, and its end. */
void rig_turn(struct rig *rig, int64_t cap_ms);

/* Turns until CALL is complete. */
void rig_wait(struct call *call);

/* Submits what rig_prepare has set up, and waits. */
enum store_status rig_do(struct call *call);

/* rig_get and rig_wait: OK with this value; the call's buffer is given back. */
void rig_expect_value(struct rig *rig, const char *key, struct slice value);

/* Whether CALL is OK with VALUE; its buffer is given back. */
bool rig_has_value(struct call *call, struct slice value);

/* Turns until CONDITION holds; fails the test when it does not come true. */
#define RIG_UNTIL(rig, condition)                                                                  \
    do {                                                                                           \
        int64_t rig_until_ms = clock_monotonic_ms() + RIG_PATIENCE_MS;                             \
        while (!(condition)) {                                                                     \
            if (clock_monotonic_ms() > rig_until_ms) {                                             \
                fail_msg("waited in vain for: %s", #condition);                                    \
            }                                                                                      \
            rig_turn((rig), 2);                                                                    \
        }                                                                                          \
    } while (0)

#endif
