/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * store_binary.c: the store on servers that only take memcached's binary protocol with SASL. A pool
 * of threads of the process, each with a blocking client (binary_client.c), behind the same
 * interface as the others:
 *
 *   worker: submit -> turn --flush--> queue --> a thread: binary_client_run
 *   ready  <-- eventfd <---- completed list <---------------'
 *
 * It is for stores that can be had in no other way: a thread is busy with one op at a time, and one
 * that has been taken up is waited for. One mutex guards the queue and the completed lists.
 */
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "binary_client.h"
#include "clock.h"
#include "log.h"
#include "loop.h"
#include "op_queue.h"
#include "store.h"

/* Strikes: a failure counts 2, a silence 1, as one alone may be a slow moment. An answer clears all. */
#define STRIKES_FAILED 2
#define STRIKES_SILENT 1
#define STRIKES_DOWN   2

/* A server that is down is asked again after so long, by one op; the others fail at once. Ms. */
#define DOWN_MS 500

struct binary_shared;

/* What all threads know of one server. */
struct binary_server {
    char name[CONFIG_TEXT_MAX + 16]; /* "host:port" */
    atomic_uint strikes;             /* since its last answer */
    atomic_llong down_until_ms;      /* monotonic; 0: it is not down */
};

struct pool_thread {
    struct binary_shared *shared; /* (ref) */
    struct binary_client *client; /* owned */
    pthread_t thread;
    bool started;
};

struct binary_shared {
    struct store_shared base;
    struct pool_thread *threads;   /* base.config->lanes of them (owned) */
    struct binary_server *servers; /* base.config->server_count of them (owned) */

    pthread_mutex_t mutex; /* guards the rest, and every handle's `completed` */
    pthread_cond_t work;   /* the queue is not empty, or stop */
    struct op_queue queue; /* ops that no thread has taken */
    bool stop;             /* no more ops will come */
};

struct binary_store {
    struct store base;
    struct binary_shared *shared; /* (ref) */
    struct watch wake;            /* an eventfd (owned): `completed` is not empty */
    struct op_queue turn;         /* submitted since the last flush */
    struct op_queue completed;    /* guarded by shared->mutex */
    size_t pending;               /* ops whose `done` is still to be called */
    size_t bytes;                 /* of the values of these ops */
    bool closing;                 /* nothing new is taken */
};

/* ---- the threads ----------------------------------------------------------------------------- */

/* Whether the server is not down, or this is the moment to look. */
static bool
may_ask(struct binary_server *server, int64_t now_ms)
{
    long long down_until_ms = atomic_load_explicit(&server->down_until_ms, memory_order_relaxed);

    if (down_until_ms == 0) {
        return true;
    }
    return now_ms >= down_until_ms &&
           atomic_compare_exchange_strong(&server->down_until_ms, &down_until_ms, now_ms + DOWN_MS);
}

static void
has_answered(struct binary_server *server)
{
    if (atomic_load_explicit(&server->strikes, memory_order_relaxed) > 0 &&
        atomic_exchange(&server->strikes, 0) >= STRIKES_DOWN) {
        atomic_store(&server->down_until_ms, 0);
        log_info("server %s: is back", server->name);
    }
}

/* One line for each incident, however many ops and threads notice. */
static void
has_failed(struct binary_shared *shared, struct binary_server *server, unsigned strikes,
           const char *error)
{
    unsigned before;

    if (atomic_load(&server->strikes) >= STRIKES_DOWN) {
        return;
    }
    before = atomic_fetch_add(&server->strikes, strikes);
    if (before < STRIKES_DOWN && before + strikes >= STRIKES_DOWN) {
        atomic_store(&server->down_until_ms, clock_monotonic_ms() + DOWN_MS);
        log_warn("server %s: %s; its keys are %s until it is back", server->name, error,
                 shared->base.config->on_failure == CONFIG_MISS ? "missing" : "unavailable");
    }
}

/* Carries OP out where its server can be asked. */
static void
ask(struct pool_thread *self, struct store_op *op)
{
    struct binary_shared *shared = self->shared;
    struct binary_server *server = &shared->servers[binary_client_server(self->client, op)];

    if (!may_ask(server, clock_monotonic_ms())) {
        op->status = STORE_UNAVAILABLE;
        return;
    }
    binary_client_run(self->client, op);
    switch (op->status) {
    case STORE_UNAVAILABLE:
        has_failed(shared, server, STRIKES_FAILED, binary_client_error(self->client));
        break;
    case STORE_TIMEOUT:
        has_failed(shared, server, STRIKES_SILENT, binary_client_error(self->client));
        break;
    case STORE_BAD_REPLY:
    case STORE_UNSUPPORTED:
        break;
    default:
        has_answered(server);
        break;
    }
}

