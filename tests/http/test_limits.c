/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_limits.c: the largest value to the byte, and what happens beyond it: 413, which reaches
 * even a client that is still writing, and the old value stays.
 */
#include "gateway.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memcached_process.h"

/* The largest values of memcached's 1 MiB items, under keys of 1 and of 250 bytes. */
#define LARGEST_1   1048516
#define LARGEST_250 1048267

static struct gateway gateway;
static struct memcached_process server;
static const char *dialect;
static char *value; /* LARGEST_1 + 1 bytes */

static int
setup(void **state)
{
    (void)state;
    value = malloc(LARGEST_1 + 1);
    gateway_fill(value, LARGEST_1 + 1, 1);
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
    free(value);
    return 0;
}

/* PUT of LEN bytes in chunks, as a stream of unknown length has it. */
static void
put_chunked(struct http_client *c, uint16_t port, const char *target, size_t len, int status)
{
    char head[512], size[32];

    assert_true(http_client_open(c, port));
    snprintf(head, sizeof(head),
             "PUT %s HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n", target);
    http_client_send_text(c, head);
    for (size_t at = 0; at < len;) {
        size_t chunk = len - at < 100000 ? len - at : 100000;

        snprintf(size, sizeof(size), "%zx\r\n", chunk);
        assert_true(http_client_send_text(c, size));
        assert_true(http_client_send(c, value + at, chunk));
        assert_true(http_client_send_text(c, "\r\n"));
        at += chunk;
    }
    assert_true(http_client_send_text(c, "0\r\n\r\n"));
    assert_response(c, false, status);
}

/* Exactly LARGEST bytes are taken; one more is refused, and the value that is there stays. */
static void
check_edge(const char *target, size_t largest)
{
    struct http_client c;

    assert_once(&c, gateway.port, "PUT", target, NULL, value + 1, largest, GATEWAY_STORED);
    http_client_close(&c);
    assert_value(gateway.port, target, value + 1, largest);
    assert_once(&c, gateway.port, "PUT", target, NULL, value, largest + 1, 413);
    assert_string_equal(http_client_header(&c, "Content-Type"), "application/problem+json");
    http_client_close(&c);
    assert_value(gateway.port, target, value + 1, largest);

    put_chunked(&c, gateway.port, target, largest, GATEWAY_STORED);
    http_client_close(&c);
    assert_value(gateway.port, target, value, largest);
    put_chunked(&c, gateway.port, target, largest + 1, 413);
    http_client_close(&c);
    assert_value(gateway.port, target, value, largest);
}

static void
test_short_key(void **state)
{
    (void)state;
    check_edge("/s", LARGEST_1);
}

static void
test_long_key(void **state)
{
    char target[252] = "/";

    (void)state;
    memset(target + 1, 'k', 250);
    target[251] = '\0';
    check_edge(target, LARGEST_250);
}

/*
 * Writes LEN bytes without looking for an answer, as most clients do, then reads it. Nothing may
 * break on the way: a reset could destroy the answer before it is read (not between two Linux
 * sockets, but elsewhere).
 */
static void
write_all_then_read(const char *headers, size_t len)
{
    struct http_client c;
    char head[256];

    assert_true(http_client_open(&c, gateway.port));
    snprintf(head, sizeof(head), "PUT /big HTTP/1.1\r\nHost: test\r\n%sContent-Length: %zu\r\n\r\n",
             headers, len);
    http_client_send_text(&c, head);
    for (size_t sent = 0; sent < len; sent += 65536) {
        assert_true(http_client_send(&c, value, len - sent < 65536 ? len - sent : 65536));
    }
    assert_response(&c, false, 413);
    assert_int_equal(http_client_await_close(&c), HTTP_CLOSED);
    http_client_close(&c);
}

static void
test_refusal_reaches_a_writer(void **state)
{
    struct http_client c;

    (void)state;
    for (int i = 0; i < 10; i++) {
        write_all_then_read("", LARGEST_1 + 1);
        write_all_then_read("", 3000000);
        write_all_then_read("Expect: 100-continue\r\n", 3000000);
    }
    assert_value(gateway.port, "/big", NULL, 0);
    /* And one that announces more than anybody would read gets its answer without sending. */
    assert_true(http_client_open(&c, gateway.port));
    http_client_send_text(
        &c, "PUT /big HTTP/1.1\r\nHost: t\r\nContent-Length: 9223372036854775807\r\n\r\n");
    assert_response(&c, false, 413);
    http_client_close(&c);
}

/* The server does not read for ever what it has refused. */
static void
test_refusal_is_bounded(void **state)
{
    struct http_client c;
    size_t sent = 0;

    (void)state;
    assert_true(http_client_open(&c, gateway.port));
    http_client_send_text(&c,
                          "PUT /big HTTP/1.1\r\nHost: t\r\nContent-Length: 1000000000000\r\n\r\n");
    while (sent < 1000000000 && http_client_send(&c, value, LARGEST_1)) {
        sent += LARGEST_1;
    }
    assert_true(sent < 1000000000);
    http_client_close(&c);
    assert_once(&c, gateway.port, "GET", "/-/health", NULL, NULL, 0, 200);
    http_client_close(&c);
}

/* The connection that saw a 413 is closed, or good for another request; never out of step. */
static void
test_after_refusal(void **state)
{
    struct http_client c;
    int status;

    (void)state;
    assert_once(&c, gateway.port, "PUT", "/big", NULL, value, LARGEST_1 + 1, 413);
    status = http_client_request(&c, "GET", "/-/health", NULL, NULL, 0);
    assert_true(status == 200 || status == -HTTP_CLOSED || status == -HTTP_RESET);
    http_client_close(&c);
}

/* A route's own limit, for bodies whose length is told and for those that come in chunks. */
static void
test_route_limit(void **state)
{
    struct gateway g;
    struct http_client c;

    (void)state;
    assert_true(gateway_start_config(&g, "[store main]\ntype = embedded\ndirectory = data\n"
                                         "[route /]\nbody_max = 1KB\n"));
    put_chunked(&c, g.port, "/route", 1024, GATEWAY_STORED);
    http_client_close(&c);
    put_chunked(&c, g.port, "/route", 1025, 413);
    http_client_close(&c);
    put_chunked(&c, g.port, "/route", 1000000, 413);
    assert_int_equal(http_client_await_close(&c), HTTP_CLOSED);
    http_client_close(&c);
    assert_value(g.port, "/route", value, 1024);
    assert_once(&c, g.port, "PUT", "/route", NULL, value + 1, 1024, GATEWAY_STORED);
    assert_request(&c, "PUT", "/route", NULL, value, 1025, 413);
    http_client_close(&c);
    assert_value(g.port, "/route", value + 1, 1024);
    assert_int_equal(gateway_stop(&g, SIGTERM), 0);
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
        cmocka_unit_test(test_short_key),
        cmocka_unit_test(test_long_key),
        cmocka_unit_test(test_refusal_reaches_a_writer),
        cmocka_unit_test(test_refusal_is_bounded),
        cmocka_unit_test(test_after_refusal),
        cmocka_unit_test(test_route_limit),
        cmocka_unit_test(test_stops_cleanly),
    };
    int failed;

    dialect = "text";
    failed = cmocka_run_group_tests_name("memcached, text", tests, setup, teardown);
    dialect = "meta";
    failed += cmocka_run_group_tests_name("memcached, meta", tests, setup, teardown);
    return failed;
}
