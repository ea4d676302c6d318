/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_json_out.c: strings, base64 and what is UTF-8. Each input ends at a guard page, and the buffer
 * has to grow.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "guard.h"
#include "json_out.h"

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
at_guard(const char *text, size_t len)
{
    return slice_of(guard_place(&guard, text, len), len);
}

/* OUT holds exactly TEXT; it is emptied. */
static void
expect(struct buffer *out, const char *text)
{
    assert_int_equal(out->len, strlen(text));
    assert_memory_equal(out->data, text, out->len);
    out->len = 0;
}

static void
strings(void **state)
{
    struct buffer *out = buffer_create(1); /* it has to grow */

    (void)state;
    assert_true(json_out_string(&out, at_guard("", 0)));
    expect(out, "\"\"");
    assert_true(json_out_string(&out, slice_of(NULL, 0)));
    expect(out, "\"\"");
    assert_true(json_out_string(&out, at_guard("plain \x7f\xc3\xa9", 9)));
    expect(out, "\"plain \x7f\xc3\xa9\"");
    assert_true(json_out_string(&out, at_guard("a\"b\\c/d\n\r\t\x01\x1f\x7f \xc3\xa9", 16)));
    expect(out, "\"a\\\"b\\\\c/d\\n\\r\\t\\u0001\\u001f\x7f \xc3\xa9\"");
    assert_true(json_out_string(&out, at_guard("\0", 1)));
    expect(out, "\"\\u0000\"");
    assert_true(json_out_number(&out, UINT64_MAX));
    assert_true(json_out_raw(&out, SLICE(",")));
    assert_true(json_out_number(&out, 0));
    assert_true(json_out_raw(&out, slice_of(NULL, 0)));
    expect(out, "18446744073709551615,0");
    buffer_unref(out);
}

/* Every ASCII character, written as its own string, and no length that the writing does not keep to. */
static void
each_character(void **state)
{
    struct buffer *out = buffer_create(0);

    (void)state;
    for (int c = 0; c < 0x80; c++) {
        char text = (char)c, wanted[16];
        const char *short_form = c == '\n' ? "\\n" : c == '\r' ? "\\r" : c == '\t' ? "\\t" : NULL;

        if (short_form != NULL) {
            snprintf(wanted, sizeof(wanted), "\"%s\"", short_form);
        } else if (c < 0x20) {
            snprintf(wanted, sizeof(wanted), "\"\\u%04x\"", (unsigned)c);
        } else {
            snprintf(wanted, sizeof(wanted), "\"%s%c\"", c == '"' || c == '\\' ? "\\" : "", c);
        }
        assert_true(json_out_string(&out, at_guard(&text, 1)));
        expect(out, wanted);
    }
    buffer_unref(out);
}

/* What was written stays when the buffer moves; room grows by doubling, not by the byte. */
static void
growth(void **state)
{
    struct buffer *out = buffer_create(1);
    size_t grown = 0;

    (void)state;
    for (size_t i = 0; i < 5000; i++) {
        size_t cap = out->cap;

        assert_true(json_out_string(&out, at_guard("\n", 1)));
        grown += out->cap != cap;
    }
    assert_int_equal(out->len, 5000 * 4);
    for (size_t i = 0; i < 5000; i++) {
        assert_memory_equal(out->data + 4 * i, "\"\\n\"", 4);
    }
    assert_in_range(grown, 1, 20);
    buffer_unref(out);
}

/* Without memory nothing is written, and what was there stays. */
static void
no_memory(void **state)
{
    struct buffer *out = buffer_create(16);

    (void)state;
    assert_true(json_out_raw(&out, SLICE("kept")));
    assert_false(json_out_raw(&out, slice_of("", SIZE_MAX - 8)));
    expect(out, "kept");
    buffer_unref(out);
}

static void
base64(void **state)
{
    /* RFC 4648, section 10 */
    static const char *const rows[][2] = {
        { "", "\"\"" },
        { "f", "\"Zg==\"" },
        { "fo", "\"Zm8=\"" },
        { "foo", "\"Zm9v\"" },
        { "foob", "\"Zm9vYg==\"" },
        { "fooba", "\"Zm9vYmE=\"" },
        { "foobar", "\"Zm9vYmFy\"" },
        { "\xff\xfe\xfd", "\"//79\"" },
        { "\xfb\xef\xbe", "\"++++\"" },
    };
    struct buffer *out = buffer_create(1);

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_true(json_out_base64(&out, at_guard(rows[i][0], strlen(rows[i][0]))));
        expect(out, rows[i][1]);
    }
    assert_true(json_out_base64(&out, slice_of(NULL, 0)));
    expect(out, "\"\"");
    assert_true(json_out_base64(&out, at_guard("\0\0\x10", 3)));
    expect(out, "\"AAAQ\"");
    buffer_unref(out);
}

static void
utf8(void **state)
{
    static const char *const good[] = { "",
                                        "plain",
                                        "\x7f",
                                        "\xc2\x80",
                                        "\xdf\xbf",
                                        "\xe0\xa0\x80",
                                        "\xed\x9f\xbf",
                                        "\xee\x80\x80",
                                        "\xef\xbf\xbf",
                                        "\xf0\x90\x80\x80",
                                        "\xf4\x8f\xbf\xbf" };
    static const char *const bad[] = { "\x80",
                                       "\xbf",
                                       "\xc0\x80",
                                       "\xc1\xbf",
                                       "\xc2",
                                       "\xc2 ",
                                       "\xe0\x9f\xbf",
                                       "\xe0\xa0",
                                       "\xed\xa0\x80",
                                       "\xed\xbf\xbf",
                                       "\xf0\x8f\xbf\xbf",
                                       "\xf0\x90\x80",
                                       "\xf4\x90\x80\x80",
                                       "\xf5\x80\x80\x80",
                                       "\xff",
                                       "a\xe2\x82" };

    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_true(json_out_is_utf8(at_guard(good[i], strlen(good[i]))));
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_false(json_out_is_utf8(at_guard(bad[i], strlen(bad[i]))));
    }
    assert_true(json_out_is_utf8(slice_of(NULL, 0)));
    assert_true(json_out_is_utf8(at_guard("\0", 1)));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strings),   cmocka_unit_test(each_character), cmocka_unit_test(growth),
        cmocka_unit_test(no_memory), cmocka_unit_test(base64),         cmocka_unit_test(utf8),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
