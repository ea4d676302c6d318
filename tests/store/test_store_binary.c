/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_store_binary.c: the store for servers that want SASL, on real memcached -S with a password
 * file made by saslpasswd2: the contract of every store, and what a password, a dead and a silent
 * server do.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "clock.h"
#include "log.h"
#include "memcached_process.h"
#include "store_contract.h"
#include "store_rig.h"

#define USER     "alice@kvgate"
#define PASSWORD "correct horse"

static struct memcached_process server;
static char directory[] = "/tmp/kvgate-sasl-XXXXXX";
static const char *const sasl_args[] = { "-S", NULL };
static const char *const binary_args[] = { "-B", "binary", NULL };

static void
path_of(char path[128], const char *name)
{
    snprintf(path, 128, "%s/%s", directory, name);
}

/* A directory with memcached's SASL configuration and the password of one user. */
static bool
make_passwords(void)
{
    char path[128], command[512];
    FILE *file;

    if (mkdtemp(directory) == NULL) {
        return false;
    }
    path_of(path, "memcached.conf");
    file = fopen(path, "w");
    if (file == NULL) {
        return false;
    }
    fprintf(file, "mech_list: plain\nsasldb_path: %s/db\nlog_level: 0\n", directory);
    fclose(file);
    snprintf(
        command, sizeof(command),
        "PATH=$PATH:/usr/sbin; echo '%s' | saslpasswd2 -p -c -a memcached -f %s/db -u kvgate alice",
        PASSWORD, directory);
    return system(command) == 0 && setenv("SASL_CONF_PATH", directory, 1) == 0;
}

static void
remove_passwords(void)
{
    char path[128];

    path_of(path, "memcached.conf");
    unlink(path);
    path_of(path, "db");
    unlink(path);
    rmdir(directory);
}

static void
configure(struct rig *rig, const char *user, const char *password)
{
    rig_config(rig, CONFIG_DIALECT_BINARY, server.port);
    rig->config.lanes = 2;
    strcpy(rig->config.username, user);
    strcpy(rig->config.password, password);
}

/* ---- the contract ---- */

static struct store_shared *
contract_setup(void *arg)
{
    static struct config_store config; /* outlives the store */
    char error[CONFIG_ERROR_MAX] = "";
    struct store_shared *shared;
    struct rig rig;

    (void)arg;
    if (!memcached_process_start(&server, sasl_args)) {
        return NULL;
    }
    configure(&rig, USER, PASSWORD);
    config = rig.config;
    config.lanes = 1; /* the contract's ops of one turn are looked at in their order */
    config.op_timeout_ms = 5000;
    shared = store_binary.setup(&config, error);
    if (shared == NULL) {
        printf("setup: %s\n", error);
    }
    return shared;
}

static void
contract_teardown(struct store_shared *shared, void *arg)
{
    (void)arg;
    store_binary.teardown(shared);
    memcached_process_stop(&server);
}

static int
run_contract(void)
{
    const struct contract contract = {
        .name = "memcached, binary with SASL",
        .setup = contract_setup,
        .teardown = contract_teardown,
        .has_cas = true,
        .incr_create = true,
        .incr_wraps = true,
        .has_touch = true,
        .pads_counters = true,
        .value_max = 1024 * 1024 - 59 - 64,
        .append_over = STORE_NOT_STORED,
    };

    return contract_run(&contract);
}

/* ---- passwords ---- */

static int
sasl_setup(void **state)
{
    (void)state;
    log_set_level(LOG_ERROR);
    return memcached_process_start(&server, sasl_args) ? 0 : -1;
}

static int
sasl_teardown(void **state)
{
    (void)state;
    memcached_process_stop(&server);
    return 0;
}

static enum store_status
set_once(struct rig *rig)
{
    struct call call;

    rig_prepare(rig, &call, STORE_SET, "k");
    call.op.value = SLICE("v");
    return rig_do(&call);
}

static enum store_status
set_as(const char *user, const char *password)
{
    enum store_status status;
    struct rig rig;

    configure(&rig, user, password);
    rig_open(&rig);
    status = set_once(&rig);
    rig_close(&rig);
    return status;
}

