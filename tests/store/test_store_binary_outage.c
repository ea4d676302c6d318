/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_store_binary_outage.c: the store for servers that want SASL, when a server dies, is silent or
 * refuses; and what the log says of it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "clock.h"
#include "log.h"
#include "sasl_scene.h"

/* ---- death and silence ---- */

static void
test_killed_and_started_again(void **state)
{
    int64_t give_up_ms;
    struct rig rig;

    (void)state;
    sasl_configure(&rig, SASL_USER, SASL_PASSWORD);
    rig_open(&rig);
    assert_int_equal(sasl_set(&rig), STORE_OK);
    memcached_process_kill(&sasl_server);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(sasl_set(&rig), STORE_UNAVAILABLE);
    }
    assert_true(memcached_process_restart(&sasl_server));
    give_up_ms = clock_monotonic_ms() + 2000;
    while (sasl_set(&rig) != STORE_OK) {
        assert_true(clock_monotonic_ms() < give_up_ms);
        rig_turn(&rig, 20);
    }
    rig_expect_value(&rig, "k", SLICE("v"));
    rig_close(&rig);
}

/* An idle connection that died is nobody's business, neither a read's nor a write's. */
static void
test_a_restart_while_idle_is_not_noticed(void **state)
{
    static const enum store_verb verbs[] = { STORE_SET, STORE_GET, STORE_INCR, STORE_DELETE };
    int64_t idle_until_ms;
    struct rig rig;
    struct call call;

    (void)state;
    sasl_configure(&rig, SASL_USER, SASL_PASSWORD);
    rig.config.lanes = 1;
    rig_open(&rig);
    for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
        assert_int_equal(sasl_set(&rig), STORE_OK);
        idle_until_ms = clock_monotonic_ms() + 110;
        assert_true(memcached_process_restart(&sasl_server));
        RIG_UNTIL(&rig, clock_monotonic_ms() >= idle_until_ms);
        rig_prepare(&rig, &call, verbs[i], "k");
        assert_int_equal(rig_do(&call), verbs[i] == STORE_SET ? STORE_OK : STORE_MISS);
    }
    rig_close(&rig);
}

/* A read that finds the connection dead is sent again. */
static void
test_a_restart_while_busy(void **state)
{
    struct rig rig;
    struct call call;

    (void)state;
    sasl_configure(&rig, SASL_USER, SASL_PASSWORD);
    rig.config.lanes = 1;
    rig_open(&rig);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(sasl_set(&rig), STORE_OK);
        assert_true(memcached_process_restart(&sasl_server));
        rig_get(&rig, &call, "k");
        rig_wait(&call);
        assert_int_equal(call.op.status, STORE_MISS);
    }
    rig_close(&rig);
}

/* What it says after the time-out answers nobody. */
static void
test_silence(void **state)
{
    struct call calls[3];
    int64_t give_up_ms;
    struct rig rig;

    (void)state;
    sasl_configure(&rig, SASL_USER, SASL_PASSWORD);
    rig.config.op_timeout_ms = 100;
    rig.config.lanes = 1;
    rig_open(&rig);
    assert_int_equal(sasl_set(&rig), STORE_OK);
    memcached_process_pause(&sasl_server);
    for (int i = 0; i < 3; i++) { /* the first waits in the thread, the others in the queue */
        rig_get(&rig, &calls[i], "k");
    }
    for (int i = 0; i < 3; i++) {
        rig_wait(&calls[i]);
        assert_true(calls[i].op.status == STORE_TIMEOUT || calls[i].op.status == STORE_UNAVAILABLE);
    }
    for (int i = 0; i < 3 && calls[0].op.status == STORE_TIMEOUT; i++) {
        rig_get(&rig, &calls[0], "k");
        rig_wait(&calls[0]);
    }
    assert_int_equal(calls[0].op.status, STORE_UNAVAILABLE); /* it is DOWN: nobody waits any more */
    memcached_process_resume(&sasl_server);
    give_up_ms = clock_monotonic_ms() + 2000;
    do {
        rig_prepare(&rig, &calls[0], STORE_GET, "other");
        assert_true(clock_monotonic_ms() < give_up_ms);
        rig_do(&calls[0]);
        rig_turn(&rig, 10);
    } while (calls[0].op.status != STORE_MISS);
    rig_expect_value(&rig, "k", SLICE("v"));
    rig_close(&rig);
}

/* The op's own deadline counts, not only the store's time-out. */
static void
test_deadline(void **state)
{
    struct rig rig;
    struct call call;

    (void)state;
    sasl_configure(&rig, SASL_USER, SASL_PASSWORD);
    rig.config.lanes = 1;
    rig.config.op_timeout_ms = 3000;
    rig_open(&rig);
    assert_int_equal(sasl_set(&rig), STORE_OK);
    memcached_process_pause(&sasl_server);
    rig_prepare(&rig, &call, STORE_GET, "k");
    call.op.deadline_ms = clock_monotonic_ms() + 60;
    assert_int_equal(rig_do(&call), STORE_TIMEOUT);
    assert_in_range(call.completed_ms - call.submitted_ms, 59, 500);
    memcached_process_resume(&sasl_server);
    rig_close(&rig);
}

