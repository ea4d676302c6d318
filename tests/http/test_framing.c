/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_framing.c: where a request ends and the next begins. Requests that two parsers could read
 * differently are refused and the connection is closed; requests in any pieces are understood.
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
    return gateway_start_embedded(&gateway) ? 0 : -1;
}

static int
teardown(void **state)
{
    (void)state;
    gateway_deinit(&gateway);
    return 0;
}

/* What hides behind the refused requests below: it must never run. */
#define SMUGGLED "PUT /smuggled HTTP/1.1\r\nHost: t\r\nContent-Length: 1\r\n\r\nx"

/* Sends TEXT on a connection of its own: 400 (or none of 2xx at all) and closed. */
static void
expect_refused(const char *text, size_t number)
{
    struct http_client c;
    enum http_result result;

    assert_true(http_client_open(&c, gateway.port));
    http_client_send_text(&c, text);
    http_client_send_text(&c, SMUGGLED);
    result = http_client_receive(&c, false);
    if (result != HTTP_RESPONSE || c.status != 400) {
        fail_msg("case %zu: %s %d, wanted 400", number, http_result_name(result), c.status);
    }
    assert_closed(&c);
    http_client_close(&c);
}

static void
test_ambiguous_length(void **state)
{
#define PUT "PUT /framing HTTP/1.1\r\nHost: t\r\n"
    static const char *const requests[] = {
        PUT "Content-Length: 1\r\nContent-Length: 1\r\n\r\nx",
        PUT "Content-Length: 1\r\nContent-Length: 56\r\n\r\nx",
        PUT "Content-Length: 1\r\ncontent-length: 2\r\n\r\nx",
        PUT "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        PUT "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
        PUT "Transfer-Encoding: identity\r\nContent-Length: 1\r\n\r\nx",
        PUT "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        PUT "Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n",
        PUT "Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
        PUT "Transfer-Encoding: gzip\r\n\r\n0\r\n\r\n",
        PUT "Transfer-Encoding: identity\r\n\r\n0\r\n\r\n",
        PUT "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        PUT "Transfer-Encoding: chunkedx\r\n\r\n0\r\n\r\n",
        PUT "Transfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n",
        PUT "Transfer-Encoding: \r\n\r\n0\r\n\r\n",
        PUT "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        PUT "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
        PUT "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
        PUT "Content-Length : 1\r\n\r\nx",
        PUT "X-Other : 1\r\nContent-Length: 1\r\n\r\nx",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
        expect_refused(requests[i], i);
        assert_value(gateway.port, "/framing", NULL, 0);
    }
    assert_value(gateway.port, "/smuggled", NULL, 0);
}

/* A GET has a body only when it says so; what it says must be as unambiguous. */
static void
test_ambiguous_get(void **state)
{
#define GET "GET /framing HTTP/1.1\r\nHost: t\r\n"
    static const char *const requests[] = {
        GET "Content-Length: 0\r\nContent-Length: 56\r\n\r\n",
        GET "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n",
        GET "Transfer-Encoding: gzip\r\n\r\n",
        "GET /framing HTTP/1.1\r\nHost: t\r\nHost: t\r\n\r\n",
        "GET /framing HTTP/1.1\r\nHost: t\r\nhost: other\r\n\r\n",
        "GET /framing HTTP/1.1\r\n\r\n",
        "GET /framing HTTP/1.1\r\nAccept: */*\r\n\r\n",
        "GET /framing HTTP/1.1\r\nHost : t\r\n\r\n",
        "GET /framing HTTP/1.1\r\nHost: t\r\nX-A : 1\r\n\r\n",
        "GET /framing HTTP/1.0\r\nContent-Length: 0\r\nContent-Length: 56\r\n\r\n",
        "GET /framing HTTP/1.0\r\nHost: t\r\nHost: t\r\n\r\n",
        "DELETE /framing HTTP/1.1\r\nHost: t\r\nContent-Length: 0\r\nContent-Length: 0\r\n\r\n",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
        expect_refused(requests[i], i);
    }
    assert_value(gateway.port, "/smuggled", NULL, 0);
}

/* Whether the server said 2xx anywhere in what it sent until it closed. */
static bool
says_success(struct http_client *c)
{
    while (http_client_await_close(c) == HTTP_RESPONSE) {
        if (strstr(c->input, "HTTP/1.1 2") != NULL) {
            return true;
        }
        c->used = c->len;
    }
    return false;
}

