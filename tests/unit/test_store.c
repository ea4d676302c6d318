/* SPDX-License-Identifier: BSD-2-Clause */
/* test_store.c: what all stores share: names, empty operations, queues of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "clock.h"
#include "op_queue.h"
#include "store.h"

static void
names(void **state)
{
    (void)state;
    for (int i = 0; i < STORE_VERB_COUNT; i++) {
        const char *name = store_verb_name((enum store_verb)i);

        assert_non_null(name);
        assert_string_not_equal(name, "?");
        for (int k = 0; k < i; k++) {
            assert_string_not_equal(name, store_verb_name((enum store_verb)k));
        }
    }
    for (int i = 0; i < STORE_STATUS_COUNT; i++) {
        const char *name = store_status_name((enum store_status)i);

        assert_non_null(name);
        assert_string_not_equal(name, "?");
        for (int k = 0; k < i; k++) {
            assert_string_not_equal(name, store_status_name((enum store_status)k));
        }
    }
    assert_string_equal(store_verb_name(STORE_GET), "get");
    assert_string_equal(store_verb_name(STORE_TOUCH), "touch");
    assert_string_equal(store_status_name(STORE_OK), "ok");
    assert_string_equal(store_status_name(STORE_MISS), "miss");
    /* a number that is none, as a fault elsewhere may bring one, still has a name */
    assert_non_null(store_verb_name(STORE_VERB_COUNT));
    assert_non_null(store_status_name(STORE_STATUS_COUNT));
}

static void
what_verbs_do(void **state)
{
    (void)state;
    for (int i = 0; i < STORE_VERB_COUNT; i++) {
        enum store_verb verb = (enum store_verb)i;
        bool reads = verb == STORE_GET || verb == STORE_HEAD;
        bool value = verb == STORE_SET || verb == STORE_ADD || verb == STORE_REPLACE ||
                     verb == STORE_CAS || verb == STORE_APPEND || verb == STORE_PREPEND;

        assert_int_equal(store_verb_reads(verb), reads);
        assert_int_equal(store_verb_has_value(verb), value);
    }
}

static void
op_init(void **state)
{
    struct store_op op;

    (void)state;
    memset(&op, 0x5a, sizeof(op));
    store_op_init(&op, STORE_CAS, SLICE("key"));
    assert_int_equal(op.verb, STORE_CAS);
    assert_true(slice_equal(op.key, SLICE("key")));
    assert_int_equal(op.value.len, 0);
    assert_int_equal(op.flags, 0);
    assert_int_equal(op.ttl_s, 0);
    assert_int_equal(op.cas, 0);
    assert_int_equal(op.delta, 0);
    assert_int_equal(op.initial, 0);
    assert_false(op.create);
    assert_true(op.deadline_ms == CLOCK_NEVER);
    assert_null(op.done);
    assert_null(op.arg);
    assert_null(op.data);
    assert_int_equal(op.value_len, 0);
    assert_int_equal(op.out_flags, 0);
    assert_int_equal(op.out_cas, 0);
    assert_true(op.ttl_left_s == STORE_TTL_UNKNOWN);
    assert_int_equal(op.number, 0);
    assert_null(op.next);
    assert_null(op.joined);
    assert_null(op.home);
    assert_false(op.retried);
}

static void
type_of_a_store(void **state)
{
    static struct config_store config;

    (void)state;
    config_store_defaults(&config, "s");
    config.type = CONFIG_STORE_EMBEDDED;
    assert_ptr_equal(store_type_of(&config), &store_embedded);
    assert_string_equal(store_embedded.name, "embedded");
    config.type = CONFIG_STORE_MEMCACHED;
    assert_ptr_equal(store_type_of(&config), &store_memcached);
    assert_string_equal(store_memcached.name, "memcached");
}

/* ---- queues ---- */

static void
first_in_first_out(void **state)
{
    struct op_queue queue = { 0 };
    struct store_op ops[3];

    (void)state;
    memset(ops, 0x5a, sizeof(ops));
    assert_null(op_queue_pop(&queue));
    /* filled and emptied twice: an old tail must not matter */
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < 3; i++) {
            op_queue_push(&queue, &ops[i]);
            assert_int_equal(queue.count, i + 1);
            assert_null(ops[i].next);
        }
        for (size_t i = 0; i < 3; i++) {
            assert_ptr_equal(op_queue_pop(&queue), &ops[i]);
            assert_null(ops[i].next);
            assert_int_equal(queue.count, 2 - i);
        }
        assert_null(op_queue_pop(&queue));
        assert_int_equal(queue.count, 0);
    }
}

static void
push_while_popping(void **state)
{
    struct op_queue queue = { 0 };
    struct store_op ops[2];

    (void)state;
    op_queue_push(&queue, &ops[0]);
    op_queue_push(&queue, &ops[1]);
    for (int i = 0; i < 10; i++) {
        struct store_op *op = op_queue_pop(&queue);

        assert_ptr_equal(op, &ops[i % 2]);
        op_queue_push(&queue, op);
        assert_int_equal(queue.count, 2);
    }
}

static void
append(void **state)
{
    struct op_queue a = { 0 }, b = { 0 };
    struct store_op ops[5];

    (void)state;
    op_queue_append(&a, &b);
    assert_int_equal(a.count, 0);
    assert_null(a.head);
    /* onto an empty one, of an empty one, onto a full one; then the end still takes more */
    op_queue_push(&b, &ops[0]);
    op_queue_push(&b, &ops[1]);
    op_queue_append(&a, &b);
    assert_int_equal(b.count, 0);
    assert_null(op_queue_pop(&b));
    op_queue_append(&a, &b);
    assert_int_equal(a.count, 2);
    op_queue_push(&b, &ops[2]);
    op_queue_push(&b, &ops[3]);
    op_queue_append(&a, &b);
    op_queue_push(&a, &ops[4]);
    assert_int_equal(a.count, 5);
    for (size_t i = 0; i < 5; i++) {
        assert_ptr_equal(op_queue_pop(&a), &ops[i]);
    }
    assert_null(op_queue_pop(&a));
    /* a queue that was emptied by popping is as good as one of zeros */
    op_queue_append(&b, &a);
    assert_null(op_queue_pop(&b));
    op_queue_push(&b, &ops[0]);
    op_queue_append(&a, &b);
    assert_ptr_equal(op_queue_pop(&a), &ops[0]);
    assert_null(op_queue_pop(&a));
}

static void
take(void **state)
{
    struct op_queue queue = { 0 }, all;
    struct store_op ops[3];

    (void)state;
    all = op_queue_take(&queue);
    assert_int_equal(all.count, 0);
    assert_null(op_queue_pop(&all));
    op_queue_push(&queue, &ops[0]);
    op_queue_push(&queue, &ops[1]);
    all = op_queue_take(&queue);
    assert_int_equal(queue.count, 0);
    assert_null(op_queue_pop(&queue));
    op_queue_push(&queue, &ops[2]);
    assert_int_equal(all.count, 2);
    assert_ptr_equal(op_queue_pop(&all), &ops[0]);
    assert_ptr_equal(op_queue_pop(&all), &ops[1]);
    assert_null(op_queue_pop(&all));
    assert_ptr_equal(op_queue_pop(&queue), &ops[2]);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names),
        cmocka_unit_test(what_verbs_do),
        cmocka_unit_test(op_init),
        cmocka_unit_test(type_of_a_store),
        cmocka_unit_test(first_in_first_out),
        cmocka_unit_test(push_while_popping),
        cmocka_unit_test(append),
        cmocka_unit_test(take),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
