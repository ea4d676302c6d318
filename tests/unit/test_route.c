/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_route.c: from targets to routes and keys, the parameters of a query, and methods. Every
 * byte and every length is in test_route_bytes.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "route_scene.h"

/* ---- keys ---- */

static void
keys(void **state)
{
    static const struct {
        const char *target, *prefix, *key, *query;
    } rows[] = {
        { "/k", "/", "k", "" },
        { "/key?a=1&b=2", "/", "key", "a=1&b=2" },
        { "/key?", "/", "key", "" },
        { "/key?a?b", "/", "key", "a?b" },
        { "/key?%zz", "/", "key", "%zz" },
        { "/key?a=/api/x", "/", "key", "a=/api/x" },
        /* byte for byte: nothing is tidied up */
        { "/a+b", "/", "a+b", "" },
        { "//", "/", "/", "" },
        { "//x//y/", "/", "/x//y/", "" },
        { "/./x", "/", "./x", "" },
        { "/../x", "/", "../x", "" },
        { "/.", "/", ".", "" },
        { "/x/../api/y", "/", "x/../api/y", "" },
        { "/a;b=c", "/", "a;b=c", "" },
        { "/a#b", "/", "a#b", "" },
        { "/a&b=c", "/", "a&b=c", "" },
        { "/\"'<>\\^`{|}", "/", "\"'<>\\^`{|}", "" },
        { "/\xc3\xa9\xff", "/", "\xc3\xa9\xff", "" },
        /* decoded once */
        { "/%61%62", "/", "ab", "" },
        { "/%2F%2f", "/", "//", "" },
        { "/x%2Fy", "/", "x/y", "" },
        { "/%2541", "/", "%41", "" },
        { "/%25", "/", "%", "" },
        { "/%3Fx?y", "/", "?x", "y" },
        { "/%2B", "/", "+", "" },
        { "/%fF%Ff", "/", "\xff\xff", "" },
        { "/%e2%82%ac", "/", "\xe2\x82\xac", "" },
        /* prefixes that overlap */
        { "/a", "/", "a", "" },
        { "/a/x", "/a/", "x", "" },
        { "/ab/x", "/", "ab/x", "" },
        { "/api", "/", "api", "" },
        { "/api?x", "/", "api", "x" },
        { "/apix", "/", "apix", "" },
        { "/api/x", "/api/", "a:x", "" },
        { "/api/deep", "/api/", "a:deep", "" },
        { "/api/deep/x", "/api/deep/", "d/x", "" },
        { "/api/deep/er", "/api/deep/", "d/er", "" },
        { "/api/deep/er/x", "/api/deep/er/", "x", "" },
        { "/API/x", "/", "API/x", "" },
        { "/api//x", "/api/", "a:/x", "" },
        { "/%61pi/x", "/api/", "a:x", "" },
        { "/api%2Fx", "/api/", "a:x", "" },
        /* the gateway's own pages begin with "/-/", and only they */
        { "/-", "/", "-", "" },
        { "/-x", "/", "-x", "" },
        { "/--/", "/", "--/", "" },
        { "//-/health", "/", "/-/health", "" },
        { "/x/-/health", "/", "x/-/health", "" },
        { "/api/-/health", "/api/", "a:-/health", "" },
    };
    struct route_match match;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        route_scene_expect_key(*state, slice_from_string(rows[i].target),
                               slice_from_string(rows[i].key));
        route_scene_find(*state, slice_from_string(rows[i].target), &match);
        assert_string_equal(match.route->prefix, rows[i].prefix);
        assert_true(slice_equal(match.query, slice_from_string(rows[i].query)));
    }
}

static void
absolute_form(void **state)
{
    static const struct {
        const char *target, *key, *query;
    } rows[] = {
        { "http://host/k", "k", "" },
        { "HTTP://Host/k", "k", "" },
        { "http://host:8085/k?x=1", "k", "x=1" },
        { "http://[::1]:8085/k", "k", "" },
        { "http://127.0.0.1/api/k", "a:k", "" },
        { "http://host//k", "/k", "" },
        { "http://host/http://other/k", "http://other/k", "" },
    };
    static const char *const bad[] = {
        "http://",          "http:///",    "http://host",
        "http:/host/k",     "http:host/k", "http//h/k",
        "https://h/k",      "ftp://h/k",   "http://host?/k",
        "http://host?x=/k", "http:///k",   "httpx://host/k",
        "://host/k",        "ht",          "http://?/api/k",
        "host:80",          "host/k",      "http://host#frag",
        "http://host#/k",
    };
    struct route_match match;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        route_scene_expect_key(*state, slice_from_string(rows[i].target),
                               slice_from_string(rows[i].key));
        route_scene_find(*state, slice_from_string(rows[i].target), &match);
        assert_true(slice_equal(match.query, slice_from_string(rows[i].query)));
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        route_scene_expect_result(*state, slice_from_string(bad[i]), ROUTE_BAD_TARGET);
    }
}

