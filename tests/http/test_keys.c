/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_keys.c: from the request target to the key: what names the same value, what names another,
 * what names none, and what is not a key at all.
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
put(const char *target, const char *value)
{
    struct http_client c;

    assert_once(&c, gateway.port, "PUT", target, NULL, value, strlen(value), GATEWAY_STORED);
    http_client_close(&c);
}

static void
expect_status(const char *method, const char *target, const char *body, int status)
{
    struct http_client c;

    assert_once(&c, gateway.port, method, target, NULL, body, body == NULL ? 0 : strlen(body),
                status);
    http_client_close(&c);
}

/* Pairs of targets that are one key. What was put under the first is read under the second. */
static void
test_same_key(void **state)
{
    static const char *const pairs[][2] = {
        { "/same/plus+a", "/same/plus%2Ba" },
        { "/same%2Fslash", "/same/slash" },
        { "/same%2fslash-2", "/same/slash-2" },
        { "/same/letter%41", "/same/letterA" },
        { "/same/unreserved-%7E%2E%5F", "/same/unreserved-~._" },
        { "/same/query?x=1&y=2", "/same/query" },
        { "/same/no-query?", "/same/no-query" },
        { "/same/%3Fquestion", "/same/%3fquestion" },
        { "/same/utf-%C3%A9", "/same/utf-\xc3\xa9" },
        { "/same/high-%e9%FF%80", "/same/high-\xe9\xff\x80" },
        { "/same/percent-%25%34%31", "/same/percent-%2541" },
        { "/same/punctuation-!$&'()*,;=:@",
          "/same/punctuation-%21%24%26%27%28%29%2A%2C%3B%3D%3A%40" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        char value[32];

        snprintf(value, sizeof(value), "pair %zu", i);
        put(pairs[i][0], value);
        assert_value(gateway.port, pairs[i][1], value, strlen(value));
    }
}

/* Keys that look alike and are not. Each keeps its own value. */
static void
test_different_keys(void **state)
{
    static const char *const targets[] = {
        "/diff/a+b",  "/diff//a",  "/diff/a",      "/diff/./a",    "/diff/b/../a",  "//diff/a",
        "/diff/A",    "/diff/a/",  "/diff/a//",    "/diff/%252Fa", "/diff/%2525a",  "/diff/a%3Fx=1",
        "/diff/a%23", "/diff/a;v", "/diff/%C3%A9", "/diff/%E9",    "/diff/e%CC%81", "/.",
        "/..",        "//",        "/-",           "/--/health",   "/diff/a%2Bb%2B"
    };

    (void)state;
    for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
        put(targets[i], targets[i]);
    }
    for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
        assert_value(gateway.port, targets[i], targets[i], strlen(targets[i]));
    }
}

/* A target whose key is KEY_LEN times "k". ENCODED writes each as %6B. */
static void
make_long(char *target, size_t key_len, bool encoded)
{
    char *at = target;

    *at++ = '/';
    for (size_t i = 0; i < key_len; i++) {
        at += sprintf(at, "%s", encoded ? "%6B" : "k");
    }
}

static void
test_length(void **state)
{
    char target[4096];

    (void)state;
    make_long(target, 250, false);
    put(target, "250");
    assert_value(gateway.port, target, "250", 3);
    make_long(target, 250, true);
    assert_value(gateway.port, target, "250", 3);
    make_long(target, 249, false);
    assert_value(gateway.port, target, NULL, 0);

    make_long(target, 251, false);
    expect_status("GET", target, NULL, 414);
    expect_status("PUT", target, "x", 414);
    expect_status("DELETE", target, NULL, 414);
    make_long(target, 251, true);
    expect_status("PUT", target, "x", 414);
    make_long(target, 1000, false);
    expect_status("GET", target, NULL, 414);
}