/* Does what is to be done with OP, unless its caller has given up by now. */
static void
work_on(struct pool_thread *self, struct store_op *op)
{
    if (op->deadline_ms <= clock_monotonic_ms()) {
        op->status = STORE_TIMEOUT;
        return;
    }
    ask(self, op);
    if (self->shared->base.config->on_failure == CONFIG_MISS && store_verb_reads(op->verb) &&
        (op->status == STORE_UNAVAILABLE || op->status == STORE_TIMEOUT)) {
        op->status = STORE_MISS;
    }
}

/* Gives OP back to its worker, with the mutex held: a worker that has seen its last op may close. */
static void
hand_back(struct store_op *op)
{
    struct binary_store *home = op->home;
    const uint64_t one = 1;

    op_queue_push(&home->completed, op);
    if (home->completed.count == 1 &&
        write(home->wake.fd, &one, sizeof(one)) != (ssize_t)sizeof(one)) {
        log_error("cannot wake a worker: %s", strerror(errno));
    }
}

static void *
thread_main(void *arg)
{
    struct pool_thread *self = arg;
    struct binary_shared *shared = self->shared;
    struct store_op *op;

    pthread_mutex_lock(&shared->mutex);
    for (;;) {
        while (shared->queue.count == 0 && !shared->stop) {
            pthread_cond_wait(&shared->work, &shared->mutex);
        }
        op = op_queue_pop(&shared->queue);
        if (op == NULL) {
            break;
        }
        pthread_mutex_unlock(&shared->mutex);
        work_on(self, op);
        pthread_mutex_lock(&shared->mutex);
        hand_back(op);
    }
    pthread_mutex_unlock(&shared->mutex);
    return NULL;
}

/* ---- the store of the process ---------------------------------------------------------------- */

static void
teardown(struct store_shared *base)
{
    struct binary_shared *shared = (struct binary_shared *)base;

    pthread_mutex_lock(&shared->mutex);
    shared->stop = true;
    pthread_cond_broadcast(&shared->work);
    pthread_mutex_unlock(&shared->mutex);
    for (uint32_t i = 0; shared->threads != NULL && i < base->config->lanes; i++) {
        if (shared->threads[i].started) {
            pthread_join(shared->threads[i].thread, NULL);
        }
        binary_client_close(shared->threads[i].client);
    }
    pthread_cond_destroy(&shared->work);
    pthread_mutex_destroy(&shared->mutex);
    free(shared->threads);
    free(shared->servers);
    free(shared);
}

static bool
name_servers(struct binary_shared *shared)
{
    const struct config_store *config = shared->base.config;

    shared->servers = calloc(config->server_count, sizeof(*shared->servers));
    for (size_t i = 0; shared->servers != NULL && i < config->server_count; i++) {
        const struct config_server_address *address = &config->servers[i];
        char *name = shared->servers[i].name;
        const char *format = strchr(address->host, ':') != NULL ? "[%s]:%u" : "%s:%u";

        if (address->port == 0) {
            snprintf(name, sizeof(shared->servers[i].name), "unix:%s", address->host);
        } else {
            snprintf(name, sizeof(shared->servers[i].name), format, address->host, address->port);
        }
    }
    return shared->servers != NULL;
}

/* Signals are for the threads that know what to do with them. */
static bool
start_thread(struct pool_thread *self, char error[CONFIG_ERROR_MAX])
{
    sigset_t all, before;
    int rc;

    self->client = binary_client_open(self->shared->base.config, error);
    if (self->client == NULL) {
        return false;
    }
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    rc = pthread_create(&self->thread, NULL, thread_main, self);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    self->started = rc == 0;
    if (rc != 0) {
        snprintf(error, CONFIG_ERROR_MAX, "cannot start a thread: %s", strerror(rc));
    }
    return self->started;
}

static struct store_shared *
setup(const struct config_store *config, char error[CONFIG_ERROR_MAX])
{
    struct binary_shared *shared = calloc(1, sizeof(*shared));

    if (shared == NULL) {
        snprintf(error, CONFIG_ERROR_MAX, "out of memory");
        return NULL;
    }
    shared->base = (struct store_shared){ &store_binary, config };
    pthread_mutex_init(&shared->mutex, NULL);
    pthread_cond_init(&shared->work, NULL);
    shared->threads = calloc(config->lanes, sizeof(*shared->threads));
    if (shared->threads == NULL || !name_servers(shared)) {
        snprintf(error, CONFIG_ERROR_MAX, "out of memory");
        goto fail;
    }
    for (uint32_t i = 0; i < config->lanes; i++) {
        shared->threads[i].shared = shared;
        if (!start_thread(&shared->threads[i], error)) {
            goto fail;
        }
    }
    return &shared->base;
fail:
    teardown(&shared->base);
    return NULL;
}

/* ---- the handle of a worker ------------------------------------------------------------------ */

/* Completes everything that the threads have handed back. */
static void
complete(struct binary_store *store)
{
    struct op_queue done = { 0 };
    struct store_op *op;

    pthread_mutex_lock(&store->shared->mutex);
    op_queue_append(&done, &store->completed);
    pthread_mutex_unlock(&store->shared->mutex);
    while ((op = op_queue_pop(&done)) != NULL) {
        store->pending--;
        store->bytes -= op->value.len;
        op->done(op);
    }
}

