/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_embedded_crash.c: kill -9 at random moments; every write that was acknowledged is there.
 *
 * A child numbers its writes and reports each one over a pipe once it is acknowledged. The number
 * says all about a write: its key, whether it is a delete, and the value. The parent kills the child
 * after a random number of reports, reopens the database and looks. KVGATE_SEED repeats a run.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "loop_driver.h"
#include "place.h"

#define ROUNDS 60   /* kills */
#define KEYS   97   /* keys that are written over and over */
#define WINDOW 16   /* writes under way at the same time */
#define SIZE   9000 /* bytes of the longest value, about */

/* ---- what a write is ------------------------------------------------------------------------- */

static bool
is_delete(uint64_t n)
{
    return n % 10 == 9;
}

static struct slice
key_of(uint64_t n, char buffer[32])
{
    return slice_of(buffer, (size_t)snprintf(buffer, 32, "key/%u", (unsigned)(n % KEYS)));
}

/* The number, and so many bytes that follow from it. */
static struct slice
value_of(uint64_t n, char buffer[SIZE + 100])
{
    size_t len = sizeof(n) + (n % 7 == 0 ? n * 131 % SIZE : n % 90);

    memcpy(buffer, &n, sizeof(n));
    for (size_t i = sizeof(n); i < len; i++) {
        buffer[i] = (char)(n + i * 13);
    }
    return slice_of(buffer, len);
}

/* ---- the child ------------------------------------------------------------------------------- */

struct lane {
    struct store_op op;
    uint64_t n; /* the write that it carries */
    char key[32];
    char value[SIZE + 100];
    int report; /* the pipe */
};

static void
acknowledged(struct store_op *op, void *arg)
{
    struct lane *lane = arg;

    if (op->status != STORE_OK && !(op->status == STORE_MISS && is_delete(lane->n))) {
        _exit(2);
    }
    if (write(lane->report, &lane->n, sizeof(lane->n)) != (ssize_t)sizeof(lane->n)) {
        _exit(3);
    }
}

static void
start_write(struct lane *lane, uint64_t n, struct driver *driver)
{
    lane->n = n;
    store_op_init(&lane->op, is_delete(n) ? STORE_DELETE : STORE_SET, key_of(n, lane->key));
    if (!is_delete(n)) {
        lane->op.value = value_of(n, lane->value);
    }
    driver_submit_then(driver, &lane->op, acknowledged, lane);
}

/* Writes from number N on until it is killed. */
static void __attribute__((noreturn))
child_main(const struct config_store *config, uint64_t n, int report)
{
    static struct lane lanes[WINDOW];
    char error[CONFIG_ERROR_MAX];
    struct store_shared *shared;
    struct driver driver;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    shared = store_embedded.setup(config, error);
    if (shared == NULL || !driver_open(&driver, shared)) {
        fprintf(stderr, "child: %s\n", error);
        _exit(1);
    }
    for (;;) {
        for (int i = 0; i < WINDOW; i++) {
            lanes[i].report = report;
            start_write(&lanes[i], n++, &driver);
        }
        if (!driver_wait(&driver)) {
            _exit(4);
        }
    }
}

/* ---- the parent ------------------------------------------------------------------------------ */

struct history {
    uint64_t last[KEYS]; /* the last acknowledged write of each key; 0: none */
    uint64_t highest;    /* of all */
};

/* Runs a child and kills it after some COUNT reports. False: it ended by itself. */
static bool
run_and_kill(const struct config_store *config, struct history *history, unsigned count)
{
    uint64_t n, first = history->highest + 2 * WINDOW;
    int report[2], status;
    pid_t child;

    assert_int_equal(pipe(report), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        close(report[0]);
        child_main(config, first, report[1]);
    }
    close(report[1]);
    for (unsigned i = 0; read(report[0], &n, sizeof(n)) == (ssize_t)sizeof(n); i++) {
        if (i == count) {
            kill(child, SIGKILL);
        }
        history->last[n % KEYS] = n;
        history->highest = n > history->highest ? n : history->highest;
    }
    close(report[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

/*
 * Whether KEY may be absent: its last acknowledged write was a delete, or some later one was, which a
 * child may have carried out before it was killed and could not report any more.
 */
static bool
may_be_absent(const struct history *history, uint64_t key)
{
    uint64_t n = history->last[key];

    if (n == 0) {
        return true;
    }
    while (n <= history->highest + 2 * WINDOW && !is_delete(n)) {
        n += KEYS;
    }
    return n <= history->highest + 2 * WINDOW;
}

static void
check_key(struct driver *driver, const struct history *history, uint64_t key)
{
    char name[32], expected[SIZE + 100];
    struct store_op op;
    uint64_t n = 0;

    store_op_init(&op, STORE_GET, key_of(key, name));
    if (driver_run(driver, &op) == STORE_MISS) {
        assert_true(may_be_absent(history, key));
        return;
    }
    assert_int_equal(op.status, STORE_OK);
    assert_true(op.data->len >= sizeof(n));
    memcpy(&n, op.data->data, sizeof(n));
    /* It is a whole value, of this key, and none older than what was acknowledged last. */
    assert_int_equal(n % KEYS, key);
    assert_true(n >= history->last[key]);
    assert_true(slice_equal(slice_of(op.data->data, op.data->len), value_of(n, expected)));
    buffer_unref(op.data);
}

static void
check(const struct config_store *config, const struct history *history)
{
    char error[CONFIG_ERROR_MAX] = "";
    struct store_shared *shared = store_embedded.setup(config, error);
    struct driver driver;

    assert_string_equal(error, "");
    assert_true(driver_open(&driver, shared));
    for (uint64_t key = 0; key < KEYS; key++) {
        check_key(&driver, history, key);
    }
    driver_close(&driver);
    store_embedded.teardown(shared);
}

static void
run_rounds(enum config_sync sync)
{
    struct config_store *config = place_config_make(UINT64_C(64) << 20, sync);
    struct history history = { .highest = KEYS };

    for (int round = 0; round < ROUNDS; round++) {
        uint64_t before = history.highest;
        assert_true(run_and_kill(config, &history, (unsigned)rand() % 1500));
        assert_true(history.highest > before);
        check(config, &history);
    }
    place_config_remove(config);
}

static void
killed_with_sync_full(void **state)
{
    (void)state;
    run_rounds(CONFIG_SYNC_FULL);
}

static void
killed_with_sync_none(void **state)
{
    (void)state;
    run_rounds(CONFIG_SYNC_NONE);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(killed_with_sync_full),
        cmocka_unit_test(killed_with_sync_none),
    };
    const char *given = getenv("KVGATE_SEED");
    unsigned seed = given != NULL ? (unsigned)strtoul(given, NULL, 10) : (unsigned)time(NULL);

    printf("KVGATE_SEED=%u\n", seed);
    fflush(stdout);
    srand(seed);
    return cmocka_run_group_tests_name("embedded store, killed", tests, NULL, NULL);
}
