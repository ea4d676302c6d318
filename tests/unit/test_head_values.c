/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_head_values.c: the readers of header values: Range, entity tags, media types. Each text ends
 * at a guard page.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "etag.h"
#include "guard.h"
#include "media_type.h"
#include "range.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct guard guard;

static int
setup(void **state)
{
    (void)state;
    guard_init(&guard, 4096);
    return 0;
}

static int
teardown(void **state)
{
    (void)state;
    guard_deinit(&guard);
    return 0;
}

static struct slice
at_guard(const char *text)
{
    return slice_of(guard_place(&guard, text, strlen(text)), strlen(text));
}

/* ---- ranges ---------------------------------------------------------------------------------- */

static void
ranges(void **state)
{
    static const struct {
        const char *text;
        uint64_t len;
        enum range_result result;
        uint64_t first, count;
    } rows[] = {
        { "bytes=0-0", 1, RANGE_PART, 0, 1 },
        { "bytes=0-9", 10, RANGE_PART, 0, 10 },
        { "bytes=2-5", 10, RANGE_PART, 2, 4 },
        { "bytes=5-", 10, RANGE_PART, 5, 5 },
        { "bytes=9-18446744073709551615", 10, RANGE_PART, 9, 1 },
        { "bytes=-1", 10, RANGE_PART, 9, 1 },
        { "bytes=-18446744073709551615", 10, RANGE_PART, 0, 10 },
        { "bYtEs=1-1", 10, RANGE_PART, 1, 1 },
        { "bytes= 1-1 ", 10, RANGE_PART, 1, 1 },
        { "bytes=0-", UINT64_MAX, RANGE_PART, 0, UINT64_MAX },
        { "bytes=10-", 10, RANGE_UNSATISFIABLE, 0, 0 },
        { "bytes=10-20", 10, RANGE_UNSATISFIABLE, 0, 0 },
        { "bytes=18446744073709551615-", 10, RANGE_UNSATISFIABLE, 0, 0 },
        { "bytes=-0", 10, RANGE_UNSATISFIABLE, 0, 0 },
        { "bytes=0-", 0, RANGE_UNSATISFIABLE, 0, 0 },
        { "bytes=-5", 0, RANGE_UNSATISFIABLE, 0, 0 },
        { "", 10, RANGE_WHOLE, 0, 0 },
        { "bytes", 10, RANGE_WHOLE, 0, 0 },
        { "bytes=", 10, RANGE_WHOLE, 0, 0 },
        { "bytes=-", 10, RANGE_WHOLE, 0, 0 },
        { "bytes=5", 10, RANGE_WHOLE, 0, 0 },
        { "bytes=5-4", 10, RANGE_WHOLE, 0, 0 },
        { "bytes=0-1,5-6", 10, RANGE_WHOLE, 0, 0 },
        { "bytes=0-1,", 10, RANGE_WHOLE, 0, 0 },
        { "bytes=+0-1", 10, RANGE_WHOLE, 0, 0 },
        { "bytes=0 - 1", 10, RANGE_WHOLE, 0, 0 },
        { "bytes=0-1x", 10, RANGE_WHOLE, 0, 0 },
        { "bytes=0x0-1", 10, RANGE_WHOLE, 0, 0 },
        { "bytes=1--1", 10, RANGE_WHOLE, 0, 0 },
        { "bytes=18446744073709551616-", 10, RANGE_WHOLE, 0, 0 },
        { "bytes =0-1", 10, RANGE_WHOLE, 0, 0 },
        { "octets=0-1", 10, RANGE_WHOLE, 0, 0 },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        uint64_t first = 0, count = 0;

        if (range_parse(at_guard(rows[i].text), rows[i].len, &first, &count) != rows[i].result) {
            fail_msg("%s of %llu", rows[i].text, (unsigned long long)rows[i].len);
        }
        if (rows[i].result == RANGE_PART) {
            assert_int_equal(first, rows[i].first);
            assert_int_equal(count, rows[i].count);
        }
    }
}

/* ---- entity tags ----------------------------------------------------------------------------- */

