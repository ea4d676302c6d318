/* SPDX-License-Identifier: BSD-2-Clause */
/* test_store_embedded.c: the contract of all stores, and what only the embedded store promises. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "embedded_db.h"
#include "place.h"
#include "embedded_record.h"
#include "loop_driver.h"
#include "store_contract.h"

#define MB (UINT64_C(1) << 20)

/* ---- across a restart ------------------------------------------------------------------------ */

static void
values_survive_a_restart(void **state)
{
    struct place place;
    struct store_op op;

    (void)state;
    place_make(&place, 16 * MB);
    for (unsigned n = 0; n < 100; n++) {
        assert_int_equal(place_set(&place, n, n * 100), STORE_OK);
    }
    store_op_init(&op, STORE_SET, place_key(500));
    op.value = SLICE("dated");
    op.ttl_s = 1000;
    op.flags = 99;
    assert_int_equal(driver_run(&place.driver, &op), STORE_OK);
    place_close(&place);
    place_open(&place);
    for (unsigned n = 0; n < 100; n++) {
        assert_true(place_has(&place, n, n * 100));
    }
    store_op_init(&op, STORE_HEAD, place_key(500));
    assert_int_equal(driver_run(&place.driver, &op), STORE_OK);
    assert_int_equal(op.value_len, 5);
    assert_int_equal(op.out_flags, 99);
    assert_in_range(op.ttl_left_s, 990, 1000);
    place_remove(&place);
}

static uint64_t
set_for_cas(struct place *place, unsigned n)
{
    struct store_op op;

    store_op_init(&op, STORE_SET, place_key(n));
    assert_int_equal(driver_run(&place->driver, &op), STORE_OK);
    return op.out_cas;
}

static void
cas_never_comes_again(void **state)
{
    struct place place;
    uint64_t last = 0, cas;

    (void)state;
    place_make(&place, 16 * MB);
    for (int restart = 0; restart < 3; restart++) {
        for (int i = 0; i < 5; i++) {
            cas = set_for_cas(&place, 1);
            assert_true(cas > last);
            last = cas;
            assert_int_equal(place_erase(&place, 1), STORE_OK);
        }
        place_close(&place);
        place_open(&place);
    }
    place_remove(&place);
}

/* One transaction changes a record that it has just written. */
static void
batch_on_one_key(void **state)
{
    static const enum store_verb verbs[] = { STORE_SET,    STORE_APPEND, STORE_PREPEND, STORE_TOUCH,
                                             STORE_APPEND, STORE_INCR,   STORE_PREPEND };
    static const char *const values[] = { "5", "6", "4", "", "7", "", "" };
    struct place place;
    struct store_op ops[7];
    struct store_op op;

    (void)state;
    place_make(&place, 16 * MB);
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < 7; i++) {
            store_op_init(&ops[i], verbs[i], place_key(1));
            ops[i].value = slice_from_string(values[i]);
            ops[i].delta = 1;
            ops[i].ttl_s = 1000;
        }
        ops[6].value = place_value(1, 3000);
        driver_run_many(&place.driver, ops, 7);
        for (int i = 0; i < 7; i++) {
            assert_int_equal(ops[i].status, STORE_OK);
        }
        assert_int_equal(ops[5].number, 4568);
        store_op_init(&op, STORE_GET, place_key(1));
        assert_int_equal(driver_run(&place.driver, &op), STORE_OK);
        assert_int_equal(op.value_len, 3004);
        assert_memory_equal(op.data->data, place_value(1, 3000).ptr, 3000);
        assert_memory_equal(op.data->data + 3000, "4568", 4);
        buffer_unref(op.data);
    }
    place_remove(&place);
}

/* ---- expiry ---------------------------------------------------------------------------------- */

static void
write_one(struct embedded_db *db, enum store_verb verb, unsigned n, uint64_t ttl_s, int64_t now_ms)
{
    struct store_op op, *ops = &op;

    store_op_init(&op, verb, place_key(n));
    op.value = SLICE("value");
    op.ttl_s = ttl_s;
    embedded_db_write(db, &ops, 1, now_ms);
    assert_int_equal(op.status, STORE_OK);
}

static void
assert_counts(struct embedded_db *db, size_t records, size_t dated)
{
    size_t r, d;

    embedded_db_count(db, &r, &d);
    assert_int_equal(r, records);
    assert_int_equal(d, dated);
}

