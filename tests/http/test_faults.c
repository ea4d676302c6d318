/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_faults.c: what HTTP clients see of a store that fails, one fault after the other, from a
 * scripted server and from real memcached: a status, at once or after the time-outs; never a wrong
 * value, a false miss or a hang; and all is well within 2 s of its return, under constant load. The
 * table that it prints says what was seen.
 */
#include "gateway.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "fake_memcached.h"
#include "fault_load.h"
#include "memcached_process.h"
#include "ring.h"

#define CLIENTS    6
#define FAULT_MS   250  /* how long a fault lasts */
#define RECOVER_MS 2000 /* after its end */
#define OP_MS      200
#define CONNECT_MS 100
#define ANSWER_MS  2000        /* far more than connect and op time-outs, and a retry, take */
#define MEMORY_KB  (48 * 1024) /* that the gateway may grow by, with a sanitizer's quarantine */
#define VALUE_LEN  100

#define CONFIG                                                                                     \
    "[server]\nworkers = 1\nlog_level = error\n[store main]\ntype = memcached\ndialect = %s\n"     \
    "connect_timeout = 100ms\nop_timeout = %dms\nlanes = %d\nservers = "

static struct gateway gateway;

static void
start_gateway(const char *dialect, int op_ms, int lanes, uint16_t port)
{
    assert_true(gateway_start_config(&gateway, CONFIG "127.0.0.1:%u\n", dialect, op_ms, lanes,
                                     (unsigned)port));
}

static long
memory_kb(void)
{
    char path[64], line[256];
    long kb = 0;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/status", (int)gateway.process.pid);
    file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof(line), file) != NULL) {
        sscanf(line, "VmRSS: %ld", &kb);
    }
    fclose(file);
    return kb;
}

/* Only these statuses, no hang, nothing wrong, each 503 with Retry-After. */
static void
check_load(const struct fault_load *load, const char *name, const char *allowed)
{
    for (int status = 100; status < 600; status++) {
        char text[16];
        snprintf(text, sizeof(text), "%d", status);
        if (load->by_status[status] > 0 && strstr(allowed, text) == NULL) {
            fail_msg("%s: %u answers of %d", name, load->by_status[status], status);
        }
    }
    if (load->hangs + load->wrong + load->unretried > 0) {
        fail_msg("%s: %u hangs, %u wrong, %u without Retry-After", name, load->hangs, load->wrong,
                 load->unretried);
    }
    if (load->longest_ms > ANSWER_MS) {
        fail_msg("%s: an answer took %lld ms", name, (long long)load->longest_ms);
    }
}

/* ---- scripted -------------------------------------------------------------------------------- */

struct fault {
    const char *name;
    struct fake_step steps[6];
    size_t count;
};

#define STEPS(...)                                                                                 \
    { __VA_ARGS__ }, sizeof((struct fake_step[]){ __VA_ARGS__ }) / sizeof(struct fake_step)
#define ANSWER(text) STEPS(FAKE_LINE, FAKE_SEND(text), FAKE_SILENT)

