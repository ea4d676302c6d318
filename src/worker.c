/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * worker.c: the loop of one worker. Everything that kvgate does for a request happens in here, in
 * this order, in one thread:
 *
 *            .---------------------------------------------------------------------------.
 *            |                                                                           |
 *            v                                                                           |
 *          wait      epoll_wait on the outer epoll: HTTP fronts, store connections, stop |
 *            |                                                                           |
 *         receive    loop_dispatch: replies from stores          ops -> DONE             |
 *            |                                                                           |
 *          serve     http_run while a pass made progress:                                |
 *            |         clients' bytes -> requests -> store->submit                       |
 *            |         DONE requests  -> header and value in one sendmsg                 |
 *          flush     store->flush: all ops of this turn in one sendmsg per connection    |
 *            |                                                                           |
 *         expire     deadlines of ops, of requests, of lingering sockets                 |
 *            |                                                                           |
 *            '---------------------------------------------------------------------------'
 *
 * A request that waits for its store is polled: libmicrohttpd calls it again in every pass, which costs
 * some 30 ns, and no system call. Only those that wait long, where many do, are suspended (http.c).
 */
#include "worker.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "clock.h"
#include "http.h"
#include "linger.h"
#include "log.h"
#include "loop.h"
#include "request.h"

/* libmicrohttpd looks at its time-outs in passes, so there must be some while it has connections.
 */
#define PASS_MS 100

/* Passes of one turn, so that clients who always have more do not keep the stores waiting. */
#define PASSES_MAX 16

/* See serve. */
#define QUIET_PASSES 2

/* Where REQUEST_MANY_WAITING are looked at in each pass, one quiet pass has to do; what it misses is found soon. */
#define PASS_MANY_MS 2

/* One listening socket's front, watched on the loop. */
struct front {
    struct watch watch;    /* libmicrohttpd's epoll (ref) */
    struct worker *worker; /* (ref) */
    struct http *http;     /* (owned) */
};

struct worker {
    const struct worker_shared *shared; /* (ref) */
    size_t index;                       /* 0 .. workers-1 */
    pthread_t thread;
    sem_t started;                /* posted once: it serves, or `error` says why not */
    bool failed;                  /* valid after `started` */
    char error[CONFIG_ERROR_MAX]; /* valid with `failed` */

    struct loop loop;
    struct watch stop;              /* an eventfd (owned): somebody called worker_stop */
    bool stopping;                  /* it was seen */
    int64_t stop_ms;                /* stopping: be gone by then */
    int64_t next_pass_ms;           /* a pass is due then, even if nothing happens */
    struct lingers lingers;         /* connections that are being closed slowly */
    struct request_context context; /* of this worker's requests; its stores are owned here */
    struct front fronts[CONFIG_LISTEN_MAX]; /* shared->listener_count of them */
};

/* ---- the loop -------------------------------------------------------------------------------- */

static int64_t
earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t
next_deadline(const struct worker *worker)
{
    int64_t next = linger_next_deadline(&worker->lingers);

    for (size_t i = 0; i < worker->shared->listener_count; i++) {
        next = earlier(next, http_next_deadline(worker->fronts[i].http));
        if (http_connections(worker->fronts[i].http) > 0) {
            next = earlier(next, worker->next_pass_ms);
        }
    }
    for (size_t i = 0; i < worker->shared->config->store_count; i++) {
        const struct store *store = worker->context.stores[i];
        next = earlier(next, store->type->next_deadline(store));
    }
    return worker->stopping ? earlier(next, worker->stop_ms) : next;
}

/* Requests that wait for a store and are looked at in each pass. */
static size_t
count_polled(const struct worker *worker)
{
    return worker->context.waiting - worker->context.suspended;
}

static void
run_fronts(struct worker *worker)
{
    for (size_t i = 0; i < worker->shared->listener_count; i++) {
        http_run(worker->fronts[i].http);
        if (count_polled(worker) == 0 && http_has_backlog(worker->fronts[i].http)) {
            worker->loop.progress = true;
        }
    }
}

/*
 * Passes until there is nothing left to do. While no request waits for a store, libmicrohttpd tells
 * (http_has_backlog). While some do it cannot, and QUIET_PASSES without progress must tell: after an answer it takes
 * one to make ready for a request that is in its buffer already, and one to see it.
 */
