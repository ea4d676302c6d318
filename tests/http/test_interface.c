/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_interface.c: the rows of the HTTP interface, over the wire, on every store: embedded, and
 * real memcached in all dialects. What a store cannot do is 501, and says so.
 */
#include "gateway.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memcached_process.h"

/* What the stores do differently. */
struct place {
    const char *dialect;     /* NULL: embedded */
    const char *const *args; /* of memcached */
    bool tells_cas;          /* with writes */
    bool tells_ttl;
    bool has_initial;
    bool deletes_cas;
    bool wraps; /* incr, at 2^64 */
};

static const char *const binary_args[] = { "-B", "binary", NULL };
static const struct place embedded = { NULL, NULL, true, true, true, true, true };
static const struct place text = { "text", NULL, false, false, false, false, true };
static const struct place binary = { "binary", binary_args, false, false, true, false, true };
static const struct place meta = { "meta", NULL, true, true, true, true, true };

static const struct place *place;
static struct gateway gateway;
static struct memcached_process server;
static struct http_client c;

#define ROUTES                                                                                     \
    "[route /]\nstore = main\n"                                                                    \
    "[route /short/]\nstore = main\nkey_prefix = s:\nttl = 50s\nttl_max = 100s\n"                  \
    "[route /read/]\nstore = main\nmethods = GET HEAD\n"                                           \
    "[route /write/]\nstore = main\nmethods = PUT POST DELETE\n"                                   \
    "[route /typed/]\nstore = main\nkey_prefix = t:\ncontent_type = stored\n"                      \
    "[route /cached/]\nstore = main\nkey_prefix = c:\ncache_control = ttl\n"                       \
    "[route /public/]\nstore = main\nkey_prefix = p:\ncache_control = public, max-age=9\n"         \
    "content_type = text/html; charset=utf-8\nbody_max = 1KB\n"                                    \
    "[route /dead/]\nstore = dead\n"                                                               \
    "[store dead]\ntype = memcached\nservers = 127.0.0.1:1\n"

static int
group_setup(void **state)
{
    (void)state;
    if (place->dialect == NULL) {
        return gateway_start_config(&gateway, "[server]\nworkers = 1\nlog_level = error\n"
                                              "[store main]\ntype = embedded\ndirectory = data\n"
                                              "sync = none\n" ROUTES)
                   ? 0
                   : -1;
    }
    return memcached_process_start(&server, place->args) &&
                   gateway_start_config(
                       &gateway,
                       "[server]\nworkers = 1\nlog_level = error\n" GATEWAY_MEMCACHED ROUTES,
                       place->dialect, (unsigned)server.port)
               ? 0
               : -1;
}

static int
group_teardown(void **state)
{
    int status = gateway_stop(&gateway, SIGTERM);

    (void)state;
    if (place->dialect != NULL) {
        memcached_process_stop(&server);
    }
    return status;
}

/* Every test has one connection, and it stays usable whatever is answered. */
static int
setup(void **state)
{
    (void)state;
    return http_client_open(&c, gateway.port) ? 0 : -1;
}

static int
teardown(void **state)
{
    (void)state;
    http_client_close(&c);
    return 0;
}

#define PUT(target, headers, body, status)                                                         \
    assert_request(&c, "PUT", target, headers, body, strlen(body), status)
#define GET(target, headers, status) assert_request(&c, "GET", target, headers, NULL, 0, status)
#define POST(target, status)         assert_request(&c, "POST", target, NULL, NULL, 0, status)
#define DELETE(target, headers, status)                                                            \
    assert_request(&c, "DELETE", target, headers, NULL, 0, status)

static void
assert_header(const char *name, const char *value)
{
    const char *found = http_client_header(&c, name);

    if (value == NULL ? found != NULL : found == NULL || strcmp(found, value) != 0) {
        fail_msg("%s: %s, not %s", name, found == NULL ? "absent" : found,
                 value == NULL ? "absent" : value);
    }
}

/* The ETag of TARGET's value. */
static const char *
etag_of(const char *target, char out[64])
{
    GET(target, NULL, 200);
    assert_non_null(http_client_header(&c, "ETag"));
    snprintf(out, 64, "%s", http_client_header(&c, "ETag"));
    return out;
}

/* ---- conditions ------------------------------------------------------------------------------ */