static void
test_passwords(void **state)
{
    (void)state;
    assert_int_equal(set_as(USER, PASSWORD), STORE_OK);
    assert_int_equal(set_as(USER, "wrong"), STORE_UNAVAILABLE);
    assert_int_equal(set_as("nobody@kvgate", PASSWORD), STORE_UNAVAILABLE);
    assert_true(set_as("", "") != STORE_OK);
}

/* A read that cannot be done is never a miss. */
static void
test_no_miss_without_a_password(void **state)
{
    struct rig rig;
    struct call call;

    (void)state;
    configure(&rig, USER, "wrong");
    rig_open(&rig);
    for (int i = 0; i < 3; i++) {
        rig_prepare(&rig, &call, STORE_GET, "k");
        assert_int_equal(rig_do(&call), STORE_UNAVAILABLE);
    }
    rig_close(&rig);
}

static void
test_binary_without_sasl(void **state)
{
    (void)state;
    assert_true(memcached_process_start(&server, binary_args));
    assert_int_equal(set_as("", ""), STORE_OK);
    memcached_process_stop(&server);
}

/* ---- death and silence ---- */

static void
test_killed_and_started_again(void **state)
{
    int64_t give_up_ms;
    struct rig rig;

    (void)state;
    configure(&rig, USER, PASSWORD);
    rig_open(&rig);
    assert_int_equal(set_once(&rig), STORE_OK);
    memcached_process_kill(&server);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(set_once(&rig), STORE_UNAVAILABLE);
    }
    assert_true(memcached_process_restart(&server));
    give_up_ms = clock_monotonic_ms() + 2500;
    while (set_once(&rig) != STORE_OK) {
        assert_true(clock_monotonic_ms() < give_up_ms);
        rig_turn(&rig, 20);
    }
    rig_expect_value(&rig, "k", SLICE("v"));
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
    configure(&rig, USER, PASSWORD);
    rig.config.op_timeout_ms = 100;
    rig.config.lanes = 1;
    rig_open(&rig);
    assert_int_equal(set_once(&rig), STORE_OK);
    memcached_process_pause(&server);
    for (int i = 0; i < 3; i++) { /* the first waits in the thread, the others in the queue */
        rig_get(&rig, &calls[i], "k");
    }
    for (int i = 0; i < 3; i++) {
        rig_wait(&calls[i]);
        assert_true(calls[i].op.status == STORE_TIMEOUT || calls[i].op.status == STORE_UNAVAILABLE);
    }
    memcached_process_resume(&server);
    give_up_ms = clock_monotonic_ms() + 2500;
    do {
        rig_prepare(&rig, &calls[0], STORE_GET, "other");
        assert_true(clock_monotonic_ms() < give_up_ms);
        rig_do(&calls[0]);
        rig_turn(&rig, 10);
    } while (calls[0].op.status != STORE_MISS);
    rig_expect_value(&rig, "k", SLICE("v"));
    rig_close(&rig);
}

static void
test_close_completes_what_is_pending(void **state)
{
    struct call calls[5];
    struct rig rig;

    (void)state;
    configure(&rig, USER, PASSWORD);
    rig.config.op_timeout_ms = 200;
    rig.config.lanes = 1;
    rig_open(&rig);
    memcached_process_pause(&server);
    for (int i = 0; i < 5; i++) {
        rig_get(&rig, &calls[i], "k");
    }
    rig_flush(&rig);
    rig_close(&rig); /* checks that all have completed */
    for (int i = 0; i < 5; i++) {
        assert_int_not_equal(calls[i].op.status, STORE_MISS);
    }
    assert_int_equal(calls[4].op.status, STORE_CANCELLED);
    memcached_process_resume(&server);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_passwords, sasl_setup, sasl_teardown),
        cmocka_unit_test_setup_teardown(test_no_miss_without_a_password, sasl_setup, sasl_teardown),
        cmocka_unit_test(test_binary_without_sasl),
        cmocka_unit_test_setup_teardown(test_killed_and_started_again, sasl_setup, sasl_teardown),
        cmocka_unit_test_setup_teardown(test_silence, sasl_setup, sasl_teardown),
        cmocka_unit_test_setup_teardown(test_close_completes_what_is_pending, sasl_setup,
                                        sasl_teardown),
    };
    int failed;

    if (!make_passwords()) {
        print_error("cannot make a password file: is sasl2-bin installed?\n");
        return 1;
    }
    failed = run_contract() + cmocka_run_group_tests(tests, NULL, NULL);
    remove_passwords();
    return failed;
}