static void
sweep_removes_what_has_expired(void **state)
{
    struct config_store *config = place_config_make(16 * MB, CONFIG_SYNC_NONE);
    char error[CONFIG_ERROR_MAX] = "";
    struct embedded_db *db = embedded_db_open(config, error);
    int64_t now_ms = clock_wall_ms();
    int sweeps = 1;

    (void)state;
    assert_non_null(db);
    for (unsigned n = 0; n < 1000; n++) {
        write_one(db, STORE_SET, n, n < 10 ? 0 : 10 + n % 3, now_ms);
    }
    assert_counts(db, 1000, 990);
    write_one(db, STORE_SET, 10, 5000, now_ms);  /* a later date */
    write_one(db, STORE_TOUCH, 11, 0, now_ms);   /* none any more */
    write_one(db, STORE_APPEND, 12, 0, now_ms);  /* the same date */
    write_one(db, STORE_DELETE, 13, 0, now_ms);  /* gone with its date */
    write_one(db, STORE_REPLACE, 1, 10, now_ms); /* a date at last */
    write_one(db, STORE_TOUCH, 2, 5000, now_ms); /* likewise */
    assert_counts(db, 999, 990);
    assert_false(embedded_db_sweep(db, now_ms + 9999));
    assert_counts(db, 999, 990);
    assert_true(embedded_db_next_expiry(db) == now_ms + 10000);
    /* A little at a time. */
    while (embedded_db_sweep(db, now_ms + 60000)) {
        sweeps++;
        assert_true(sweeps < 1000);
    }
    assert_true(sweeps > 2);
    assert_counts(db, 11, 2);
    assert_true(embedded_db_next_expiry(db) == now_ms + 5000000);
    embedded_db_close(db);
    place_config_remove(config);
}

/* ---- one process ----------------------------------------------------------------------------- */

/* In a child, or here: setup must fail, and say that somebody else is there. */
static bool
is_refused(const struct config_store *config)
{
    char error[CONFIG_ERROR_MAX] = "";
    struct store_shared *second = store_embedded.setup(config, error);

    if (second != NULL) {
        store_embedded.teardown(second);
        return false;
    }
    return strstr(error, "another process") != NULL && strstr(error, config->directory) != NULL;
}

