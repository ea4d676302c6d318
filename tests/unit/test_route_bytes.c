/* SPDX-License-Identifier: BSD-2-Clause */
/* test_route_bytes.c: every byte in a key, raw and escaped, and targets of every length. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "route_scene.h"

/* ---- every byte ---- */

static void
every_raw_byte(void **state)
{
    for (int byte = 0; byte < 256; byte++) {
        char middle[4] = { '/', 'x', (char)byte, 'y' };
        char alone[2] = { '/', (char)byte };

        if (byte == '%') {
            route_scene_expect_result(*state, slice_of(middle, 4), ROUTE_BAD_ESCAPE);
            route_scene_expect_result(*state, slice_of(alone, 2), ROUTE_BAD_ESCAPE);
        } else if (byte == '?') {
            route_scene_expect_key(*state, slice_of(middle, 4), SLICE("x"));
            route_scene_expect_result(*state, slice_of(alone, 2), ROUTE_EMPTY_KEY);
        } else if (byte <= 0x20 || byte == 0x7f) {
            route_scene_expect_result(*state, slice_of(middle, 4), ROUTE_BAD_KEY);
            route_scene_expect_result(*state, slice_of(alone, 2), ROUTE_BAD_KEY);
        } else {
            route_scene_expect_key(*state, slice_of(middle, 4), slice_of(middle + 1, 3));
            route_scene_expect_key(*state, slice_of(alone, 2), slice_of(alone + 1, 1));
        }
    }
}

static void
every_escaped_byte(void **state)
{
    for (int byte = 0; byte < 256; byte++) {
        char target[16], key[3] = { 'x', (char)byte, 'y' };

        for (int upper = 0; upper < 2; upper++) {
            snprintf(target, sizeof(target), upper ? "/x%%%02Xy" : "/x%%%02xy", (unsigned)byte);
            if (byte <= 0x20 || byte == 0x7f) {
                route_scene_expect_result(*state, slice_from_string(target), ROUTE_BAD_KEY);
                /* the last byte of the target is the last of the escape */
                target[5] = '\0';
                route_scene_expect_result(*state, slice_from_string(target), ROUTE_BAD_KEY);
            } else {
                route_scene_expect_key(*state, slice_from_string(target), slice_of(key, 3));
                target[5] = '\0';
                route_scene_expect_key(*state, slice_from_string(target), slice_of(key, 2));
            }
        }
    }
}

/* The digits of a number in base 16, in one case or the other, by a way of its own. */
static int
digit_value(int c)
{
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";
    const char *at = c == 0 ? NULL : strchr(digits, c);

    return at == NULL ? -1 : (int)((at - digits) % 16);
}

static void
every_pair_of_digits(void **state)
{
    for (int i = 0; i < 256 * 256; i++) {
        char target[4] = { '/', '%', (char)(i / 256), (char)(i % 256) };
        int high = digit_value(i / 256), low = digit_value(i % 256);
        char byte = (char)(high * 16 + low);

        if (high < 0 || low < 0) {
            route_scene_expect_result(*state, slice_of(target, 4), ROUTE_BAD_ESCAPE);
        } else if (high * 16 + low <= 0x20 || high * 16 + low == 0x7f) {
            route_scene_expect_result(*state, slice_of(target, 4), ROUTE_BAD_KEY);
        } else {
            route_scene_expect_key(*state, slice_of(target, 4), slice_of(&byte, 1));
        }
    }
}

/* ---- lengths ---- */

/* PREFIX, then COUNT times PIECE. The caller frees. */
static struct slice
repeated(const char *prefix, const char *piece, size_t count)
{
    size_t prefix_len = strlen(prefix), len = strlen(piece);
    char *text = malloc(prefix_len + len * count + 1);

    assert_non_null(text);
    memcpy(text, prefix, prefix_len);
    for (size_t i = 0; i < count; i++) {
        memcpy(text + prefix_len + i * len, piece, len);
    }
    return slice_of(text, prefix_len + len * count);
}

