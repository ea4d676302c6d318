/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_expect.c: Expect: 100-continue. The 100 comes before any of the body when the body is
 * wanted; a refusal comes instead of it when it is not.
 */
#include "gateway.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct gateway gateway;

static int
setup(void **state)
{
    (void)state;
    return gateway_start_config(&gateway, "[store main]\ntype = embedded\ndirectory = data\n"
                                          "[route /]\nbody_max = 1KB\n")
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

/* Opens a connection and sends METHOD TARGET VERSION with these header lines, and no body. */
static void
send_head(struct http_client *c, const char *line, const char *headers)
{
    assert_true(http_client_open(c, gateway.port));
    assert_true(http_client_send_text(c, line));
    assert_true(http_client_send_text(c, "\r\nHost: test\r\n"));
    assert_true(http_client_send_text(c, headers));
    assert_true(http_client_send_text(c, "\r\n"));
}

static void
test_continue(void **state)
{
    static const struct {
        const char *line, *headers, *body;
    } cases[] = {
        { "PUT /expect HTTP/1.1", "Expect: 100-continue\r\nContent-Length: 5\r\n", "abcde" },
        { "POST /expect HTTP/1.1", "Content-Length: 5\r\nExpect: 100-Continue\r\n", "fghij" },
        { "PUT /expect HTTP/1.1", "Expect: 100-CONTINUE\r\nTransfer-Encoding: chunked\r\n",
          "5\r\nklmno\r\n0\r\n\r\n" },
        { "PUT /expect?ttl=100 HTTP/1.1", "expect:100-continue\r\nContent-Length: 1024\r\n", NULL },
    };
    static const char *const values[] = { "abcde", "fghij", "klmno", NULL };
    char large[1025];

    (void)state;
    memset(large, 'v', 1024);
    large[1024] = '\0';
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct http_client c;
        const char *value = values[i] == NULL ? large : values[i];

        send_head(&c, cases[i].line, cases[i].headers);
        assert_response(&c, false, 100);
        assert_true(http_client_send_text(&c, cases[i].body == NULL ? large : cases[i].body));
        assert_response(&c, false, GATEWAY_STORED);
        assert_request(&c, "GET", "/expect", NULL, NULL, 0, 200);
        assert_body(&c, value);
        http_client_close(&c);
    }
}

