/* SPDX-License-Identifier: BSD-2-Clause */
/* test_slice.c: the questions asked of runs of bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "slice.h"

static void
made_from_text(void **state)
{
    static const struct slice constant = SLICE_LITERAL("a\0b");

    (void)state;
    assert_int_equal(constant.len, 3);
    assert_int_equal(SLICE("four").len, 4);
    assert_int_equal(slice_from_string("abc").len, 3);
    assert_int_equal(slice_from_string("").len, 0);
    assert_int_equal(slice_from_string(NULL).len, 0);
    assert_null(slice_from_string(NULL).ptr);
}

static void
equal(void **state)
{
    (void)state;
    assert_true(slice_equal(SLICE("abc"), SLICE("abc")));
    assert_true(slice_equal(slice_of(NULL, 0), SLICE("")));
    assert_false(slice_equal(SLICE("abc"), SLICE("abd")));
    assert_false(slice_equal(SLICE("abc"), SLICE("ab")));
    assert_false(slice_equal(SLICE("ab"), SLICE("abc")));
    /* A NUL ends nothing. */
    assert_false(slice_equal(SLICE("a\0b"), SLICE("a\0c")));
}

static void
starts_with(void **state)
{
    (void)state;
    assert_true(slice_starts_with(SLICE("/path/key"), SLICE("/path/")));
    assert_true(slice_starts_with(SLICE("/"), SLICE("/")));
    assert_true(slice_starts_with(SLICE("x"), slice_of(NULL, 0)));
    assert_true(slice_starts_with(slice_of(NULL, 0), slice_of(NULL, 0)));
    assert_false(slice_starts_with(SLICE("/pat"), SLICE("/path")));
    assert_false(slice_starts_with(SLICE("/Path"), SLICE("/path")));
}

static void
equal_nocase(void **state)
{
    (void)state;
    assert_true(slice_equal_nocase(SLICE("Content-TYPE"), SLICE("cONTENT-type")));
    assert_true(slice_equal_nocase(slice_of(NULL, 0), SLICE("")));
    assert_false(slice_equal_nocase(SLICE("abc"), SLICE("abcd")));
    /* Bytes that differ from each other by 0x20 but are no letters: @ and `, [ and {, and above. */
    assert_false(slice_equal_nocase(SLICE("@"), SLICE("`")));
    assert_false(slice_equal_nocase(SLICE("["), SLICE("{")));
    assert_false(slice_equal_nocase(SLICE("\xc4"), SLICE("\xe4")));
    assert_true(slice_equal_nocase(SLICE("AZ"), SLICE("az")));
}

static void
numbers(void **state)
{
    static const char *const bad[] = {
        "",
        " ",
        "-1",
        "+1",
        "1 ",
        " 1",
        "1x",
        "0x1",
        "1.0",
        "18446744073709551616",
        "99999999999999999999",
        "100000000000000000000",
        "000000000000000000001",
        "/",
        ":",
    };
    uint64_t n;

    (void)state;
    assert_true(slice_to_u64(SLICE("0"), &n) && n == 0);
    assert_true(slice_to_u64(SLICE("007"), &n) && n == 7);
    assert_true(slice_to_u64(SLICE("1234567890"), &n) && n == 1234567890);
    assert_true(slice_to_u64(SLICE("18446744073709551615"), &n) && n == UINT64_MAX);
    assert_true(slice_to_u64(slice_of("12345", 2), &n) && n == 12);
    n = 42;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_false(slice_to_u64(slice_from_string(bad[i]), &n));
        assert_int_equal(n, 42);
    }
    assert_false(slice_to_u64(SLICE("1\0"), &n));
    assert_false(slice_to_u64(slice_of(NULL, 0), &n));
}

/* Reads past the end are the sanitizer's to find: the bytes lie at the end of their block. */
static void
reads_no_further(void **state)
{
    char *block = malloc(3);
    uint64_t n;

    (void)state;
    assert_non_null(block);
    block[0] = '1';
    block[1] = '2';
    block[2] = '3';
    assert_true(slice_to_u64(slice_of(block, 3), &n) && n == 123);
    assert_true(slice_equal(slice_of(block, 3), SLICE("123")));
    assert_true(slice_equal_nocase(slice_of(block, 3), SLICE("123")));
    assert_false(slice_starts_with(slice_of(block, 3), SLICE("1234")));
    free(block);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(made_from_text), cmocka_unit_test(equal),
        cmocka_unit_test(starts_with),    cmocka_unit_test(equal_nocase),
        cmocka_unit_test(numbers),        cmocka_unit_test(reads_no_further),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
