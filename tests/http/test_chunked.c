/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_chunked.c: bodies that come in chunks: every form that is allowed means the same value, and
 * what is malformed stores nothing.
 */
#include "gateway.h"

#include <signal.h>
#include <stdio.h>
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

static void
test_chunked_in_any_case(void **state)
{
    static const char *const codings[] = { "chunked", "Chunked", "CHUNKED", "cHuNkEd" };

    (void)state;
    for (size_t i = 0; i < sizeof(codings) / sizeof(codings[0]); i++) {
        struct http_client c;
        char text[256];

        snprintf(text, sizeof(text),
                 "PUT /case-%zu HTTP/1.1\r\nHost: t\r\ntransfer-encoding: %s\r\n\r\n"
                 "4\r\nbody\r\n0\r\n\r\n",
                 i, codings[i]);
        assert_true(http_client_open(&c, gateway.port));
        assert_true(http_client_send_text(&c, text));
        assert_response(&c, false, GATEWAY_STORED);
        snprintf(text, sizeof(text), "/case-%zu", i);
        assert_value(gateway.port, text, "body", 4);
        http_client_close(&c);
    }
}

static void
test_chunked_forms(void **state)
{
    static const char *const bodies[] = {
        "8\r\nabcdefgh\r\n0\r\n\r\n",
        "1\r\na\r\n1\r\nb\r\n6\r\ncdefgh\r\n0\r\n\r\n",
        "1\r\na\r\n1\r\nb\r\n1\r\nc\r\n1\r\nd\r\n1\r\ne\r\n1\r\nf\r\n1\r\ng\r\n1\r\nh\r\n0\r\n\r\n",
        "4;name=value\r\nabcd\r\n4;x\r\nefgh\r\n0;last\r\n\r\n",
        "4;name=\"quo;ted\"\r\nabcd\r\n4\r\nefgh\r\n0\r\n\r\n",
        "8\r\nabcdefgh\r\n0\r\nTrailer: one\r\nX-Other: two\r\n\r\n",
        "8\r\nabcdefgh\r\n0\r\nContent-Length: 3\r\nHost: other\r\n\r\n",
        "00000008\r\nabcdefgh\r\n000\r\n\r\n",
    };
    struct http_client c;
    char target[64], head[256];

    (void)state;
    assert_true(http_client_open(&c, gateway.port));
    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        snprintf(target, sizeof(target), "/chunks-%zu", i);
        snprintf(head, sizeof(head),
                 "PUT %s HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n", target);
        assert_true(http_client_send_text(&c, head));
        assert_true(http_client_send_text(&c, bodies[i]));
        assert_response(&c, false, GATEWAY_STORED);
        assert_value(gateway.port, target, "abcdefgh", 8);
    }
    http_client_close(&c);
}

/* Bytes in hexadecimal upper and lower case. */
static void
test_chunk_size_digits(void **state)
{
    static const char *const sizes[] = { "1a", "1A", "001a" };
    struct http_client c;
    char value[26], text[256];

    (void)state;
    memset(value, 'v', sizeof(value));
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        snprintf(text, sizeof(text),
                 "PUT /digits-%zu HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n"
                 "%s\r\n%.26s\r\n0\r\n\r\n",
                 i, sizes[i], value);
        assert_true(http_client_open(&c, gateway.port));
        assert_true(http_client_send_text(&c, text));
        assert_response(&c, false, GATEWAY_STORED);
        http_client_close(&c);
        snprintf(text, sizeof(text), "/digits-%zu", i);
        assert_value(gateway.port, text, value, sizeof(value));
    }
}

static void
test_malformed_chunks(void **state)
{
    static const char *const bodies[] = {
        "x\r\nabcd\r\n0\r\n\r\n",
        "-4\r\nabcd\r\n0\r\n\r\n",
        "\r\nabcd\r\n0\r\n\r\n",
        "4\r\nabcdX\r\n0\r\n\r\n",
        "4\r\nabcde\r\n0\r\n\r\n",
        "0x4\r\nabcd\r\n0\r\n\r\n",
        "fffffffffffffffff\r\nabcd\r\n0\r\n\r\n",
        "4 4\r\nabcd\r\n0\r\n\r\n",
        "4\r\nabcd\r\nzz\r\n\r\n",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        struct http_client c;
        enum http_result result;

        assert_true(http_client_open(&c, gateway.port));
        http_client_send_text(
            &c, "PUT /framing HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n");
        http_client_send_text(&c, bodies[i]);
        result = http_client_receive(&c, false);
        if (result == HTTP_RESPONSE ? c.status != 400 && c.status != 413
                                    : result != HTTP_CLOSED && result != HTTP_RESET) {
            fail_msg("chunks %zu: %s %d", i, http_result_name(result), c.status);
        }
        assert_closed(&c);
        http_client_close(&c);
        assert_value(gateway.port, "/framing", NULL, 0);
    }
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
        cmocka_unit_test(test_chunked_in_any_case), cmocka_unit_test(test_chunked_forms),
        cmocka_unit_test(test_chunk_size_digits),   cmocka_unit_test(test_malformed_chunks),
        cmocka_unit_test(test_stops_cleanly),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
