/* SPDX-License-Identifier: BSD-2-Clause */
/* contract_values.c: values, keys, flags and lifetimes: what was put in comes out, for so long. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "contract_priv.h"

/* Around the sizes where buffers, lanes and pages change hands. */
static const size_t sizes[] = { 0,     1,     2,     100,   1024,  1499,  1500,   2000,
                                2048,  4095,  4096,  4097,  8192,  16383, 16384,  16385,
                                65482, 65483, 65484, 65535, 65536, 65537, 100000, 307200 };
#define SIZE_COUNT (sizeof(sizes) / sizeof(sizes[0]))

static void
values_of_all_sizes(void **state)
{
    struct fixture *f = *state;

    for (unsigned i = 0; i < SIZE_COUNT; i++) {
        struct slice key = fixture_key(f, "size", i);
        char *bytes = fixture_bytes(sizes[i], i);
        assert_status(fixture_run_value(f, STORE_SET, key, slice_of(bytes, sizes[i])), STORE_OK);
        fixture_has(f, key, slice_of(bytes, sizes[i]));
        free(bytes);
    }
    /* And all of them are still there. */
    for (unsigned i = 0; i < SIZE_COUNT; i++) {
        char *bytes = fixture_bytes(sizes[i], i);
        fixture_has(f, fixture_key(f, "size", i), slice_of(bytes, sizes[i]));
        free(bytes);
    }
}

static void
value_grows_and_shrinks_in_place(void **state)
{
    struct fixture *f = *state;
    struct slice key = KEY("k");

    for (unsigned i = 0; i < 2 * SIZE_COUNT; i++) {
        size_t len = sizes[i * 7 % SIZE_COUNT];
        char *bytes = fixture_bytes(len, i);
        assert_status(fixture_run_value(f, STORE_SET, key, slice_of(bytes, len)), STORE_OK);
        fixture_has(f, key, slice_of(bytes, len));
        free(bytes);
    }
}

static void
value_of_every_byte(void **state)
{
    struct fixture *f = *state;
    struct slice key = KEY("k"), tricky = SLICE("END\r\nVALUE x 0 3\r\nabc\r\nEND\r\n\0\r\n");
    char bytes[3 * 256];

    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (char)i;
    }
    assert_status(fixture_run_value(f, STORE_SET, key, slice_of(bytes, sizeof(bytes))), STORE_OK);
    fixture_has(f, key, slice_of(bytes, sizeof(bytes)));
    assert_status(fixture_run_value(f, STORE_SET, key, tricky), STORE_OK);
    fixture_has(f, key, tricky);
}

static void
absent_is_a_miss(void **state)
{
    struct fixture *f = *state;

    assert_status(fixture_run(f, STORE_GET, KEY("none")), STORE_MISS);
    assert_null(f->op.data);
    assert_status(fixture_run(f, STORE_HEAD, KEY("none")), STORE_MISS);
    assert_null(f->op.data);
}

static void
head_tells_all_but_the_value(void **state)
{
    struct fixture *f = *state;
    struct slice key = KEY("k");
    uint64_t cas;

    for (unsigned i = 0; i < SIZE_COUNT; i += 5) {
        char *bytes = fixture_bytes(sizes[i], i);
        assert_status(fixture_run_flags(f, STORE_SET, key, slice_of(bytes, sizes[i]), i), STORE_OK);
        free(bytes);
        assert_status(fixture_run(f, STORE_GET, key), STORE_OK);
        cas = f->op.out_cas;
        assert_status(fixture_run(f, STORE_HEAD, key), STORE_OK);
        assert_null(f->op.data);
        assert_int_equal(f->op.value_len, sizes[i]);
        assert_int_equal(f->op.out_flags, i);
        assert_true(f->op.out_cas == cas);
        fixture_ttl(f, 0);
    }
}

