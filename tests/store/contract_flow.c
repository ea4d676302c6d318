/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * contract_flow.c: many operations at once, operations out of completions, several workers, and a
 * store that is closed while it works. The driver checks that each op completes just once.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "clock.h"
#include "contract_priv.h"

#define MANY 200

/* Small mostly, with big ones between. */
static size_t
mixed_size(unsigned i)
{
    return i % 20 == 7 ? 70000 + i : i % 10 == 3 ? 16384 - i : i * 3;
}

static void
release(struct store_op *ops, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        buffer_unref(ops[i].data);
    }
}

static void
many_at_once(void **state)
{
    struct fixture *f = *state;
    static struct store_op ops[2 * MANY];
    char *bytes[MANY];

    for (unsigned i = 0; i < MANY; i++) {
        bytes[i] = fixture_bytes(mixed_size(i), i);
        store_op_init(&ops[i], STORE_SET, fixture_key(f, "m", i));
        ops[i].value = slice_of(bytes[i], mixed_size(i));
    }
    driver_run_many(&f->driver, ops, MANY);
    for (unsigned i = 0; i < MANY; i++) {
        assert_status(ops[i].status, STORE_OK);
    }
    /* Reads of all of them, with writes of others in between. */
    for (unsigned i = 0; i < MANY; i++) {
        store_op_init(&ops[2 * i], STORE_GET, fixture_key(f, "m", i));
        store_op_init(&ops[2 * i + 1], STORE_SET, fixture_key(f, "n", i));
        ops[2 * i + 1].value = slice_of(bytes[MANY - 1 - i], mixed_size(MANY - 1 - i));
    }
    driver_run_many(&f->driver, ops, 2 * MANY);
    for (unsigned i = 0; i < MANY; i++) {
        assert_status(ops[2 * i].status, STORE_OK);
        assert_true(fixture_buffer_is(ops[2 * i].data, slice_of(bytes[i], mixed_size(i))));
        assert_status(ops[2 * i + 1].status, STORE_OK);
    }
    release(ops, 2 * MANY);
    for (unsigned i = 0; i < MANY; i += 9) {
        fixture_has(f, fixture_key(f, "n", i),
                    slice_of(bytes[MANY - 1 - i], mixed_size(MANY - 1 - i)));
    }
    for (unsigned i = 0; i < MANY; i++) {
        free(bytes[i]);
    }
}

/* An op that fails leaves its neighbours alone, and each gets its own answer. */
static void
mixed_answers_in_one_turn(void **state)
{
    struct fixture *f = *state;
    struct slice word = KEY("word"), number = KEY("number"), none = KEY("none"), other = KEY("o");
    struct store_op ops[8];

    assert_status(fixture_run_value(f, STORE_SET, word, SLICE("word")), STORE_OK);
    assert_status(fixture_run_value(f, STORE_SET, number, SLICE("41")), STORE_OK);
    store_op_init(&ops[0], STORE_INCR, word);
    store_op_init(&ops[1], STORE_INCR, number);
    ops[1].delta = 1;
    store_op_init(&ops[2], STORE_DELETE, none);
    store_op_init(&ops[3], STORE_ADD, word);
    store_op_init(&ops[4], STORE_APPEND, none);
    store_op_init(&ops[5], STORE_SET, other);
    ops[5].value = SLICE("set");
    store_op_init(&ops[6], STORE_GET, none);
    store_op_init(&ops[7], STORE_GET, word);
    driver_run_many(&f->driver, ops, 8);
    assert_status(ops[0].status, STORE_BAD_VALUE);
    assert_status(ops[1].status, STORE_OK);
    assert_int_equal(ops[1].number, 42);
    assert_status(ops[2].status, STORE_MISS);
    assert_status(ops[3].status, STORE_NOT_STORED);
    assert_status(ops[4].status, STORE_NOT_STORED);
    assert_status(ops[5].status, STORE_OK);
    assert_status(ops[6].status, STORE_MISS);
    assert_status(ops[7].status, STORE_OK);
    assert_true(fixture_buffer_is(ops[7].data, SLICE("word")));
    release(ops, 8);
    fixture_has(f, other, SLICE("set"));
    fixture_has(f, number, SLICE("42"));
}

