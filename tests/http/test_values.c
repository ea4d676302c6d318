/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_values.c: values of every size go in by every way a client can send one, and come out byte
 * for byte: over HTTP, and on memcached for an independent client, too. The same tests run on the
 * embedded store and on both dialects of memcached.
 */
#include "gateway.h"

#include <libmemcached/memcached.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memcached_process.h"

/* The most that memcached takes under a one-byte key. */
#define LARGEST 1048516

static struct gateway gateway;
static struct memcached_process server;
static memcached_st *client; /* NULL on the embedded store */
static const char *dialect;  /* NULL on the embedded store */

/* Around the sizes of a segment, a TLS-sized block, a 64 KB buffer, and beyond. */
static const size_t sizes[] = { 0,     1,     100,   1448,  1449,  16383,  16384,  16385,  65482,
                                65483, 65484, 65535, 65536, 65537, 100000, 307200, LARGEST };
#define SIZE_COUNT (sizeof(sizes) / sizeof(sizes[0]))

static int
setup(void **state)
{
    (void)state;
    client = NULL;
    if (dialect == NULL) {
        return gateway_start_embedded(&gateway) ? 0 : -1;
    }
    if (!memcached_process_start(&server, NULL) ||
        !gateway_start_config(&gateway, GATEWAY_MEMCACHED, dialect, (unsigned)server.port)) {
        return -1;
    }
    client = memcached_create(NULL);
    return memcached_server_add(client, "127.0.0.1", server.port) == MEMCACHED_SUCCESS ? 0 : -1;
}

static int
teardown(void **state)
{
    (void)state;
    gateway_deinit(&gateway);
    memcached_process_kill(&server);
    memcached_free(client);
    return 0;
}

/* The key of a value of this size; memcached's limit counts the key, so the largest has one byte.
 */
static void
make_target(char target[64], size_t size, const char *way)
{
    if (size == LARGEST) {
        snprintf(target, 64, "/%c", way[0]);
    } else {
        snprintf(target, 64, "/value-%zu-%s", size, way);
    }
}

/* The value is there for a GET, a HEAD and, on memcached, for libmemcached. */
static void
expect_everywhere(const char *target, const char *value, size_t len)
{
    struct http_client c;
    char etag[512], length[32];
    char *stored;
    size_t stored_len;
    uint32_t flags;
    memcached_return_t rc;

    assert_once(&c, gateway.port, "GET", target, NULL, NULL, 0, 200);
    assert_int_equal(c.body_len, len);
    assert_memory_equal(c.body, value, len);
    assert_string_equal(http_client_header(&c, "Content-Type"), "application/octet-stream");
    assert_non_null(http_client_header(&c, "ETag"));
    snprintf(etag, sizeof(etag), "%s", c.value);
    assert_request(&c, "HEAD", target, NULL, NULL, 0, 200);
    snprintf(length, sizeof(length), "%zu", len);
    assert_string_equal(http_client_header(&c, "Content-Length"), length);
    assert_string_equal(http_client_header(&c, "ETag"), etag);
    assert_string_equal(http_client_header(&c, "Content-Type"), "application/octet-stream");
    http_client_close(&c);

    if (client == NULL) {
        return;
    }
    stored = memcached_get(client, target + 1, strlen(target + 1), &stored_len, &flags, &rc);
    assert_int_equal(rc, MEMCACHED_SUCCESS);
    assert_int_equal(stored_len, len);
    assert_int_equal(flags, 0);
    assert_memory_equal(stored == NULL ? "" : stored, value, len);
    free(stored);
}

static void
send_chunk(struct http_client *c, const char *data, size_t len)
{
    char size[32];

    snprintf(size, sizeof(size), "%zx\r\n", len);
    assert_true(http_client_send_text(c, size));
    assert_true(http_client_send(c, data, len));
    assert_true(http_client_send_text(c, "\r\n"));
}

static void
store_chunked(const char *target, const char *value, size_t len, size_t chunk)
{
    struct http_client c;
    char head[256];

    assert_true(http_client_open(&c, gateway.port));
    snprintf(head, sizeof(head),
             "PUT %s HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n", target);
    assert_true(http_client_send_text(&c, head));
    for (size_t at = 0; at < len; at += chunk) {
        send_chunk(&c, value + at, len - at < chunk ? len - at : chunk);
    }
    assert_true(http_client_send_text(&c, "0\r\n\r\n"));
    assert_response(&c, false, GATEWAY_STORED);
    http_client_close(&c);
}

static void
store_expecting(const char *target, const char *value, size_t len)
{
    struct http_client c;
    char head[256];

    assert_true(http_client_open(&c, gateway.port));
    snprintf(head, sizeof(head),
             "PUT %s HTTP/1.1\r\nHost: test\r\nExpect: 100-continue\r\nContent-Length: %zu\r\n\r\n",
             target, len);
    assert_true(http_client_send_text(&c, head));
    assert_int_equal(http_client_receive(&c, false), HTTP_RESPONSE);
    if (len > 0 || c.status == 100) {
        assert_int_equal(c.status, 100);
        assert_true(http_client_send(&c, value, len));
        assert_int_equal(http_client_receive(&c, false), HTTP_RESPONSE);
    }
    assert_true(c.status == 201 || c.status == 204);
    http_client_close(&c);
}