/* What the first command of each connection is answered with. */
static const struct fault faults[] = {
    { "accepts and says nothing", STEPS(FAKE_SILENT) },
    { "closes at once", STEPS(FAKE_CLOSE) },
    { "resets after a command", STEPS(FAKE_LINE, FAKE_RESET) },
    { "closes in mid-value", STEPS(FAKE_LINE, FAKE_SEND("VALUE key-0 0 5 7\r\nhe"), FAKE_CLOSE) },
    { "closes before the last CRLF",
      STEPS(FAKE_LINE, FAKE_SEND("VALUE key-0 0 5 7\r\nhello\r\nEND"), FAKE_CLOSE) },
    { "half a line", STEPS(FAKE_LINE, FAKE_SEND("VALUE key-0 0"), FAKE_CLOSE) },
    { "length 2 too small", ANSWER("VALUE key-0 0 3 7\r\nhello\r\nEND\r\n") },
    { "length 2 too big", ANSWER("VALUE key-0 0 7 7\r\nhello\r\nEND\r\n") },
    { "length 2^31", ANSWER("VALUE key-0 0 2147483648 7\r\nhello\r\nEND\r\n") },
    { "length 2^63-1", ANSWER("VALUE key-0 0 9223372036854775807 7\r\nhello\r\nEND\r\n") },
    { "length negative", ANSWER("VALUE key-0 0 -5 7\r\nhello\r\nEND\r\n") },
    { "wrong key", ANSWER("VALUE other 0 5 7\r\nhello\r\nEND\r\n") },
    { "two replies", ANSWER("SERVER_ERROR a\r\nSERVER_ERROR b\r\n") },
    { "garbage", ANSWER("\x80\x81\xff\r\n\r\nHTTP/1.1 200 OK\r\n") },
    { "SERVER_ERROR", ANSWER("SERVER_ERROR out of memory\r\n") },
    { "ERROR Too many open connections",
      STEPS(FAKE_SEND("ERROR Too many open connections\r\n"), FAKE_CLOSE) },
    { "drips a byte in 100 ms",
      STEPS(FAKE_LINE, FAKE_DRIP("VALUE key-0 0 5 7\r\nhello\r\nEND\r\n", 100)) },
};

static void
test_scripted(void **state)
{
    struct fake *fake = fake_create(FAKE_LACKS_META);
    struct fault_load load;
    long before;

    (void)state;
    assert_non_null(fake);
    start_gateway("text", OP_MS, 2, fake_port(fake));
    assert_true(fault_load_open(&load, gateway.port, CLIENTS, VALUE_LEN));
    assert_true(fault_load_recover(&load, RECOVER_MS) >= 0);
    before = memory_kb();
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        int64_t recovered;

        fault_load_reset(&load);
        fake_script_every(fake, faults[i].steps, faults[i].count);
        fake_drop(fake);
        fault_load_run(&load, FAULT_MS);
        fake_script_every(fake, NULL, 0);
        recovered = fault_load_recover(&load, RECOVER_MS);
        fault_load_print(&load, faults[i].name, recovered);
        check_load(&load, faults[i].name, "200 201 204 502 503 504 507");
        assert_true(recovered >= 0);
    }
    fault_load_reset(&load);
    fake_stop(fake);
    fault_load_run(&load, FAULT_MS);
    fake_start(fake);
    int64_t recovered = fault_load_recover(&load, RECOVER_MS);
    fault_load_print(&load, "refuses connections", recovered);
    check_load(&load, "refuses", "200 201 204 503");
    assert_true(recovered >= 0);
    assert_true(memory_kb() < before + MEMORY_KB);
    fault_load_close(&load);
    assert_int_equal(gateway_stop(&gateway, SIGTERM), 0);
    fake_destroy(fake);
}

/* ---- real memcached -------------------------------------------------------------------------- */

/* What is done to a server while the load goes on. */
struct trouble {
    struct memcached_process *server;
    bool kills; /* kill and restart; else stop and continue */
    int times;
    int down_ms;  /* how long each */
    int pause_ms; /* between two */
};

/* A load in a thread of its own. */
struct load_thread {
    pthread_t thread;
    struct fault_load *load; /* (ref) */
    int64_t ms;
};

static void *
load_main(void *arg)
{
    struct load_thread *self = arg;

    fault_load_run(self->load, self->ms);
    return NULL;
}

/* In this thread: with the one that started it, a memcached ends. */
static void
make_trouble(const struct trouble *t, struct fault_load *load)
{
    for (int i = 0; i < t->times; i++) {
        usleep((useconds_t)t->pause_ms * 1000);
        if (t->kills) {
            load->kills++;
            memcached_process_kill(t->server);
        } else {
            memcached_process_pause(t->server);
        }
        usleep((useconds_t)t->down_ms * 1000);
        if (t->kills) {
            assert_true(memcached_process_restart(t->server));
        } else {
            memcached_process_resume(t->server);
        }
    }
}