/*
 * Lengths that are no lengths. libmicrohttpd answers them on its own, and not well: all that counts
 * is a refusal, and that what follows is not taken for a request.
 */
static void
test_bad_length(void **state)
{
    static const char *const lengths[] = { "x",
                                           "-1",
                                           "+1",
                                           "1x",
                                           "0x1",
                                           "1 1",
                                           "1,1",
                                           "1, 1",
                                           "",
                                           "\xb1",
                                           "1.0",
                                           "18446744073709551617",
                                           "99999999999999999999999999" };

    (void)state;
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        struct http_client c;
        enum http_result result;
        char text[256];

        snprintf(text, sizeof(text), PUT "Content-Length: %s\r\n\r\nx", lengths[i]);
        assert_true(http_client_open(&c, gateway.port));
        http_client_send_text(&c, text);
        http_client_send_text(&c, SMUGGLED);
        result = http_client_receive(&c, false);
        if (result == HTTP_RESPONSE ? c.status != 400 && c.status != 413
                                    : result != HTTP_CLOSED && result != HTTP_RESET) {
            fail_msg("length '%s': %s %d", lengths[i], http_result_name(result), c.status);
        }
        assert_false(says_success(&c));
        http_client_close(&c);
    }
    assert_value(gateway.port, "/framing", NULL, 0);
    assert_value(gateway.port, "/smuggled", NULL, 0);
}

/* A length that is folded into the next line is a length all the same: refused. */
static void
test_folded_length(void **state)
{
    static const char *const requests[] = {
        GET "Content-Length:\r\n 57\r\n\r\n",
        GET "Content-Length:\r\n\t57\r\n\r\n",
        GET "Content-Length: \r\n 7\r\n\r\n",
        GET "Transfer-Encoding:\r\n chunked\r\n\r\n",
        GET "Transfer-Encoding: chunked\r\n ,gzip\r\n\r\n",
        GET "Transfer-Encoding: chunked\r\n x\r\n\r\n",
        PUT "Content-Length: 1\r\nTransfer-Encoding:\r\n chunked\r\n\r\nx",
        PUT "Content-Length: 1\r\nContent-Length:\r\n 57\r\n\r\nx",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
        expect_refused(requests[i], i);
    }
    assert_value(gateway.port, "/framing", NULL, 0);
    assert_value(gateway.port, "/smuggled", NULL, 0);
}

/* A NUL in the header ends no C string that matters: refused, or the connection is closed. */
static void
test_nul_in_header(void **state)
{
#define RAW(text)                                                                                  \
    {                                                                                              \
        text, sizeof(text) - 1                                                                     \
    }
    static const struct {
        const char *text;
        size_t len;
    } cases[] = {
        RAW(PUT "Content-Length: 1\0x\r\n\r\nx"),
        RAW(PUT "Content-Length\0: 1\r\nContent-Length: 1\r\n\r\nx"),
        RAW(PUT "Transfer-Encoding: chunked\0x\r\n\r\n1\r\nx\r\n0\r\n\r\n"),
        RAW(PUT "Transfer-Encoding\0: gzip\r\nContent-Length: 1\r\n\r\nx"),
        RAW("PUT /framing HTTP/1.1\r\nHo\0st: t\r\nContent-Length: 1\r\n\r\nx"),
    };
#undef RAW

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct http_client c;
        enum http_result result;

        assert_true(http_client_open(&c, gateway.port));
        http_client_send(&c, cases[i].text, cases[i].len);
        result = http_client_receive(&c, false);
        if (result == HTTP_RESPONSE ? c.status != 400
                                    : result != HTTP_CLOSED && result != HTTP_RESET) {
            fail_msg("case %zu: %s %d", i, http_result_name(result), c.status);
        }
        assert_false(says_success(&c));
        http_client_close(&c);
        assert_value(gateway.port, "/framing", NULL, 0);
    }
}

static void
test_no_length(void **state)
{
    struct http_client c;

    (void)state;
    assert_once(&c, gateway.port, "PUT", "/no-length", NULL, NULL, 0, 411);
    http_client_close(&c);
    assert_once(&c, gateway.port, "POST", "/no-length", "Content-Type: text/plain\r\n", NULL, 0,
                411);
    http_client_close(&c);
    assert_value(gateway.port, "/no-length", NULL, 0);
}