/* Each is refused as a key with 400, for reading and writing alike. */
static void
test_bad_keys(void **state)
{
    static const char *const targets[] = {
        "/bad%00",  "/%00",      "/bad%00tail", "/bad%20x", "/bad%0d%0aget%20x",
        "/bad%0Ax", "/bad%09x",  "/bad%01",     "/bad%1F",  "/bad%7F",
        "/bad%",    "/bad%4",    "/bad%zz",     "/bad%4g",  "/bad%g4",
        "/bad%%41", "/bad%2",    "/bad%u0041",  "/",        "/?x=1",
        "/bad\x7f", "/bad\x01x", "/bad%-1x",    "/bad%+1x", "/bad%0x41",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
        expect_status("GET", targets[i], NULL, 400);
        expect_status("PUT", targets[i], "value", 400);
        expect_status("DELETE", targets[i], NULL, 400);
    }
    /* Nothing was stored under the part before the bad byte. */
    assert_value(gateway.port, "/bad", NULL, 0);
    assert_value(gateway.port, "/badx", NULL, 0);
}

/* Request lines that no client library would write: 400, or closed without an answer. */
static void
test_raw_targets(void **state)
{
#define RAW(text)                                                                                  \
    {                                                                                              \
        text, sizeof(text) - 1                                                                     \
    }
    static const struct {
        const char *request;
        size_t len;
    } cases[] = {
        RAW("PUT /raw\0tail HTTP/1.1\r\nHost: t\r\nContent-Length: 1\r\n\r\nx"),
        RAW("PUT /\0raw HTTP/1.1\r\nHost: t\r\nContent-Length: 1\r\n\r\nx"),
        RAW("PUT /raw\0 HTTP/1.1\r\nHost: t\r\nContent-Length: 1\r\n\r\nx"),
        RAW("PUT /raw x HTTP/1.1\r\nHost: t\r\nContent-Length: 1\r\n\r\nx"),
        RAW("PUT /raw%2 0 HTTP/1.1\r\nHost: t\r\nContent-Length: 1\r\n\r\nx"),
        RAW("PUT /raw\tx HTTP/1.1\r\nHost: t\r\nContent-Length: 1\r\n\r\nx"),
        RAW("PUT raw HTTP/1.1\r\nHost: t\r\nContent-Length: 1\r\n\r\nx"),
        RAW("PUT http://host HTTP/1.1\r\nHost: t\r\nContent-Length: 1\r\n\r\nx"),
        RAW("PUT http://host?raw HTTP/1.1\r\nHost: t\r\nContent-Length: 1\r\n\r\nx"),
        RAW("PUT * HTTP/1.1\r\nHost: t\r\nContent-Length: 1\r\n\r\nx"),
        RAW("PUT /raw\r\nHost: t\r\nContent-Length: 1\r\n\r\nx"),
        RAW("\0PUT /raw HTTP/1.1\r\nHost: t\r\nContent-Length: 1\r\n\r\nx"),
    };
#undef RAW

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct http_client c;
        enum http_result result;

        assert_true(http_client_open(&c, gateway.port));
        http_client_send(&c, cases[i].request, cases[i].len);
        result = http_client_receive(&c, false);
        if (result == HTTP_RESPONSE ? c.status != 400
                                    : result != HTTP_CLOSED && result != HTTP_RESET) {
            fail_msg("case %zu: %s %d", i, http_result_name(result), c.status);
        }
        http_client_close(&c);
    }
    assert_value(gateway.port, "/raw", NULL, 0);
    assert_value(gateway.port, "/host", NULL, 0);
}

static void
expect_absolute(const char *target, const char *value)
{
    struct http_client c;

    assert_once(&c, gateway.port, "GET", target, NULL, NULL, 0, 200);
    assert_body(&c, value);
    http_client_close(&c);
}

static void
test_absolute_form(void **state)
{
    (void)state;
    put("/absolute/a", "one");
    expect_absolute("http://host/absolute/a", "one");
    expect_absolute("HTTP://host:8085/absolute/a?x", "one");
    expect_absolute("http://host/absolute%2Fa", "one");
    put("http://other/absolute/b", "two");
    assert_value(gateway.port, "/absolute/b", "two", 3);
    /* An authority without a path has no key; its name is none. */
    expect_status("GET", "http://host", NULL, 400);
    expect_status("GET", "http://host/", NULL, 400);
    /* In a path it is text like any other. */
    put("/http://host/absolute/a", "three");
    expect_absolute("/http://host/absolute/a", "three");
    expect_absolute("http://host/absolute/a", "one");
}