/* Runs LOAD while TROUBLE happens; returns the time to recover after it. */
static int64_t
run_trouble(struct fault_load *load, const struct trouble *trouble)
{
    struct load_thread thread = {
        .load = load,
        .ms = trouble->times * (trouble->down_ms + trouble->pause_ms),
    };

    fault_load_reset(load);
    assert_int_equal(pthread_create(&thread.thread, NULL, load_main, &thread), 0);
    make_trouble(trouble, load);
    pthread_join(thread.thread, NULL);
    return fault_load_recover(load, RECOVER_MS);
}

/* A stop of 200 ms is shorter than the time-out: nobody gets an error. */
static void
test_stopped_now_and_then(void **state)
{
    struct memcached_process server;
    struct trouble trouble = { &server, false, 2, 200, 300 };
    struct fault_load load;
    int64_t recovered;

    (void)state;
    assert_true(memcached_process_start(&server, NULL));
    start_gateway("auto", 1000, 8, server.port);
    assert_true(fault_load_open(&load, gateway.port, CLIENTS, VALUE_LEN));
    recovered = run_trouble(&load, &trouble);
    fault_load_print(&load, "SIGSTOP for 200 ms, again and again", recovered);
    check_load(&load, "SIGSTOP", "200 201 204");
    assert_true(load.longest_ms >= 150);
    fault_load_close(&load);
    assert_int_equal(gateway_stop(&gateway, SIGTERM), 0);
    memcached_process_stop(&server);
}

static void
test_killed_under_load(void **state)
{
    struct memcached_process server;
    struct trouble trouble = { &server, true, 3, 150, 150 };
    struct fault_load load;
    int64_t recovered;

    (void)state;
    assert_true(memcached_process_start(&server, NULL));
    start_gateway("auto", OP_MS, 8, server.port);
    assert_true(fault_load_open(&load, gateway.port, CLIENTS, VALUE_LEN));
    recovered = run_trouble(&load, &trouble);
    fault_load_print(&load, "SIGKILL and restart under load", recovered);
    check_load(&load, "SIGKILL", "200 201 204 404 503 504");
    assert_true(load.by_status[503] > 0 && recovered >= 0);
    fault_load_close(&load);
    assert_int_equal(gateway_stop(&gateway, SIGTERM), 0);
    memcached_process_stop(&server);
}

/* -M: memcached refuses instead of forgetting. What was acknowledged is there. */
static void
test_full_memory(void **state)
{
    static const char *const args[] = { "-m", "2", "-M", NULL };
    struct memcached_process server;
    struct fault_load load;

    (void)state;
    assert_true(memcached_process_start(&server, args));
    start_gateway("auto", 1000, 8, server.port);
    assert_true(fault_load_open(&load, gateway.port, 200, 50000));
    fault_load_round(&load);
    fault_load_round(&load);
    fault_load_print(&load, "memory full (-M)", -1);
    check_load(&load, "full", "200 201 204 404 507");
    assert_true(load.by_status[507] > 0 && load.by_status[204] + load.by_status[201] > 0);
    fault_load_close(&load);
    assert_int_equal(gateway_stop(&gateway, SIGTERM), 0);
    memcached_process_stop(&server);
}

/* Fewer connections than the lanes would like to have: the work is done on those that there are. */
static void
test_connection_limit(void **state)
{
    static const char *const args[] = { "-c", "24", "-t", "1", NULL };
    struct memcached_process server;
    struct fault_load load;

    (void)state;
    assert_true(memcached_process_start(&server, args));
    assert_true(gateway_start_config(&gateway,
                                     "[server]\nworkers = 2\nlog_level = error\n[store main]\n"
                                     "type = memcached\nop_timeout = 2s\nlanes = 16\n"
                                     "servers = 127.0.0.1:%u\n",
                                     (unsigned)server.port));
    assert_true(fault_load_open(&load, gateway.port, 40, 100000));
    fault_load_run(&load, 500);
    fault_load_print(&load, "connection limit (-c 24)", -1);
    check_load(&load, "-c 24", "200 201 204 503");
    assert_true(load.by_status[204] + load.by_status[201] > 100);
    fault_load_close(&load);
    assert_int_equal(gateway_stop(&gateway, SIGTERM), 0);
    memcached_process_stop(&server);
}