/* Runs STORE for each size: value number SIZE under the name WAY. */
static void
each_size(const char *way, unsigned seed, void (*store)(const char *, const char *, size_t))
{
    char *value = malloc(LARGEST);
    char target[64];

    for (size_t i = 0; i < SIZE_COUNT; i++) {
        make_target(target, sizes[i], way);
        gateway_fill(value, sizes[i], seed);
        store(target, value, sizes[i]);
        expect_everywhere(target, value, sizes[i]);
    }
    free(value);
}

static void
store_put(const char *target, const char *value, size_t len)
{
    struct http_client c;

    assert_once(&c, gateway.port, "PUT", target, NULL, value, len, GATEWAY_STORED);
    http_client_close(&c);
}

static void
store_post(const char *target, const char *value, size_t len)
{
    struct http_client c;

    assert_once(&c, gateway.port, "POST", target,
                "Content-Type: application/x-www-form-urlencoded\r\n", value, len, GATEWAY_STORED);
    http_client_close(&c);
}

static void
store_one_chunk(const char *target, const char *value, size_t len)
{
    store_chunked(target, value, len, len + 1);
}

static void
store_many_chunks(const char *target, const char *value, size_t len)
{
    store_chunked(target, value, len, len < 2000 ? 1 : 4099);
}

static void
test_put(void **state)
{
    (void)state;
    each_size("put", 1, store_put);
}

static void
test_post(void **state)
{
    (void)state;
    each_size("Post", 2, store_post);
}

static void
test_chunked(void **state)
{
    (void)state;
    each_size("one-chunk", 3, store_one_chunk);
    each_size("chunks", 4, store_many_chunks);
}

static void
test_expect(void **state)
{
    (void)state;
    each_size("expect", 5, store_expecting);
}

/* The head in one piece, the body in two, on one connection for all sizes. */
static void
test_kept_connection(void **state)
{
    struct http_client c;
    char *value = malloc(LARGEST);
    char target[64], head[256];

    (void)state;
    assert_true(http_client_open(&c, gateway.port));
    for (size_t i = SIZE_COUNT; i-- > 0;) {
        make_target(target, sizes[i], "kept");
        gateway_fill(value, sizes[i], 6);
        snprintf(head, sizeof(head), "PUT %s HTTP/1.1\r\nHost: test\r\nContent-Length: %zu\r\n\r\n",
                 target, sizes[i]);
        assert_true(http_client_send_text(&c, head));
        assert_true(http_client_send(&c, value, sizes[i] / 3));
        assert_true(http_client_send(&c, value + sizes[i] / 3, sizes[i] - sizes[i] / 3));
        assert_response(&c, false, GATEWAY_STORED);
        assert_request(&c, "GET", target, NULL, NULL, 0, 200);
        assert_int_equal(c.body_len, sizes[i]);
        assert_memory_equal(c.body, value, sizes[i]);
    }
    http_client_close(&c);
    free(value);
}

static void
test_written_by_libmemcached(void **state)
{
    char *value = malloc(LARGEST);
    char target[64];

    (void)state;
    if (client == NULL) {
        free(value);
        skip();
    }
    for (size_t i = 0; i < SIZE_COUNT; i++) {
        make_target(target, sizes[i], "lib");
        gateway_fill(value, sizes[i], 7);
        assert_int_equal(
            memcached_set(client, target + 1, strlen(target + 1), value, sizes[i], 0, 0),
            MEMCACHED_SUCCESS);
        assert_value(gateway.port, target, value, sizes[i]);
        expect_everywhere(target, value, sizes[i]);
    }
    free(value);
}

static void
test_bytes_that_look_like_protocol(void **state)
{
    static const char *const values[] = { "\r\n",
                                          "END\r\n",
                                          "VALUE a 0 1\r\n1\r\nEND\r\n",
                                          "EN\r\n",
                                          "HTTP/1.1 200 OK\r\n\r\n",
                                          "0\r\n\r\n",
                                          "STORED\r\n",
                                          "\r\n.\r\n",
                                          "get a\r\n" };
    struct http_client c;

    (void)state;
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        store_put("/protocol", values[i], strlen(values[i]));
        expect_everywhere("/protocol", values[i], strlen(values[i]));
        store_chunked("/protocol", values[i], strlen(values[i]), 2);
        expect_everywhere("/protocol", values[i], strlen(values[i]));
    }
    assert_once(&c, gateway.port, "DELETE", "/protocol", NULL, NULL, 0, 204);
    http_client_close(&c);
}

