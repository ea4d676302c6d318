/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fake_store.h: a store that keeps nothing and answers when the test says so.
 *
 * It checks the caller's half of store.h on the way: the inputs of an op stay as they were from
 * submit until its completion, and keys are such that a real store would take them.
 */
#ifndef KVGATE_TESTS_FAKE_STORE_H
#define KVGATE_TESTS_FAKE_STORE_H

#include <stdbool.h>
#include <stddef.h>

#include "op_queue.h"
#include "store.h"

/* What an op is answered with. */
struct fake_store_answer {
    enum store_status status;
    struct slice value; /* (ref) GET, OK: copied into a new buffer; HEAD, OK: its length */
    uint64_t cas;       /* becomes out_cas */
    int64_t ttl_left_s; /* as in the op */
};

struct fake_store {
    struct store store;              /* what goes into request_context.stores */
    struct store_shared shared;      /* what goes into request_context.shared */
    struct op_queue pending;         /* submitted, not complete; oldest first */
    size_t submitted;                /* ops so far */
    size_t item_max;                 /* bytes of key and value together */
    bool at_once;                    /* complete inside submit, with `answer` */
    struct fake_store_answer answer; /* for at_once */
};

/* An item_max of 1000 bytes; answers late. */
void fake_store_init(struct fake_store *fake);

/* Fails the test when ops are pending. */
void fake_store_deinit(struct fake_store *fake);

/* The oldest op that is pending, to be looked at; fails the test when there is none. */
struct store_op *fake_store_oldest(struct fake_store *fake);

/* Completes the oldest op. The other two: OK with nothing, and a STATUS that is not OK. */
void fake_store_complete(struct fake_store *fake, const struct fake_store_answer *answer);
void fake_store_complete_ok(struct fake_store *fake);
void fake_store_complete_bad(struct fake_store *fake, enum store_status status);

/* Completes the newest op first, as a store with several connections may do. */
void fake_store_complete_newest(struct fake_store *fake, const struct fake_store_answer *answer);

#endif
