/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * loop_driver.h: a worker without HTTP: one loop, one store on it, and turns until operations are
 * complete. It checks on the way what store.h promises: each op completes once, on this thread, and
 * `done` never runs inside submit.
 */
#ifndef KVGATE_LOOP_DRIVER_H
#define KVGATE_LOOP_DRIVER_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loop.h"
#include "store.h"

struct driver {
    struct loop loop;
    struct store *store;           /* owned; NULL after driver_close_store */
    int64_t limit_ms;              /* how long ops may take before a run gives up; 10 s */
    size_t submitted;              /* ops so far */
    size_t completed;              /* completions so far; never more than `submitted` */
    bool submitting;               /* inside store->submit */
    pthread_t thread;              /* the one that opened it */
    struct driver_ticket *tickets; /* one per op, kept until the end to see a second completion */
};

/* Opens a handle of SHARED. False: there is none. */
bool driver_open(struct driver *driver, struct store_shared *shared);

/* Closes the store: every op is complete after this. The results may still be looked at. */
void driver_close_store(struct driver *driver);

/* Closes the store, if that was not done, and frees. */
void driver_close(struct driver *driver);

/*
 * Hands OP over; op->done and op->arg are the driver's while it runs. AFTER (or NULL) is called
 * after the completion with the caller's ARG, and may submit again.
 */
void driver_submit(struct driver *driver, struct store_op *op);
void driver_submit_then(struct driver *driver, struct store_op *op,
                        void (*after)(struct store_op *op, void *arg), void *arg);

/* One turn of the loop, as the worker has it; waits no longer than DEADLINE_MS (monotonic). */
void driver_turn(struct driver *driver, int64_t deadline_ms);

/* Flushes, and turns until everything is complete. False: it was not within limit_ms. */
bool driver_wait(struct driver *driver);

/* Turns for about so many MS, whatever happens. For what only time brings about. */
void driver_idle(struct driver *driver, int64_t ms);

/* Submits OP and waits for it; the program aborts when it does not complete. */
enum store_status driver_run(struct driver *driver, struct store_op *op);

/* The same for COUNT ops in one turn. */
void driver_run_many(struct driver *driver, struct store_op *ops, size_t count);

#endif