static void
second_process_is_refused(void **state)
{
    struct place place;
    int status = -1;
    pid_t child;

    (void)state;
    place_make(&place, 16 * MB);
    assert_int_equal(place_set(&place, 1, 10), STORE_OK);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        _exit(is_refused(place.config) ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_true(is_refused(place.config));
    /* The one that was there first does not notice. */
    assert_int_equal(place_set(&place, 2, 10), STORE_OK);
    assert_true(place_has(&place, 1, 10));
    place_close(&place);
    place_open(&place);
    assert_true(place_has(&place, 2, 10));
    place_remove(&place);
}

static void
assert_setup_says(const struct config_store *config, const char *text)
{
    char error[CONFIG_ERROR_MAX] = "";

    assert_null(store_embedded.setup(config, error));
    assert_non_null(strstr(error, config->directory));
    assert_non_null(strstr(error, text));
}

static void
setup_explains_what_is_wrong(void **state)
{
    struct config_store *config = place_config_make(16 * MB, CONFIG_SYNC_FULL);
    char path[CONFIG_TEXT_MAX + 16], garbage[8192] = "this is no database";
    struct stat stat_buffer;
    int fd;

    (void)state;
    /* A file where the directory should be. */
    fd = open(config->directory, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    close(fd);
    assert_setup_says(config, "Not a directory");
    unlink(config->directory);
    /* A file of somebody else's in it. */
    assert_int_equal(mkdir(config->directory, 0700), 0);
    snprintf(path, sizeof(path), "%s/data.mdb", config->directory);
    fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_int_equal(write(fd, garbage, sizeof(garbage)), sizeof(garbage));
    close(fd);
    assert_setup_says(config, "cannot open the database in");
    assert_int_equal(stat(path, &stat_buffer), 0);
    assert_int_equal(stat_buffer.st_size, sizeof(garbage));
    place_config_remove(config);
    /* No parent. */
    config = place_config_make(16 * MB, CONFIG_SYNC_FULL);
    strcat(config->directory, "/a/b");
    assert_setup_says(config, "No such file");
    *strrchr(config->directory, '/') = '\0';
    *strrchr(config->directory, '/') = '\0';
    place_config_remove(config);
}

static void
directory_is_private(void **state)
{
    struct place place;
    struct stat stat_buffer;

    (void)state;
    place_make(&place, 16 * MB);
    assert_int_equal(stat(place.config->directory, &stat_buffer), 0);
    assert_int_equal(stat_buffer.st_mode & 07777, 0700);
    place_remove(&place);
}

/* ---- time-outs and numbers ------------------------------------------------------------------- */

static void
late_write_is_not_carried_out(void **state)
{
    struct place place;
    struct store_op ops[2];

    (void)state;
    place_make(&place, 16 * MB);
    assert_int_equal(place_set(&place, 1, 10), STORE_OK);
    store_op_init(&ops[0], STORE_SET, place_key(1));
    ops[0].value = SLICE("late");
    ops[0].deadline_ms = clock_monotonic_ms() - 1;
    store_op_init(&ops[1], STORE_SET, place_key(2));
    ops[1].value = place_value(2, 10);
    ops[1].deadline_ms = clock_monotonic_ms() + 10000;
    driver_run_many(&place.driver, ops, 2);
    assert_int_equal(ops[0].status, STORE_TIMEOUT);
    assert_int_equal(ops[1].status, STORE_OK);
    assert_true(place_has(&place, 1, 10));
    assert_true(place_has(&place, 2, 10));
    place_remove(&place);
}

/* `echo 41 | curl -T - ...` leaves a newline. It may be counted; the answer has none. */
static void
number_with_a_newline_counts(void **state)
{
    struct place place;
    struct store_op op;

    (void)state;
    place_make(&place, 16 * MB);
    store_op_init(&op, STORE_SET, place_key(1));
    op.value = SLICE("41\n");
    assert_int_equal(driver_run(&place.driver, &op), STORE_OK);
    store_op_init(&op, STORE_INCR, place_key(1));
    op.delta = 1;
    assert_int_equal(driver_run(&place.driver, &op), STORE_OK);
    assert_int_equal(op.number, 42);
    store_op_init(&op, STORE_HEAD, place_key(1));
    assert_int_equal(driver_run(&place.driver, &op), STORE_OK);
    assert_int_equal(op.value_len, 2);
    store_op_init(&op, STORE_SET, place_key(1));
    op.value = SLICE(" \r\n");
    assert_int_equal(driver_run(&place.driver, &op), STORE_OK);
    store_op_init(&op, STORE_INCR, place_key(1));
    assert_int_equal(driver_run(&place.driver, &op), STORE_BAD_VALUE);
    place_remove(&place);
}

/* ---- the contract ---------------------------------------------------------------------------- */

static struct store_shared *
contract_setup(void *arg)
{
    char error[CONFIG_ERROR_MAX] = "";
    struct store_shared *shared = store_embedded.setup(arg, error);

    if (shared == NULL) {
        printf("%s\n", error);
    }
    return shared;
}

static void
contract_teardown(struct store_shared *shared, void *arg)
{
    store_embedded.teardown(shared);
    place_config_remove(arg);
}

static int
run_contract(const char *name, enum config_sync sync)
{
    struct contract contract = {
        .name = name,
        .setup = contract_setup,
        .teardown = contract_teardown,
        .arg = place_config_make(512 * MB, sync),
        .has_cas = true,
        .tells_cas_on_write = true,
        .delete_with_cas = true,
        .incr_create = true,
        .incr_wraps = true,
        .has_touch = true,
        .tells_ttl = true,
        .value_max = EMBEDDED_VALUE_MAX,
        .append_over = STORE_TOO_LARGE,
    };

    return contract_run(&contract);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_survive_a_restart),
        cmocka_unit_test(cas_never_comes_again),
        cmocka_unit_test(batch_on_one_key),
        cmocka_unit_test(sweep_removes_what_has_expired),
        cmocka_unit_test(second_process_is_refused),
        cmocka_unit_test(setup_explains_what_is_wrong),
        cmocka_unit_test(directory_is_private),
        cmocka_unit_test(late_write_is_not_carried_out),
        cmocka_unit_test(number_with_a_newline_counts),
    };
    int failed = cmocka_run_group_tests_name("embedded", tests, NULL, NULL);

    failed += run_contract("contract: embedded, sync = full", CONFIG_SYNC_FULL);
    failed += run_contract("contract: embedded, sync = none", CONFIG_SYNC_NONE);
    return failed == 0 ? 0 : 1;
}
