/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_store_binary.c: the store for servers that want SASL, on real memcached -S: the contract of
 * every store, passwords, and what libmemcached alone would get wrong.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "sasl_scene.h"
#include "store_contract.h"

static const char *const binary_args[] = { "-B", "binary", NULL };

/* ---- the contract ---- */

static struct store_shared *
contract_setup(void *arg)
{
    static struct config_store config; /* outlives the store */
    char error[CONFIG_ERROR_MAX] = "";
    struct store_shared *shared;
    struct rig rig;

    (void)arg;
    if (!memcached_process_start(&sasl_server, sasl_args)) {
        return NULL;
    }
    sasl_configure(&rig, SASL_USER, SASL_PASSWORD);
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
    memcached_process_kill(&sasl_server);
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

static enum store_status
set_as(const char *user, const char *password)
{
    enum store_status status;
    struct rig rig;

    sasl_configure(&rig, user, password);
    rig_open(&rig);
    status = sasl_set(&rig);
    rig_close(&rig);
    return status;
}

static void
test_passwords(void **state)
{
    (void)state;
    assert_int_equal(set_as(SASL_USER, SASL_PASSWORD), STORE_OK);
    assert_int_equal(set_as(SASL_USER, "wrong"), STORE_UNAVAILABLE);
    assert_int_equal(set_as("nobody@kvgate", SASL_PASSWORD), STORE_UNAVAILABLE);
    assert_true(set_as("", "") != STORE_OK);
}

/* A read that cannot be done is never a miss. */
static void
test_no_miss_without_a_password(void **state)
{
    struct rig rig;
    struct call call;

    (void)state;
    sasl_configure(&rig, SASL_USER, "wrong");
    rig_open(&rig);
    for (int i = 0; i < 3; i++) {
        rig_prepare(&rig, &call, STORE_GET, "k");
        assert_int_equal(rig_do(&call), STORE_UNAVAILABLE);
    }
    rig_close(&rig);
}

/* Such a server refuses every command; none of the refusals is an answer, least of all a miss. */
static void
test_nothing_is_answered_without_a_name(void **state)
{
    static const enum store_verb verbs[] = { STORE_GET,  STORE_HEAD, STORE_SET,    STORE_CAS,
                                             STORE_INCR, STORE_DECR, STORE_DELETE, STORE_TOUCH };
    struct rig rig;
    struct call call;

    (void)state;
    for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
        sasl_configure(&rig, "", "");
        rig_open(&rig);
        rig_prepare(&rig, &call, verbs[i], "k");
        call.op.create = true;
        assert_int_equal(rig_do(&call), STORE_UNAVAILABLE);
        rig_close(&rig);
    }
}

/* libmemcached would leave name and password out. */
static void
test_no_name_over_a_unix_socket(void **state)
{
    char error[CONFIG_ERROR_MAX] = "";
    struct rig rig;

    (void)state;
    sasl_configure(&rig, SASL_USER, SASL_PASSWORD);
    rig.config.servers[0].port = 0;
    strcpy(rig.config.servers[0].host, "/nowhere");
    assert_null(store_binary.setup(&rig.config, error));
    assert_non_null(strstr(error, "unix socket"));
}

static void
test_binary_without_sasl(void **state)
{
    (void)state;
    assert_true(memcached_process_start(&sasl_server, binary_args));
    assert_int_equal(set_as("", ""), STORE_OK);
    memcached_process_kill(&sasl_server);
}

/* ---- what libmemcached would get wrong ---- */

static void
test_no_item_has_the_cas_0(void **state)
{
    struct rig rig;
    struct call call;

    (void)state;
    sasl_configure(&rig, SASL_USER, SASL_PASSWORD);
    rig_open(&rig);
    assert_int_equal(sasl_set(&rig), STORE_OK);
    rig_write(&rig, &call, STORE_CAS, "k", SLICE("new"));
    rig_wait(&call);
    assert_int_equal(call.op.status, STORE_EXISTS);
    rig_expect_value(&rig, "k", SLICE("v"));
    rig_write(&rig, &call, STORE_CAS, "absent", SLICE("new"));
    rig_wait(&call);
    assert_int_equal(call.op.status, STORE_MISS);
    rig_close(&rig);
}

/* Fills the part of memcached's memory that holds small items. */
static void
fill_memory(void)
{
    enum { ITEMS = 60000 };
    char *text = malloc(ITEMS * 32), *p = text, answer[64];
    int fd = memcached_process_connect(&sasl_server);

    assert_non_null(text);
    assert_true(fd >= 0);
    for (int i = 0; i < ITEMS; i++) {
        p += sprintf(p, "set k%d 0 0 1 noreply\r\n1\r\n", i);
    }
    p += sprintf(p, "version\r\n");
    for (char *at = text; at < p;) {
        ssize_t n = send(fd, at, (size_t)(p - at), MSG_NOSIGNAL);
        assert_true(n > 0);
        at += n;
    }
    assert_true(recv(fd, answer, sizeof(answer), 0) > 0);
    close(fd);
    free(text);
}

static void
test_a_counter_that_has_no_room(void **state)
{
    static const char *const args[] = { "-M", "-m", "3", "-I", "512k", NULL };
    struct rig rig;
    struct call call;

    (void)state;
    assert_true(memcached_process_start(&sasl_server, args));
    fill_memory();
    sasl_configure(&rig, "", "");
    rig_open(&rig);
    rig_prepare(&rig, &call, STORE_INCR, "n");
    call.op.create = true;
    call.op.initial = 7;
    assert_int_equal(rig_do(&call), STORE_NO_MEMORY);
    rig_close(&rig);
    memcached_process_kill(&sasl_server);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_passwords, sasl_setup, sasl_teardown),
        cmocka_unit_test_setup_teardown(test_no_miss_without_a_password, sasl_setup, sasl_teardown),
        cmocka_unit_test_setup_teardown(test_nothing_is_answered_without_a_name, sasl_setup,
                                        sasl_teardown),
        cmocka_unit_test(test_no_name_over_a_unix_socket),
        cmocka_unit_test(test_binary_without_sasl),
        cmocka_unit_test_setup_teardown(test_no_item_has_the_cas_0, sasl_setup, sasl_teardown),
        cmocka_unit_test(test_a_counter_that_has_no_room),
    };
    int failed;

    if (!sasl_make_passwords()) {
        print_error("cannot make a password file: is sasl2-bin installed?\n");
        return 1;
    }
    failed = run_contract() + cmocka_run_group_tests(tests, NULL, NULL);
    sasl_remove_passwords();
    return failed;
}
