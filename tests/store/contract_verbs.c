/* SPDX-License-Identifier: BSD-2-Clause */
/* contract_verbs.c: every verb, and every status that it can answer for good reasons. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "contract_priv.h"

static void
set_overwrites(void **state)
{
    struct fixture *f = *state;
    struct slice key = KEY("k");

    assert_status(fixture_run_value(f, STORE_SET, key, SLICE("first")), STORE_OK);
    assert_status(fixture_run_value(f, STORE_SET, key, SLICE("2")), STORE_OK);
    fixture_has(f, key, SLICE("2"));
}

static void
add_only_when_absent(void **state)
{
    struct fixture *f = *state;
    struct slice key = KEY("k");

    assert_status(fixture_run_value(f, STORE_ADD, key, SLICE("first")), STORE_OK);
    assert_status(fixture_run_flags(f, STORE_ADD, key, SLICE("second"), 9), STORE_NOT_STORED);
    fixture_has(f, key, SLICE("first"));
    assert_int_equal(f->op.out_flags, 0);
    assert_status(fixture_run(f, STORE_DELETE, key), STORE_OK);
    assert_status(fixture_run_value(f, STORE_ADD, key, SLICE("third")), STORE_OK);
    fixture_has(f, key, SLICE("third"));
}

static void
replace_only_when_present(void **state)
{
    struct fixture *f = *state;
    struct slice key = KEY("k");

    assert_status(fixture_run_value(f, STORE_REPLACE, key, SLICE("x")), STORE_NOT_STORED);
    assert_status(fixture_run(f, STORE_GET, key), STORE_MISS);
    assert_status(fixture_run_value(f, STORE_SET, key, SLICE("old")), STORE_OK);
    assert_status(fixture_run_flags(f, STORE_REPLACE, key, SLICE("new"), 5), STORE_OK);
    fixture_has(f, key, SLICE("new"));
    assert_int_equal(f->op.out_flags, 5);
}

static void
delete_removes(void **state)
{
    struct fixture *f = *state;
    struct slice key = KEY("k");

    assert_status(fixture_run(f, STORE_DELETE, key), STORE_MISS);
    assert_status(fixture_run_value(f, STORE_SET, key, SLICE("v")), STORE_OK);
    assert_status(fixture_run(f, STORE_DELETE, key), STORE_OK);
    assert_status(fixture_run(f, STORE_GET, key), STORE_MISS);
    assert_status(fixture_run(f, STORE_DELETE, key), STORE_MISS);
}

static void
cas_only_when_unchanged(void **state)
{
    struct fixture *f = *state;
    struct slice key = KEY("k");
    uint64_t first;

    if (!f->contract->has_cas) {
        return;
    }
    assert_status(fixture_run_cas(f, STORE_CAS, key, SLICE("x"), 12345), STORE_MISS);
    assert_status(fixture_run_value(f, STORE_SET, key, SLICE("one")), STORE_OK);
    first = fixture_cas(f, key);
    assert_status(fixture_run_cas(f, STORE_CAS, key, SLICE("x"), first + 1), STORE_EXISTS);
    fixture_has(f, key, SLICE("one"));
    assert_status(fixture_run_cas(f, STORE_CAS, key, SLICE("two"), first), STORE_OK);
    fixture_has(f, key, SLICE("two"));
    assert_status(fixture_run_cas(f, STORE_CAS, key, SLICE("x"), first), STORE_EXISTS);
    /* Gone is a miss, and a value that came back is another one. */
    first = fixture_cas(f, key);
    assert_status(fixture_run(f, STORE_DELETE, key), STORE_OK);
    assert_status(fixture_run_cas(f, STORE_CAS, key, SLICE("x"), first), STORE_MISS);
    assert_status(fixture_run_value(f, STORE_SET, key, SLICE("two")), STORE_OK);
    assert_status(fixture_run_cas(f, STORE_CAS, key, SLICE("x"), first), STORE_EXISTS);
    fixture_has(f, key, SLICE("two"));
}

/* The last write of f->op gave KEY a cas that is not *CAS; that is kept there. */
static void
assert_new_cas(struct fixture *f, struct slice key, uint64_t *cas)
{
    uint64_t told = f->op.out_cas, now = fixture_cas(f, key);

    assert_true(now != *cas);
    if (f->contract->tells_cas_on_write) {
        assert_true(told == now);
    } else {
        assert_true(told == 0 || told == now);
    }
    *cas = now;
}