static void
check_read(const char *format, const char *etag, int status)
{
    static const char *const methods[] = { "GET", "HEAD" };
    char headers[300];

    snprintf(headers, sizeof(headers), format, etag);
    for (int i = 0; i < 2; i++) {
        char request[600];
        snprintf(request, sizeof(request), "%s /cond HTTP/1.1\r\nHost: t\r\n%s\r\n", methods[i],
                 headers);
        assert_true(http_client_send_text(&c, request));
        assert_response(&c, i == 1, status);
        if (status == 304) {
            assert_header("ETag", etag);
            assert_header("Content-Length", "5"); /* of the value that is not sent */
            assert_int_equal(c.body_len, 0);
        }
    }
}

static void
test_conditional_reads(void **state)
{
    char etag[64];

    (void)state;
    PUT("/cond", NULL, "hello", GATEWAY_STORED);
    etag_of("/cond", etag);
    check_read("If-None-Match: %s\r\n", etag, 304);
    check_read("If-None-Match: W/%s\r\n", etag, 304);
    check_read("If-None-Match: \"x\", \"1234567\",%s\r\n", etag, 304);
    GET("/cond", "If-None-Match: *\r\n", 304);
    assert_header("ETag", etag);
}

static void
test_other_conditional_reads(void **state)
{
    char etag[64];

    (void)state;
    PUT("/cond", NULL, "hello", GATEWAY_STORED);
    etag_of("/cond", etag);
    check_read("If-None-Match: \"x%s\r\n", etag + 1, 200);
    check_read("If-Match: %s\r\n", etag, 200);
    check_read("If-Match: \"x\", %s\r\n", etag, 200);
    check_read("If-Match: W/%s\r\n", etag, 412);
    check_read("If-Match: \"99999999\"%s\r\n", "", 412);
    check_read("If-Match: *%s\r\n", "", 200);
    check_read("If-None-Match: 5%s\r\n", "", 400);
    check_read("If-None-Match: \"5%s\r\n", "", 400);
    check_read("If-None-Match: %s\r\n", "", 400);
    check_read("If-Match: \"5\" \"6\"%s\r\n", "", 400);
    GET("/none", "If-None-Match: *\r\n", 404);
    GET("/none", "If-Match: *\r\n", 404);
}

static void
test_conditional_writes(void **state)
{
    char etag[64], headers[128], told[64] = "";

    (void)state;
    DELETE("/w", NULL, 404);
    PUT("/w", "If-Match: *\r\n", "x", 412);
    PUT("/w", "If-None-Match: *\r\n", "one", 201);
    PUT("/w", "If-None-Match: *\r\n", "two", 412);
    PUT("/w", "If-Match: *\r\n", "three", 204);
    if (place->tells_cas) {
        snprintf(told, sizeof(told), "%s", http_client_header(&c, "ETag"));
    }
    etag_of("/w", etag);
    assert_body(&c, "three");
    assert_string_equal(place->tells_cas ? etag : "", told);
    snprintf(headers, sizeof(headers), "If-Match: %s\r\n", etag);
    PUT("/w", headers, "four", 204);
    PUT("/w", headers, "five", 412);
    DELETE("/w", headers, place->deletes_cas ? 412 : 501);
    snprintf(headers, sizeof(headers), "If-Match: %s\r\n", etag_of("/w", etag));
    assert_body(&c, "four");
    DELETE("/w", headers, place->deletes_cas ? 204 : 501);
    DELETE("/w", "If-Match: *\r\n", place->deletes_cas ? 404 : 204);
    PUT("/w", headers, "six", 412); /* it is gone */
}

#define COUNTERS 100

