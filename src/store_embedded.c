/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * store_embedded.c: the embedded store: how operations travel between the workers and the one
 * thread that writes. What they do to the database is embedded_db.h's.
 *
 *   worker                                              writer
 *   submit --> a read: answered at once from the map
 *          --> a write: turn list
 *   flush  --------- the turn's writes --------> queue --> a batch --> one transaction
 *   ready  <-- eventfd <---- completed list <---------------------------'
 *     '--> done, done, ...
 *
 * While the writer waits for the disk, the queue fills, so that the next transaction carries all of
 * it: the slower the disk, the larger the batches. When it has nothing to write it sweeps out what
 * has expired, a little at a time.
 *
 * One mutex guards the queue and the completed lists. Nothing slow is done while it is held.
 */
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "clock.h"
#include "embedded_db.h"
#include "embedded_record.h"
#include "log.h"
#include "loop.h"
#include "store.h"

/* A batch's bounds: an op waits for at most one before its own. Ops; bytes of their values. */
#define BATCH_OPS   1024
#define BATCH_BYTES ((size_t)16 << 20)

/* Two sweeps that find nothing more to do are this far apart, in ms: dates that lie close together
 * cost one transaction, not one each. */
#define SWEEP_REST 1000

/* The wall clock is looked at this often while a date lies ahead, in ms: it may be set. */
#define SWEEP_LOOK 60000

/* A list of ops, linked by op->next. */
struct op_list {
    struct store_op *head;  /* (ref) NULL when empty */
    struct store_op **tail; /* where the next one is linked */
};

struct embedded_shared {
    struct store_shared base;
    struct embedded_db *db; /* owned */
    pthread_t writer;

    pthread_mutex_t mutex; /* guards the rest, and every handle's `completed` */
    pthread_cond_t work;   /* the queue is not empty, or stop */
    struct op_list queue;  /* writes that no transaction carries yet */
    bool stop;             /* no more ops will come */

    /* the writer's own */
    struct store_op *batch[BATCH_OPS]; /* (ref) what was taken from the queue */
    struct store_op *ops[BATCH_OPS];   /* (ref) those of it that are not too late */
    int64_t swept_ms;                  /* monotonic; end of the last sweep */
    bool sweep_again;                  /* it did not remove everything */
};

struct embedded_store {
    struct store base;
    struct embedded_shared *shared; /* (ref) */
    struct embedded_reader *reader; /* owned */
    struct watch wake;              /* an eventfd (owned): `completed` is not empty */
    struct op_list turn;            /* writes submitted since the last flush */
    struct op_list completed;       /* guarded by shared->mutex */
    size_t pending;                 /* ops whose `done` is still to be called */
    bool closing;                   /* nothing new is taken */
};

/* ---- lists ----------------------------------------------------------------------------------- */

static void
list_init(struct op_list *list)
{
    list->head = NULL;
    list->tail = &list->head;
}

static void
list_add(struct op_list *list, struct store_op *op)
{
    op->next = NULL;
    *list->tail = op;
    list->tail = &op->next;
}

static struct store_op *
list_take(struct op_list *list)
{
    struct store_op *op = list->head;

    if (op != NULL) {
        list->head = op->next;
        if (list->head == NULL) {
            list->tail = &list->head;
        }
    }
    return op;
}

/* Moves all of FROM to the end of TO. */
static void
list_move(struct op_list *to, struct op_list *from)
{
    if (from->head != NULL) {
        *to->tail = from->head;
        to->tail = from->tail;
        list_init(from);
    }
}

/* ---- the writer's thread --------------------------------------------------------------------- */

/* When the next sweep is due, monotonic ms, or CLOCK_NEVER. */
static int64_t
sweep_deadline(const struct embedded_shared *shared)
{
    int64_t expiry_ms = embedded_db_next_expiry(shared->db), left_ms, due_ms;

    if (shared->sweep_again) {
        return 0;
    }
    if (expiry_ms == CLOCK_NEVER) {
        return CLOCK_NEVER;
    }
    left_ms = expiry_ms - clock_wall_ms();
    left_ms = left_ms < 0 ? 0 : left_ms;
    left_ms = left_ms > SWEEP_LOOK ? SWEEP_LOOK : left_ms;
    due_ms = clock_monotonic_ms() + left_ms;
    return due_ms > shared->swept_ms + SWEEP_REST ? due_ms : shared->swept_ms + SWEEP_REST;
}