static void
expect_allow(const char *method, const char *target, int status)
{
    struct http_client c;
    const char *allow;

    assert_once(&c, gateway.port, method, target, NULL, NULL, 0, status);
    allow = http_client_header(&c, "Allow");
    assert_non_null(allow);
    assert_non_null(strstr(allow, "GET"));
    assert_non_null(strstr(allow, "HEAD"));
    assert_non_null(strstr(allow, "PUT"));
    assert_non_null(strstr(allow, "POST"));
    assert_non_null(strstr(allow, "DELETE"));
    http_client_close(&c);
}

static void
test_methods(void **state)
{
    static const char *const refused[] = { "PATCH",    "TRACE", "get", "BREW",
                                           "PROPFIND", "GETT",  "GE",  "Put" };

    (void)state;
    put("/method", "old");
    expect_allow("OPTIONS", "/method", 204);
    expect_allow("OPTIONS", "/never-stored", 204);
    expect_allow("OPTIONS", "*", 204);
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        expect_allow(refused[i], "/method", 405);
    }
    expect_status("PATCH", "/method", "new", 405);
    assert_value(gateway.port, "/method", "old", 3);
}

/* Its target is a host, not a path; it is the method that is refused. */
static void
test_connect(void **state)
{
    (void)state;
    expect_allow("CONNECT", "host:80", 405);
}

static void
test_own_paths(void **state)
{
    struct http_client c;

    (void)state;
    expect_status("GET", "/-/health", NULL, 200);
    expect_status("HEAD", "/-/health", NULL, 200);
    expect_status("GET", "/-/health?x=1", NULL, 200);
    expect_status("GET", "/-/ready", NULL, 200);
    expect_status("GET", "/-/nothing", NULL, 404);
    expect_status("GET", "/-/", NULL, 404);
    expect_status("GET", "/-/healthy", NULL, 404);
    expect_status("GET", "/-/health/x", NULL, 404);
    /* They are nobody's key: nothing can be stored there. */
    http_client_once(&c, gateway.port, "PUT", "/-/nothing", NULL, "x", 1);
    assert_true(c.status == 404 || c.status == 405);
    http_client_close(&c);
    assert_value(gateway.port, "/-/nothing", NULL, 0);
    /* Several on one connection. */
    assert_true(http_client_open(&c, gateway.port));
    assert_request(&c, "GET", "/-/health", NULL, NULL, 0, 200);
    assert_request(&c, "GET", "/-/ready", NULL, NULL, 0, 200);
    assert_request(&c, "GET", "/-/nothing", NULL, NULL, 0, 404);
    assert_request(&c, "GET", "/-/health", NULL, NULL, 0, 200);
    http_client_close(&c);
}

static void
test_unknown_parameters(void **state)
{
    (void)state;
    put("/parameter?color=blue&x&=&&ttl2=5&TTL=x", "v");
    expect_status("GET", "/parameter?ttlx=abc", NULL, 200);
    expect_status("HEAD", "/parameter?%zz&%00=%", NULL, 200);
    expect_status("DELETE", "/parameter?why=because", NULL, 204);
    assert_value(gateway.port, "/parameter", NULL, 0);
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
        cmocka_unit_test(test_same_key),      cmocka_unit_test(test_different_keys),
        cmocka_unit_test(test_length),        cmocka_unit_test(test_bad_keys),
        cmocka_unit_test(test_raw_targets),   cmocka_unit_test(test_absolute_form),
        cmocka_unit_test(test_methods),       cmocka_unit_test(test_connect),
        cmocka_unit_test(test_own_paths),     cmocka_unit_test(test_unknown_parameters),
        cmocka_unit_test(test_stops_cleanly),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