/* Everybody reads, adds one, and writes if nobody else has: nothing is lost. */
static void
test_a_hundred_count(void **state)
{
    static struct http_client clients[COUNTERS];
    static char etags[COUNTERS][64];
    static int values[COUNTERS];
    bool done[COUNTERS] = { false };
    size_t left = COUNTERS;

    (void)state;
    PUT("/count", NULL, "0", GATEWAY_STORED);
    for (size_t i = 0; i < COUNTERS; i++) {
        assert_true(http_client_open(&clients[i], gateway.port));
    }
    while (left > 0) {
        for (size_t i = 0; i < COUNTERS; i++) {
            if (!done[i]) {
                assert_request(&clients[i], "GET", "/count", NULL, NULL, 0, 200);
                snprintf(etags[i], 64, "%s", http_client_header(&clients[i], "ETag"));
                values[i] = atoi(clients[i].body);
            }
        }
        for (size_t i = 0; i < COUNTERS; i++) {
            char request[256], body[16];
            int len = snprintf(body, sizeof(body), "%d", values[i] + 1);
            snprintf(
                request, sizeof(request),
                "PUT /count HTTP/1.1\r\nHost: t\r\nIf-Match: %s\r\nContent-Length: %d\r\n\r\n%s",
                etags[i], len, body);
            assert_true(done[i] || http_client_send_text(&clients[i], request));
        }
        for (size_t i = 0; i < COUNTERS; i++) {
            if (!done[i]) {
                assert_int_equal(http_client_receive(&clients[i], false), HTTP_RESPONSE);
                assert_true(clients[i].status == 204 || clients[i].status == 412);
                done[i] = clients[i].status == 204;
                left -= done[i];
            }
        }
    }
    for (size_t i = 0; i < COUNTERS; i++) {
        http_client_close(&clients[i]);
    }
    GET("/count", NULL, 200);
    assert_body(&c, "100");
}

/* ---- time to live ---------------------------------------------------------------------------- */

/* KV-TTL is SECONDS, or a little less; 0: it is not there. */
static void
assert_ttl(const char *target, long seconds)
{
    const char *told;

    GET(target, NULL, 200);
    told = http_client_header(&c, "KV-TTL");
    if (seconds == 0 || !place->tells_ttl) {
        assert_null(told);
        return;
    }
    assert_non_null(told);
    assert_in_range(atol(told), seconds - 3, seconds + 1);
}

static void
test_time_to_live(void **state)
{
    static const struct {
        const char *target, *headers;
        long seconds;
    } rows[] = {
        { "/t?ttl=60", NULL, 60 },
        { "/t?ttl=0", "Cache-Control: max-age=5\r\n", 0 },
        { "/t", "Cache-Control: no-cache, max-age=70\r\n", 70 },
        { "/t", "Cache-Control: no-cache\r\nCache-Control: max-age=70\r\n", 70 },
        { "/t?ttl=2678400", NULL, 2678400 },     /* 31 days */
        { "/t?ttl=315360000", NULL, 315360000 }, /* 10 years */
        { "/t", NULL, 0 },
        { "/short/t", NULL, 50 },
        { "/short/t?ttl=99", NULL, 99 },
        { "/short/t?ttl=101", NULL, 100 },
        { "/short/t?ttl=0", NULL, 100 },
    };
    static const char *const bad[] = { "/t?ttl=-1", "/t?ttl=1.5", "/t?ttl=99999999999",
                                       "/t?ttl=",   "/t?ttl=x",   "/t?ttl=1%20" };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        PUT(rows[i].target, rows[i].headers, "v", GATEWAY_STORED);
        assert_ttl(rows[i].target[1] == 's' ? "/short/t" : "/t", rows[i].seconds);
    }
    PUT("/t", NULL, "kept", GATEWAY_STORED);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        PUT(bad[i], NULL, "v", 400);
    }
    PUT("/t", "Cache-Control: max-age=-1\r\n", "v", 400);
    GET("/t", NULL, 200);
    assert_body(&c, "kept");
}

static void
test_touch(void **state)
{
    (void)state;
    PUT("/touch", NULL, "v", GATEWAY_STORED);
    POST("/touch?op=touch&ttl=500", 204);
    assert_ttl("/touch", 500);
    POST("/touch?op=touch&ttl=0", 204);
    assert_ttl("/touch", 0);
    POST("/touch?op=touch&ttl=x", 400);
    POST("/nothing?op=touch&ttl=5", 404);
    assert_request(&c, "POST", "/touch?op=touch&ttl=500", "If-Match: *\r\n", NULL, 0, 400);
}

