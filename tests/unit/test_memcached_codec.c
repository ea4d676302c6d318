/* SPDX-License-Identifier: BSD-2-Clause */
/* test_memcached_codec.c: what the dialects share: exptime, the version line, error lines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../support/codec_case.h"
#include "memcached_codec.h"

static struct guard guard;

/* ---- exptime ---- */

static void
test_exptime(void **state)
{
    const int64_t now = 1700000000, last = INT32_MAX, year = 365 * 86400;

    (void)state;
    assert_int_equal(memcached_exptime(0, now), 0);
    assert_int_equal(memcached_exptime(1, now), 1);
    assert_int_equal(memcached_exptime(2592000, now), 2592000);
    assert_int_equal(memcached_exptime(2592001, now), now + 2592001);
    assert_int_equal(memcached_exptime((uint64_t)(10 * year), now), now + 10 * year);
    assert_int_equal(memcached_exptime((uint64_t)(20 * year), now), last);
    assert_int_equal(memcached_exptime(STORE_TTL_MAX, now), last);
    assert_int_equal(memcached_exptime(UINT64_MAX, now), last);
    assert_int_equal(memcached_exptime((uint64_t)(last - now), now), last);
    assert_int_equal(memcached_exptime((uint64_t)(last - now) + 1, now), last);
    /* No date is left that is 30 days away: 30 days it is. */
    assert_int_equal(memcached_exptime(2592001, last - 2592002), last - 1);
    assert_int_equal(memcached_exptime(2592001, last - 2592000), last);
    assert_int_equal(memcached_exptime(2592001, last - 2591999), 2592000);
    assert_int_equal(memcached_exptime(2592001, last + year), 2592000);
    assert_int_equal(memcached_exptime(60, last + year), 60);
    assert_int_equal(memcached_exptime(STORE_TTL_MAX, INT64_MAX), 2592000);
    assert_int_equal(memcached_exptime(UINT64_MAX, INT64_MIN), last);
}

/* ---- version ---- */

static void
expect_version(struct slice line, bool want_meta)
{
    bool meta = !want_meta;
    size_t line_len = 0;

    assert_int_equal(memcached_version_parse(guard_place(&guard, line.ptr, line.len), line.len,
                                             &meta, &line_len),
                     MEMCACHED_REPLY);
    assert_int_equal(meta, want_meta);
    assert_int_equal(line_len, line.len);
    for (size_t n = 0; n < line.len; n++) {
        assert_int_equal(
            memcached_version_parse(guard_place(&guard, line.ptr, n), n, &meta, &line_len),
            MEMCACHED_MORE);
    }
}

static void
test_version(void **state)
{
    static const struct {
        struct slice line;
        bool meta;
    } table[] = {
        { SLICE_LITERAL("VERSION 1.6.18\r\n"), true },
        { SLICE_LITERAL("VERSION 1.6.13\r\n"), true },
        { SLICE_LITERAL("VERSION 1.6.12\r\n"), false },
        { SLICE_LITERAL("VERSION 1.6.9\r\n"), false },
        { SLICE_LITERAL("VERSION 1.6.100\r\n"), true },
        { SLICE_LITERAL("VERSION 1.6.14 Ubuntu\r\n"), true },
        { SLICE_LITERAL("VERSION 1.6.40-rc1\r\n"), true },
        { SLICE_LITERAL("VERSION 1.6.9_1\r\n"), false },
        { SLICE_LITERAL("VERSION 1.7.0\r\n"), true },
        { SLICE_LITERAL("VERSION 1.5.22\r\n"), false },
        { SLICE_LITERAL("VERSION 1.6\r\n"), false },
        { SLICE_LITERAL("VERSION 1\r\n"), false },
        { SLICE_LITERAL("VERSION 15.0.3.Final\r\n"), false },
        { SLICE_LITERAL("VERSION 0.9.14\r\n"), false },
        { SLICE_LITERAL("VERSION mcrouter 40.0\r\n"), false },
        { SLICE_LITERAL("VERSION 1.6.99999999999999999999\r\n"), false },
        { SLICE_LITERAL("VERSION -1.6.18\r\n"), false },
        { SLICE_LITERAL("VERSION 1. 6.18\r\n"), false },
        { SLICE_LITERAL("VERSION \r\n"), false },
        { SLICE_LITERAL("ERROR\r\n"), false },
        { SLICE_LITERAL("ERROR Too many open connections\r\n"), false },
        { SLICE_LITERAL("CLIENT_ERROR unauthenticated\r\n"), false },
        { SLICE_LITERAL("SERVER_ERROR busy\r\n"), false },
    };
    static const struct slice nonsense[] = {
        SLICE_LITERAL("VERSION\r\n"), SLICE_LITERAL("version 1.6.18\r\n"),
        SLICE_LITERAL("\r\n"),        SLICE_LITERAL("VERSION 1.6.18\n"),
        SLICE_LITERAL("ERRORS\r\n"),  SLICE_LITERAL("HTTP/1.1 400 Bad Request\r\n"),
        SLICE_LITERAL("STORED\r\n"),  SLICE_LITERAL("-ERR unknown command 'version'\r\n"),
    };

    (void)state;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        expect_version(table[i].line, table[i].meta);
    }
    for (size_t i = 0; i < sizeof(nonsense) / sizeof(nonsense[0]); i++) {
        bool meta = true;
        size_t line_len = 0;

        assert_int_equal(
            memcached_version_parse(guard_place(&guard, nonsense[i].ptr, nonsense[i].len),
                                    nonsense[i].len, &meta, &line_len),
            MEMCACHED_NONSENSE);
    }
}