/* Waits, with the mutex held, until there are ops, a sweep is due or it is time to stop. */
static void
wait_for_work(struct embedded_shared *shared)
{
    int64_t due_ms = sweep_deadline(shared);
    struct timespec until = { .tv_sec = due_ms / 1000, .tv_nsec = due_ms % 1000 * 1000000 };

    while (shared->queue.head == NULL && !shared->stop) {
        if (due_ms == CLOCK_NEVER) {
            pthread_cond_wait(&shared->work, &shared->mutex);
        } else if (clock_monotonic_ms() >= due_ms) {
            return;
        } else {
            pthread_cond_timedwait(&shared->work, &shared->mutex, &until);
        }
    }
}

/* Fills the batch from the queue, with the mutex held. Returns how many there are. */
static size_t
take_batch(struct embedded_shared *shared)
{
    size_t count = 0, bytes = 0;

    while (count < BATCH_OPS && bytes < BATCH_BYTES && shared->queue.head != NULL) {
        shared->batch[count] = list_take(&shared->queue);
        bytes += shared->batch[count]->value.len;
        count++;
    }
    return count;
}

/* Carries out the batch. What has waited too long is not touched: its caller has given up. */
static void
write_batch(struct embedded_shared *shared, size_t count)
{
    int64_t now_ms = clock_monotonic_ms();
    size_t kept = 0;

    for (size_t i = 0; i < count; i++) {
        struct store_op *op = shared->batch[i];
        if (op->deadline_ms < now_ms) {
            op->status = STORE_TIMEOUT;
        } else {
            shared->ops[kept++] = op;
        }
    }
    if (kept > 0) {
        embedded_db_write(shared->db, shared->ops, kept, clock_wall_ms());
    }
}

/* Gives the batch back to the workers, with the mutex held: under it, as a worker that has seen its
 * last op come back may close its eventfd. */
static void
hand_back(struct embedded_shared *shared, size_t count)
{
    const uint64_t one = 1;

    for (size_t i = 0; i < count; i++) {
        struct embedded_store *home = shared->batch[i]->home;
        bool wake = home->completed.head == NULL;

        list_add(&home->completed, shared->batch[i]);
        if (wake && write(home->wake.fd, &one, sizeof(one)) != (ssize_t)sizeof(one)) {
            log_error("cannot wake a worker: %s", strerror(errno));
        }
    }
}

static void
sweep_if_due(struct embedded_shared *shared)
{
    bool rested = clock_monotonic_ms() >= shared->swept_ms + SWEEP_REST;

    if (shared->sweep_again || (rested && embedded_db_next_expiry(shared->db) <= clock_wall_ms())) {
        shared->sweep_again = embedded_db_sweep(shared->db, clock_wall_ms());
        shared->swept_ms = clock_monotonic_ms();
    }
}

static void *
writer_main(void *arg)
{
    struct embedded_shared *shared = arg;
    size_t count;

    pthread_mutex_lock(&shared->mutex);
    for (;;) {
        wait_for_work(shared);
        count = take_batch(shared);
        if (count == 0 && shared->stop) {
            break;
        }
        pthread_mutex_unlock(&shared->mutex);
        write_batch(shared, count);
        pthread_mutex_lock(&shared->mutex);
        hand_back(shared, count);
        pthread_mutex_unlock(&shared->mutex);
        sweep_if_due(shared);
        pthread_mutex_lock(&shared->mutex);
    }
    pthread_mutex_unlock(&shared->mutex);
    return NULL;
}

/* ---- the store of the process ---------------------------------------------------------------- */