static void
test_cache_control(void **state)
{
    const char *told;

    (void)state;
    PUT("/plain?ttl=60", NULL, "v", GATEWAY_STORED);
    GET("/plain", NULL, 200);
    assert_header("Cache-Control", NULL);
    PUT("/public/k?ttl=60", NULL, "v", GATEWAY_STORED);
    GET("/public/k", NULL, 200);
    assert_header("Cache-Control", "public, max-age=9");
    assert_header("Content-Type", "text/html; charset=utf-8");
    GET("/public/k", "If-None-Match: *\r\n", 304);
    assert_header("Cache-Control", "public, max-age=9");
    PUT("/cached/k?ttl=60", NULL, "v", GATEWAY_STORED);
    GET("/cached/k", NULL, 200);
    told = http_client_header(&c, "Cache-Control");
    if (place->tells_ttl) {
        assert_non_null(told);
        assert_int_equal(strncmp(told, "max-age=", 8), 0);
        assert_in_range(atoi(told + 8), 57, 60);
    } else {
        assert_null(told);
    }
    PUT("/cached/k", NULL, "v", GATEWAY_STORED); /* for ever: it may change any time */
    GET("/cached/k", NULL, 200);
    assert_header("Cache-Control", NULL);
}

/* ---- counters and joins ---------------------------------------------------------------------- */

static void
post_is(const char *target, const char *number)
{
    POST(target, 200);
    assert_body(&c, number);
    assert_header("Content-Type", "text/plain");
}

static void
test_counters(void **state)
{
    (void)state;
    DELETE("/n", NULL, 404);
    POST("/n?op=incr", 404);
    POST("/n?op=decr&by=3", 404);
    PUT("/n", NULL, "10", GATEWAY_STORED);
    post_is("/n?op=incr", "11");
    post_is("/n?op=incr&by=31", "42");
    post_is("/n?op=decr&by=2", "40");
    post_is("/n?op=decr&by=41", "0");
    post_is("/n?op=incr&by=18446744073709551615", "18446744073709551615");
    if (place->wraps) {
        post_is("/n?op=incr&by=2", "1");
    }
    POST("/n?op=incr&by=-1", 400);
    POST("/n?op=incr&by=18446744073709551616", 400);
    POST("/n?op=incr&ttl=5", 400);
    PUT("/n", NULL, "ten", GATEWAY_STORED);
    POST("/n?op=incr", 409);
    POST("/n?op=multiply", 400);
    PUT("/n?op=incr", NULL, "x", 400);
}

static void
test_counters_are_created(void **state)
{
    (void)state;
    if (!place->has_initial) {
        POST("/new?op=incr&initial=5", 501);
        assert_non_null(strstr(c.body, "in one step"));
        GET("/new", NULL, 404);
        return;
    }
    post_is("/new?op=incr&by=3&initial=5&ttl=300", "5");
    post_is("/new?op=incr&by=3&initial=5", "8");
    assert_ttl("/new", 300);
    post_is("/new2?op=decr&initial=0", "0");
    POST("/new3?op=decr&initial=x", 400);
    GET("/new3", NULL, 404);
}

static void
test_joins(void **state)
{
    (void)state;
    DELETE("/j", NULL, 404);
    assert_request(&c, "POST", "/j?op=append", NULL, "x", 1, 404);
    assert_request(&c, "POST", "/j?op=prepend", NULL, "x", 1, 404);
    PUT("/j?ttl=200", NULL, "middle", GATEWAY_STORED);
    assert_request(&c, "POST", "/j?op=append", NULL, "-end", 4, 204);
    assert_request(&c, "POST", "/j?op=prepend", NULL, "begin-", 6, 204);
    assert_ttl("/j", 200);
    assert_body(&c, "begin-middle-end");
    assert_request(&c, "POST", "/j?op=append&ttl=5", NULL, "x", 1, 400);
    assert_request(&c, "POST", "/public/j?op=append", NULL,
                   "0123456789012345678901234567890123456789", 40, 404);
}

/* A join that makes the value larger than the store takes: 413, and it stays as it was. */
static void
test_join_beyond_the_limit(void **state)
{
    static char value[900000];

    (void)state;
    if (place->dialect == NULL) {
        return; /* its limit is 64 MB, and it says itself that it is reached */
    }
    assert_request(&c, "PUT", "/limit", NULL, value, sizeof(value), GATEWAY_STORED);
    assert_request(&c, "POST", "/limit?op=append", NULL, value, sizeof(value), 413);
    assert_true(http_client_send_text(&c, "HEAD /limit HTTP/1.1\r\nHost: t\r\n\r\n"));
    assert_response(&c, true, 200);
    assert_header("Content-Length", "900000");
    assert_request(&c, "POST", "/no-limit?op=append", NULL, value, sizeof(value), 404);
}

