/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_buffer.c: the count and the room of value blocks. That the last reference frees, and no
 * other, is the sanitizer's to find: a leak and a use after free both fail the test.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "buffer.h"

static void
created_empty(void **state)
{
    struct buffer *b = buffer_create(100);

    (void)state;
    assert_non_null(b);
    assert_int_equal(b->refs, 1);
    assert_int_equal(b->len, 0);
    assert_int_equal(b->cap, 100);
    memset(b->data, 'x', 100);
    buffer_unref(b);
}

static void
created_without_room(void **state)
{
    struct buffer *b = buffer_create(0);

    (void)state;
    assert_non_null(b);
    assert_int_equal(b->cap, 0);
    buffer_unref(b);
    buffer_unref(NULL);
}

/* A size that overflows must not come back as a small block. */
static void
created_too_large(void **state)
{
    (void)state;
    assert_null(buffer_create(SIZE_MAX));
    assert_null(buffer_create(SIZE_MAX - 8));
}

static void
shared(void **state)
{
    struct buffer *b = buffer_create(4);

    (void)state;
    assert_non_null(b);
    memcpy(b->data, "1234", 4);
    b->len = 4;
    assert_ptr_equal(buffer_ref(b), b);
    assert_int_equal(b->refs, 2);
    buffer_unref(b);
    assert_int_equal(b->refs, 1);
    assert_memory_equal(b->data, "1234", 4);
    buffer_unref(b);
}

static void
grows_and_keeps(void **state)
{
    struct buffer *b = buffer_create(4);

    (void)state;
    assert_non_null(b);
    memcpy(b->data, "1234", 4);
    b->len = 4;
    assert_int_equal(buffer_reserve(&b, 100000), 0);
    assert_true(b->cap >= 100000);
    assert_int_equal(b->len, 4);
    assert_int_equal(b->refs, 1);
    assert_memory_equal(b->data, "1234", 4);
    memset(b->data + 4, 'x', 100000 - 4);
    buffer_unref(b);
}

static void
never_shrinks(void **state)
{
    struct buffer *b = buffer_create(100), *same = b;

    (void)state;
    assert_non_null(b);
    assert_int_equal(buffer_reserve(&b, 10), 0);
    assert_int_equal(buffer_reserve(&b, 100), 0);
    assert_ptr_equal(b, same);
    assert_int_equal(b->cap, 100);
    buffer_unref(b);
}

static void
grows_too_large(void **state)
{
    struct buffer *b = buffer_create(4), *same = b;

    (void)state;
    assert_non_null(b);
    memcpy(b->data, "1234", 4);
    b->len = 4;
    assert_int_equal(buffer_reserve(&b, SIZE_MAX), -1);
    assert_int_equal(buffer_reserve(&b, SIZE_MAX - 8), -1);
    assert_ptr_equal(b, same);
    assert_int_equal(b->cap, 4);
    assert_memory_equal(b->data, "1234", 4);
    buffer_unref(b);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(created_empty),     cmocka_unit_test(created_without_room),
        cmocka_unit_test(created_too_large), cmocka_unit_test(shared),
        cmocka_unit_test(grows_and_keeps),   cmocka_unit_test(never_shrinks),
        cmocka_unit_test(grows_too_large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
