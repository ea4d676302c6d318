/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_ttl.c: ?ttl= on writes: values expire, the remaining time comes back where the store tells
 * it, and what is no number of seconds is refused.
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
static const char *dialect; /* NULL: the embedded store */

static int
setup(void **state)
{
    (void)state;
    if (dialect == NULL) {
        return gateway_start_embedded(&gateway) ? 0 : -1;
    }
    return memcached_process_start(&server, NULL) &&
                   gateway_start_config(&gateway, GATEWAY_MEMCACHED, dialect, (unsigned)server.port)
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

/* Whether this store tells how long a value has left. */
static bool
tells_ttl(void)
{
    return dialect == NULL || strcmp(dialect, "meta") == 0;
}

/* KV-TTL of the last response on C lies in LOW..HIGH; low -1: there is none. */
static void
expect_left(struct http_client *c, long low, long high)
{
    const char *left = http_client_header(c, "KV-TTL");
    char *end;
    long seconds;

    if (low == -1 || !tells_ttl()) {
        assert_null(left);
        return;
    }
    assert_non_null(left);
    seconds = strtol(left, &end, 10);
    assert_true(end != left && *end == '\0');
    assert_in_range(seconds, low, high);
}

/* Beyond 30 days memcached is given a date, and its own clock may be two seconds late. */
static void
test_remaining(void **state)
{
    static const struct {
        const char *target;
        long low, high;
    } cases[] = {
        { "/ttl/100?ttl=100", 95, 100 },
        { "/ttl/100a?a=b&ttl=100&c", 95, 100 },
        { "/ttl/30-days?ttl=2592000", 2591990, 2592000 },
        { "/ttl/more-than-30-days?ttl=2592001", 2591990, 2592003 },
        { "/ttl/year?ttl=31536000", 31535990, 31536002 },
        { "/ttl/leading-zero?ttl=0100", 95, 100 },
        { "/ttl/none", -1, 0 },
        { "/ttl/ever?ttl=0", -1, 0 },
    };
    struct http_client c;

    (void)state;
    assert_true(http_client_open(&c, gateway.port));
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_request(&c, "PUT", cases[i].target, NULL, "v", 1, GATEWAY_STORED);
        assert_request(&c, "GET", cases[i].target, NULL, NULL, 0, 200);
        expect_left(&c, cases[i].low, cases[i].high);
        assert_request(&c, "HEAD", cases[i].target, NULL, NULL, 0, 200);
        expect_left(&c, cases[i].low, cases[i].high);
    }
    /* A later write without ttl lifts it. */
    assert_request(&c, "POST", "/ttl/100", NULL, "v", 1, GATEWAY_STORED);
    assert_request(&c, "GET", "/ttl/100", NULL, NULL, 0, 200);
    expect_left(&c, -1, 0);
    http_client_close(&c);
}

static void
test_refused(void **state)
{
    static const char *const refused[] = { "abc",
                                           "",
                                           "-1",
                                           "1.5",
                                           "1e3",
                                           "%201",
                                           "1%20",
                                           "+1",
                                           "0x10",
                                           "1s",
                                           "18446744073709551616",
                                           "99999999999999999999999",
                                           "3155760001",
                                           "18446744073709551615",
                                           "4294967297000",
                                           "1%00",
                                           "%" };
    struct http_client c;
    char target[128];

    (void)state;
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        snprintf(target, sizeof(target), "/ttl/refused?ttl=%s", refused[i]);
        assert_once(&c, gateway.port, "PUT", target, NULL, "v", 1, 400);
        http_client_close(&c);
    }
    assert_once(&c, gateway.port, "PUT", "/ttl/refused?ttl", NULL, "v", 1, 400);
    http_client_close(&c);
    assert_value(gateway.port, "/ttl/refused", NULL, 0);
}

/* A refused ttl leaves what was there. */
static void
test_refused_keeps_value(void **state)
{
    struct http_client c;

    (void)state;
    assert_once(&c, gateway.port, "PUT", "/ttl/kept", NULL, "old", 3, GATEWAY_STORED);
    http_client_close(&c);
    assert_once(&c, gateway.port, "PUT", "/ttl/kept?ttl=soon", NULL, "new", 3, 400);
    http_client_close(&c);
    assert_value(gateway.port, "/ttl/kept", "old", 3);
}

static void
test_expires(void **state)
{
    int64_t begun = clock_monotonic_ms();
    struct http_client c;
    int status;

    (void)state;
    assert_true(http_client_open(&c, gateway.port));
    assert_request(&c, "PUT", "/ttl/short?ttl=1", NULL, "v", 1, GATEWAY_STORED);
    assert_request(&c, "PUT", "/ttl/long?ttl=1000", NULL, "v", 1, GATEWAY_STORED);
    do {
        status = http_client_request(&c, "GET", "/ttl/short", NULL, NULL, 0);
        if (status == 200) {
            expect_left(&c, 0, 1);
            nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
        }
    } while (status == 200 && clock_monotonic_ms() - begun < 5000);
    assert_int_equal(status, 404);
    assert_request(&c, "HEAD", "/ttl/short", NULL, NULL, 0, 404);
    assert_request(&c, "DELETE", "/ttl/short", NULL, NULL, 0, 404);
    assert_request(&c, "GET", "/ttl/long", NULL, NULL, 0, 200);
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
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_remaining),           cmocka_unit_test(test_refused),
        cmocka_unit_test(test_refused_keeps_value), cmocka_unit_test(test_expires),
        cmocka_unit_test(test_stops_cleanly),
    };
    int failed = cmocka_run_group_tests_name("embedded", tests, setup, teardown);

    dialect = "text";
    failed += cmocka_run_group_tests_name("memcached, text", tests, setup, teardown);
    dialect = "meta";
    failed += cmocka_run_group_tests_name("memcached, meta", tests, setup, teardown);
    return failed;
}