/* ---- ranges ---------------------------------------------------------------------------------- */

static void
test_ranges(void **state)
{
    static const struct {
        const char *range;
        int status;
        const char *content_range, *body;
    } rows[] = {
        { "bytes=0-4", 206, "bytes 0-4/10", "01234" },
        { "bytes=3-", 206, "bytes 3-9/10", "3456789" },
        { "bytes=-3", 206, "bytes 7-9/10", "789" },
        { "bytes=-30", 206, "bytes 0-9/10", "0123456789" },
        { "bytes=9-100", 206, "bytes 9-9/10", "9" },
        { "BYTES=0-0", 206, "bytes 0-0/10", "0" },
        { "bytes=10-", 416, "bytes */10", NULL },
        { "bytes=-0", 416, "bytes */10", NULL },
        { "bytes=99-100", 416, "bytes */10", NULL },
        { "bytes=0-1,3-4", 200, NULL, "0123456789" },
        { "bytes=4-3", 200, NULL, "0123456789" },
        { "bytes=", 200, NULL, "0123456789" },
        { "bytes=x-5", 200, NULL, "0123456789" },
        { "bytes=--5", 200, NULL, "0123456789" },
        { "bytes=99999999999999999999-", 200, NULL, "0123456789" },
        { "lines=0-4", 200, NULL, "0123456789" },
    };
    char headers[200], etag[64];

    (void)state;
    PUT("/r", NULL, "0123456789", GATEWAY_STORED);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        snprintf(headers, sizeof(headers), "Range: %s\r\n", rows[i].range);
        GET("/r", headers, rows[i].status);
        assert_header("Content-Range", rows[i].content_range);
        if (rows[i].body != NULL) {
            assert_body(&c, rows[i].body);
            assert_header("Accept-Ranges", "bytes");
        }
    }
    etag_of("/r", etag);
    snprintf(headers, sizeof(headers), "Range: bytes=1-1\r\nIf-Range: %s\r\n", etag);
    GET("/r", headers, 206);
    assert_header("ETag", etag);
    GET("/r", "Range: bytes=1-1\r\nIf-Range: \"99999999\"\r\n", 200);
    GET("/r", "Range: bytes=1-1\r\nIf-Range: Tue, 01 Dec 2026 00:00:00 GMT\r\n", 200);
    snprintf(headers, sizeof(headers), "Range: bytes=1-1\r\nIf-None-Match: %s\r\n", etag);
    GET("/r", headers, 304);
    PUT("/r", NULL, "", GATEWAY_STORED);
    GET("/r", "Range: bytes=0-0\r\n", 416);
    assert_header("Content-Range", "bytes */0");
}

/* A part of a value that fills many packets. */
static void
test_range_of_a_large_value(void **state)
{
    static char value[300000];

    (void)state;
    gateway_fill(value, sizeof(value), 3);
    assert_request(&c, "PUT", "/large", NULL, value, sizeof(value), GATEWAY_STORED);
    GET("/large", "Range: bytes=100000-299998\r\n", 206);
    assert_int_equal(c.body_len, 199999);
    assert_memory_equal(c.body, value + 100000, 199999);
}

/* ---- content types --------------------------------------------------------------------------- */

static void
test_stored_types(void **state)
{
    static const struct {
        const char *sent, *kept; /* NULL: not sent */
        bool told;
    } rows[] = {
        { "image/png", "image/png", false },
        { "Text/HTML ; charset=UTF-8", "text/html; charset=utf-8", false },
        { "application/json", "application/json", false },
        { "application/octet-stream", "application/octet-stream", false },
        { NULL, "application/octet-stream", false },
        { "application/x-unheard-of", "application/octet-stream", true },
        { "text/html; charset=ebcdic", "application/octet-stream", true },
    };
    char headers[200];

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        snprintf(headers, sizeof(headers), "Content-Type: %s\r\n", rows[i].sent);
        PUT("/typed/k", rows[i].sent == NULL ? NULL : headers, "v", GATEWAY_STORED);
        assert_header("KV-Content-Type", rows[i].told ? rows[i].kept : NULL);
        GET("/typed/k", NULL, 200);
        assert_header("Content-Type", rows[i].kept);
        assert_header("X-Content-Type-Options", "nosniff");
    }
    PUT("/k", "Content-Type: image/png\r\n", "v", GATEWAY_STORED); /* its route keeps none */
    assert_header("KV-Content-Type", NULL);
    GET("/k", NULL, 200);
    assert_header("Content-Type", "application/octet-stream");
}

