/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_stop.c: a stop answers what has begun, waits for nobody who is idle, and ends with 0.
 */
#include "gateway.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "clock.h"
#include "memcached_process.h"

static struct memcached_process server;
static struct gateway gateway;

static int
setup(void **state)
{
    (void)state;
    return memcached_process_start(&server, NULL) &&
                   gateway_start_config(
                       &gateway,
                       "[server]\nworkers = 1\ndrain_timeout = 2s\n" GATEWAY_MEMCACHED
                       "op_timeout = 800ms\n",
                       "auto", (unsigned)server.port)
               ? 0
               : -1;
}

static int
teardown(void **state)
{
    (void)state;
    gateway_deinit(&gateway);
    memcached_process_kill(&server);
    return 0;
}

/*
 * Sends REQUEST on WAITING while the store is paused, and returns when the gateway has it: the
 * answer to OTHER, which the one worker read later, says so.
 */
static void
wait_in_store(struct http_client *waiting, const char *request)
{
    struct http_client other;

    assert_once(waiting, gateway.port, "PUT", "/stop", NULL, "value", 5, GATEWAY_STORED);
    assert_once(&other, gateway.port, "GET", "/stop", NULL, NULL, 0, 200);
    memcached_process_pause(&server);
    assert_true(http_client_send_text(waiting, request));
    assert_request(&other, "GET", "/-/health", NULL, NULL, 0, 200);
    http_client_close(&other);
}

#define GET "GET /stop HTTP/1.1\r\nHost: t\r\n\r\n"

static void
answered_after_resume(int signal)
{
    struct http_client c, idle;
    int64_t begun;

    assert_once(&idle, gateway.port, "GET", "/-/health", NULL, NULL, 0, 200);
    wait_in_store(&c, GET);
    begun = clock_monotonic_ms();
    kill(gateway.process.pid, signal);
    /* The idle one is closed at once: the stop has begun, and there still is a request. */
    assert_closed(&idle);
    assert_true(process_runs(&gateway.process));
    memcached_process_resume(&server);
    assert_response(&c, false, 200);
    assert_body(&c, "value");
    assert_closed(&c);
    assert_int_equal(gateway_stop(&gateway, 0), 0);
    assert_true(clock_monotonic_ms() - begun < 1800);
    http_client_close(&c);
    http_client_close(&idle);
}

static void
test_sigterm_while_waiting(void **state)
{
    (void)state;
    answered_after_resume(SIGTERM);
}

static void
test_sigint_while_waiting(void **state)
{
    (void)state;
    answered_after_resume(SIGINT);
}

static void
test_store_stays_silent(void **state)
{
    struct http_client c;
    int64_t begun;

    (void)state;
    wait_in_store(&c, "PUT /stop HTTP/1.1\r\nHost: t\r\nContent-Length: 3\r\n\r\nnew");
    begun = clock_monotonic_ms();
    kill(gateway.process.pid, SIGTERM);
    assert_response(&c, false, 504);
    assert_int_equal(gateway_stop(&gateway, 0), 0);
    assert_true(clock_monotonic_ms() - begun < 1800);
    http_client_close(&c);
}

/* The client that the request belongs to is gone before the store answers. */
static void
test_vanished_before_stop(void **state)
{
    struct http_client c;

    (void)state;
    wait_in_store(&c, GET);
    http_client_abort(&c);
    assert_int_equal(gateway_stop(&gateway, SIGTERM), 0);
}

static void
test_idle_connections(void **state)
{
    struct http_client c[20];
    int64_t begun = clock_monotonic_ms();

    (void)state;
    for (int i = 0; i < 20; i++) {
        if (i % 2 == 0) {
            assert_once(&c[i], gateway.port, "GET", "/none", NULL, NULL, 0, 404);
        } else {
            assert_true(http_client_open(&c[i], gateway.port));
        }
    }
    begun = clock_monotonic_ms();
    assert_int_equal(gateway_stop(&gateway, SIGTERM), 0);
    assert_true(clock_monotonic_ms() - begun < 1500);
    for (int i = 0; i < 20; i++) {
        assert_closed(&c[i]);
        http_client_close(&c[i]);
    }
}

