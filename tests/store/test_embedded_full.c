/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_embedded_full.c: the embedded store when its map or the disk is full. Nothing that was
 * acknowledged is lost, nothing that was refused is there, and removals make room again.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>

#include "clock.h"
#include "loop_driver.h"
#include "place.h"

#define MB (UINT64_C(1) << 20)

/* ---- a full map ------------------------------------------------------------------------------ */

/* Sets from number FIRST on until it is refused; returns the first that was. */
static unsigned
fill(struct place *place, unsigned first, size_t len)
{
    enum store_status status = STORE_OK;
    unsigned n = first;

    while ((status = place_set(place, n, len)) == STORE_OK) {
        n++;
        assert_true(n < first + 100000);
    }
    assert_string_equal(store_status_name(status), store_status_name(STORE_NO_MEMORY));
    return n;
}

static void
full_map_loses_nothing(void **state)
{
    struct place place;
    unsigned big, all;

    (void)state;
    place_make(&place, 4 * MB);
    for (int round = 0; round < 3; round++) {
        big = fill(&place, 0, 20000);
        assert_true(big > 100);
        all = fill(&place, big, 100);
        assert_true(place_lacks(&place, all));
        for (unsigned n = 0; n < all; n++) {
            assert_true(place_has(&place, n, n < big ? 20000 : 100));
        }
        /* What there is can be removed, one by one, and then there is room again. */
        for (unsigned n = 0; n < big; n++) {
            assert_int_equal(place_erase(&place, n), STORE_OK);
        }
        assert_int_equal(place_set(&place, 0, 20000), STORE_OK);
        for (unsigned n = big; n < all; n++) {
            assert_true(place_has(&place, n, 100));
            assert_int_equal(place_erase(&place, n), STORE_OK);
        }
        assert_true(place_has(&place, 0, 20000));
        place_close(&place);
        place_open(&place);
    }
    place_remove(&place);
}

static void
full_map_of_small_values_can_be_emptied(void **state)
{
    struct place place;
    unsigned all, before = 0;

    (void)state;
    place_make(&place, MB);
    for (int round = 0; round < 4; round++) {
        all = fill(&place, 0, 10);
        assert_true(all > 1000);
        /* As much fits each time: nothing leaks. */
        assert_true(before == 0 || all > before * 8 / 10);
        before = all;
        for (unsigned n = 0; n < all; n++) {
            assert_int_equal(place_erase(&place, n), STORE_OK);
        }
    }
    place_remove(&place);
}

/* Pages come free two commits after their removal; nobody but the writer can bring those about. */
static void
room_of_a_removal_is_usable_at_once(void **state)
{
    struct place place;
    unsigned all;

    (void)state;
    place_make(&place, 4 * MB);
    all = fill(&place, 0, 900000);
    assert_in_range(all, 3, 4);
    for (unsigned n = 0; n < 10; n++) {
        assert_int_equal(place_erase(&place, n % all), STORE_OK);
        assert_int_equal(place_set(&place, n % all, 900000), STORE_OK);
        assert_int_equal(place_set(&place, all, 900000), STORE_NO_MEMORY);
    }
    for (unsigned n = 0; n < all; n++) {
        assert_true(place_has(&place, n, 900000));
    }
    place_remove(&place);
}

/* One turn's worth of ops that cannot all fit. */
static void
batch_that_does_not_fit_is_kept_in_part(void **state)
{
    static struct store_op ops[400];
    static char bytes[400][20000];
    struct place place;
    unsigned stored = 0;

    (void)state;
    place_make(&place, 4 * MB);
    for (unsigned n = 0; n < 400; n++) {
        store_op_init(&ops[n], n % 4 == 3 ? STORE_ADD : STORE_SET, place_key(n));
        memcpy(bytes[n], place_value(n, 20000).ptr, 20000);
        ops[n].value = slice_of(bytes[n], n % 4 == 3 ? 50 : 20000);
    }
    driver_run_many(&place.driver, ops, 400);
    for (unsigned n = 0; n < 400; n++) {
        if (ops[n].status == STORE_OK) {
            stored++;
            assert_true(place_has(&place, n, ops[n].value.len));
        } else {
            assert_int_equal(ops[n].status, STORE_NO_MEMORY);
            assert_true(ops[n].out_cas == 0);
            assert_true(place_lacks(&place, n));
        }
    }
    assert_in_range(stored, 120, 380);
    place_remove(&place);
}

/* Free pages, but no row of them: LMDB itself refuses, and the rest of the batch must not suffer.
 */