static void
every_write_changes_the_cas(void **state)
{
    struct fixture *f = *state;
    struct slice key = KEY("k");
    uint64_t cas = 0;

    if (!f->contract->has_cas) {
        return;
    }
    assert_status(fixture_run_value(f, STORE_ADD, key, SLICE("1")), STORE_OK);
    assert_new_cas(f, key, &cas);
    assert_status(fixture_run_value(f, STORE_SET, key, SLICE("1")), STORE_OK);
    assert_new_cas(f, key, &cas);
    assert_status(fixture_run_value(f, STORE_REPLACE, key, SLICE("1")), STORE_OK);
    assert_new_cas(f, key, &cas);
    assert_status(fixture_run_value(f, STORE_APPEND, key, SLICE("1")), STORE_OK);
    assert_new_cas(f, key, &cas);
    assert_status(fixture_run_value(f, STORE_PREPEND, key, SLICE("1")), STORE_OK);
    assert_new_cas(f, key, &cas);
    assert_status(fixture_run_cas(f, STORE_CAS, key, SLICE("7"), cas), STORE_OK);
    assert_new_cas(f, key, &cas);
    assert_status(fixture_run_count(f, STORE_INCR, key, 1), STORE_OK);
    assert_new_cas(f, key, &cas);
    assert_status(fixture_run_count(f, STORE_DECR, key, 1), STORE_OK);
    assert_new_cas(f, key, &cas);
}

static void
delete_with_cas_only_when_unchanged(void **state)
{
    struct fixture *f = *state;
    struct slice key = KEY("k");
    uint64_t cas;

    if (!f->contract->delete_with_cas) {
        assert_status(fixture_run_cas(f, STORE_DELETE, key, SLICE(""), 1), STORE_UNSUPPORTED);
        return;
    }
    assert_status(fixture_run_cas(f, STORE_DELETE, key, SLICE(""), 12345), STORE_MISS);
    assert_status(fixture_run_value(f, STORE_SET, key, SLICE("v")), STORE_OK);
    cas = fixture_cas(f, key);
    assert_status(fixture_run_cas(f, STORE_DELETE, key, SLICE(""), cas + 1), STORE_EXISTS);
    fixture_has(f, key, SLICE("v"));
    assert_status(fixture_run_cas(f, STORE_DELETE, key, SLICE(""), cas), STORE_OK);
    assert_status(fixture_run(f, STORE_GET, key), STORE_MISS);
}

static void
joining(void **state)
{
    struct fixture *f = *state;
    struct slice key = KEY("k");

    assert_status(fixture_run_value(f, STORE_APPEND, key, SLICE("x")), STORE_NOT_STORED);
    assert_status(fixture_run_value(f, STORE_PREPEND, key, SLICE("x")), STORE_NOT_STORED);
    assert_status(fixture_run(f, STORE_GET, key), STORE_MISS);
    assert_status(fixture_run_value(f, STORE_SET, key, SLICE("")), STORE_OK);
    assert_status(fixture_run_value(f, STORE_APPEND, key, SLICE("b\r\n")), STORE_OK);
    assert_status(fixture_run_value(f, STORE_PREPEND, key, SLICE("\0a")), STORE_OK);
    fixture_has(f, key, SLICE("\0ab\r\n"));
    assert_status(fixture_run_value(f, STORE_APPEND, key, SLICE("")), STORE_OK);
    assert_status(fixture_run_value(f, STORE_PREPEND, key, SLICE("")), STORE_OK);
    fixture_has(f, key, SLICE("\0ab\r\n"));
}

static void
joining_large_values(void **state)
{
    struct fixture *f = *state;
    struct slice key = KEY("k");
    char *bytes = fixture_bytes(300000, 3);

    assert_status(fixture_run_value(f, STORE_SET, key, slice_of(bytes + 1000, 1000)), STORE_OK);
    assert_status(fixture_run_value(f, STORE_APPEND, key, slice_of(bytes + 2000, 198000)),
                  STORE_OK);
    assert_status(fixture_run_value(f, STORE_PREPEND, key, slice_of(bytes, 1000)), STORE_OK);
    fixture_has(f, key, slice_of(bytes, 200000));
    assert_status(fixture_run_value(f, STORE_APPEND, key, slice_of(bytes + 200000, 100000)),
                  STORE_OK);
    fixture_has(f, key, slice_of(bytes, 300000));
    free(bytes);
}

/* KEY holds NUMBER, perhaps with spaces behind it where the store pads. */
static void
assert_counter(struct fixture *f, struct slice key, uint64_t number)
{
    char text[24];
    struct slice value;
    int len = snprintf(text, sizeof(text), "%" PRIu64, number);

    assert_true(f->op.number == number);
    assert_status(fixture_run(f, STORE_GET, key), STORE_OK);
    value = slice_of(f->op.data->data, f->op.data->len);
    while (f->contract->pads_counters && value.len > 0 && value.ptr[value.len - 1] == ' ') {
        value.len--;
    }
    assert_true(slice_equal(value, slice_of(text, (size_t)len)));
}

static void
counting(void **state)
{
    struct fixture *f = *state;
    struct slice key = KEY("k");

    assert_status(fixture_run_count(f, STORE_INCR, key, 1), STORE_MISS);
    assert_status(fixture_run_count(f, STORE_DECR, key, 1), STORE_MISS);
    assert_status(fixture_run(f, STORE_GET, key), STORE_MISS);
    assert_status(fixture_run_value(f, STORE_SET, key, SLICE("9")), STORE_OK);
    assert_status(fixture_run_count(f, STORE_INCR, key, 1), STORE_OK);
    assert_counter(f, key, 10);
    assert_status(fixture_run_count(f, STORE_DECR, key, 1), STORE_OK);
    assert_counter(f, key, 9);
    assert_status(fixture_run_count(f, STORE_INCR, key, 0), STORE_OK);
    assert_counter(f, key, 9);
    assert_status(fixture_run_count(f, STORE_INCR, key, UINT64_C(10000000000)), STORE_OK);
    assert_counter(f, key, UINT64_C(10000000009));
}