/* Connection and version: who closes when. */
static void
test_persistence(void **state)
{
    static const struct {
        const char *head; /* after "GET /missing " */
        bool stays;       /* the connection, for another request */
    } cases[] = {
        { "HTTP/1.1\r\nHost: t\r\n\r\n", true },
        { "HTTP/1.1\r\nHost: t\r\nConnection: keep-alive\r\n\r\n", true },
        { "HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n", false },
        { "HTTP/1.1\r\nHost: t\r\nconnection: CLOSE\r\n\r\n", false },
        { "HTTP/1.0\r\n\r\n", false },
        { "HTTP/1.0\r\nHost: t\r\n\r\n", false },
        { "HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", true },
        { "HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", true },
        { "HTTP/1.0\r\nConnection: close\r\n\r\n", false },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct http_client c;

        assert_true(http_client_open(&c, gateway.port));
        http_client_send_text(&c, "GET /missing ");
        http_client_send_text(&c, cases[i].head);
        assert_response(&c, false, 404);
        assert_non_null(http_client_header(&c, "Content-Length"));
        if (cases[i].stays) {
            assert_request(&c, "GET", "/-/health", NULL, NULL, 0, 200);
        } else {
            assert_closed(&c);
        }
        http_client_close(&c);
    }
}

static void
test_http_1_0_put(void **state)
{
    struct http_client c;

    (void)state;
    assert_true(http_client_open(&c, gateway.port));
    http_client_send_text(&c, "PUT /old HTTP/1.0\r\nContent-Length: 3\r\n\r\nold");
    assert_response(&c, false, GATEWAY_STORED);
    assert_closed(&c);
    http_client_close(&c);
    assert_value(gateway.port, "/old", "old", 3);
}

static void
test_pipelined_gets(void **state)
{
    struct http_client c;
    char text[2048] = "", value[32], target[32];
    size_t len = 0;

    (void)state;
    assert_true(http_client_open(&c, gateway.port));
    for (int i = 0; i < 10; i++) {
        snprintf(target, sizeof(target), "/pipe/%d", i);
        snprintf(value, sizeof(value), "value number %d", i);
        if (i != 5) {
            assert_request(&c, "PUT", target, NULL, value, strlen(value), GATEWAY_STORED);
        }
        len += (size_t)sprintf(text + len, "GET %s HTTP/1.1\r\nHost: t\r\n\r\n", target);
    }
    assert_true(http_client_send(&c, text, len));
    for (int i = 0; i < 10; i++) {
        assert_response(&c, false, i == 5 ? 404 : 200);
        if (i != 5) {
            snprintf(value, sizeof(value), "value number %d", i);
            assert_body(&c, value);
        }
    }
    assert_false(http_client_has_input(&c, 0));
    http_client_close(&c);
}

/* Each sees what came before it on the same connection. */
static void
test_pipelined_mix(void **state)
{
    struct http_client c;
    char text[512];

    (void)state;
    assert_true(http_client_open(&c, gateway.port));
    for (int i = 0; i < 50; i++) {
        snprintf(text, sizeof(text),
                 "PUT /mix HTTP/1.1\r\nHost: t\r\nContent-Length: 8\r\n\r\nold %04d"
                 "GET /mix HTTP/1.1\r\nHost: t\r\n\r\n"
                 "PUT /mix HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n"
                 "8\r\nnew %04d\r\n0\r\n\r\n"
                 "GET /mix HTTP/1.1\r\nHost: t\r\n\r\n"
                 "HEAD /mix HTTP/1.1\r\nHost: t\r\n\r\n"
                 "DELETE /mix HTTP/1.1\r\nHost: t\r\n\r\n"
                 "GET /mix HTTP/1.1\r\nHost: t\r\n\r\n",
                 i, i);
        assert_true(http_client_send_text(&c, text));
        assert_response(&c, false, GATEWAY_STORED);
        assert_response(&c, false, 200);
        assert_memory_equal(c.body, "old ", 4);
        assert_int_equal(atoi(c.body + 4), i);
        assert_response(&c, false, GATEWAY_STORED);
        assert_response(&c, false, 200);
        assert_memory_equal(c.body, "new ", 4);
        assert_int_equal(atoi(c.body + 4), i);
        assert_response(&c, true, 200);
        assert_response(&c, false, 204);
        assert_response(&c, false, 404);
    }
    http_client_close(&c);
}