static void
flags_come_back(void **state)
{
    static const uint32_t flags[] = { 0, 1, 0x40000000, 0x5fc00000, 0x7fffffff, 0xffffffff };
    struct fixture *f = *state;
    struct slice key = KEY("k");

    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
        assert_status(fixture_run_flags(f, STORE_SET, key, SLICE("v"), flags[i]), STORE_OK);
        fixture_has(f, key, SLICE("v"));
        assert_true(f->op.out_flags == flags[i]);
    }
    assert_status(fixture_run_value(f, STORE_SET, key, SLICE("v")), STORE_OK);
    fixture_has(f, key, SLICE("v"));
    assert_true(f->op.out_flags == 0);
}

static void
keys_of_all_lengths_and_bytes(void **state)
{
    struct fixture *f = *state;
    char text[STORE_KEY_MAX], value[8];
    size_t n = 0;

    /* Every byte that a key may have; the length tells them apart. */
    for (int byte = 0x21; byte < 0x100 && n < STORE_KEY_MAX; byte++) {
        if (byte != 0x7f) {
            text[n++] = (char)byte;
        }
    }
    memset(text + n, 'x', STORE_KEY_MAX - n);
    for (size_t len = 1; len <= STORE_KEY_MAX; len += len < 4 || len > 246 ? 1 : 27) {
        int digits = snprintf(value, sizeof(value), "%zu", len);
        struct slice v = slice_of(value, (size_t)digits);
        assert_status(fixture_run_value(f, STORE_SET, slice_of(text, len), v), STORE_OK);
        fixture_has(f, slice_of(text, len), v);
    }
    fixture_has(f, slice_of(text, 1), SLICE("1"));
    fixture_has(f, slice_of(text, STORE_KEY_MAX), SLICE("250"));
    /* Equal but for the last byte. */
    text[STORE_KEY_MAX - 1] = 'y';
    assert_status(fixture_run(f, STORE_GET, slice_of(text, STORE_KEY_MAX)), STORE_MISS);
    assert_status(fixture_run_value(f, STORE_SET, slice_of(text, STORE_KEY_MAX), SLICE("y")),
                  STORE_OK);
    assert_status(fixture_run(f, STORE_DELETE, slice_of(text, STORE_KEY_MAX)), STORE_OK);
    text[STORE_KEY_MAX - 1] = 'x';
    fixture_has(f, slice_of(text, STORE_KEY_MAX), SLICE("250"));
    for (size_t len = 1; len <= STORE_KEY_MAX; len++) {
        fixture_run(f, STORE_DELETE, slice_of(text, len));
    }
}

static void
too_large_leaves_the_old_value(void **state)
{
    struct fixture *f = *state;
    size_t max = f->contract->value_max;
    struct slice key = KEY("k");
    char *bytes;

    if (max == 0) {
        return;
    }
    bytes = fixture_bytes(max + 1000, 1);
    assert_true(f->shared->type->value_max(f->shared, key.len, 0) >= max);
    assert_true(f->shared->type->value_max(f->shared, key.len, 0) <= max + 200);
    assert_status(fixture_run_value(f, STORE_SET, key, slice_of(bytes, max)), STORE_OK);
    fixture_has(f, key, slice_of(bytes, max));
    assert_status(fixture_run_value(f, STORE_APPEND, key, slice_of(bytes, 1000)),
                  f->contract->append_over);
    assert_status(fixture_run_value(f, STORE_SET, key, slice_of(bytes + 1, max + 999)),
                  STORE_TOO_LARGE);
    assert_status(fixture_run_value(f, STORE_REPLACE, key, slice_of(bytes + 1, max + 999)),
                  STORE_TOO_LARGE);
    fixture_has(f, key, slice_of(bytes, max));
    assert_status(fixture_run_value(f, STORE_SET, KEY("new"), slice_of(bytes, max + 1000)),
                  STORE_TOO_LARGE);
    assert_status(fixture_run(f, STORE_GET, KEY("new")), STORE_MISS);
    assert_status(fixture_run(f, STORE_DELETE, key), STORE_OK);
    free(bytes);
}

#define DAY UINT64_C(86400)