/* The first answer is the refusal. The client never sends its body and must not need to. */
static void
test_refused_instead(void **state)
{
#define EXPECT "Expect: 100-continue\r\n"
    static const struct {
        const char *line, *headers;
        int status;
    } cases[] = {
        { "PATCH /refused HTTP/1.1", EXPECT "Content-Length: 5\r\n", 405 },
        { "PUT / HTTP/1.1", EXPECT "Content-Length: 5\r\n", 400 },
        { "PUT /refused%00 HTTP/1.1", EXPECT "Content-Length: 5\r\n", 400 },
        { "PUT /refused?ttl=x HTTP/1.1", EXPECT "Content-Length: 5\r\n", 400 },
        { "PUT /refused?ttl=x HTTP/1.1", EXPECT "Transfer-Encoding: chunked\r\n", 400 },
        { "PUT /refused HTTP/1.1", EXPECT "Content-Length: 1025\r\n", 413 },
        { "POST /refused HTTP/1.1", EXPECT "Content-Length: 100000000000\r\n", 413 },
        { "PUT /refused HTTP/1.1", EXPECT, 411 },
        { "PUT /refused HTTP/1.1", "Expect: the-unexpected\r\nContent-Length: 5\r\n", 417 },
        { "PUT /refused HTTP/1.1", "Expect: 100-continue, x=y\r\nContent-Length: 5\r\n", 417 },
        { "PUT /refused HTTP/1.1", "Expect: 200-ok\r\nTransfer-Encoding: chunked\r\n", 417 },
        { "PUT /refused HTTP/1.1", EXPECT "Content-Length: 5\r\nContent-Length: 5\r\n", 400 },
        { "PUT /refused HTTP/1.1", EXPECT "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
          400 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct http_client c;

        send_head(&c, cases[i].line, cases[i].headers);
        if (http_client_receive(&c, false) != HTTP_RESPONSE || c.status != cases[i].status) {
            fail_msg("case %zu: %d, wanted %d", i, c.status, cases[i].status);
        }
        http_client_close(&c);
    }
    assert_value(gateway.port, "/refused", NULL, 0);
}

static void
test_refused_long_key(void **state)
{
    struct http_client c;
    char line[512] = "PUT /";

    (void)state;
    memset(line + 5, 'k', 251);
    strcpy(line + 5 + 251, " HTTP/1.1");
    send_head(&c, line, EXPECT "Content-Length: 5\r\n");
    assert_response(&c, false, 414);
    http_client_close(&c);
}

/* A client may send its body all the same, at once or after the refusal; it still gets it. */
static void
test_refused_with_body(void **state)
{
    struct http_client c;
    char *body = calloc(1, 200000);

    (void)state;
    assert_once(&c, gateway.port, "PUT", "/refused", EXPECT, body, 200000, 413);
    http_client_close(&c);
    send_head(&c, "PUT /refused HTTP/1.1", EXPECT "Content-Length: 200000\r\n");
    assert_response(&c, false, 413);
    http_client_send(&c, body, 200000);
    http_client_close(&c);
    assert_value(gateway.port, "/refused", NULL, 0);
    free(body);
}

/* HTTP/1.0 knows no 100: it would be taken for the answer. */
static void
test_http_1_0(void **state)
{
    struct http_client c;

    (void)state;
    send_head(&c, "PUT /old HTTP/1.0", EXPECT "Content-Length: 3\r\n");
    assert_false(http_client_has_input(&c, 50));
    assert_true(http_client_send_text(&c, "old"));
    assert_response(&c, false, GATEWAY_STORED);
    http_client_close(&c);
    assert_value(gateway.port, "/old", "old", 3);
}

/* Reads past a 100 that is allowed but not needed. */
static void
receive_final(struct http_client *c)
{
    assert_int_equal(http_client_receive(c, false), HTTP_RESPONSE);
    if (c->status == 100) {
        assert_int_equal(http_client_receive(c, false), HTTP_RESPONSE);
    }
}

static void
test_body_already_sent(void **state)
{
    struct http_client c;
    char value[16];

    (void)state;
    assert_true(http_client_open(&c, gateway.port));
    for (int i = 0; i < 20; i++) {
        snprintf(value, sizeof(value), "%05d", i);
        assert_true(http_client_send_text(&c, "PUT /eager HTTP/1.1\r\nHost: t\r\n" EXPECT
                                              "Content-Length: 5\r\n\r\n"));
        assert_true(http_client_send_text(&c, value));
        receive_final(&c);
        assert_true(c.status == 201 || c.status == 204);
        assert_request(&c, "GET", "/eager", NULL, NULL, 0, 200);
        assert_body(&c, value);
    }
    http_client_close(&c);
}

/* An expectation without a body is met already; what is pipelined behind it is not its body. */
static void
test_without_body(void **state)
{
    struct http_client c;

    (void)state;
    assert_once(&c, gateway.port, "PUT", "/plain", NULL, "plain", 5, GATEWAY_STORED);
    for (int i = 0; i < 20; i++) {
        assert_true(http_client_send_text(&c, "GET /plain HTTP/1.1\r\nHost: t\r\n" EXPECT "\r\n"
                                              "GET /plain?2 HTTP/1.1\r\nHost: t\r\n\r\n"));
        receive_final(&c);
        assert_int_equal(c.status, 200);
        assert_body(&c, "plain");
        assert_response(&c, false, 200);
        assert_body(&c, "plain");

        assert_true(http_client_send_text(&c, "PUT /empty HTTP/1.1\r\nHost: t\r\n" EXPECT
                                              "Content-Length: 0\r\n\r\n"
                                              "GET /empty HTTP/1.1\r\nHost: t\r\n\r\n"));
        receive_final(&c);
        assert_true(c.status == 201 || c.status == 204);
        assert_response(&c, false, 200);
        assert_int_equal(c.body_len, 0);
    }
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
        cmocka_unit_test(test_continue),         cmocka_unit_test(test_refused_instead),
        cmocka_unit_test(test_refused_long_key), cmocka_unit_test(test_refused_with_body),
        cmocka_unit_test(test_http_1_0),         cmocka_unit_test(test_body_already_sent),
        cmocka_unit_test(test_without_body),     cmocka_unit_test(test_stops_cleanly),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