/* Reads of the same key in one turn may share an answer, but each has its own reference. */
static void
many_reads_of_one_key(void **state)
{
    struct fixture *f = *state;
    struct slice key = KEY("k");
    struct store_op ops[60];

    for (size_t len = 10; len < 1000000; len *= 100) {
        char *bytes = fixture_bytes(len, (unsigned)len);
        assert_status(fixture_run_flags(f, STORE_SET, key, slice_of(bytes, len), 6), STORE_OK);
        for (int i = 0; i < 60; i++) {
            store_op_init(&ops[i], i % 15 == 14 ? STORE_HEAD : STORE_GET, key);
        }
        driver_run_many(&f->driver, ops, 60);
        for (int i = 0; i < 60; i++) {
            assert_status(ops[i].status, STORE_OK);
            assert_int_equal(ops[i].value_len, len);
            assert_int_equal(ops[i].out_flags, 6);
            assert_true(ops[i].out_cas == ops[0].out_cas);
            assert_int_equal(ops[i].data == NULL, ops[i].verb == STORE_HEAD);
            if (ops[i].data != NULL) {
                assert_true(fixture_buffer_is(ops[i].data, slice_of(bytes, len)));
                buffer_unref(ops[i].data);
            }
        }
        free(bytes);
    }
    assert_status(fixture_run(f, STORE_DELETE, key), STORE_OK);
    for (int i = 0; i < 10; i++) {
        store_op_init(&ops[i], STORE_GET, key);
    }
    driver_run_many(&f->driver, ops, 10);
    for (int i = 0; i < 10; i++) {
        assert_status(ops[i].status, STORE_MISS);
        assert_null(ops[i].data);
    }
}

/* A read beside a write of the same key has the old value or the new one, whole. */
static void
reads_beside_a_write(void **state)
{
    struct fixture *f = *state;
    struct slice key = KEY("k");
    char *old = fixture_bytes(90000, 1), *new = fixture_bytes(80000, 2);
    struct store_op ops[21];

    assert_status(fixture_run_value(f, STORE_SET, key, slice_of(old, 90000)), STORE_OK);
    for (int i = 0; i < 21; i++) {
        store_op_init(&ops[i], i == 10 ? STORE_SET : STORE_GET, key);
    }
    ops[10].value = slice_of(new, 80000);
    driver_run_many(&f->driver, ops, 21);
    for (int i = 0; i < 21; i++) {
        assert_status(ops[i].status, STORE_OK);
        assert_true(i == 10 || fixture_buffer_is(ops[i].data, slice_of(old, 90000)) ||
                    fixture_buffer_is(ops[i].data, slice_of(new, 80000)));
    }
    release(ops, 21);
    fixture_has(f, key, slice_of(new, 80000));
    free(old);
    free(new);
}

static void
counting_at_once_loses_nothing(void **state)
{
    struct fixture *f = *state;
    struct slice key = KEY("k");
    static struct store_op ops[MANY];
    bool seen[MANY + 1] = { false };

    assert_status(fixture_run_value(f, STORE_SET, key, SLICE("0")), STORE_OK);
    for (unsigned i = 0; i < MANY; i++) {
        store_op_init(&ops[i], STORE_INCR, key);
        ops[i].delta = 1;
    }
    driver_run_many(&f->driver, ops, MANY);
    for (unsigned i = 0; i < MANY; i++) {
        assert_status(ops[i].status, STORE_OK);
        assert_true(ops[i].number >= 1 && ops[i].number <= MANY && !seen[ops[i].number]);
        seen[ops[i].number] = true;
    }
    fixture_has(f, key, SLICE("200"));
}

/* ---- completions that submit ----------------------------------------------------------------- */

struct chain {
    struct fixture *f; /* (ref) */
    struct slice key;  /* (ref) */
    struct store_op ops[50];
    int next; /* the op to submit next */
};