static void
test_close_completes_what_is_pending(void **state)
{
    struct call calls[5];
    struct rig rig;

    (void)state;
    sasl_configure(&rig, SASL_USER, SASL_PASSWORD);
    rig.config.op_timeout_ms = 200;
    rig.config.lanes = 1;
    rig_open(&rig);
    memcached_process_pause(&sasl_server);
    for (int i = 0; i < 5; i++) {
        rig_get(&rig, &calls[i], "k");
    }
    rig_flush(&rig);
    rig_close(&rig); /* checks that all have completed */
    for (int i = 0; i < 5; i++) {
        assert_int_not_equal(calls[i].op.status, STORE_MISS);
    }
    assert_int_equal(calls[4].op.status, STORE_CANCELLED);
    memcached_process_resume(&sasl_server);
}

/* ---- the log ---- */

/* While it lasts, stderr is a file in memory. */
static int
capture_begin(int *file)
{
    int old_stderr = dup(STDERR_FILENO);

    *file = memfd_create("stderr", MFD_CLOEXEC);
    assert_true(old_stderr >= 0 && *file >= 0);
    assert_true(dup2(*file, STDERR_FILENO) >= 0);
    unsetenv("JOURNAL_STREAM");
    log_set_level(LOG_INFO);
    return old_stderr;
}

/* How often WORD was written. */
static unsigned
capture_end(int file, int old_stderr, const char *word)
{
    static char text[65536];
    ssize_t len = pread(file, text, sizeof(text) - 1, 0);
    unsigned count = 0;

    dup2(old_stderr, STDERR_FILENO);
    close(old_stderr);
    close(file);
    log_set_level(LOG_ERROR);
    assert_true(len >= 0);
    text[len] = '\0';
    for (const char *p = text; (p = strstr(p, word)) != NULL; p += strlen(word)) {
        count++;
    }
    return count;
}

/* However many ops and threads are refused. */
static void
test_a_wrong_password_is_one_line(void **state)
{
    struct call calls[20];
    int old_stderr, file;
    struct rig rig;

    (void)state;
    sasl_configure(&rig, SASL_USER, "wrong");
    rig_open(&rig);
    old_stderr = capture_begin(&file);
    for (int i = 0; i < 20; i++) {
        rig_get(&rig, &calls[i], "k");
    }
    for (int i = 0; i < 20; i++) {
        rig_wait(&calls[i]);
    }
    assert_int_equal(capture_end(file, old_stderr, ": authentication refused; its keys"), 1);
    rig_close(&rig);
}

/* One server of two is dead: its keys are unavailable, those of the other are not, and it is told
 * once, although answers of the other come in between. */
static void
test_one_of_two_servers_dies(void **state)
{
    struct memcached_process second;
    unsigned unavailable = 0, found = 0;
    int old_stderr, file;
    struct rig rig;
    struct call call;
    char key[8];

    (void)state;
    assert_true(memcached_process_start(&second, sasl_args));
    sasl_configure(&rig, SASL_USER, SASL_PASSWORD);
    rig.config.servers[1] = rig.config.servers[0];
    rig.config.servers[1].port = second.port;
    rig.config.server_count = 2;
    rig_open(&rig);
    memcached_process_kill(&second);
    old_stderr = capture_begin(&file);
    for (int i = 0; i < 60; i++) {
        snprintf(key, sizeof(key), "k%d", i % 30);
        rig_write(&rig, &call, STORE_SET, key, SLICE("v"));
        rig_wait(&call);
        unavailable += call.op.status == STORE_UNAVAILABLE;
        found += call.op.status == STORE_OK;
    }
    assert_int_equal(capture_end(file, old_stderr, "server 127.0.0.1:"), 1);
    assert_int_equal(found + unavailable, 60);
    assert_true(found > 0 && unavailable > 0);
    rig_close(&rig);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_killed_and_started_again, sasl_setup, sasl_teardown),
        cmocka_unit_test_setup_teardown(test_a_restart_while_idle_is_not_noticed, sasl_setup,
                                        sasl_teardown),
        cmocka_unit_test_setup_teardown(test_a_restart_while_busy, sasl_setup, sasl_teardown),
        cmocka_unit_test_setup_teardown(test_silence, sasl_setup, sasl_teardown),
        cmocka_unit_test_setup_teardown(test_deadline, sasl_setup, sasl_teardown),
        cmocka_unit_test_setup_teardown(test_close_completes_what_is_pending, sasl_setup,
                                        sasl_teardown),
        cmocka_unit_test_setup_teardown(test_a_wrong_password_is_one_line, sasl_setup,
                                        sasl_teardown),
        cmocka_unit_test_setup_teardown(test_one_of_two_servers_dies, sasl_setup, sasl_teardown),
    };
    int failed;

    if (!sasl_make_passwords()) {
        print_error("cannot make a password file: is sasl2-bin installed?\n");
        return 1;
    }
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    sasl_remove_passwords();
    return failed;
}
