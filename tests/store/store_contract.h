/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * store_contract.h: ONE suite of behaviours that every store runs. What stores may do differently
 * is a field of struct contract; everything else must be the same, whatever lies behind.
 */
#ifndef KVGATE_STORE_CONTRACT_H
#define KVGATE_STORE_CONTRACT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store.h"

struct contract {
    const char *name; /* of the suite in the test's output */
    /* Makes an empty store, once for the suite. NULL: it cannot be made, and the suite fails. */
    struct store_shared *(*setup)(void *arg);
    /* Every handle is closed. */
    void (*teardown)(struct store_shared *shared, void *arg);
    void *arg; /* (ref) for both */

    bool has_cas;            /* GET tells the cas, and the verb CAS is there */
    bool tells_cas_on_write; /* writes tell it, too */
    bool delete_with_cas;    /* else UNSUPPORTED */
    bool incr_create;        /* INCR and DECR create a counter; else UNSUPPORTED */
    bool incr_wraps;         /* at 2^64; else nothing is known beyond it */
    bool has_touch;          /* else UNSUPPORTED */
    bool pads_counters;      /* a counter that gets shorter keeps its length, with spaces */
    bool tells_ttl;          /* GET and HEAD tell what is left; else STORE_TTL_UNKNOWN */
    int64_t ttl_slack_s;     /* by how much that may be off, besides rounding */
    size_t value_max;        /* the longest value under a 64-byte key, to be tried; 0: not tried */
    enum store_status append_over; /* what APPEND beyond value_max answers */
};

/* Runs the suite. Returns the number of tests that failed. */
int contract_run(const struct contract *contract);

#endif
