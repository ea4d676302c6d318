/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_slow.c: clients that are slow, idle or too many. Each is told so or closed in time, and the
 * others are served meanwhile.
 */
#include "gateway.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "clock.h"

static struct gateway gateway;

static int
setup_times(void **state)
{
    (void)state;
    return gateway_start_config(&gateway, "[server]\nrequest_timeout = 1s\nidle_timeout = 1s\n"
                                          "[store main]\ntype = embedded\ndirectory = data\n")
               ? 0
               : -1;
}

static int
setup_few(void **state)
{
    (void)state;
    return gateway_start_config(&gateway, "[server]\nworkers = 1\nconnections = 4\n"
                                          "[store main]\ntype = embedded\ndirectory = data\n")
               ? 0
               : -1;
}

/* The limit counts all workers together. */
static int
setup_few_of_two(void **state)
{
    (void)state;
    return gateway_start_config(&gateway, "[server]\nworkers = 2\nconnections = 4\n"
                                          "[store main]\ntype = embedded\ndirectory = data\n")
               ? 0
               : -1;
}

static int
teardown(void **state)
{
    (void)state;
    gateway_deinit(&gateway);
    return 0;
}

/* What a dripping client sends at once, and what it repeats a byte at a time. */
struct drip {
    const char *head;
    const char *text;
};

/* The server has had enough of SLOW: 408 or nothing, and closed; not before its time. */
static void
expect_given_up(struct http_client *slow, size_t number, int64_t begun)
{
    enum http_result result = http_client_receive(slow, false);

    if (clock_monotonic_ms() - begun < 900) {
        fail_msg("drip %zu was given up after %d ms", number, (int)(clock_monotonic_ms() - begun));
    }
    if (result == HTTP_RESPONSE) {
        assert_int_equal(slow->status, 408);
        assert_closed(slow);
    } else if (result != HTTP_CLOSED && result != HTTP_RESET) {
        fail_msg("drip %zu: %s", number, http_result_name(result));
    }
    http_client_close(slow);
}

/*
 * All DRIPS at the same time, each a byte every 50 ms, until the server has had enough of all of
 * them: between 0.9 and 5 s after the beginning. Others are served all the while.
 */
static void
run_drips(const struct drip *drips, size_t count)
{
    int64_t begun = clock_monotonic_ms();
    struct http_client slow[8], other;
    size_t left = count;

    for (size_t i = 0; i < count; i++) {
        assert_true(http_client_open(&slow[i], gateway.port));
        assert_true(http_client_send_text(&slow[i], drips[i].head));
    }
    for (size_t step = 0; left > 0; step++) {
        assert_true(clock_monotonic_ms() - begun < 5000);
        for (size_t i = 0; i < count; i++) {
            if (slow[i].fd == -1) {
                continue;
            }
            if (http_client_has_input(&slow[i], 0)) {
                expect_given_up(&slow[i], i, begun);
                left--;
            } else {
                http_client_send(&slow[i], drips[i].text + step % strlen(drips[i].text), 1);
            }
        }
        assert_once(&other, gateway.port, "GET", "/missing", NULL, NULL, 0, 404);
        http_client_close(&other);
        nanosleep(&(struct timespec){ .tv_nsec = 50000000 }, NULL);
    }
}

static void
test_drips(void **state)
{
#define PUT "PUT /slow HTTP/1.1\r\nHost: t\r\n"
    static const struct drip drips[] = {
        { "GET /slow", "abcdefgh" },
        { "GET /slow HTTP/1.1\r\nHost: t\r\nX-Slow: ", "abcdefgh" },
        { "GET /slow HTTP/1.1\r\nHost: t\r\n", "A: b\r\n" },
        { PUT "Content-Length: 1000\r\n\r\n", "abcdefgh" },
        { PUT "Transfer-Encoding: chunked\r\n\r\n", "1\r\na\r\n" },
        { PUT "Transfer-Encoding: chunked\r\n\r\nfff\r\n", "x" },
        { PUT "Transfer-Encoding: chunked\r\n\r\n0\r\n", "A: b\r\n" },
    };

    (void)state;
    run_drips(drips, sizeof(drips) / sizeof(drips[0]));
    assert_value(gateway.port, "/slow", NULL, 0);
}

/* Stops in the middle and says nothing more. */
static void
test_goes_silent(void **state)
{
    static const char *const beginnings[] = {
        "GET /slow HTTP/1.1\r\nHost: t\r\n",
        "PUT /slow HTTP/1.1\r\nHost: t\r\nContent-Length: 10\r\n\r\n12345",
        "PUT /slow HTTP/1.1\r\nHost: t\r\nExpect: 100-continue\r\nContent-Length: 10\r\n\r\n",
        "G",
        "",
    };
    struct http_client c[5];

    (void)state;
    for (size_t i = 0; i < 5; i++) {
        assert_true(http_client_open(&c[i], gateway.port));
        assert_true(http_client_send_text(&c[i], beginnings[i]));
        c[i].timeout_ms = 5000;
    }
    for (size_t i = 0; i < 5; i++) {
        enum http_result result;

        do {
            result = http_client_receive(&c[i], false);
            assert_true(result != HTTP_RESPONSE || c[i].status == 408 || c[i].status == 100);
        } while (result == HTTP_RESPONSE);
        if (result != HTTP_CLOSED && result != HTTP_RESET) {
            fail_msg("case %zu: %s", i, http_result_name(result));
        }
        http_client_close(&c[i]);
    }
    assert_value(gateway.port, "/slow", NULL, 0);
}