static void
long_lives_are_right(void **state)
{
    static const uint64_t ttls[] = { 100,          3600,     30 * DAY - 1, 30 * DAY,
                                     30 * DAY + 1, 31 * DAY, 3650 * DAY };
    struct fixture *f = *state;

    for (unsigned i = 0; i < sizeof(ttls) / sizeof(ttls[0]); i++) {
        struct slice key = fixture_key(f, "ttl", i);
        assert_status(fixture_run_ttl(f, STORE_SET, key, SLICE("v"), ttls[i]), STORE_OK);
        fixture_has(f, key, SLICE("v"));
        fixture_ttl(f, ttls[i]);
        assert_status(fixture_run(f, STORE_HEAD, key), STORE_OK);
        fixture_ttl(f, ttls[i]);
        if (f->contract->has_touch) {
            assert_status(fixture_run_ttl(f, STORE_TOUCH, key, SLICE(""), ttls[i] + 1000),
                          STORE_OK);
            fixture_has(f, key, SLICE("v"));
            fixture_ttl(f, ttls[i] + 1000);
        }
    }
}

static void
touch_changes_only_the_ttl(void **state)
{
    struct fixture *f = *state;
    struct slice key = KEY("k");
    uint64_t cas;

    if (!f->contract->has_touch) {
        assert_status(fixture_run_ttl(f, STORE_TOUCH, key, SLICE(""), 10), STORE_UNSUPPORTED);
        return;
    }
    assert_status(fixture_run_ttl(f, STORE_TOUCH, key, SLICE(""), 10), STORE_MISS);
    assert_status(fixture_run_flags(f, STORE_SET, key, SLICE("value"), 77), STORE_OK);
    assert_status(fixture_run(f, STORE_GET, key), STORE_OK);
    cas = f->op.out_cas;
    assert_status(fixture_run_ttl(f, STORE_TOUCH, key, SLICE(""), 5000), STORE_OK);
    fixture_has(f, key, SLICE("value"));
    assert_int_equal(f->op.out_flags, 77);
    assert_true(f->op.out_cas == cas);
    fixture_ttl(f, 5000);
    assert_status(fixture_run_ttl(f, STORE_TOUCH, key, SLICE(""), 0), STORE_OK);
    fixture_has(f, key, SLICE("value"));
    fixture_ttl(f, 0);
}

static void
a_new_value_has_its_own_ttl(void **state)
{
    struct fixture *f = *state;
    struct slice key = KEY("k");

    assert_status(fixture_run_ttl(f, STORE_SET, key, SLICE("a"), 1000), STORE_OK);
    assert_status(fixture_run_ttl(f, STORE_SET, key, SLICE("b"), 2000), STORE_OK);
    fixture_has(f, key, SLICE("b"));
    fixture_ttl(f, 2000);
    assert_status(fixture_run_value(f, STORE_REPLACE, key, SLICE("c")), STORE_OK);
    fixture_has(f, key, SLICE("c"));
    fixture_ttl(f, 0);
}

/* Joining and counting keep flags and ttl. */
static void
changes_keep_flags_and_ttl(void **state)
{
    struct fixture *f = *state;
    struct slice key = KEY("k");
    struct store_op op;

    store_op_init(&op, STORE_SET, key);
    op.value = SLICE("5");
    op.flags = 1234;
    op.ttl_s = 4000;
    assert_status(fixture_run_op(f, &op), STORE_OK);
    assert_status(fixture_run_value(f, STORE_APPEND, key, SLICE("0")), STORE_OK);
    assert_status(fixture_run_value(f, STORE_PREPEND, key, SLICE("1")), STORE_OK);
    assert_status(fixture_run_count(f, STORE_INCR, key, 7), STORE_OK);
    assert_status(fixture_run_count(f, STORE_DECR, key, 1), STORE_OK);
    fixture_has(f, key, SLICE("156"));
    assert_int_equal(f->op.out_flags, 1234);
    fixture_ttl(f, 4000);
}