static void
lists_of_tags(void **state)
{
    static const struct {
        const char *list;
        enum etag_match strong, weak; /* for CAS 7 */
    } rows[] = {
        { "*", ETAG_YES, ETAG_YES },
        { " * ", ETAG_YES, ETAG_YES },
        { "\"7\"", ETAG_YES, ETAG_YES },
        { "W/\"7\"", ETAG_NO, ETAG_YES },
        { "\"8\"", ETAG_NO, ETAG_NO },
        { "\"07\"", ETAG_NO, ETAG_NO },
        { "\"\"", ETAG_NO, ETAG_NO },
        { "\"a,b\", \"7\"", ETAG_YES, ETAG_YES },
        { "\"1\",W/\"7\" ,\"2\"", ETAG_NO, ETAG_YES },
        { ", ,\"7\",,", ETAG_YES, ETAG_YES },
        { "\"\x80\xff!\"", ETAG_NO, ETAG_NO },
        { "", ETAG_MALFORMED, ETAG_MALFORMED },
        { ",", ETAG_MALFORMED, ETAG_MALFORMED },
        { "?", ETAG_MALFORMED, ETAG_MALFORMED },
        { "7", ETAG_MALFORMED, ETAG_MALFORMED },
        { "\"7", ETAG_MALFORMED, ETAG_MALFORMED },
        { "\"", ETAG_MALFORMED, ETAG_MALFORMED },
        { "W/", ETAG_MALFORMED, ETAG_MALFORMED },
        { "w/\"7\"", ETAG_MALFORMED, ETAG_MALFORMED },
        { "\"7\" \"8\"", ETAG_MALFORMED, ETAG_MALFORMED },
        { "\"7\";", ETAG_MALFORMED, ETAG_MALFORMED },
        { "\"7\", *", ETAG_MALFORMED, ETAG_MALFORMED },
        { "\"7 8\"", ETAG_MALFORMED, ETAG_MALFORMED },
        { "\"7\x7f\"", ETAG_MALFORMED, ETAG_MALFORMED },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        if (etag_list_has(at_guard(rows[i].list), 7, false) != rows[i].strong ||
            etag_list_has(at_guard(rows[i].list), 7, true) != rows[i].weak) {
            fail_msg("%s", rows[i].list);
        }
    }
    assert_int_equal(etag_list_has(SLICE("\"0\""), 0, true), ETAG_NO); /* a CAS that is not known */
    assert_int_equal(etag_list_has(SLICE("*"), 0, true), ETAG_YES);
}

static void
single_tags(void **state)
{
    static const struct {
        const char *text;
        enum etag_single result;
        uint64_t cas;
    } rows[] = {
        { "*", ETAG_SINGLE_ANY, 0 },
        { "\"1\"", ETAG_SINGLE_CAS, 1 },
        { "\"18446744073709551615\"", ETAG_SINGLE_CAS, UINT64_MAX },
        { "\"18446744073709551616\"", ETAG_SINGLE_NEVER, 0 },
        { "\"0\"", ETAG_SINGLE_NEVER, 0 },
        { "\"01\"", ETAG_SINGLE_NEVER, 0 },
        { "\"x\"", ETAG_SINGLE_NEVER, 0 },
        { "W/\"1\"", ETAG_SINGLE_NEVER, 0 },
        { "\"1\",\"2\"", ETAG_SINGLE_LIST, 0 },
        { "\"1\",\"2", ETAG_SINGLE_MALFORMED, 0 },
        { "\"1\",x", ETAG_SINGLE_MALFORMED, 0 },
        { "\"1\",\"2\",x", ETAG_SINGLE_MALFORMED, 0 },
        { "\"1\",\"2\",\"3\"", ETAG_SINGLE_LIST, 0 },
        { ",\"1\",", ETAG_SINGLE_CAS, 1 },
        { "", ETAG_SINGLE_MALFORMED, 0 },
        { "1", ETAG_SINGLE_MALFORMED, 0 },
    };
    char out[ETAG_TEXT_MAX];

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        uint64_t cas = 0;

        if (etag_single(at_guard(rows[i].text), &cas) != rows[i].result) {
            fail_msg("%s", rows[i].text);
        }
        assert_true(rows[i].result != ETAG_SINGLE_CAS || cas == rows[i].cas);
        assert_int_equal(etag_parse_one(at_guard(rows[i].text), &cas),
                         rows[i].result == ETAG_SINGLE_CAS);
    }
    assert_int_equal(etag_print(1, out), 3);
    assert_string_equal(out, "\"1\"");
    assert_int_equal(etag_print(1000, out), 6);
    assert_string_equal(out, "\"1000\"");
    assert_int_equal(etag_print(UINT64_MAX, out), 22);
    assert_string_equal(out, "\"18446744073709551615\"");
}