static void
serve(struct worker *worker)
{
    struct loop *loop = &worker->loop;
    bool many = count_polled(worker) >= REQUEST_MANY_WAITING;
    int enough = many ? 1 : QUIET_PASSES, quiet = 0;

    if (!loop->progress && loop->now_ms < worker->next_pass_ms) {
        return;
    }
    worker->next_pass_ms = loop->now_ms + (many ? PASS_MANY_MS : PASS_MS);
    for (int pass = 0; pass < PASSES_MAX && quiet < enough; pass++) {
        loop->progress = false;
        run_fronts(worker);
        if (loop->progress) {
            quiet = 0;
        } else {
            quiet = count_polled(worker) > 0 ? quiet + 1 : enough;
        }
    }
    loop->progress = quiet < enough;
    for (size_t i = 0; i < worker->shared->listener_count; i++) {
        http_acknowledge(worker->fronts[i].http);
    }
}

static void
flush(struct worker *worker)
{
    for (size_t i = 0; i < worker->shared->config->store_count; i++) {
        struct store *store = worker->context.stores[i];
        store->type->flush(store);
    }
}

static void
expire(struct worker *worker)
{
    for (size_t i = 0; i < worker->shared->config->store_count; i++) {
        struct store *store = worker->context.stores[i];
        store->type->expire(store);
    }
    for (size_t i = 0; i < worker->shared->listener_count; i++) {
        http_expire(worker->fronts[i].http);
    }
    linger_expire(&worker->lingers);
}

/* Requests under way, on all fronts. */
static size_t
count_busy(const struct worker *worker)
{
    size_t busy = 0;

    for (size_t i = 0; i < worker->shared->listener_count; i++) {
        busy += http_busy(worker->fronts[i].http);
    }
    return busy;
}

/* Whether a stop that was asked for may happen now. */
static bool
has_drained(const struct worker *worker)
{
    if (!worker->stopping) {
        return false;
    }
    return (count_busy(worker) == 0 && linger_is_empty(&worker->lingers)) ||
           worker->loop.now_ms >= worker->stop_ms;
}

static void
run(struct worker *worker)
{
    while (!has_drained(worker)) {
        loop_wait(&worker->loop, next_deadline(worker));
        loop_dispatch(&worker->loop);
        serve(worker);
        flush(worker);
        expire(worker);
    }
    if (count_busy(worker) > 0) {
        log_warn("drain_timeout is over: %zu requests are cut off", count_busy(worker));
    }
}

/* ---- what wakes it --------------------------------------------------------------------------- */

static void
front_ready(struct watch *watch, uint32_t events)
{
    struct front *front = (struct front *)watch; /* its first member */

    (void)events;
    front->worker->loop.progress = true;
}

static void
stop_ready(struct watch *watch, uint32_t events)
{
    struct worker *worker =
        (struct worker *)(void *)((char *)watch - offsetof(struct worker, stop));
    uint64_t count;

    (void)events;
    if (read(watch->fd, &count, sizeof(count)) < 0 || worker->stopping) {
        return;
    }
    worker->stopping = true;
    worker->stop_ms = worker->loop.now_ms + worker->shared->config->drain_timeout_ms;
    worker->loop.progress = true;
    for (size_t i = 0; i < worker->shared->listener_count; i++) {
        http_quiesce(worker->fronts[i].http);
    }
}

/* ---- setup and teardown: two lists in mirror order ------------------------------------------- */

static bool
set_error(struct worker *worker, const char *what)
{
    snprintf(worker->error, sizeof(worker->error), "worker %zu: %s: %s", worker->index, what,
             strerror(errno));
    return false;
}

static bool
setup_stop(struct worker *worker)
{
    worker->stop.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    worker->stop.ready = stop_ready;
    return worker->stop.fd >= 0;
}

static bool
open_stores(struct worker *worker)
{
    worker->context.config = worker->shared->config;
    worker->context.quota = worker->shared->quota;
    worker->context.loop = &worker->loop;
    for (size_t i = 0; i < worker->shared->config->store_count; i++) {
        struct store_shared *shared = worker->shared->stores[i];
        worker->context.shared[i] = shared;
        worker->context.stores[i] = shared->type->open(shared, &worker->loop);
        if (worker->context.stores[i] == NULL) {
            return set_error(worker, "cannot open a store");
        }
    }
    return true;
}