/* ---- many keys ------------------------------------------------------------------------------- */

static void
test_many_keys(void **state)
{
    char etag[64], wanted[1024];

    (void)state;
    PUT("/a", NULL, "text \"quoted\"\n", GATEWAY_STORED);
    assert_request(&c, "PUT", "/b%20c%2Fd", NULL, "x", 1, 400);
    assert_request(&c, "PUT", "/b%2Fd", NULL, "\0\xff", 2, GATEWAY_STORED);
    PUT("/short/s", NULL, "", GATEWAY_STORED);
    DELETE("/gone", NULL, 404);
    etag_of("/a", etag);
    GET("/-/mget?key=a&key=b%2Fd&x=1&key=gone&key=/short/s&key=a%20b&key=/dead/k&key=/write/k&key="
        "-/health&key=%zz&key=",
        NULL, 200);
    assert_header("Content-Type", "application/json");
    c.body[c.body_len - 1] = '\0';
    snprintf(wanted, sizeof(wanted),
             "{\"values\":[{\"key\":\"a\",\"status\":200,\"value\":\"text \\\"quoted\\\"\\n\","
             "\"etag\":\"\\\"%.*s\\\"\"}",
             (int)strlen(etag) - 2, etag + 1);
    assert_int_equal(strncmp(c.body, wanted, strlen(wanted)), 0);
    assert_non_null(strstr(c.body, "{\"key\":\"b%2Fd\",\"status\":200,\"base64\":\"AP8=\","));
    assert_non_null(strstr(c.body, "{\"key\":\"gone\",\"status\":404,\"detail\":\"There is no "));
    assert_non_null(strstr(c.body, "{\"key\":\"/short/s\",\"status\":200,\"value\":\"\","));
    assert_true(!place->tells_ttl || strstr(c.body, "\"ttl\":50") != NULL ||
                strstr(c.body, "\"ttl\":49") != NULL);
    assert_non_null(strstr(c.body, "{\"key\":\"a%20b\",\"status\":400,"));
    assert_non_null(strstr(c.body, "{\"key\":\"/dead/k\",\"status\":503,"));
    assert_non_null(strstr(c.body, "{\"key\":\"/write/k\",\"status\":405,"));
    assert_non_null(strstr(c.body, "{\"key\":\"-/health\",\"status\":404,"));
    assert_non_null(strstr(c.body, "{\"key\":\"%zz\",\"status\":400,"));
    assert_non_null(strstr(c.body, "{\"key\":\"\",\"status\":400,"));
}

static void
test_many_keys_by_post(void **state)
{
    static char lines[1002 * 12];
    size_t len = 0;
    int found = 0;

    (void)state;
    PUT("/key-7", NULL, "seven", GATEWAY_STORED);
    for (int i = 0; i < 1000; i++) {
        len += (size_t)snprintf(lines + len, 12, i % 2 ? "key-%d\r\n" : "key-%d\n", i % 10);
    }
    assert_request(&c, "POST", "/-/mget", NULL, lines, len, 200);
    for (const char *at = c.body; (at = memmem(at, (size_t)(c.body + c.body_len - at), "seven", 5));
         at++) {
        found++;
    }
    assert_int_equal(found, 100);
    len += (size_t)snprintf(lines + len, 12, "one-more\n");
    assert_request(&c, "POST", "/-/mget", NULL, lines, len, 400);
    assert_request(&c, "POST", "/-/mget", NULL, "\n\r\n", 3, 400);
    assert_request(&c, "POST", "/-/mget", NULL, "", 0, 400);
    GET("/-/mget", NULL, 400);
    GET("/-/mget?keys=a", NULL, 400);
    assert_request(&c, "DELETE", "/-/mget", NULL, NULL, 0, 405);
    assert_header("Allow", "GET, POST, OPTIONS");
}

/* ---- manners --------------------------------------------------------------------------------- */

