/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_store_memcached.c: the contract of every store on real memcached, in each dialect, and the
 * limit of a value, which the gateway must know to the byte: one that is too large and is sent all
 * the same costs the old value.
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

#include "memcached_process.h"
#include "clock.h"
#include "store_contract.h"
#include "store_rig.h"

static struct memcached_process server;

/* ---- the contract ---- */

struct setting {
    enum config_dialect dialect;
    struct config_store config; /* outlives the store */
};

static struct store_shared *
setup_store(void *arg)
{
    struct setting *setting = arg;
    char error[CONFIG_ERROR_MAX] = "";
    struct rig rig;
    struct store_shared *shared;

    if (!memcached_process_start(&server, NULL)) {
        return NULL;
    }
    rig_config(&rig, setting->dialect, server.port);
    setting->config = rig.config;
    shared = store_memcached.setup(&setting->config, error);
    if (shared == NULL) {
        printf("setup: %s\n", error);
    }
    return shared;
}

static void
teardown_store(struct store_shared *shared, void *arg)
{
    (void)arg;
    store_memcached.teardown(shared);
    memcached_process_stop(&server);
}

static int
run_contracts(void)
{
    static struct setting text = { .dialect = CONFIG_DIALECT_TEXT };
    static struct setting meta = { .dialect = CONFIG_DIALECT_META };
    static struct setting automatic = { .dialect = CONFIG_DIALECT_AUTO };
    const struct contract on_meta = {
        .name = "memcached, meta",
        .setup = setup_store,
        .teardown = teardown_store,
        .arg = &meta,
        .has_cas = true,
        .tells_cas_on_write = true,
        .delete_with_cas = true,
        .incr_create = true,
        .incr_wraps = true,
        .has_touch = true,
        .pads_counters = true,
        .tells_ttl = true,
        .ttl_slack_s = 1,
        .value_max = 1024 * 1024 - 59 - 64,
        .append_over = STORE_NOT_STORED,
    };
    struct contract on_auto = on_meta, on_text = on_meta;

    on_auto.name = "memcached, auto";
    on_auto.arg = &automatic;
    on_text.name = "memcached, text";
    on_text.arg = &text;
    on_text.tells_cas_on_write = false;
    on_text.delete_with_cas = false;
    on_text.incr_create = false;
    on_text.tells_ttl = false;
    return contract_run(&on_text) + contract_run(&on_meta) + contract_run(&on_auto);
}

/* ---- the limit of a value ---- */

struct limit {
    const char *const *args; /* of memcached */
    uint64_t item_max;       /* what -I says, in bytes */
    enum config_dialect dialect;
};

static const char *const large_args[] = { "-I", "8m", NULL };
static const char *const small_args[] = { "-I", "512k", NULL };

static const struct limit limits[] = {
    { NULL, 1024 * 1024, CONFIG_DIALECT_TEXT },
    { large_args, 8 * 1024 * 1024, CONFIG_DIALECT_META },
    { small_args, 512 * 1024, CONFIG_DIALECT_AUTO },
};

/* Sends all of a `set` that no store would send; its answer is at most 99 bytes. */
static void
set_raw(const char *key, uint32_t flags, const char *value, size_t len, char answer[100])
{
    int fd = memcached_process_connect(&server);
    char line[400];
    size_t got = 0;
    ssize_t n;
    int size = snprintf(line, sizeof(line), "set %s %u 0 %zu\r\n", key, flags, len);

    assert_true(fd >= 0);
    assert_int_equal(send(fd, line, (size_t)size, MSG_NOSIGNAL), size);
    while (len > 0) {
        n = send(fd, value, len, MSG_NOSIGNAL);
        assert_true(n > 0);
        value += n;
        len -= (size_t)n;
    }
    assert_int_equal(send(fd, "\r\n", 2, MSG_NOSIGNAL), 2);
    do {
        n = recv(fd, answer + got, 99 - got, 0);
        assert_true(n > 0);
        got += (size_t)n;
        answer[got] = '\0';
    } while (strchr(answer, '\n') == NULL);
    close(fd);
}

/* The longest value goes there and back; a longer one is refused, and the old one stays. */
static void
check_limit(struct rig *rig, const char *key, uint32_t flags, const char *bytes)
{
    size_t max = store_memcached.value_max(rig->shared, strlen(key), flags);
    struct call call;
    char answer[100];

    rig_prepare(rig, &call, STORE_SET, key);
    call.op.value = slice_of(bytes, max);
    call.op.flags = flags;
    assert_string_equal(store_status_name(rig_do(&call)), "ok");
    rig_expect_value(rig, key, slice_of(bytes, max));
    for (int i = 0; i < 3; i++) {
        static const enum store_verb verbs[] = { STORE_SET, STORE_REPLACE, STORE_CAS };
        rig_prepare(rig, &call, verbs[i], key);
        call.op.value = slice_of(bytes, max + 1);
        call.op.flags = flags;
        call.op.cas = 1;
        assert_string_equal(store_status_name(rig_do(&call)), "too large");
        rig_expect_value(rig, key, slice_of(bytes, max));
    }
    set_raw(key, flags, bytes, max, answer);
    assert_string_equal(answer, "STORED\r\n");
    set_raw(key, flags, bytes, max + 1, answer);
    assert_string_equal(answer, "SERVER_ERROR object too large for cache\r\n");
}