/* ---- error lines ---- */

static const struct codec_case error_lines[] = {
    { .verb = STORE_SET,
      .bytes = SLICE_LITERAL("SERVER_ERROR object too large for cache\r\n"),
      .status = STORE_TOO_LARGE },
    { .verb = STORE_APPEND,
      .bytes = SLICE_LITERAL("SERVER_ERROR object too large for cache\r\n"),
      .status = STORE_TOO_LARGE },
    { .verb = STORE_GET,
      .bytes = SLICE_LITERAL("SERVER_ERROR object too large for cache\r\n"),
      .status = STORE_BAD_REPLY },
    { .verb = STORE_SET,
      .bytes = SLICE_LITERAL("SERVER_ERROR out of memory storing object\r\n"),
      .status = STORE_NO_MEMORY },
    { .verb = STORE_INCR,
      .bytes = SLICE_LITERAL("SERVER_ERROR Out of memory allocating new item\r\n"),
      .status = STORE_NO_MEMORY },
    { .verb = STORE_GET,
      .bytes = SLICE_LITERAL("SERVER_ERROR out of memory writing get response\r\n"),
      .status = STORE_NO_MEMORY },
    { .verb = STORE_SET,
      .bytes = SLICE_LITERAL("SERVER_ERROR backend unavailable\r\n"),
      .status = STORE_BAD_REPLY },
    { .verb = STORE_SET, .bytes = SLICE_LITERAL("SERVER_ERROR\r\n"), .status = STORE_BAD_REPLY },
    { .verb = STORE_INCR,
      .bytes = SLICE_LITERAL("CLIENT_ERROR cannot increment or decrement non-numeric value\r\n"),
      .status = STORE_BAD_VALUE },
    { .verb = STORE_SET,
      .bytes = SLICE_LITERAL("CLIENT_ERROR cannot increment\r\n"),
      .status = STORE_BAD_REPLY,
      .close = true },
    { .verb = STORE_INCR,
      .bytes = SLICE_LITERAL("CLIENT_ERROR invalid numeric delta argument\r\n"),
      .status = STORE_BAD_REPLY,
      .close = true },
    { .verb = STORE_SET,
      .bytes = SLICE_LITERAL("CLIENT_ERROR bad data chunk\r\n"),
      .status = STORE_BAD_REPLY,
      .close = true },
    { .verb = STORE_GET, .bytes = SLICE_LITERAL("ERROR\r\n"), .status = STORE_UNSUPPORTED },
    { .verb = STORE_TOUCH, .bytes = SLICE_LITERAL("ERROR\r\n"), .status = STORE_UNSUPPORTED },
    { .verb = STORE_SET,
      .bytes = SLICE_LITERAL("ERROR\r\n"),
      .status = STORE_UNSUPPORTED,
      .close = true },
    { .verb = STORE_GET,
      .bytes = SLICE_LITERAL("ERROR Too many open connections\r\n"),
      .status = STORE_UNAVAILABLE,
      .close = true },
    { .verb = STORE_GET,
      .bytes = SLICE_LITERAL("ERROR something else\r\n"),
      .status = STORE_BAD_REPLY,
      .close = true },
};

static void
test_error_lines(void **state)
{
    static const struct slice nonsense[] = {
        SLICE_LITERAL("ERRORS\r\n"),          SLICE_LITERAL("ERROR\n"),
        SLICE_LITERAL("ERROR\0\r\n"),         SLICE_LITERAL("error\r\n"),
        SLICE_LITERAL("SERVER_ERRORS x\r\n"), SLICE_LITERAL("SERVER_ERROR\tx\r\n"),
        SLICE_LITERAL("CLIENT_ERRORx\r\n"),   SLICE_LITERAL(" ERROR\r\n"),
        SLICE_LITERAL("SERVER_ERROR x\n"),    SLICE_LITERAL("ERRO\r\n"),
    };
    const struct memcached_dialect *dialects[] = { &memcached_text, &memcached_meta };

    (void)state;
    for (size_t d = 0; d < 2; d++) {
        for (size_t i = 0; i < sizeof(error_lines) / sizeof(error_lines[0]); i++) {
            codec_expect_reply(dialects[d], &guard, &error_lines[i]);
        }
        for (size_t i = 0; i < sizeof(nonsense) / sizeof(nonsense[0]); i++) {
            for (enum store_verb v = STORE_GET; v < STORE_VERB_COUNT; v++) {
                codec_expect_nonsense(dialects[d], &guard, v, CODEC_PLAIN, nonsense[i]);
            }
        }
    }
}

static int
setup(void **state)
{
    (void)state;
    guard_init(&guard, 8192);
    return 0;
}

static int
teardown(void **state)
{
    (void)state;
    guard_deinit(&guard);
    return 0;
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exptime),
        cmocka_unit_test(test_version),
        cmocka_unit_test(test_error_lines),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
