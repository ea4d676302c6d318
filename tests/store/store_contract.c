/* SPDX-License-Identifier: BSD-2-Clause */
/* store_contract.c: runs the contract suite, and holds what its files share. No tests in here. */
#include "store_contract.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "contract_priv.h"

struct slice
fixture_key(struct fixture *f, const char *name, unsigned number)
{
    char *key;
    int len;

    assert_true(f->key_count < FIXTURE_KEYS);
    key = f->keys[f->key_count++];
    len = snprintf(key, sizeof(f->keys[0]), "c%x/%u/%s/%u", f->salt, f->serial, name, number);
    assert_true(len > 0 && (size_t)len < sizeof(f->keys[0]));
    return slice_of(key, (size_t)len);
}

enum store_status
fixture_run_op(struct fixture *f, const struct store_op *op)
{
    buffer_unref(f->op.data);
    f->op = *op;
    return driver_run(&f->driver, &f->op);
}

enum store_status
fixture_run(struct fixture *f, enum store_verb verb, struct slice key)
{
    return fixture_run_value(f, verb, key, slice_of(NULL, 0));
}

enum store_status
fixture_run_value(struct fixture *f, enum store_verb verb, struct slice key, struct slice value)
{
    struct store_op op;

    store_op_init(&op, verb, key);
    op.value = value;
    return fixture_run_op(f, &op);
}

enum store_status
fixture_run_ttl(struct fixture *f, enum store_verb verb, struct slice key, struct slice value,
                uint64_t ttl_s)
{
    struct store_op op;

    store_op_init(&op, verb, key);
    op.value = value;
    op.ttl_s = ttl_s;
    return fixture_run_op(f, &op);
}

enum store_status
fixture_run_flags(struct fixture *f, enum store_verb verb, struct slice key, struct slice value,
                  uint32_t flags)
{
    struct store_op op;

    store_op_init(&op, verb, key);
    op.value = value;
    op.flags = flags;
    return fixture_run_op(f, &op);
}

enum store_status
fixture_run_cas(struct fixture *f, enum store_verb verb, struct slice key, struct slice value,
                uint64_t cas)
{
    struct store_op op;

    store_op_init(&op, verb, key);
    op.value = value;
    op.cas = cas;
    return fixture_run_op(f, &op);
}

enum store_status
fixture_run_count(struct fixture *f, enum store_verb verb, struct slice key, uint64_t delta)
{
    struct store_op op;

    store_op_init(&op, verb, key);
    op.delta = delta;
    return fixture_run_op(f, &op);
}

bool
fixture_buffer_is(const struct buffer *b, struct slice value)
{
    return b != NULL && slice_equal(slice_of(b->data, b->len), value);
}

void
fixture_has(struct fixture *f, struct slice key, struct slice value)
{
    assert_status(fixture_run(f, STORE_GET, key), STORE_OK);
    assert_non_null(f->op.data);
    assert_int_equal(f->op.data->len, value.len);
    assert_int_equal(f->op.value_len, value.len);
    assert_true(fixture_buffer_is(f->op.data, value));
}

void
fixture_ttl(struct fixture *f, uint64_t ttl_s)
{
    int64_t slack = f->contract->ttl_slack_s;

    if (!f->contract->tells_ttl) {
        assert_int_equal(f->op.ttl_left_s, STORE_TTL_UNKNOWN);
    } else if (ttl_s == 0) {
        assert_int_equal(f->op.ttl_left_s, STORE_TTL_NEVER);
    } else {
        assert_true(f->op.ttl_left_s >= (int64_t)ttl_s - 1 - slack);
        assert_true(f->op.ttl_left_s <= (int64_t)ttl_s + slack);
    }
}

uint64_t
fixture_cas(struct fixture *f, struct slice key)
{
    assert_status(fixture_run(f, STORE_GET, key), STORE_OK);
    assert_true(f->op.out_cas != 0);
    return f->op.out_cas;
}

char *
fixture_bytes(size_t len, unsigned seed)
{
    char *bytes = malloc(len + 1);
    uint32_t x = seed * 2654435761u + 1;

    assert_non_null(bytes);
    for (size_t i = 0; i < len; i++) {
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        bytes[i] = (char)x;
    }
    return bytes;
}

static int
open_fixture(void **state)
{
    struct fixture *f = *state;

    f->serial++;
    f->key_count = 0;
    f->op = (struct store_op){ 0 };
    return driver_open(&f->driver, f->shared) ? 0 : -1;
}

static int
close_fixture(void **state)
{
    struct fixture *f = *state;

    buffer_unref(f->op.data);
    driver_close(&f->driver);
    return 0;
}

static size_t
add_tests(struct CMUnitTest *to, const struct CMUnitTest *from, size_t count, struct fixture *f)
{
    for (size_t i = 0; i < count; i++) {
        to[i] = from[i];
        to[i].setup_func = open_fixture;
        to[i].teardown_func = close_fixture;
        to[i].initial_state = f;
    }
    return count;
}

int
contract_run(const struct contract *contract)
{
    size_t count = 0, room = contract_value_count + contract_verb_count + contract_flow_count;
    struct CMUnitTest *tests = calloc(room, sizeof(*tests));
    struct fixture *f = calloc(1, sizeof(*f));
    int failed;

    if (tests == NULL || f == NULL) {
        abort();
    }
    f->contract = contract;
    f->salt = (unsigned)clock_wall_ms();
    f->shared = contract->setup(contract->arg);
    if (f->shared == NULL) {
        printf("%s: the store could not be set up\n", contract->name);
        free(tests);
        free(f);
        return 1;
    }
    count += add_tests(tests, contract_value_tests, contract_value_count, f);
    count += add_tests(tests + count, contract_verb_tests, contract_verb_count, f);
    count += add_tests(tests + count, contract_flow_tests, contract_flow_count, f);
    failed = _cmocka_run_group_tests(contract->name, tests, count, NULL, NULL);
    contract->teardown(f->shared, contract->arg);
    free(tests);
    free(f);
    return failed;
}
