/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * loop.h: the outer epoll of one worker, and the file descriptors that it watches.
 *
 * The loop only waits and tells; who reads what, in which order, is worker.c's to decide. All of it
 * belongs to one thread. Events are level-triggered: whoever does not read everything is told
 * again.
 */
#ifndef KVGATE_LOOP_H
#define KVGATE_LOOP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

/* How many events one wait takes: a turn's work stays bounded, the rest comes with the next. */
#define LOOP_BATCH 256

struct watch {
    int fd; /* (ref) the owner opens and closes it; -1 when there is none */
    /* called from loop_dispatch with EPOLLIN, EPOLLOUT, EPOLLERR ... of this fd */
    void (*ready)(struct watch *watch, uint32_t events);
};

struct loop {
    int epoll_fd;                         /* the outer epoll (owned) */
    int64_t now_ms;                       /* monotonic; read once after every wait */
    bool progress;                        /* a request moved on: pass again before waiting */
    int ready_count;                      /* events of the last wait */
    struct epoll_event ready[LOOP_BATCH]; /* events of the last wait */
};

/* -1 with errno when there is no epoll to be had. */
int loop_init(struct loop *loop);

/* The watches must be gone. A loop of zeros, or one that was deinitialised, is allowed. */
void loop_deinit(struct loop *loop);

/* Starts to watch WATCH->fd for EVENTS (EPOLLIN | EPOLLOUT ...). -1 with errno. */
int loop_watch(struct loop *loop, struct watch *watch, uint32_t events);

/* Changes what is waited for. */
void loop_rewatch(struct loop *loop, struct watch *watch, uint32_t events);

/*
 * Stops to watch; call it before the fd is closed. Events of this watch that were already
 * fetched are dropped, so WATCH may be freed at once, even inside a ready callback.
 */
void loop_unwatch(struct loop *loop, struct watch *watch);

/*
 * Waits until something is ready or DEADLINE_MS (monotonic; CLOCK_NEVER for none) has come; does
 * not wait at all while `progress` is set. Reads the clock.
 */
void loop_wait(struct loop *loop, int64_t deadline_ms);

/* Calls `ready` for everything that the last wait found. */
void loop_dispatch(struct loop *loop);

#endif
