/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_failures.c: the store is down, silent, or back again, and clients disappear while they wait
 * for it. Each has its status, in time; nobody else notices.
 */
#include "gateway.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "clock.h"
#include "memcached_process.h"

static struct gateway gateway;
static struct memcached_process server;
static const char *dialect;

static int
setup(void **state)
{
    (void)state;
    return memcached_process_start(&server, NULL) &&
                   gateway_start_config(&gateway,
                                        "[server]\nworkers = 1\n" GATEWAY_MEMCACHED
                                        "op_timeout = 300ms\n"
                                        "[store local]\ntype = embedded\ndirectory = data\n"
                                        "[route /]\nstore = main\n"
                                        "[route /local/]\nstore = local\n",
                                        dialect, (unsigned)server.port)
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

/* A test that failed may have left the store halted. */
static int
resume(void **state)
{
    (void)state;
    return server.pid > 0 ? kill(server.pid, SIGCONT) : 0;
}

static int
ask(const char *method, const char *target, const char *body)
{
    struct http_client c;
    int status = http_client_once(&c, gateway.port, method, target, NULL, body,
                                  body == NULL ? 0 : strlen(body));

    http_client_close(&c);
    return status;
}

static void
await_status(const char *method, const char *target, const char *body, int status, int within_ms)
{
    int64_t begun = clock_monotonic_ms();
    int got;

    while ((got = ask(method, target, body)) != status) {
        if (clock_monotonic_ms() - begun > within_ms) {
            fail_msg("%s %s: still %d after %d ms, wanted %d", method, target, got, within_ms,
                     status);
        }
        nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
    }
}

static void
expect_unavailable(const char *method, const char *target, const char *body)
{
    struct http_client c;

    assert_once(&c, gateway.port, method, target, NULL, body, body == NULL ? 0 : strlen(body), 503);
    assert_non_null(http_client_header(&c, "Retry-After"));
    assert_string_equal(http_client_header(&c, "Content-Type"), "application/problem+json");
    http_client_close(&c);
}

static void
test_down_and_back(void **state)
{
    (void)state;
    for (int round = 0; round < 3; round++) {
        await_status("PUT", "/down", "value", 204, 3000);
        assert_int_equal(ask("GET", "/-/ready", NULL), 200);
        memcached_process_kill(&server);
        expect_unavailable("GET", "/down", NULL);
        expect_unavailable("PUT", "/down", "new");
        expect_unavailable("DELETE", "/down", NULL);
        assert_int_equal(ask("HEAD", "/down", NULL), 503);
        await_status("GET", "/-/ready", NULL, 503, 2000);
        assert_int_equal(ask("GET", "/-/health", NULL), 200);
        assert_int_equal(ask("PUT", "/local/x", "x"), 204);
        assert_int_equal(ask("GET", "/local/x", NULL), 200);
        assert_true(memcached_process_restart(&server));
        /* Requests keep coming all the while: no quiet moment is needed. */
        await_status("GET", "/down", NULL, 404, 2000);
        await_status("GET", "/-/ready", NULL, 200, 2000);
    }
}

/* The connection that the gateway kept died with the old server: nobody may notice. */
static void
test_restarted_unseen(void **state)
{
    struct http_client c;

    (void)state;
    assert_true(http_client_open(&c, gateway.port));
    for (int round = 0; round < 5; round++) {
        int64_t deadline = clock_monotonic_ms() + 2000;
        int status;

        do {
            status = http_client_request(&c, "PUT", "/restart", NULL, "value", 5);
        } while (status != 204 && clock_monotonic_ms() < deadline);
        assert_int_equal(status, 204);
        assert_true(memcached_process_restart(&server));
        assert_request(&c, "GET", "/restart", NULL, NULL, 0, 404);
    }
    http_client_close(&c);
}

/* The first to wait hears 504; later ones may hear 503 at once, since nobody can be dialled. */
static void
test_silent_and_back(void **state)
{
    static const char *const methods[] = { "GET", "HEAD", "PUT", "DELETE" };

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        const char *body = strcmp(methods[i], "PUT") == 0 ? "value" : NULL;
        int64_t begun;

        await_status("PUT", "/silent", "value", 204, 2000);
        memcached_process_pause(&server);
        begun = clock_monotonic_ms();
        assert_int_equal(ask(methods[i], "/silent", body), 504);
        assert_in_range(clock_monotonic_ms() - begun, 200, 1500);
        for (int again = 0; again < 3; again++) {
            int status;

            begun = clock_monotonic_ms();
            status = ask(methods[i], "/silent", body);
            assert_true(status == 504 || status == 503);
            assert_true(clock_monotonic_ms() - begun < 1500);
            assert_int_equal(ask("GET", "/local/missing", NULL), 404);
        }
        assert_int_equal(ask("GET", "/-/ready", NULL), 503);
        assert_int_equal(ask("GET", "/-/health", NULL), 200);
        memcached_process_resume(&server);
        await_status("GET", "/-/ready", NULL, 200, 2000);
        await_status("PUT", "/silent", "after", 204, 2000);
        assert_value(gateway.port, "/silent", "after", 5);
    }
}

