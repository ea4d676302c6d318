/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * worker.h: one thread that serves: its own loop, HTTP fronts, store handles and requests.
 * Workers share nothing but what struct worker_shared lists.
 */
#ifndef KVGATE_WORKER_H
#define KVGATE_WORKER_H

#include <stddef.h>

#include "config.h"
#include "quota.h"
#include "listener.h"
#include "store.h"

/* What all workers look at. The server owns all of it, and it outlives them. */
struct worker_shared {
    const struct config *config;
    struct quota *quota;
    const struct listener *listeners; /* listener_count of them */
    size_t listener_count;
    struct store_shared *const *stores; /* by config index */
};

struct worker;

/*
 * Starts worker INDEX (0 .. workers-1); returns when it serves. NULL: ERROR says why. The caller
 * owns the worker.
 */
struct worker *worker_start(const struct worker_shared *shared, size_t index,
                            char error[CONFIG_ERROR_MAX]);

/* Tells it to stop: requests under way are answered first, for drain_timeout at the most. */
void worker_stop(struct worker *worker);

/* Waits until it has stopped, and frees it. NULL is allowed. */
void worker_join(struct worker *worker);

#endif