static void
counting_at_the_bounds(void **state)
{
    struct fixture *f = *state;
    struct slice key = KEY("k");

    assert_status(fixture_run_value(f, STORE_SET, key, SLICE("18446744073709551614")), STORE_OK);
    assert_status(fixture_run_count(f, STORE_INCR, key, 1), STORE_OK);
    assert_counter(f, key, UINT64_MAX);
    if (f->contract->incr_wraps) {
        assert_status(fixture_run_count(f, STORE_INCR, key, 3), STORE_OK);
        assert_counter(f, key, 2);
        assert_status(fixture_run_value(f, STORE_SET, key, SLICE("5")), STORE_OK);
        assert_status(fixture_run_count(f, STORE_INCR, key, UINT64_MAX), STORE_OK);
        assert_counter(f, key, 4);
    }
    assert_status(fixture_run_value(f, STORE_SET, key, SLICE("5")), STORE_OK);
    assert_status(fixture_run_count(f, STORE_DECR, key, 6), STORE_OK);
    assert_counter(f, key, 0);
    assert_status(fixture_run_count(f, STORE_DECR, key, UINT64_MAX), STORE_OK);
    assert_counter(f, key, 0);
    assert_status(fixture_run_value(f, STORE_SET, key, SLICE("18446744073709551615")), STORE_OK);
    assert_status(fixture_run_count(f, STORE_DECR, key, UINT64_MAX), STORE_OK);
    assert_counter(f, key, 0);
}

static void
counting_what_is_no_number(void **state)
{
    static const struct slice values[] = {
        SLICE_LITERAL(""),
        SLICE_LITERAL("abc"),
        SLICE_LITERAL("12a"),
        SLICE_LITERAL("-1"),
        SLICE_LITERAL("1.5"),
        SLICE_LITERAL("0x10"),
        SLICE_LITERAL("18446744073709551616"),
        SLICE_LITERAL("9999999999999999999999999"),
    };
    struct fixture *f = *state;
    struct slice key = KEY("k");

    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        assert_status(fixture_run_value(f, STORE_SET, key, values[i]), STORE_OK);
        assert_status(fixture_run_count(f, STORE_INCR, key, 1), STORE_BAD_VALUE);
        assert_status(fixture_run_count(f, STORE_DECR, key, 1), STORE_BAD_VALUE);
        fixture_has(f, key, values[i]);
    }
}

static enum store_status
count_or_create(struct fixture *f, enum store_verb verb, struct slice key, uint64_t initial)
{
    struct store_op op;

    store_op_init(&op, verb, key);
    op.delta = 5;
    op.initial = initial;
    op.create = true;
    op.ttl_s = 1000;
    return fixture_run_op(f, &op);
}

static void
counting_creates(void **state)
{
    struct fixture *f = *state;
    struct slice key = KEY("k"), down = KEY("down");

    if (!f->contract->incr_create) {
        assert_status(count_or_create(f, STORE_INCR, key, 100), STORE_UNSUPPORTED);
        assert_status(fixture_run(f, STORE_GET, key), STORE_MISS);
        return;
    }
    assert_status(count_or_create(f, STORE_INCR, key, 100), STORE_OK);
    assert_counter(f, key, 100);
    fixture_ttl(f, 1000);
    assert_status(count_or_create(f, STORE_INCR, key, 100), STORE_OK);
    assert_counter(f, key, 105);
    assert_status(count_or_create(f, STORE_DECR, key, 100), STORE_OK);
    assert_counter(f, key, 100);
    assert_status(count_or_create(f, STORE_DECR, down, UINT64_MAX), STORE_OK);
    assert_counter(f, down, UINT64_MAX);
}

const struct CMUnitTest contract_verb_tests[] = {
    cmocka_unit_test(set_overwrites),
    cmocka_unit_test(add_only_when_absent),
    cmocka_unit_test(replace_only_when_present),
    cmocka_unit_test(delete_removes),
    cmocka_unit_test(cas_only_when_unchanged),
    cmocka_unit_test(every_write_changes_the_cas),
    cmocka_unit_test(delete_with_cas_only_when_unchanged),
    cmocka_unit_test(joining),
    cmocka_unit_test(joining_large_values),
    cmocka_unit_test(counting),
    cmocka_unit_test(counting_at_the_bounds),
    cmocka_unit_test(counting_what_is_no_number),
    cmocka_unit_test(counting_creates),
};
const size_t contract_verb_count = sizeof(contract_verb_tests) / sizeof(contract_verb_tests[0]);