/* A wait that is shorter than the time-out ends with the answer. */
static void
test_short_silence(void **state)
{
    struct http_client c;

    (void)state;
    await_status("PUT", "/short", "value", 204, 2000);
    assert_true(http_client_open(&c, gateway.port));
    memcached_process_pause(&server);
    assert_true(http_client_send_text(&c, "GET /short HTTP/1.1\r\nHost: t\r\n\r\n"));
    assert_false(http_client_has_input(&c, 100));
    memcached_process_resume(&server);
    assert_response(&c, false, 200);
    assert_body(&c, "value");
    http_client_close(&c);
}

#define CROWD 100

/* Many wait for the silent store: all are told in time, and no answer goes astray afterwards. */
static void
test_crowd_waits(void **state)
{
    struct http_client c[CROWD];
    int64_t begun;

    (void)state;
    for (int i = 0; i < CROWD; i++) {
        assert_true(http_client_open(&c[i], gateway.port));
        assert_request(&c[i], "GET", "/-/health", NULL, NULL, 0, 200);
    }
    await_status("PUT", "/crowd", "value", 204, 2000);
    memcached_process_pause(&server);
    begun = clock_monotonic_ms();
    for (int i = 0; i < CROWD; i++) {
        char text[128];

        snprintf(text, sizeof(text), "GET /crowd-%d HTTP/1.1\r\nHost: t\r\n\r\n", i % 10);
        assert_true(http_client_send_text(&c[i], text));
    }
    assert_int_equal(ask("PUT", "/local/crowd", "x"), 204);
    for (int i = 0; i < CROWD; i++) {
        assert_response(&c[i], false, 504);
    }
    assert_true(clock_monotonic_ms() - begun < 2500);
    memcached_process_resume(&server);
    await_status("GET", "/crowd", NULL, 200, 2000);
    for (int i = 0; i < CROWD; i++) {
        assert_request(&c[i], "GET", i % 2 == 0 ? "/crowd" : "/crowd-none", NULL, NULL, 0,
                       i % 2 == 0 ? 200 : 404);
        http_client_close(&c[i]);
    }
}

/* Clients that go away while the store is silent, each in its own way. */
static void
test_vanish_while_waiting(void **state)
{
    static const char *const requests[] = {
        "GET /vanish HTTP/1.1\r\nHost: t\r\n\r\n",
        "PUT /vanish HTTP/1.1\r\nHost: t\r\nContent-Length: 5\r\n\r\nvalue",
        "DELETE /other HTTP/1.1\r\nHost: t\r\n\r\n",
        "GET /vanish HTTP/1.1\r\nHost: t\r\n\r\nGET /vanish HTTP/1.1\r\nHost: t\r\n\r\n",
    };

    (void)state;
    await_status("PUT", "/vanish", "value", 204, 2000);
    memcached_process_pause(&server);
    for (int i = 0; i < 32; i++) {
        struct http_client c;

        assert_true(http_client_open(&c, gateway.port));
        assert_true(http_client_send_text(&c, requests[i % 4]));
        /* Served after it, so the request above is with the store by now. */
        assert_int_equal(ask("GET", "/-/health", NULL), 200);
        if (i % 8 < 4) {
            http_client_abort(&c);
        } else {
            http_client_close(&c);
        }
    }
    assert_int_equal(ask("GET", "/local/none", NULL), 404);
    memcached_process_resume(&server);
    await_status("GET", "/vanish", NULL, 200, 2000);
    assert_value(gateway.port, "/vanish", "value", 5);
}