/* An idle connection is closed after idle_timeout; one that is used stays past it. */
static void
test_idle(void **state)
{
    int64_t begun = clock_monotonic_ms();
    struct http_client idle, busy;

    (void)state;
    assert_once(&idle, gateway.port, "GET", "/missing", NULL, NULL, 0, 404);
    assert_true(http_client_open(&busy, gateway.port));
    while (!http_client_has_input(&idle, 200)) {
        assert_true(clock_monotonic_ms() - begun < 5000);
        assert_request(&busy, "GET", "/missing", NULL, NULL, 0, 404);
    }
    assert_closed(&idle);
    assert_true(clock_monotonic_ms() - begun >= 900);
    while (clock_monotonic_ms() - begun < 2500) {
        assert_false(http_client_has_input(&busy, 200));
        assert_request(&busy, "GET", "/missing", NULL, NULL, 0, 404);
    }
    http_client_close(&busy);
    http_client_close(&idle);
}

/* Opens connections until STATUS comes; the answer stays in C, and C stays open. */
static void
open_until(struct http_client *c, int status)
{
    int64_t deadline = clock_monotonic_ms() + 5000;
    int got;

    while ((got = http_client_once(c, gateway.port, "GET", "/-/health", NULL, NULL, 0)) != status) {
        assert_true(got == 200 || got == 503 || got == -HTTP_CLOSED || got == -HTTP_RESET);
        assert_true(clock_monotonic_ms() < deadline);
        http_client_close(c);
    }
}

static void
test_too_many(void **state)
{
    struct http_client c[4], fifth;

    (void)state;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 4; i++) {
            /* Those of the round before may still be counted for a moment. */
            open_until(&c[i], 200);
        }
        for (int i = 0; i < 3; i++) {
            assert_once(&fifth, gateway.port, "GET", "/missing", NULL, NULL, 0, 503);
            assert_non_null(http_client_header(&fifth, "Retry-After"));
            assert_closed(&fifth);
            http_client_close(&fifth);
        }
        for (int i = 0; i < 4; i++) {
            assert_request(&c[i], "GET", "/missing", NULL, NULL, 0, 404);
            assert_request(&c[i], "PUT", "/few", NULL, "x", 1, GATEWAY_STORED);
        }
        http_client_close(&c[0]);
        open_until(&c[0], 200);
        for (int i = 0; i < 4; i++) {
            http_client_close(&c[i]);
        }
    }
}

/* One that connects over the limit and only speaks later hears the same. */
static void
test_too_many_silent(void **state)
{
    struct http_client c[4], fifth;

    (void)state;
    for (int i = 0; i < 4; i++) {
        open_until(&c[i], 200);
    }
    assert_true(http_client_open(&fifth, gateway.port));
    for (int i = 0; i < 4; i++) {
        assert_request(&c[i], "GET", "/missing", NULL, NULL, 0, 404);
    }
    http_client_send_text(&fifth, "GET /missing HTTP/1.1\r\nHost: t\r\n\r\n");
    assert_response(&fifth, false, 503);
    assert_closed(&fifth);
    http_client_close(&fifth);
    for (int i = 0; i < 4; i++) {
        http_client_close(&c[i]);
    }
}

/* Sends TEXT and the end in one packet, so that both are found together; then closes. */
static void
hit_and_run(const char *text, bool read_answer)
{
    struct http_client c;

    assert_true(http_client_open(&c, gateway.port));
    assert_int_equal(send(c.fd, text, strlen(text), MSG_MORE), strlen(text));
    http_client_half_close(&c);
    if (read_answer) {
        assert_int_equal(http_client_receive(&c, false), HTTP_RESPONSE);
    }
    http_client_close(&c);
}

/* Clients that have gone hold no place, whenever they went. */
static void
test_gone_are_not_counted(void **state)
{
    struct http_client c;

    (void)state;
    for (int i = 0; i < 24; i++) {
        hit_and_run("GET /missing HTTP/1.1\r\nHost: t\r\n\r\n", true);
    }
    open_until(&c, 200);
    http_client_close(&c);
    for (int i = 0; i < 24; i++) {
        hit_and_run("PUT /gone HTTP/1.1\r\nHost: t\r\nContent-Length: 9\r\n\r\n1234", false);
    }
    open_until(&c, 200);
    http_client_close(&c);
    for (int i = 0; i < 24; i++) {
        hit_and_run("GET /gone HTTP/1.1\r\nHost", false);
    }
    open_until(&c, 200);
    http_client_close(&c);
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
    const struct CMUnitTest times[] = {
        cmocka_unit_test(test_drips),
        cmocka_unit_test(test_goes_silent),
        cmocka_unit_test(test_idle),
        cmocka_unit_test(test_stops_cleanly),
    };
    const struct CMUnitTest few[] = {
        cmocka_unit_test(test_too_many),
        cmocka_unit_test(test_too_many_silent),
        cmocka_unit_test(test_gone_are_not_counted),
        cmocka_unit_test(test_stops_cleanly),
    };
    int failed = cmocka_run_group_tests_name("times", times, setup_times, teardown);

    failed += cmocka_run_group_tests_name("connections", few, setup_few, teardown);
    return failed + cmocka_run_group_tests_name("connections of two workers", few, setup_few_of_two,
                                                teardown);
}