static void
expect_length(struct route_scene *scene, const char *prefix, const char *piece, size_t count,
              size_t key_len)
{
    struct slice target = repeated(prefix, piece, count);
    struct route_match match;
    enum route_result result = route_scene_find(scene, target, &match);

    if (key_len > STORE_KEY_MAX) {
        assert_int_equal(result, ROUTE_KEY_TOO_LONG);
    } else {
        assert_int_equal(result, ROUTE_KEY);
        assert_int_equal(match.key_len, key_len);
    }
    free((void *)(uintptr_t)target.ptr);
}

static void
longest_keys(void **state)
{
    struct route_scene *scene = *state;

    for (size_t n = 1; n <= 1200; n++) {
        expect_length(scene, "/", "k", n, n);
        expect_length(scene, "/", "%6b", n, n);
        expect_length(scene, "/api/", "k", n, n + 2);
        expect_length(scene, "/api/", "%6B", n, n + 2);
    }
}

/* Prefixes of route and key as long as the configuration lets them be. */
static void
longest_prefixes(void **state)
{
    struct route_scene *scene = *state;
    char prefix[CONFIG_TEXT_MAX], key_prefix[CONFIG_TEXT_MAX];
    struct config_route *route;

    memset(prefix, 'p', sizeof(prefix));
    prefix[0] = '/';
    prefix[sizeof(prefix) - 2] = '/';
    prefix[sizeof(prefix) - 1] = '\0';
    route = route_scene_add_route(scene->config, prefix, "");
    for (size_t n = 1; n <= 260; n++) {
        expect_length(scene, prefix, "%6b", n, n);
    }
    for (size_t n = 1; n < CONFIG_TEXT_MAX; n++) {
        memset(key_prefix, 'q', n);
        key_prefix[n] = '\0';
        snprintf(route->key_prefix, sizeof(route->key_prefix), "%s", key_prefix);
        expect_length(scene, prefix, "k", 1, n + 1);
        expect_length(scene, prefix, "k", 2, n + 2);
        expect_length(scene, prefix, "k", STORE_KEY_MAX, n + STORE_KEY_MAX);
    }
}

static void
long_targets(void **state)
{
    static const char *const pieces[] = { "k", "%6b", "/", "//", ".", "%2F", "\xff", "+" };
    struct route_match match;
    struct slice target;

    for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
        expect_length(*state, "/", pieces[i], 10 * 1024, 10 * 1024);
    }
    /* which fault is named first does not matter; that it is no key does */
    target = repeated("/", "%", 10 * 1024);
    assert_int_not_equal(route_scene_find(*state, target, &match), ROUTE_KEY);
    free((void *)(uintptr_t)target.ptr);
    target = repeated("/", "%00", 10 * 1024);
    assert_int_not_equal(route_scene_find(*state, target, &match), ROUTE_KEY);
    free((void *)(uintptr_t)target.ptr);
    target = repeated("/k?", "&x=1", 10 * 1024);
    route_scene_expect_key(*state, target, SLICE("k"));
    assert_int_equal(route_scene_find(*state, target, &match), ROUTE_KEY);
    assert_int_equal(match.query.len, 40 * 1024);
    free((void *)(uintptr_t)target.ptr);
    target = repeated("http://", "h", 10 * 1024);
    route_scene_expect_result(*state, target, ROUTE_BAD_TARGET);
    free((void *)(uintptr_t)target.ptr);
}

/* Targets that stop anywhere. */
static void
cut_targets(void **state)
{
    static const char *const targets[] = {
        "http://host:80/api/deep/%41%42?ttl=60&op=incr",
        "/api/deep/er/%e2%82%ac%2F?x",
        "/-/health?x",
        "*",
    };
    struct route_match match;

    for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
        for (size_t len = 0; len <= strlen(targets[i]); len++) {
            route_scene_find(*state, slice_of(targets[i], len), &match);
        }
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, route_scene_setup, route_scene_teardown)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_raw_byte), TEST(every_escaped_byte), TEST(every_pair_of_digits),
        TEST(longest_keys),   TEST(longest_prefixes),   TEST(long_targets),
        TEST(cut_targets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