static void
targets_that_are_no_keys(void **state)
{
    static const struct {
        const char *target;
        enum route_result result;
    } rows[] = {
        { "*", ROUTE_ASTERISK },
        { "**", ROUTE_BAD_TARGET },
        { "*?x", ROUTE_BAD_TARGET },
        { "", ROUTE_BAD_TARGET },
        { "k", ROUTE_BAD_TARGET },
        { "?", ROUTE_BAD_TARGET },
        { "?/k", ROUTE_BAD_TARGET },
        { "%2Fk", ROUTE_BAD_TARGET },
        { "\\k", ROUTE_BAD_TARGET },
        { "/", ROUTE_EMPTY_KEY },
        { "/?x", ROUTE_EMPTY_KEY },
        { "/api/", ROUTE_EMPTY_KEY },
        { "/api/deep/", ROUTE_EMPTY_KEY },
        { "http://host/", ROUTE_EMPTY_KEY },
        { "http://host/?k", ROUTE_EMPTY_KEY },
        { "/*", ROUTE_KEY },
        { "/-/health", ROUTE_HEALTH },
        { "/-/health?x", ROUTE_HEALTH },
        { "/-/ready", ROUTE_READY },
        { "/%2D/ready", ROUTE_READY },
        { "http://host/-/health", ROUTE_HEALTH },
        { "/-/", ROUTE_NO_PAGE },
        { "/-/healt", ROUTE_NO_PAGE },
        { "/-/health/", ROUTE_NO_PAGE },
        { "/-/Health", ROUTE_NO_PAGE },
        { "/-//health", ROUTE_NO_PAGE },
        { "/-/readyy", ROUTE_NO_PAGE },
        { "/-/x y", ROUTE_NO_PAGE },
        { "/x%", ROUTE_BAD_ESCAPE },
        { "/%", ROUTE_BAD_ESCAPE },
        { "/%4", ROUTE_BAD_ESCAPE },
        { "/%4?1", ROUTE_BAD_ESCAPE },
        { "/%?41", ROUTE_BAD_ESCAPE },
        { "/%%41", ROUTE_BAD_ESCAPE },
        { "/-/%zz", ROUTE_BAD_ESCAPE },
        { "/%+1", ROUTE_BAD_ESCAPE },
        { "/% 1", ROUTE_BAD_ESCAPE },
        { "/%-1", ROUTE_BAD_ESCAPE },
        { "/%0x", ROUTE_BAD_ESCAPE },
        { "/a b", ROUTE_BAD_KEY },
        { "/a%20b", ROUTE_BAD_KEY },
        { "/a%00", ROUTE_BAD_KEY },
        { "/%0d%0aflush_all", ROUTE_BAD_KEY },
        { "/\r\nflush_all", ROUTE_BAD_KEY },
        { "/%7f", ROUTE_BAD_KEY },
        { "/api/%0a", ROUTE_BAD_KEY },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        route_scene_expect_result(*state, slice_from_string(rows[i].target), rows[i].result);
    }
    route_scene_expect_result(*state, SLICE("/a\0b"), ROUTE_BAD_KEY);
    route_scene_expect_result(*state, SLICE("\0/a"), ROUTE_BAD_TARGET);
    route_scene_expect_result(*state, SLICE("/\0"), ROUTE_BAD_KEY);
}

static void
no_route(void **state)
{
    struct route_scene *scene = *state;
    struct route_match match;

    memset(scene->config->routes, 0, sizeof(scene->config->routes));
    scene->config->route_count = 0;
    assert_int_equal(route_scene_find(scene, SLICE("/k?q"), &match), ROUTE_NO_ROUTE);
    assert_null(match.route);
    assert_true(slice_equal(match.query, SLICE("q")));
    route_scene_add_route(scene->config, "/only/", "");
    route_scene_expect_result(scene, SLICE("/"), ROUTE_NO_ROUTE);
    route_scene_expect_result(scene, SLICE("/only"), ROUTE_NO_ROUTE);
    route_scene_expect_result(scene, SLICE("/onl/y"), ROUTE_NO_ROUTE);
    route_scene_expect_result(scene, SLICE("//only/x"), ROUTE_NO_ROUTE);
    route_scene_expect_result(scene, SLICE("/%00"), ROUTE_NO_ROUTE);
    route_scene_expect_key(scene, SLICE("/only/x"), SLICE("x"));
    route_scene_expect_result(scene, SLICE("/-/health"), ROUTE_HEALTH);
}