static bool
open_fronts(struct worker *worker)
{
    for (size_t i = 0; i < worker->shared->listener_count; i++) {
        struct front *front = &worker->fronts[i];
        int fd = listener_socket(&worker->shared->listeners[i], worker->index);
        front->worker = worker;
        front->http = http_create(&worker->context, &worker->lingers, fd);
        if (front->http == NULL) {
            return set_error(worker, "cannot start libmicrohttpd");
        }
        front->watch = (struct watch){ http_epoll_fd(front->http), front_ready };
        if (loop_watch(&worker->loop, &front->watch, EPOLLIN) < 0) {
            return set_error(worker, "epoll");
        }
    }
    return true;
}

static bool
setup(struct worker *worker)
{
    linger_init(&worker->lingers, &worker->loop);
    if (loop_init(&worker->loop) < 0 || loop_watch(&worker->loop, &worker->stop, EPOLLIN) < 0) {
        return set_error(worker, "epoll");
    }
    return open_stores(worker) && open_fronts(worker);
}

/* Requests first: what their ops still hold is freed when the stores close. */
static void
teardown(struct worker *worker)
{
    for (size_t i = 0; i < worker->shared->listener_count; i++) {
        if (worker->fronts[i].http != NULL) {
            loop_unwatch(&worker->loop, &worker->fronts[i].watch);
            http_destroy(worker->fronts[i].http);
        }
    }
    linger_stop(&worker->lingers);
    for (size_t i = 0; i < worker->shared->config->store_count; i++) {
        struct store *store = worker->context.stores[i];
        if (store != NULL) {
            store->type->close(store);
        }
    }
    request_context_deinit(&worker->context);
    loop_deinit(&worker->loop);
}

/*
 * A worker that pushes its clients and stores aside whenever a first request wakes it finds few requests at a time,
 * and each turn, with its wake-ups and its write to the store, is for those few. What an operator has chosen stays.
 */
static void
set_scheduling(const struct worker *worker)
{
    struct sched_param param = { .sched_priority = 0 };

    if (worker->shared->config->scheduling == CONFIG_SCHEDULING_BATCH &&
        sched_getscheduler(0) == SCHED_OTHER) {
        pthread_setschedparam(pthread_self(), SCHED_BATCH,
                              &param); /* refused: it stays as it was */
    }
}

static void *
worker_main(void *arg)
{
    struct worker *worker = arg;

    set_scheduling(worker);
    worker->failed = !setup(worker);
    bool failed = worker->failed;
    sem_post(&worker->started);
    if (!failed) {
        run(worker);
    }
    teardown(worker);
    return NULL;
}

struct worker *
worker_start(const struct worker_shared *shared, size_t index, char error[CONFIG_ERROR_MAX])
{
    struct worker *worker = calloc(1, sizeof(*worker));
    sigset_t all, before;
    int status;

    if (worker == NULL) {
        snprintf(error, CONFIG_ERROR_MAX, "worker %zu: no memory", index);
        return NULL;
    }
    worker->shared = shared;
    worker->index = index;
    if (!setup_stop(worker)) {
        snprintf(error, CONFIG_ERROR_MAX, "worker %zu: eventfd: %s", index, strerror(errno));
        free(worker);
        return NULL;
    }
    sem_init(&worker->started, 0, 0);
    sigfillset(&all); /* signals are the main thread's */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    status = pthread_create(&worker->thread, NULL, worker_main, worker);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (status != 0) {
        snprintf(error, CONFIG_ERROR_MAX, "worker %zu: %s", index, strerror(status));
        close(worker->stop.fd);
        sem_destroy(&worker->started);
        free(worker);
        return NULL;
    }
    while (sem_wait(&worker->started) < 0 && errno == EINTR) {
    }
    if (worker->failed) {
        snprintf(error, CONFIG_ERROR_MAX, "%s", worker->error);
        worker_join(worker);
        return NULL;
    }
    return worker;
}

void
worker_stop(struct worker *worker)
{
    uint64_t one = 1;

    if (write(worker->stop.fd, &one, sizeof(one)) != (ssize_t)sizeof(one)) {
        log_error("worker %zu: cannot be told to stop: %s", worker->index, strerror(errno));
    }
}

void
worker_join(struct worker *worker)
{
    if (worker == NULL) {
        return;
    }
    pthread_join(worker->thread, NULL);
    close(worker->stop.fd);
    sem_destroy(&worker->started);
    free(worker);
}