/* ---- media types ----------------------------------------------------------------------------- */

/* Each number has one type, and each type has its number; nothing else is one of ours. */
static void
media_types_go_there_and_back(void **state)
{
    size_t count = 0;

    (void)state;
    for (uint32_t number = 0; number < 128; number++) {
        uint32_t flags = 0x40000000U | number << 22;
        const char *type = media_type_from_flags(flags);

        if (type != NULL) {
            count++;
            assert_int_equal(media_type_to_flags(at_guard(type)), flags);
        }
        for (int bit = 0; bit < 32; bit++) {
            if (bit < 22 || bit > 28) { /* outside of the number */
                assert_null(media_type_from_flags(flags ^ 1U << bit));
            }
        }
    }
    assert_in_range(count, 100, 127);
    assert_null(media_type_from_flags(0));
    assert_null(media_type_from_flags(0x40000000U));
    assert_null(media_type_from_flags(UINT32_MAX));
}

/* FNV-1a over the numbers and names of the first 121 types. */
static uint32_t
digest_of_types(void)
{
    uint32_t digest = 2166136261U;

    for (uint32_t number = 1; number <= 121; number++) {
        const char *type = media_type_from_flags(0x40000000U | number << 22);

        digest = (digest ^ number) * 16777619U;
        for (; type != NULL && *type != '\0'; type++) {
            digest = (digest ^ (unsigned char)*type) * 16777619U;
        }
    }
    return digest;
}

/* Items outlive this program: a type that was ever in the table keeps its number. */
static void
media_types_stay(void **state)
{
    (void)state;
    assert_int_equal(digest_of_types(), 0x6806bad4U);
    assert_int_equal(media_type_to_flags(SLICE("text/plain")), 0x40000000U | 1U << 22);
    assert_int_equal(media_type_to_flags(SLICE("application/json")), 0x40000000U | 21U << 22);
    assert_int_equal(media_type_to_flags(SLICE("image/png")), 0x40000000U | 92U << 22);
}

static void
media_types_are_compared(void **state)
{
    uint32_t html = media_type_to_flags(SLICE("text/html; charset=utf-8"));
    static const char *const same[] = { "TEXT/HTML;CHARSET=UTF-8", "text/html ;charset=utf-8",
                                        "text/html\t;\t charset=utf-8",
                                        "text/html; \t \t charset=utf-8",
                                        " text/html; charset=utf-8 " };
    static const char *const other[] = { "",
                                         ";",
                                         "text/html;",
                                         "text/html;;charset=utf-8",
                                         "; text/html",
                                         "text/html ; ;",
                                         "text/html, text/html",
                                         "text/html; charset",
                                         "text/html; charset=utf-8; x=1",
                                         "text/htm",
                                         "text/html; charset=\"utf-8\"",
                                         "text/ html; charset=utf-8" };
    char text[300];

    (void)state;
    assert_int_not_equal(html, 0);
    assert_int_not_equal(html, media_type_to_flags(SLICE("text/html")));
    for (size_t i = 0; i < COUNT(same); i++) {
        assert_int_equal(media_type_to_flags(at_guard(same[i])), html);
    }
    for (size_t i = 0; i < COUNT(other); i++) {
        if (media_type_to_flags(at_guard(other[i])) != 0) {
            fail_msg("%s", other[i]);
        }
    }
    for (const char *fill = "x; "; *fill != '\0'; fill++) {
        memset(text, *fill, sizeof(text));
        for (size_t len = 80; len <= sizeof(text);
             len++) { /* about the longest that is looked at */
            assert_int_equal(media_type_to_flags(slice_of(guard_place(&guard, text, len), len)), 0);
        }
    }
    assert_int_equal(media_type_to_flags(slice_of(NULL, 0)), 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges),           cmocka_unit_test(lists_of_tags),
        cmocka_unit_test(single_tags),      cmocka_unit_test(media_types_go_there_and_back),
        cmocka_unit_test(media_types_stay), cmocka_unit_test(media_types_are_compared),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
