/* SPDX-License-Identifier: BSD-2-Clause */
/* test_json_out.c: strings, base64 and what is UTF-8, read back by Python's own words for them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "json_out.h"

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
    assert_true(json_out_string(&out, SLICE("")));
    expect(out, "\"\"");
    assert_true(json_out_string(&out, SLICE("a\"b\\c/d\n\r\t\x01\x1f\x7f \xc3\xa9")));
    expect(out, "\"a\\\"b\\\\c/d\\n\\r\\t\\u0001\\u001f\x7f \xc3\xa9\"");
    assert_true(json_out_string(&out, slice_of("\0", 1)));
    expect(out, "\"\\u0000\"");
    assert_true(json_out_number(&out, UINT64_MAX));
    assert_true(json_out_raw(&out, SLICE(",")));
    assert_true(json_out_number(&out, 0));
    expect(out, "18446744073709551615,0");
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
        assert_true(json_out_base64(&out, slice_from_string(rows[i][0])));
        expect(out, rows[i][1]);
    }
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
        assert_true(json_out_is_utf8(slice_from_string(good[i])));
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_false(json_out_is_utf8(slice_from_string(bad[i])));
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strings),
        cmocka_unit_test(base64),
        cmocka_unit_test(utf8),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