static void
chain_on(struct store_op *op, void *arg)
{
    struct chain *chain = arg;

    (void)op;
    if (chain->next < 50) {
        struct store_op *link = &chain->ops[chain->next++];
        store_op_init(link, chain->next % 5 == 0 ? STORE_GET : STORE_INCR, chain->key);
        link->delta = 1;
        driver_submit_then(&chain->f->driver, link, chain_on, chain);
    }
}

static void
completion_submits_again(void **state)
{
    struct fixture *f = *state;
    struct chain chain = { .f = f, .key = KEY("k") };

    assert_status(fixture_run_value(f, STORE_SET, chain.key, SLICE("0")), STORE_OK);
    chain_on(NULL, &chain);
    assert_true(driver_wait(&f->driver));
    assert_int_equal(chain.next, 50);
    for (int i = 0; i < 50; i++) {
        assert_status(chain.ops[i].status, STORE_OK);
    }
    release(chain.ops, 50);
    fixture_has(f, chain.key, SLICE("40"));
}

/* ---- several workers ------------------------------------------------------------------------- */

static void
a_write_is_seen_by_other_workers(void **state)
{
    struct fixture *f = *state;
    struct slice key = KEY("k");
    struct driver other;
    char value[16];

    assert_true(driver_open(&other, f->shared));
    for (int i = 0; i < 30; i++) {
        struct store_op get;
        struct slice v = slice_of(value, (size_t)snprintf(value, sizeof(value), "v%d", i));
        assert_status(fixture_run_value(f, STORE_SET, key, v), STORE_OK);
        store_op_init(&get, STORE_GET, key);
        assert_status(driver_run(&other, &get), STORE_OK);
        assert_true(fixture_buffer_is(get.data, v));
        buffer_unref(get.data);
    }
    driver_close(&other);
}

struct worker {
    struct store_shared *shared; /* (ref) */
    struct slice key;            /* (ref) a counter */
    const char *own;             /* (ref) a key of its own */
    bool good;                   /* everything went as it must */
};

/* Counts on a key that others count on, too, and reads back its own writes. */
static void *
work(void *arg)
{
    struct worker *worker = arg;
    struct driver driver;
    struct store_op ops[10], own;

    worker->good = driver_open(&driver, worker->shared);
    for (int round = 0; worker->good && round < 20; round++) {
        struct slice value = slice_of((const char *)&round, sizeof(round));
        for (int i = 0; i < 10; i++) {
            store_op_init(&ops[i], STORE_INCR, worker->key);
            ops[i].delta = 1;
        }
        driver_run_many(&driver, ops, 10);
        for (int i = 0; i < 10; i++) {
            worker->good = worker->good && ops[i].status == STORE_OK;
        }
        store_op_init(&own, STORE_SET, slice_from_string(worker->own));
        own.value = value;
        worker->good = worker->good && driver_run(&driver, &own) == STORE_OK;
        store_op_init(&own, STORE_GET, slice_from_string(worker->own));
        worker->good = worker->good && driver_run(&driver, &own) == STORE_OK &&
                       fixture_buffer_is(own.data, value);
        buffer_unref(own.data);
    }
    driver_close(&driver);
    return NULL;
}

static void
two_workers_at_once(void **state)
{
    struct fixture *f = *state;
    struct slice key = KEY("k");
    struct worker workers[2] = { { f->shared, key, "own/1", false },
                                 { f->shared, key, "own/2", false } };
    pthread_t threads[2];

    assert_status(fixture_run_value(f, STORE_SET, key, SLICE("0")), STORE_OK);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_true(workers[0].good && workers[1].good);
    fixture_has(f, key, SLICE("400"));
}

/* ---- closing --------------------------------------------------------------------------------- */