static void
test_value_max_is_what_memcached_takes(void **state)
{
    char longest[STORE_KEY_MAX + 1];
    char *bytes = malloc(9 * 1024 * 1024);

    (void)state;
    assert_non_null(bytes);
    for (size_t i = 0; i < 9 * 1024 * 1024; i++) {
        bytes[i] = (char)(i * 31 + i / 977);
    }
    memset(longest, 'k', STORE_KEY_MAX);
    longest[STORE_KEY_MAX] = '\0';
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        struct rig rig;
        assert_true(memcached_process_start(&server, limits[i].args));
        rig_config(&rig, limits[i].dialect, server.port);
        rig.config.item_max = limits[i].item_max;
        rig.config.op_timeout_ms = RIG_PATIENCE_MS;
        rig_open(&rig);
        check_limit(&rig, "k", 0, bytes);
        check_limit(&rig, longest, 0, bytes);
        check_limit(&rig, "f", 0xffffffff, bytes);
        check_limit(&rig, longest, 1, bytes);
        rig_close(&rig);
        memcached_process_stop(&server);
    }
    free(bytes);
}

/* ---- a real server that dies ---- */

static void
test_a_restart_while_idle_is_not_noticed(void **state)
{
    struct rig rig;
    struct call call;

    (void)state;
    assert_true(memcached_process_start(&server, NULL));
    rig_config(&rig, CONFIG_DIALECT_AUTO, server.port);
    rig_open(&rig);
    rig_prepare(&rig, &call, STORE_SET, "k");
    call.op.value = SLICE("v");
    assert_int_equal(rig_do(&call), STORE_OK);
    assert_true(memcached_process_restart(&server));
    rig_turn(&rig, 0);
    rig_prepare(&rig, &call, STORE_GET, "k");
    assert_int_equal(rig_do(&call), STORE_MISS);
    rig_close(&rig);
    memcached_process_stop(&server);
}

/* The process is halted: the kernel takes the command, nobody answers. */
static void
test_a_halted_server_is_a_timeout(void **state)
{
    struct rig rig;
    struct call set, get;
    int64_t give_up_ms;

    (void)state;
    assert_true(memcached_process_start(&server, NULL));
    rig_config(&rig, CONFIG_DIALECT_AUTO, server.port);
    rig.config.op_timeout_ms = 100;
    rig_open(&rig);
    rig_prepare(&rig, &set, STORE_SET, "k");
    set.op.value = SLICE("v");
    assert_int_equal(rig_do(&set), STORE_OK);
    memcached_process_pause(&server);
    rig_get(&rig, &get, "k");
    rig_wait(&get);
    assert_string_equal(store_status_name(get.op.status), "timeout");
    assert_in_range(get.completed_ms - get.submitted_ms, 99, 200);
    memcached_process_resume(&server);
    give_up_ms = clock_monotonic_ms() + 2000;
    do {
        assert_true(clock_monotonic_ms() < give_up_ms);
        rig_turn(&rig, 2);
        rig_get(&rig, &get, "k");
        rig_wait(&get);
    } while (get.op.status != STORE_OK);
    assert_true(rig_has_value(&get, SLICE("v")));
    rig_close(&rig);
    memcached_process_stop(&server);
}

/* More connections than the server allows: the refusal is one, and those that stand go on. */
static void
test_too_many_connections(void **state)
{
    enum { FILLERS = 50 };
    static const char *const args[] = { "-t", "1", "-c", "32", "-o", "maxconns_fast", NULL };
    int fds[FILLERS];
    struct rig rig;
    struct call call;

    (void)state;
    assert_true(memcached_process_start(&server, args));
    for (int i = 0; i < FILLERS; i++) {
        fds[i] = memcached_process_connect(&server);
    }
    rig_config(&rig, CONFIG_DIALECT_AUTO, server.port);
    rig_open(&rig);
    rig_get(&rig, &call, "k");
    rig_wait(&call);
    /* memcached counts late and may let it in; the scripted server refuses for sure (fault tests) */
    assert_true(call.op.status == STORE_UNAVAILABLE || call.op.status == STORE_MISS);
    for (int i = 0; i < FILLERS; i++) {
        close(fds[i]);
    }
    do {
        rig_turn(&rig, 2);
        rig_get(&rig, &call, "k");
        rig_wait(&call);
    } while (call.op.status == STORE_UNAVAILABLE);
    assert_int_equal(call.op.status, STORE_MISS);
    rig_close(&rig);
    memcached_process_stop(&server);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_value_max_is_what_memcached_takes),
        cmocka_unit_test(test_a_restart_while_idle_is_not_noticed),
        cmocka_unit_test(test_a_halted_server_is_a_timeout),
        cmocka_unit_test(test_too_many_connections),
    };

    return run_contracts() + cmocka_run_group_tests(tests, NULL, NULL);
}