static void
value_without_a_row_of_pages(void **state)
{
    struct place place;
    struct store_op ops[5];
    unsigned all, number;
    struct store_op op;

    (void)state;
    place_make(&place, 4 * MB);
    all = fill(&place, 0, 3000);
    number = all + 1;
    for (unsigned n = 1; n < all; n += 2) {
        assert_int_equal(place_erase(&place, n), STORE_OK);
    }
    store_op_init(&op, STORE_SET, place_key(number));
    op.value = SLICE("7");
    assert_int_equal(driver_run(&place.driver, &op), STORE_OK);
    store_op_init(&ops[0], STORE_INCR, place_key(number));
    ops[0].delta = 1;
    store_op_init(&ops[1], STORE_SET, place_key(5));
    ops[1].value = place_value(5, 600000);
    store_op_init(&ops[2], STORE_INCR, place_key(number));
    ops[2].delta = 1;
    store_op_init(&ops[3], STORE_DELETE, place_key(0));
    store_op_init(&ops[4], STORE_SET, place_key(3));
    ops[4].value = SLICE("small");
    driver_run_many(&place.driver, ops, 5);
    assert_int_equal(ops[1].status, STORE_NO_MEMORY);
    assert_int_equal(ops[0].status, STORE_OK);
    assert_int_equal(ops[2].status, STORE_OK);
    assert_int_equal(ops[2].number, 9);
    assert_int_equal(ops[3].status, STORE_OK);
    assert_int_equal(ops[4].status, STORE_OK);
    assert_true(place_lacks(&place, 5));
    assert_true(place_lacks(&place, 0));
    for (unsigned n = 2; n < all; n += 2) {
        assert_true(place_has(&place, n, 3000));
    }
    place_remove(&place);
}

/* The disk is full: nobody is told OK, and when there is room again all goes on. */
static void
failed_commit_is_not_acknowledged(void **state)
{
    struct place place;
    struct rlimit before, tight;
    enum store_status status;
    struct store_op op;
    unsigned n = 0;

    (void)state;
    place_make(&place, 64 * MB);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    tight = (struct rlimit){ 2 * MB, before.rlim_max };
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
    do {
        store_op_init(&op, STORE_SET, place_key(n++));
        op.value = place_value(n - 1, 50000);
        status = driver_run(&place.driver, &op);
    } while (status == STORE_OK && n < 100);
    n--;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    /* LMDB calls it an I/O error when the last write was cut short. */
    assert_true(status == STORE_NO_MEMORY || status == STORE_UNAVAILABLE);
    assert_true(n > 10);
    assert_true(op.out_cas == 0);
    assert_true(place_lacks(&place, n));
    assert_int_equal(place_set(&place, n, 50000), STORE_OK);
    for (unsigned i = 0; i <= n; i++) {
        assert_true(place_has(&place, i, 50000));
    }
    place_remove(&place);
}

/* ---- expiry ----------------------------------------------------------------------------------- */

static void
sweep_works_on_a_full_map(void **state)
{
    struct place place;
    int64_t deadline_ms = clock_monotonic_ms() + 20000;
    enum store_status status;
    struct store_op op;
    unsigned n = 0;

    (void)state;
    place_make(&place, 2 * MB);
    do {
        store_op_init(&op, STORE_SET, place_key(n++));
        op.value = place_value(1, 5000);
        op.ttl_s = 2;
        status = driver_run(&place.driver, &op);
    } while (status == STORE_OK);
    assert_int_equal(status, STORE_NO_MEMORY);
    assert_true(n > 50);
    /* Nobody removes anything: only the sweep can make this pass. */
    while ((status = place_set(&place, 50000, 300000)) != STORE_OK) {
        assert_int_equal(status, STORE_NO_MEMORY);
        assert_true(clock_monotonic_ms() < deadline_ms);
        driver_idle(&place.driver, 50);
    }
    assert_true(place_has(&place, 50000, 300000));
    place_remove(&place);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(full_map_loses_nothing),
        cmocka_unit_test(full_map_of_small_values_can_be_emptied),
        cmocka_unit_test(room_of_a_removal_is_usable_at_once),
        cmocka_unit_test(batch_that_does_not_fit_is_kept_in_part),
        cmocka_unit_test(value_without_a_row_of_pages),
        cmocka_unit_test(failed_commit_is_not_acknowledged),
        cmocka_unit_test(sweep_works_on_a_full_map),
    };

    return cmocka_run_group_tests_name("embedded store, full", tests, NULL, NULL);
}