/* Everybody waits, and everybody gets an answer. */
static void
test_a_thousand_wait(void **state)
{
    struct memcached_process server;
    struct fault_load load;
    struct trouble trouble = { &server, false, 1, 200, 0 };

    (void)state;
    assert_true(memcached_process_start(&server, NULL));
    start_gateway("auto", 1500, 8, server.port);
    assert_true(fault_load_open(&load, gateway.port, 1000, VALUE_LEN));
    assert_true(fault_load_round(&load));
    assert_true(run_trouble(&load, &trouble) >= 0);
    fault_load_print(&load, "1000 clients, server takes 200 ms", -1);
    check_load(&load, "1000 clients", "200 201 204");
    fault_load_close(&load);
    assert_int_equal(gateway_stop(&gateway, SIGTERM), 0);
    memcached_process_stop(&server);
}

/* Three servers, one of them killed: only its keys have trouble. */
static void
test_one_of_three(void **state)
{
    struct memcached_process servers[3];
    struct config_store config;
    char error[CONFIG_ERROR_MAX];
    struct fault_load load;
    struct ring *ring;

    (void)state;
    config_store_defaults(&config, "main");
    for (size_t i = 0; i < 3; i++) {
        assert_true(memcached_process_start(&servers[i], NULL));
        strcpy(config.servers[i].host, "127.0.0.1");
        config.servers[i].port = servers[i].port;
        config.servers[i].weight = 1;
    }
    config.server_count = 3;
    ring = ring_create(&config, error);
    assert_non_null(ring);
    assert_true(gateway_start_config(&gateway, CONFIG "127.0.0.1:%u 127.0.0.1:%u 127.0.0.1:%u\n",
                                     "auto", OP_MS, 8, (unsigned)servers[0].port,
                                     (unsigned)servers[1].port, (unsigned)servers[2].port));
    assert_true(fault_load_open(&load, gateway.port, 30, VALUE_LEN));
    assert_true(fault_load_round(&load));
    load.kills++;
    memcached_process_kill(&servers[1]);
    fault_load_reset(&load);
    for (int round = 0; round < 20; round++) {
        fault_load_round(&load);
        for (size_t i = 0; i < load.count; i++) {
            const struct fault_client *c = &load.clients[i];
            size_t home = ring_lookup(ring, slice_from_string(c->target + 1));
            if (home != 1 && c->http.status >= 300) {
                fail_msg("%s of server %zu: %d", c->target, home, c->http.status);
            }
        }
    }
    assert_true(memcached_process_restart(&servers[1]));
    int64_t recovered = fault_load_recover(&load, RECOVER_MS);
    fault_load_print(&load, "one of three servers killed", recovered);
    check_load(&load, "one of three", "200 201 204 404 503 504");
    assert_true(recovered >= 0 && load.by_status[503] > 0);
    fault_load_close(&load);
    ring_destroy(ring);
    assert_int_equal(gateway_stop(&gateway, SIGTERM), 0);
    for (size_t i = 0; i < 3; i++) {
        memcached_process_stop(&servers[i]);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scripted),          cmocka_unit_test(test_stopped_now_and_then),
        cmocka_unit_test(test_killed_under_load), cmocka_unit_test(test_full_memory),
        cmocka_unit_test(test_connection_limit),  cmocka_unit_test(test_a_thousand_wait),
        cmocka_unit_test(test_one_of_three),
    };

    /* What is freed is to be free: the sanitizer keeps 256 MB of it otherwise. */
    setenv("ASAN_OPTIONS", "quarantine_size_mb=1", 1);
    printf("%-34s %7s  %-38s %9s  %9s\n", "fault", "asked", " answers by status", "longest",
           "well after");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