/* A body under way may still come; the write counts. */
static void
test_body_under_way(void **state)
{
    struct http_client c, idle;

    (void)state;
    assert_once(&idle, gateway.port, "GET", "/-/health", NULL, NULL, 0, 200);
    assert_true(http_client_open(&c, gateway.port));
    assert_true(http_client_send_text(
        &c, "PUT /late HTTP/1.1\r\nHost: t\r\nContent-Length: 8\r\n\r\nhalf"));
    assert_request(&idle, "GET", "/-/health", NULL, NULL, 0, 200);
    kill(gateway.process.pid, SIGTERM);
    assert_closed(&idle);
    assert_true(http_client_send_text(&c, "half"));
    assert_response(&c, false, GATEWAY_STORED);
    assert_int_equal(gateway_stop(&gateway, 0), 0);
    http_client_close(&c);
    http_client_close(&idle);
}

/* A body that never comes holds up the stop for the drain time, not for ever. */
static void
test_body_never_comes(void **state)
{
    struct http_client c;
    int64_t begun;

    (void)state;
    assert_true(http_client_open(&c, gateway.port));
    assert_true(http_client_send_text(
        &c, "PUT /late HTTP/1.1\r\nHost: t\r\nContent-Length: 8\r\n\r\nhalf"));
    begun = clock_monotonic_ms();
    assert_int_equal(gateway_stop(&gateway, SIGTERM), 0);
    assert_true(clock_monotonic_ms() - begun < 5000);
    http_client_close(&c);
}

/* While it drains nobody new is let in: the port is free for a successor. */
static void
test_no_new_connections(void **state)
{
    struct http_client c, idle, late;
    int64_t deadline;

    (void)state;
    assert_once(&idle, gateway.port, "GET", "/-/health", NULL, NULL, 0, 200);
    wait_in_store(&c, GET);
    kill(gateway.process.pid, SIGTERM);
    assert_closed(&idle);
    deadline = clock_monotonic_ms() + 400;
    while (http_client_open(&late, gateway.port)) {
        http_client_close(&late);
        if (clock_monotonic_ms() > deadline) {
            fail_msg("the port still takes connections that nobody will answer");
        }
        nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
    }
    memcached_process_resume(&server);
    assert_response(&c, false, 200);
    assert_int_equal(gateway_stop(&gateway, 0), 0);
    http_client_close(&c);
    http_client_close(&idle);
}

/* Told twice, it stops all the same; what was written before is there for the next one. */
static void
test_embedded_survives(void **state)
{
    const char *const argv[] = {
        gateway_program(), "-l", "127.0.0.1:0", "-s", "embedded:data", NULL
    };
    struct gateway g;
    struct http_client c;

    (void)state;
    assert_true(gateway_start_embedded(&g));
    assert_once(&c, g.port, "PUT", "/kept", NULL, "kept", 4, GATEWAY_STORED);
    http_client_close(&c);
    kill(g.process.pid, SIGTERM);
    assert_int_equal(process_stop(&g.process, SIGTERM, GATEWAY_TIMEOUT_MS), 0);
    process_deinit(&g.process);
    assert_true(gateway_launch(&g, argv));
    assert_value(g.port, "/kept", "kept", 4);
    assert_once(&c, g.port, "PUT", "/killed", NULL, "killed", 6, GATEWAY_STORED);
    http_client_close(&c);
    assert_int_equal(process_stop(&g.process, SIGKILL, GATEWAY_TIMEOUT_MS), 128 + SIGKILL);
    process_deinit(&g.process);
    assert_true(gateway_launch(&g, argv));
    assert_value(g.port, "/kept", "kept", 4);
    assert_value(g.port, "/killed", "killed", 6);
    assert_int_equal(gateway_stop(&g, SIGTERM), 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_sigterm_while_waiting, setup, teardown),
        cmocka_unit_test_setup_teardown(test_sigint_while_waiting, setup, teardown),
        cmocka_unit_test_setup_teardown(test_store_stays_silent, setup, teardown),
        cmocka_unit_test_setup_teardown(test_vanished_before_stop, setup, teardown),
        cmocka_unit_test_setup_teardown(test_idle_connections, setup, teardown),
        cmocka_unit_test_setup_teardown(test_body_under_way, setup, teardown),
        cmocka_unit_test_setup_teardown(test_body_never_comes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_new_connections, setup, teardown),
        cmocka_unit_test(test_embedded_survives),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