static void
close_completes_what_is_pending(void **state)
{
    struct fixture *f = *state;
    static struct store_op ops[90];
    char *bytes = fixture_bytes(100000, 4);
    struct driver other;

    for (int flushed = 0; flushed < 2; flushed++) {
        assert_true(driver_open(&other, f->shared));
        for (unsigned i = 0; i < 90; i++) {
            struct slice key = fixture_key(f, flushed ? "x" : "y", i / 3);
            store_op_init(&ops[i], i % 3 == 2 ? STORE_GET : STORE_SET, key);
            ops[i].value = slice_of(bytes + i, i % 30 == 1 ? 90000 : i);
            driver_submit(&other, &ops[i]);
            if (flushed && i % 40 == 20) {
                other.store->type->flush(other.store);
            }
        }
        /* The driver insists that each is complete now, and just once. */
        driver_close(&other);
        for (unsigned i = 0; i < 90; i++) {
            enum store_status status = ops[i].status;
            assert_true(status == STORE_OK || status == STORE_CANCELLED ||
                        (status == STORE_MISS && i % 3 == 2));
        }
        release(ops, 90);
        /* What was acknowledged is there. */
        for (unsigned i = 0; i < 90; i += 3) {
            if (ops[i].status == STORE_OK && ops[i + 1].status == STORE_OK) {
                fixture_has(f, ops[i].key, ops[i + 1].value);
            }
        }
    }
    free(bytes);
}

struct late {
    struct driver *driver; /* (ref) */
    struct store_op again; /* submitted by a completion */
    struct slice key;      /* (ref) */
    bool submitted;
};

static void
submit_late(struct store_op *op, void *arg)
{
    struct late *late = arg;

    (void)op;
    store_op_init(&late->again, STORE_SET, late->key);
    late->submitted = true;
    driver_submit(late->driver, &late->again);
}

static void
completion_submits_while_closing(void **state)
{
    struct fixture *f = *state;
    struct driver other;
    struct late late = { .driver = &other, .key = KEY("late") };
    struct store_op op;

    assert_true(driver_open(&other, f->shared));
    store_op_init(&op, STORE_SET, KEY("k"));
    driver_submit_then(&other, &op, submit_late, &late);
    driver_close(&other);
    assert_true(late.submitted);
    assert_true(late.again.status == STORE_OK || late.again.status == STORE_CANCELLED);
}

static void
close_with_nothing_to_do(void **state)
{
    struct fixture *f = *state;
    struct driver other;

    for (int i = 0; i < 5; i++) {
        assert_true(driver_open(&other, f->shared));
        driver_close(&other);
    }
}

/* An op that is too late when it is submitted is not stuck; carried out or not, it says which. */
static void
late_op_completes(void **state)
{
    struct fixture *f = *state;
    struct slice key = KEY("k");
    struct store_op op;

    assert_status(fixture_run_value(f, STORE_SET, key, SLICE("old")), STORE_OK);
    store_op_init(&op, STORE_SET, key);
    op.value = SLICE("new");
    op.deadline_ms = clock_monotonic_ms() - 1;
    fixture_run_op(f, &op);
    assert_true(f->op.status == STORE_OK || f->op.status == STORE_TIMEOUT);
    if (f->op.status == STORE_OK) {
        fixture_has(f, key, SLICE("new"));
    }
}

const struct CMUnitTest contract_flow_tests[] = {
    cmocka_unit_test(many_at_once),
    cmocka_unit_test(mixed_answers_in_one_turn),
    cmocka_unit_test(many_reads_of_one_key),
    cmocka_unit_test(reads_beside_a_write),
    cmocka_unit_test(counting_at_once_loses_nothing),
    cmocka_unit_test(completion_submits_again),
    cmocka_unit_test(a_write_is_seen_by_other_workers),
    cmocka_unit_test(two_workers_at_once),
    cmocka_unit_test(close_completes_what_is_pending),
    cmocka_unit_test(completion_submits_while_closing),
    cmocka_unit_test(close_with_nothing_to_do),
    cmocka_unit_test(late_op_completes),
};
const size_t contract_flow_count = sizeof(contract_flow_tests) / sizeof(contract_flow_tests[0]);