/* The bytes of the target, decoded once and no more, are the key that the store has. */
static void
test_key_bytes(void **state)
{
    static const struct {
        const char *target, *key;
    } cases[] = {
        { "/a+b", "a+b" },
        { "/a%2Bb", "a+b" },
        { "//a/./b/../c//", "/a/./b/../c//" },
        { "/a%2Fb%252F", "a/b%2F" },
        { "/caf%C3%A9", "caf\xc3\xa9" },
        { "/caf\xc3\xa9", "caf\xc3\xa9" },
        { "/%FF%80\xfe", "\xff\x80\xfe" },
        { "/q%3Fa%26b?c=d", "q?a&b" },
        { "/%23;=%22%5C", "#;=\"\\" },
    };
    struct http_client c;

    (void)state;
    if (client == NULL) {
        skip();
    }
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        size_t len;
        uint32_t flags;
        memcached_return_t rc;
        char *stored;

        assert_once(&c, gateway.port, "PUT", cases[i].target, NULL, cases[i].target, 5,
                    GATEWAY_STORED);
        http_client_close(&c);
        stored = memcached_get(client, cases[i].key, strlen(cases[i].key), &len, &flags, &rc);
        assert_int_equal(rc, MEMCACHED_SUCCESS);
        assert_int_equal(len, 5);
        assert_memory_equal(stored, cases[i].target, 5);
        free(stored);
        assert_int_equal(memcached_delete(client, cases[i].key, strlen(cases[i].key), 0),
                         MEMCACHED_SUCCESS);
        assert_value(gateway.port, cases[i].target, NULL, 0);
    }
}

static void
expect_problem(struct http_client *c, const char *status)
{
    assert_string_equal(http_client_header(c, "Content-Type"), "application/problem+json");
    assert_true(c->body_len > 0);
    assert_int_equal(c->body[0], '{');
    assert_non_null(strstr(c->body, "\"title\""));
    assert_non_null(strstr(c->body, "\"status\""));
    assert_non_null(strstr(c->body, status));
    assert_non_null(strstr(c->body, "\"detail\""));
}

static void
test_miss_and_delete(void **state)
{
    struct http_client c;

    (void)state;
    assert_true(http_client_open(&c, gateway.port));
    assert_request(&c, "GET", "/gone", NULL, NULL, 0, 404);
    expect_problem(&c, "404");
    assert_request(&c, "HEAD", "/gone", NULL, NULL, 0, 404);
    assert_string_equal(http_client_header(&c, "Content-Type"), "application/problem+json");
    assert_request(&c, "DELETE", "/gone", NULL, NULL, 0, 404);
    expect_problem(&c, "404");
    assert_request(&c, "PUT", "/gone", NULL, "here", 4, GATEWAY_STORED);
    assert_int_equal(c.body_len, 0);
    assert_request(&c, "GET", "/gone", NULL, NULL, 0, 200);
    assert_request(&c, "DELETE", "/gone", NULL, NULL, 0, 204);
    assert_null(http_client_header(&c, "Content-Length"));
    assert_request(&c, "GET", "/gone", NULL, NULL, 0, 404);
    assert_request(&c, "DELETE", "/gone", NULL, NULL, 0, 404);
    assert_request(&c, "POST", "/gone", NULL, "", 0, GATEWAY_STORED);
    assert_request(&c, "GET", "/gone", NULL, NULL, 0, 200);
    assert_int_equal(c.body_len, 0);
    http_client_close(&c);
}

/* A strong ETag: in quotes, the same while the value is, another after each write. */
static void
test_etag(void **state)
{
    struct http_client c;
    char first[128];

    (void)state;
    assert_true(http_client_open(&c, gateway.port));
    assert_request(&c, "PUT", "/etag", NULL, "same", 4, GATEWAY_STORED);
    assert_request(&c, "GET", "/etag", NULL, NULL, 0, 200);
    snprintf(first, sizeof(first), "%s", http_client_header(&c, "ETag"));
    assert_int_equal(first[0], '"');
    assert_int_equal(first[strlen(first) - 1], '"');
    assert_true(strlen(first) > 2);
    assert_request(&c, "GET", "/etag", NULL, NULL, 0, 200);
    assert_string_equal(http_client_header(&c, "ETag"), first);
    assert_request(&c, "PUT", "/etag", NULL, "same", 4, GATEWAY_STORED);
    assert_request(&c, "GET", "/etag", NULL, NULL, 0, 200);
    assert_string_not_equal(http_client_header(&c, "ETag"), first);
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
        cmocka_unit_test(test_put),
        cmocka_unit_test(test_post),
        cmocka_unit_test(test_chunked),
        cmocka_unit_test(test_expect),
        cmocka_unit_test(test_kept_connection),
        cmocka_unit_test(test_written_by_libmemcached),
        cmocka_unit_test(test_bytes_that_look_like_protocol),
        cmocka_unit_test(test_key_bytes),
        cmocka_unit_test(test_miss_and_delete),
        cmocka_unit_test(test_etag),
        cmocka_unit_test(test_stops_cleanly),
    };
    int failed = cmocka_run_group_tests_name("embedded", tests, setup, teardown);

    dialect = "text";
    failed += cmocka_run_group_tests_name("memcached, text", tests, setup, teardown);
    dialect = "meta";
    failed += cmocka_run_group_tests_name("memcached, meta", tests, setup, teardown);
    return failed;
}