/* Polls until KEY is gone. */
static void
wait_for_miss(struct fixture *f, struct slice key)
{
    int64_t deadline_ms = clock_monotonic_ms() + 10000;

    while (fixture_run(f, STORE_HEAD, key) == STORE_OK) {
        assert_true(clock_monotonic_ms() < deadline_ms);
        driver_idle(&f->driver, 20);
    }
    assert_status(f->op.status, STORE_MISS);
}

static void
expired_is_absent(void **state)
{
    struct fixture *f = *state;
    struct slice mortal = KEY("mortal"), joined = KEY("joined"), touched = KEY("touched"),
                 saved = KEY("saved"), renewed = KEY("renewed"), counter = KEY("counter");
    struct slice all[] = { mortal, joined, touched, saved, renewed, counter };
    int64_t start_ms = clock_monotonic_ms();

    for (size_t i = 0; i < 6; i++) {
        assert_status(fixture_run_ttl(f, STORE_SET, all[i], SLICE("1"), 2), STORE_OK);
    }
    assert_status(fixture_run_value(f, STORE_APPEND, joined, SLICE("1")), STORE_OK);
    assert_status(fixture_run_count(f, STORE_INCR, counter, 1), STORE_OK);
    assert_status(fixture_run_value(f, STORE_SET, renewed, SLICE("1")), STORE_OK);
    if (f->contract->has_touch) {
        assert_status(fixture_run_ttl(f, STORE_TOUCH, saved, SLICE(""), 0), STORE_OK);
        assert_status(fixture_run_ttl(f, STORE_SET, touched, SLICE("1"), 0), STORE_OK);
        assert_status(fixture_run_ttl(f, STORE_TOUCH, touched, SLICE(""), 2), STORE_OK);
    }
    wait_for_miss(f, mortal);
    /* Nothing may vanish much before its time; stores that count whole seconds lose up to one. */
    assert_true(clock_monotonic_ms() - start_ms >= 900);
    wait_for_miss(f, joined);
    wait_for_miss(f, counter);
    wait_for_miss(f, touched);
    fixture_has(f, renewed, SLICE("1"));
    if (f->contract->has_touch) {
        fixture_has(f, saved, SLICE("1"));
        assert_status(fixture_run_ttl(f, STORE_TOUCH, mortal, SLICE(""), 10), STORE_MISS);
    }
    assert_status(fixture_run(f, STORE_GET, mortal), STORE_MISS);
    assert_status(fixture_run_value(f, STORE_REPLACE, mortal, SLICE("2")), STORE_NOT_STORED);
    assert_status(fixture_run_value(f, STORE_APPEND, joined, SLICE("2")), STORE_NOT_STORED);
    assert_status(fixture_run_count(f, STORE_INCR, counter, 1), STORE_MISS);
    assert_status(fixture_run(f, STORE_DELETE, mortal), STORE_MISS);
    assert_status(fixture_run_value(f, STORE_ADD, mortal, SLICE("new")), STORE_OK);
    fixture_has(f, mortal, SLICE("new"));
    fixture_ttl(f, 0);
}

const struct CMUnitTest contract_value_tests[] = {
    cmocka_unit_test(values_of_all_sizes),
    cmocka_unit_test(value_grows_and_shrinks_in_place),
    cmocka_unit_test(value_of_every_byte),
    cmocka_unit_test(absent_is_a_miss),
    cmocka_unit_test(head_tells_all_but_the_value),
    cmocka_unit_test(flags_come_back),
    cmocka_unit_test(keys_of_all_lengths_and_bytes),
    cmocka_unit_test(too_large_leaves_the_old_value),
    cmocka_unit_test(long_lives_are_right),
    cmocka_unit_test(touch_changes_only_the_ttl),
    cmocka_unit_test(a_new_value_has_its_own_ttl),
    cmocka_unit_test(changes_keep_flags_and_ttl),
    cmocka_unit_test(expired_is_absent),
};
const size_t contract_value_count = sizeof(contract_value_tests) / sizeof(contract_value_tests[0]);