static void
wake_ready(struct watch *watch, uint32_t events)
{
    struct binary_store *store =
        (struct binary_store *)((char *)watch - offsetof(struct binary_store, wake));
    uint64_t count;

    (void)events;
    /* Read before the list is taken: what is added after that wakes us once more. */
    if (read(watch->fd, &count, sizeof(count)) < 0) {
        return;
    }
    complete(store);
}

static struct store *
open_handle(struct store_shared *base, struct loop *loop)
{
    struct binary_store *store = calloc(1, sizeof(*store));

    if (store == NULL) {
        return NULL;
    }
    store->base = (struct store){ &store_binary, loop };
    store->shared = (struct binary_shared *)base;
    store->wake = (struct watch){ .fd = -1, .ready = wake_ready };
    store->wake.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (store->wake.fd >= 0 && loop_watch(loop, &store->wake, EPOLLIN) == 0) {
        return &store->base;
    }
    if (store->wake.fd >= 0) {
        close(store->wake.fd);
    }
    free(store);
    return NULL;
}

/* OP completes at once. */
static bool
refuse(struct store_op *op, enum store_status status)
{
    op->status = status;
    return true;
}

static bool
submit(struct store *base, struct store_op *op)
{
    struct binary_store *store = (struct binary_store *)base;
    const struct config_store *config = store->shared->base.config;
    int64_t deadline_ms = base->loop->now_ms + config->op_timeout_ms;

    assert(op->key.len >= 1 && op->key.len <= STORE_KEY_MAX);
    if (store->closing) {
        return refuse(op, STORE_CANCELLED);
    }
    if (store_verb_has_value(op->verb) &&
        op->value.len > store_binary.value_max(&store->shared->base, op->key.len, op->flags)) {
        return refuse(op, STORE_TOO_LARGE);
    }
    if (store->pending >= config->ops_max || (op->value.len > 0 && store->bytes > 0 &&
                                              store->bytes + op->value.len > config->bytes_max)) {
        return refuse(op, STORE_OVERLOADED);
    }
    if (deadline_ms < op->deadline_ms) {
        op->deadline_ms = deadline_ms;
    }
    op->home = store;
    store->pending++;
    store->bytes += op->value.len;
    op_queue_push(&store->turn, op);
    return false;
}

static void
flush(struct store *base)
{
    struct binary_store *store = (struct binary_store *)base;
    struct binary_shared *shared = store->shared;
    size_t count = store->turn.count;

    if (count == 0) {
        return;
    }
    pthread_mutex_lock(&shared->mutex);
    op_queue_append(&shared->queue, &store->turn);
    pthread_mutex_unlock(&shared->mutex);
    if (count == 1) {
        pthread_cond_signal(&shared->work);
    } else {
        pthread_cond_broadcast(&shared->work);
    }
}

/* What no thread has taken is cancelled; the rest is waited for, so that it is answered truly. */
static void
cancel_queued(struct binary_store *store)
{
    struct op_queue queue = { 0 }, mine = { 0 };
    struct store_op *op;

    pthread_mutex_lock(&store->shared->mutex);
    op_queue_append(&queue, &store->shared->queue);
    while ((op = op_queue_pop(&queue)) != NULL) {
        op_queue_push(op->home == store ? &mine : &store->shared->queue, op);
    }
    pthread_mutex_unlock(&store->shared->mutex);
    while ((op = op_queue_pop(&mine)) != NULL) {
        store->pending--;
        op->status = STORE_CANCELLED;
        op->done(op);
    }
}

static void
close_handle(struct store *base)
{
    struct binary_store *store = (struct binary_store *)base;
    struct pollfd wake = { .fd = store->wake.fd, .events = POLLIN };

    store->closing = true;
    flush(base);
    cancel_queued(store);
    while (store->pending > 0) {
        if (poll(&wake, 1, -1) > 0) {
            wake_ready(&store->wake, 0);
        }
    }
    loop_unwatch(base->loop, &store->wake);
    close(store->wake.fd);
    free(store);
}

/* Nothing waits in the worker: what is late is found out by the threads. */
static int64_t
next_deadline(const struct store *base)
{
    (void)base;
    return CLOCK_NEVER;
}

static void
expire(struct store *base)
{
    (void)base;
}

static size_t
value_max(const struct store_shared *base, size_t key_len, uint32_t flags)
{
    return store_memcached.value_max(base, key_len, flags);
}

const struct store_type store_binary = {
    .name = "memcached",
    .setup = setup,
    .teardown = teardown,
    .open = open_handle,
    .close = close_handle,
    .submit = submit,
    .flush = flush,
    .next_deadline = next_deadline,
    .expire = expire,
    .value_max = value_max,
};