/* The server dies with requests under way: each gets an answer, none a wrong one. */
static void
test_dies_under_way(void **state)
{
    struct http_client c[16];

    (void)state;
    await_status("PUT", "/dies", "value", 204, 2000);
    for (int i = 0; i < 16; i++) {
        assert_true(http_client_open(&c[i], gateway.port));
    }
    memcached_process_pause(&server);
    for (int i = 0; i < 16; i++) {
        assert_true(http_client_send_text(
            &c[i], i % 2 == 0 ? "GET /dies HTTP/1.1\r\nHost: t\r\n\r\n"
                              : "PUT /dies HTTP/1.1\r\nHost: t\r\nContent-Length: 1\r\n\r\nx"));
    }
    assert_int_equal(ask("GET", "/-/health", NULL), 200);
    memcached_process_kill(&server);
    for (int i = 0; i < 16; i++) {
        assert_int_equal(http_client_receive(&c[i], false), HTTP_RESPONSE);
        assert_true(c[i].status == 503 || c[i].status == 504);
        http_client_close(&c[i]);
    }
    assert_true(memcached_process_restart(&server));
    await_status("PUT", "/dies", "again", 204, 2000);
    assert_value(gateway.port, "/dies", "again", 5);
}

/* Each worker finds the store again on its own: 16 connections in a row meet both. */
static void
test_all_workers_recover(void **state)
{
    struct gateway other;
    struct http_client c;
    int64_t begun;
    int in_a_row = 0;

    (void)state;
    assert_true(gateway_start_config(&other, "[server]\nworkers = 2\n" GATEWAY_MEMCACHED, dialect,
                                     (unsigned)server.port));
    for (int i = 0; i < 16; i++) {
        assert_value(other.port, "/recover", NULL, 0);
    }
    memcached_process_kill(&server);
    for (int i = 0; i < 16; i++) {
        assert_once(&c, other.port, "GET", "/recover", NULL, NULL, 0, 503);
        http_client_close(&c);
    }
    assert_true(memcached_process_restart(&server));
    begun = clock_monotonic_ms();
    while (in_a_row < 16) {
        int status = http_client_once(&c, other.port, "GET", "/recover", NULL, NULL, 0);

        http_client_close(&c);
        in_a_row = status == 404 ? in_a_row + 1 : 0;
        assert_true(clock_monotonic_ms() - begun < 2000);
        if (status != 404) {
            nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
        }
    }
    assert_int_equal(gateway_stop(&other, SIGTERM), 0);
}

/* A store that is down does not stop the start, and is found when it comes. */
static void
test_start_without_store(void **state)
{
    struct gateway other;
    struct http_client c;

    (void)state;
    memcached_process_kill(&server);
    assert_true(gateway_start_config(&other, GATEWAY_MEMCACHED, dialect, (unsigned)server.port));
    assert_once(&c, other.port, "GET", "/start", NULL, NULL, 0, 503);
    http_client_close(&c);
    assert_once(&c, other.port, "GET", "/-/ready", NULL, NULL, 0, 503);
    http_client_close(&c);
    assert_once(&c, other.port, "GET", "/-/health", NULL, NULL, 0, 200);
    http_client_close(&c);
    assert_int_equal(gateway_stop(&other, SIGTERM), 0);
    assert_true(memcached_process_restart(&server));
    await_status("PUT", "/start", "value", 204, 2000);
}

static void
test_stops_cleanly(void **state)
{
    (void)state;
    assert_int_equal(gateway_stop(&gateway, SIGTERM), 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_down_and_back, resume),
        cmocka_unit_test_setup(test_restarted_unseen, resume),
        cmocka_unit_test_setup(test_silent_and_back, resume),
        cmocka_unit_test_setup(test_short_silence, resume),
        cmocka_unit_test_setup(test_crowd_waits, resume),
        cmocka_unit_test_setup(test_vanish_while_waiting, resume),
        cmocka_unit_test_setup(test_dies_under_way, resume),
        cmocka_unit_test_setup(test_all_workers_recover, resume),
        cmocka_unit_test_setup(test_start_without_store, resume),
        cmocka_unit_test_setup(test_stops_cleanly, resume),
    };
    int failed;

    dialect = "text";
    failed = cmocka_run_group_tests_name("memcached, text", tests, setup, teardown);
    dialect = "meta";
    return failed + cmocka_run_group_tests_name("memcached, meta", tests, setup, teardown);
}