/* OPTIONS on a bad key tells the methods of its route; so the route is known, and the query. */
static void
route_of_a_bad_key(void **state)
{
    struct route_match match;

    assert_int_equal(route_scene_find(*state, SLICE("/api/?q=1"), &match), ROUTE_EMPTY_KEY);
    assert_string_equal(match.route->prefix, "/api/");
    assert_true(slice_equal(match.query, SLICE("q=1")));
    assert_int_equal(route_scene_find(*state, SLICE("/api/%20?q=1"), &match), ROUTE_BAD_KEY);
    assert_string_equal(match.route->prefix, "/api/");
    assert_true(slice_equal(match.query, SLICE("q=1")));
    assert_int_equal(route_scene_find(*state, SLICE("/%zz?q=1"), &match), ROUTE_BAD_ESCAPE);
    assert_null(match.route);
    assert_true(slice_equal(match.query, SLICE("q=1")));
    assert_int_equal(route_scene_find(*state, SLICE("*"), &match), ROUTE_ASTERISK);
    assert_null(match.route);
    assert_int_equal(match.query.len, 0);
    assert_int_equal(route_scene_find(*state, SLICE("nonsense?q"), &match), ROUTE_BAD_TARGET);
    assert_null(match.route);
    assert_int_equal(match.query.len, 0);
}

/* ---- parameters and methods ---- */

static void
parameters(void **state)
{
    static const struct {
        const char *query, *name, *value; /* value NULL: it is not there */
    } rows[] = {
        { "ttl=60", "ttl", "60" },     { "a=1&ttl=60", "ttl", "60" },
        { "ttl=60&a=1", "ttl", "60" }, { "a=1&ttl=60&b=2", "ttl", "60" },
        { "ttl=1&ttl=2", "ttl", "1" }, { "ttl=&ttl=2", "ttl", "" },
        { "ttl", "ttl", "" },          { "ttl&x", "ttl", "" },
        { "ttl=", "ttl", "" },         { "ttl=a=b", "ttl", "a=b" },
        { "ttl==", "ttl", "=" },       { "ttl=6%30", "ttl", "6%30" },
        { "ttl=+1", "ttl", "+1" },     { "&&&ttl=1&&", "ttl", "1" },
        { "", "ttl", NULL },           { "&", "ttl", NULL },
        { "=", "ttl", NULL },          { "=ttl", "ttl", NULL },
        { "tt=1", "ttl", NULL },       { "ttll=1", "ttl", NULL },
        { "xttl=1", "ttl", NULL },     { "TTL=1", "ttl", NULL },
        { "x=ttl", "ttl", NULL },      { "x=1;ttl=1", "ttl", NULL },
        { "x?ttl=1", "ttl", NULL },    { " ttl=1", "ttl", NULL },
        { "%74tl=1", "ttl", NULL },    { "ttl=1", "op", NULL },
        { "op=incr&by=3", "by", "3" },
    };
    struct route_scene *scene = *state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        size_t len = strlen(rows[i].query);
        struct slice query = slice_of(guard_place(&scene->guard, rows[i].query, len), len);
        struct slice value = SLICE("untouched");
        bool found = route_parameter(query, slice_from_string(rows[i].name), &value);

        if (found != (rows[i].value != NULL) ||
            !slice_equal(value, slice_from_string(found ? rows[i].value : "untouched"))) {
            fail_msg("%s in %s: %d, %.*s", rows[i].name, rows[i].query, (int)found, (int)value.len,
                     value.ptr);
        }
    }
    struct slice value;
    assert_false(route_parameter(slice_of(NULL, 0), SLICE("ttl"), &value));
}

static void
methods(void **state)
{
    static const struct {
        const char *name;
        unsigned bit;
    } rows[] = {
        { "GET", CONFIG_GET },
        { "HEAD", CONFIG_HEAD },
        { "PUT", CONFIG_PUT },
        { "POST", CONFIG_POST },
        { "DELETE", CONFIG_DELETE },
        { "OPTIONS", 0 },
        { "PATCH", 0 },
        { "TRACE", 0 },
        { "CONNECT", 0 },
        { "get", 0 },
        { "Get", 0 },
        { "GET ", 0 },
        { "GE", 0 },
        { "GETS", 0 },
        { "", 0 },
        { "DELET", 0 },
        { "HEADER", 0 },
        { "POS", 0 },
    };
    struct route_scene *scene = *state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        size_t len = strlen(rows[i].name);
        const char *placed = guard_place(&scene->guard, rows[i].name, len);

        assert_int_equal(route_method(slice_of(placed, len)), rows[i].bit);
    }
    assert_int_equal(route_method(SLICE("GET\0")), 0);
    assert_int_equal(route_method(slice_of(NULL, 0)), 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, route_scene_setup, route_scene_teardown)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(keys),     TEST(absolute_form),      TEST(targets_that_are_no_keys),
        TEST(no_route), TEST(route_of_a_bad_key), TEST(parameters),
        TEST(methods),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