/* A request cut in two at every place, and one sent byte by byte. */
static void
test_any_pieces(void **state)
{
    static const char put[] = "PUT /pieces HTTP/1.1\r\nHost: t\r\nContent-Length: 6\r\n\r\npieces";
    static const char chunked[] = "PUT /pieces HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: "
                                  "chunked\r\n\r\n3;x\r\npie\r\n3\r\nces\r\n0\r\nT: x\r\n\r\n";
    static const char *const requests[] = { put, chunked };
    struct http_client c;

    (void)state;
    assert_true(http_client_open(&c, gateway.port));
    for (size_t r = 0; r < 2; r++) {
        size_t len = strlen(requests[r]);

        for (size_t cut = 1; cut < len; cut++) {
            assert_true(http_client_send(&c, requests[r], cut));
            assert_true(http_client_send(&c, requests[r] + cut, len - cut));
            assert_response(&c, false, GATEWAY_STORED);
        }
        for (size_t i = 0; i < len; i++) {
            assert_true(http_client_send(&c, requests[r] + i, 1));
        }
        assert_response(&c, false, GATEWAY_STORED);
        assert_request(&c, "GET", "/pieces", NULL, NULL, 0, 200);
        assert_body(&c, "pieces");
    }
    http_client_close(&c);
}

/* Says "no more" right behind its request; that is no reason not to answer. */
static void
test_half_closed(void **state)
{
    struct http_client idle, c;

    (void)state;
    assert_true(http_client_open(&idle, gateway.port));
    assert_request(&idle, "PUT", "/half", NULL, "half", 4, GATEWAY_STORED);
    for (int i = 0; i < 20; i++) {
        assert_true(http_client_open(&c, gateway.port));
        http_client_send_text(&c, "GET /half HTTP/1.1\r\nHost: t\r\n\r\n");
        http_client_half_close(&c);
        assert_response(&c, false, 200);
        assert_body(&c, "half");
        http_client_close(&c);

        assert_true(http_client_open(&c, gateway.port));
        http_client_send_text(&c, "PUT /half HTTP/1.1\r\nHost: t\r\nContent-Length: 4\r\n\r\n");
        http_client_send_text(&c, "HALF");
        http_client_half_close(&c);
        assert_response(&c, false, GATEWAY_STORED);
        http_client_close(&c);
        assert_request(&idle, "PUT", "/half", NULL, "half", 4, GATEWAY_STORED);
    }
    http_client_close(&idle);
}

static void
vanish(const char *text, bool reset)
{
    struct http_client c;

    assert_true(http_client_open(&c, gateway.port));
    assert_true(http_client_send_text(&c, text));
    if (reset) {
        http_client_abort(&c);
    } else {
        http_client_close(&c);
    }
}

/* A client that disappears in the middle of a body has stored nothing. */
static void
test_vanishes(void **state)
{
    static const char *const beginnings[] = {
        "PUT /vanish HTTP/1.1\r\nHost: t\r\nContent-Length: 10\r\n\r\n12345",
        "PUT /vanish HTTP/1.1\r\nHost: t\r\nContent-Length: 1000000\r\n\r\n12345",
        "PUT /vanish HTTP/1.1\r\nHost: t\r\nContent-Length: 10\r\n\r\n",
        "PUT /vanish HTTP/1.1\r\nHost: t\r\nContent-",
        "PUT /vanish HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n",
        "PUT /vanish HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n0\r\n",
        "PUT /vanish HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n123",
        "PUT /van",
    };
    struct http_client c;

    (void)state;
    assert_once(&c, gateway.port, "PUT", "/vanish", NULL, "old", 3, GATEWAY_STORED);
    for (size_t i = 0; i < sizeof(beginnings) / sizeof(beginnings[0]); i++) {
        vanish(beginnings[i], true);
        vanish(beginnings[i], false);
        assert_value(gateway.port, "/vanish", "old", 3);
    }
    assert_request(&c, "GET", "/vanish", NULL, NULL, 0, 200);
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
        cmocka_unit_test(test_ambiguous_length), cmocka_unit_test(test_ambiguous_get),
        cmocka_unit_test(test_bad_length),       cmocka_unit_test(test_no_length),
        cmocka_unit_test(test_folded_length),    cmocka_unit_test(test_nul_in_header),
        cmocka_unit_test(test_persistence),      cmocka_unit_test(test_http_1_0_put),
        cmocka_unit_test(test_pipelined_gets),   cmocka_unit_test(test_pipelined_mix),
        cmocka_unit_test(test_any_pieces),       cmocka_unit_test(test_half_closed),
        cmocka_unit_test(test_vanishes),         cmocka_unit_test(test_stops_cleanly),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