/* Starts the writer; signals are for the threads that know what to do with them. */
static int
start_writer(struct embedded_shared *shared)
{
    sigset_t all, before;
    int rc;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    rc = pthread_create(&shared->writer, NULL, writer_main, shared);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

static void
init_locks(struct embedded_shared *shared)
{
    pthread_condattr_t attr;

    pthread_mutex_init(&shared->mutex, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&shared->work, &attr);
    pthread_condattr_destroy(&attr);
}

static void
free_shared(struct embedded_shared *shared)
{
    pthread_cond_destroy(&shared->work);
    pthread_mutex_destroy(&shared->mutex);
    embedded_db_close(shared->db);
    free(shared);
}

static struct store_shared *
setup(const struct config_store *config, char error[CONFIG_ERROR_MAX])
{
    struct embedded_shared *shared = calloc(1, sizeof(*shared));
    int rc;

    if (shared == NULL) {
        snprintf(error, CONFIG_ERROR_MAX, "out of memory");
        return NULL;
    }
    shared->base = (struct store_shared){ &store_embedded, config };
    list_init(&shared->queue);
    init_locks(shared);
    shared->db = embedded_db_open(config, error);
    if (shared->db == NULL) {
        free_shared(shared);
        return NULL;
    }
    rc = start_writer(shared);
    if (rc != 0) {
        snprintf(error, CONFIG_ERROR_MAX, "cannot start a thread: %s", strerror(rc));
        free_shared(shared);
        return NULL;
    }
    return &shared->base;
}

static void
teardown(struct store_shared *base)
{
    struct embedded_shared *shared = (struct embedded_shared *)base;

    pthread_mutex_lock(&shared->mutex);
    shared->stop = true;
    pthread_cond_signal(&shared->work);
    pthread_mutex_unlock(&shared->mutex);
    pthread_join(shared->writer, NULL);
    free_shared(shared);
}

static size_t
value_max(const struct store_shared *base, size_t key_len, uint32_t flags)
{
    (void)key_len;
    (void)flags;
    return embedded_db_value_max(((const struct embedded_shared *)base)->db);
}

/* ---- the handle of a worker ------------------------------------------------------------------ */

/* Completes everything that the writer has handed back. */
static void
complete(struct embedded_store *store)
{
    struct op_list done;
    struct store_op *op;

    list_init(&done);
    pthread_mutex_lock(&store->shared->mutex);
    list_move(&done, &store->completed);
    pthread_mutex_unlock(&store->shared->mutex);
    while ((op = list_take(&done)) != NULL) {
        store->pending--;
        op->done(op);
    }
}

static void
wake_ready(struct watch *watch, uint32_t events)
{
    struct embedded_store *store =
        (struct embedded_store *)((char *)watch - offsetof(struct embedded_store, wake));
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
    struct embedded_shared *shared = (struct embedded_shared *)base;
    struct embedded_store *store = calloc(1, sizeof(*store));

    if (store == NULL) {
        return NULL;
    }
    store->base = (struct store){ &store_embedded, loop };
    store->shared = shared;
    list_init(&store->turn);
    list_init(&store->completed);
    store->wake = (struct watch){ .fd = -1, .ready = wake_ready };
    store->reader = embedded_reader_open(shared->db);
    if (store->reader == NULL) {
        goto fail;
    }
    store->wake.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (store->wake.fd < 0 || loop_watch(loop, &store->wake, EPOLLIN) != 0) {
        goto fail;
    }
    return &store->base;
fail:
    if (store->wake.fd >= 0) {
        close(store->wake.fd);
    }
    embedded_reader_close(store->reader);
    free(store);
    return NULL;
}

static bool
submit(struct store *base, struct store_op *op)
{
    struct embedded_store *store = (struct embedded_store *)base;

    assert(op->key.len >= 1 && op->key.len <= STORE_KEY_MAX);
    if (store->closing) {
        op->status = STORE_CANCELLED;
        return true;
    }
    if (store_verb_reads(op->verb)) {
        embedded_reader_get(store->reader, op, clock_wall_ms());
        return true;
    }
    if (op->value.len > embedded_db_value_max(store->shared->db)) {
        op->status = STORE_TOO_LARGE;
        return true;
    }
    op->home = store;
    list_add(&store->turn, op);
    store->pending++;
    return false;
}

static void
flush(struct store *base)
{
    struct embedded_store *store = (struct embedded_store *)base;
    struct embedded_shared *shared = store->shared;

    if (store->turn.head == NULL) {
        return;
    }
    pthread_mutex_lock(&shared->mutex);
    list_move(&shared->queue, &store->turn);
    pthread_mutex_unlock(&shared->mutex);
    pthread_cond_signal(&shared->work);
}

/* Waits for the writer, so that every op is answered truly: nothing is left undecided. */
static void
close_handle(struct store *base)
{
    struct embedded_store *store = (struct embedded_store *)base;
    struct pollfd wake = { .fd = store->wake.fd, .events = POLLIN };

    store->closing = true;
    flush(base);
    while (store->pending > 0) {
        if (poll(&wake, 1, -1) > 0) {
            wake_ready(&store->wake, 0);
        }
    }
    loop_unwatch(base->loop, &store->wake);
    close(store->wake.fd);
    embedded_reader_close(store->reader);
    free(store);
}

/* Nothing waits in the worker: what is late is found out by the writer. */
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

const struct store_type store_embedded = {
    .name = "embedded",
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