static void
test_routes(void **state)
{
    (void)state;
    PUT("/short/k", NULL, "v", GATEWAY_STORED);
    GET("/s:k", NULL, 200); /* the same store, under the prefix */
    PUT("/read/k", NULL, "v", 405);
    assert_header("Allow", "GET, HEAD, OPTIONS");
    GET("/write/k", NULL, 405);
    assert_header("Allow", "PUT, POST, DELETE, OPTIONS");
    POST("/read/k?op=incr", 405);
    GET("/read", NULL, 404); /* of the route "/" */
    GET("/dead/k", NULL, 503);
    assert_header("Retry-After", "1");
    assert_null(strstr(c.body, "127.0.0.1"));
}

/* What curl -C sends when it resumes an upload: it must not take the place of the whole. */
static void
test_part_of_a_value(void **state)
{
    (void)state;
    PUT("/whole", NULL, "0123456789", GATEWAY_STORED);
    PUT("/whole", "Content-Range: bytes 5-9/10\r\n", "56789", 400);
    GET("/whole", NULL, 200);
    assert_body(&c, "0123456789");
}

/* A gateway without "/": what no route matches is told from a value that is not there. */
static void
test_no_route(void **state)
{
    struct gateway other;
    struct http_client client;

    (void)state;
    assert_true(gateway_start_config(&other, "[server]\nworkers = 1\nlog_level = error\n"
                                             "[store main]\ntype = embedded\ndirectory = data\n"
                                             "[route /only/]\n[route /only/this/]\nttl = 9s\n"));
    assert_once(&client, other.port, "PUT", "/only/k", NULL, "v", 1, GATEWAY_STORED);
    assert_request(&client, "PUT", "/only/this/k", NULL, "w", 1, GATEWAY_STORED);
    assert_request(&client, "GET", "/only/k", NULL, NULL, 0, 200);
    assert_body(&client, "w"); /* both have the key "k": the longest prefix took the second */
    assert_non_null(http_client_header(&client, "KV-TTL"));
    assert_request(&client, "GET", "/only/none", NULL, NULL, 0, 404);
    assert_non_null(memmem(client.body, client.body_len, "no value", 8));
    assert_request(&client, "GET", "/k", NULL, NULL, 0, 404);
    assert_non_null(memmem(client.body, client.body_len, "No route", 8));
    http_client_close(&client);
    assert_int_equal(gateway_stop(&other, SIGTERM), 0);
}

static void
test_manners(void **state)
{
    (void)state;
    PUT("/m?unknown=1&ttl=9&x", NULL, "v", GATEWAY_STORED);
    assert_int_equal(c.body_len, 0);
    assert_header("Server", NULL);
    GET("/m?whatever", NULL, 200);
    assert_header("Accept-Ranges", "bytes");
    assert_request(&c, "OPTIONS", "/m", NULL, NULL, 0, 204);
    assert_header("Allow", "GET, HEAD, PUT, POST, DELETE, OPTIONS");
    assert_header("Content-Length", NULL);
    DELETE("/m", NULL, 204);
    assert_header("Content-Length", NULL);
    assert_true(http_client_send_text(&c, "HEAD /m HTTP/1.1\r\nHost: t\r\n\r\n"));
    assert_response(&c, true, 404);
    assert_true(http_client_send_text(&c, "GET /m HTTP/1.0\r\n\r\n"));
    assert_response(&c, false, 404);
    assert_header("Transfer-Encoding", NULL);
}

#define EACH(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static int
run(const struct place *which, const char *name)
{
    const struct CMUnitTest tests[] = {
        EACH(test_conditional_reads),
        EACH(test_other_conditional_reads),
        EACH(test_conditional_writes),
        EACH(test_a_hundred_count),
        EACH(test_time_to_live),
        EACH(test_touch),
        EACH(test_cache_control),
        EACH(test_counters),
        EACH(test_counters_are_created),
        EACH(test_joins),
        EACH(test_join_beyond_the_limit),
        EACH(test_ranges),
        EACH(test_range_of_a_large_value),
        EACH(test_stored_types),
        EACH(test_many_keys),
        EACH(test_many_keys_by_post),
        EACH(test_routes),
        EACH(test_part_of_a_value),
        EACH(test_no_route),
        EACH(test_manners),
    };

    place = which;
    return cmocka_run_group_tests_name(name, tests, group_setup, group_teardown);
}

int
main(void)
{
    return run(&embedded, "embedded") + run(&text, "text") + run(&meta, "meta") +
           run(&binary, "binary");
}
