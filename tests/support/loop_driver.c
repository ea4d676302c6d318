/* SPDX-License-Identifier: BSD-2-Clause */
/* loop_driver.c: see loop_driver.h. What must never happen aborts, as the state is lost then. */
#include "loop_driver.h"

#include <stdio.h>
#include <stdlib.h>

#include "clock.h"

/* What the driver remembers of an op. */
struct driver_ticket {
    struct driver *driver; /* (ref) */
    void (*after)(struct store_op *op, void *arg);
    void *arg;                  /* (ref) of `after` */
    unsigned completions;       /* must become 1 */
    struct driver_ticket *next; /* older ones */
};

static void
must(bool condition, const char *what)
{
    if (!condition) {
        fprintf(stderr, "loop_driver: %s\n", what);
        abort();
    }
}

bool
driver_open(struct driver *driver, struct store_shared *shared)
{
    *driver = (struct driver){ .limit_ms = 10000, .thread = pthread_self() };
    must(loop_init(&driver->loop) == 0, "no epoll");
    driver->store = shared->type->open(shared, &driver->loop);
    if (driver->store == NULL) {
        loop_deinit(&driver->loop);
    }
    return driver->store != NULL;
}

void
driver_close_store(struct driver *driver)
{
    if (driver->store != NULL) {
        driver->store->type->close(driver->store);
        driver->store = NULL;
        must(driver->completed == driver->submitted, "closed with ops under way");
    }
}

void
driver_close(struct driver *driver)
{
    driver_close_store(driver);
    while (driver->tickets != NULL) {
        struct driver_ticket *ticket = driver->tickets;
        driver->tickets = ticket->next;
        must(ticket->completions == 1, "an op did not complete just once");
        free(ticket);
    }
    loop_deinit(&driver->loop);
}

static void
finish(struct driver_ticket *ticket, struct store_op *op)
{
    ticket->completions++;
    must(ticket->completions == 1, "an op completed twice");
    ticket->driver->completed++;
    if (ticket->after != NULL) {
        ticket->after(op, ticket->arg);
    }
}

static void
done(struct store_op *op)
{
    struct driver_ticket *ticket = op->arg;

    must(!ticket->driver->submitting, "done was called inside submit");
    must(pthread_equal(pthread_self(), ticket->driver->thread), "done on another thread");
    finish(ticket, op);
}

void
driver_submit_then(struct driver *driver, struct store_op *op,
                   void (*after)(struct store_op *op, void *arg), void *arg)
{
    struct driver_ticket *ticket = calloc(1, sizeof(*ticket));
    bool complete;

    must(ticket != NULL, "out of memory");
    *ticket = (struct driver_ticket){ driver, after, arg, 0, driver->tickets };
    driver->tickets = ticket;
    driver->submitted++;
    op->done = done;
    op->arg = ticket;
    driver->submitting = true;
    complete = driver->store->type->submit(driver->store, op);
    driver->submitting = false;
    if (complete) {
        finish(ticket, op);
    }
}

void
driver_submit(struct driver *driver, struct store_op *op)
{
    driver_submit_then(driver, op, NULL, NULL);
}

void
driver_turn(struct driver *driver, int64_t deadline_ms)
{
    const struct store_type *type = driver->store->type;
    int64_t next_ms = type->next_deadline(driver->store);

    loop_wait(&driver->loop, next_ms < deadline_ms ? next_ms : deadline_ms);
    driver->loop.progress = false;
    loop_dispatch(&driver->loop);
    type->flush(driver->store);
    type->expire(driver->store);
}

bool
driver_wait(struct driver *driver)
{
    int64_t deadline_ms = clock_monotonic_ms() + driver->limit_ms;

    driver->store->type->flush(driver->store);
    while (driver->completed < driver->submitted) {
        if (clock_monotonic_ms() >= deadline_ms) {
            return false;
        }
        driver_turn(driver, deadline_ms);
    }
    return true;
}

void
driver_idle(struct driver *driver, int64_t ms)
{
    int64_t until_ms = clock_monotonic_ms() + ms;

    do {
        driver_turn(driver, until_ms);
    } while (clock_monotonic_ms() < until_ms);
}

static void
wait_or_fail(struct driver *driver)
{
    if (!driver_wait(driver)) {
        /* The ops are on a stack that is about to be left, and the store still points at them. */
        fprintf(stderr, "loop_driver: %zu of %zu ops complete after %lld ms\n", driver->completed,
                driver->submitted, (long long)driver->limit_ms);
        abort();
    }
}

enum store_status
driver_run(struct driver *driver, struct store_op *op)
{
    driver_submit(driver, op);
    wait_or_fail(driver);
    return op->status;
}

void
driver_run_many(struct driver *driver, struct store_op *ops, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        driver_submit(driver, &ops[i]);
    }
    wait_or_fail(driver);
}
