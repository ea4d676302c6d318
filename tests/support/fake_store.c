/* SPDX-License-Identifier: BSD-2-Clause */
/* fake_store.c: ops wait in a queue until the test completes them. No time-outs, no I/O. */
#include "fake_store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "buffer.h"
#include "clock.h"

/* What an op looked like when it was submitted; op->home points to it until it is complete. */
struct snapshot {
    struct store_op op; /* a copy of its inputs */
    char *key;          /* copies of the bytes (owned) */
    char *value;
};

static void *
copy_bytes(struct slice s)
{
    void *copy = malloc(s.len + 1);

    assert_non_null(copy);
    if (s.len > 0) {
        memcpy(copy, s.ptr, s.len);
    }
    return copy;
}

static void
check_key(struct slice key)
{
    assert_in_range(key.len, 1, STORE_KEY_MAX);
    for (size_t i = 0; i < key.len; i++) {
        unsigned char c = (unsigned char)key.ptr[i];
        assert_true(c > 0x20 && c != 0x7f);
    }
}

/* The outputs hold nonsense while the op is under way: nobody may look at them. */
static void
spoil_outputs(struct store_op *op)
{
    assert_null(op->data);
    op->status = STORE_STATUS_COUNT;
    op->value_len = SIZE_MAX / 3;
    op->out_flags = UINT32_MAX;
    op->out_cas = UINT64_MAX;
    op->ttl_left_s = INT64_MIN;
    op->number = UINT64_MAX;
}

static void
remember(struct store_op *op)
{
    struct snapshot *snapshot = malloc(sizeof(*snapshot));

    assert_non_null(snapshot);
    snapshot->op = *op;
    snapshot->key = copy_bytes(op->key);
    snapshot->value = copy_bytes(op->value);
    op->home = snapshot;
}

static void
check_unchanged(struct store_op *op)
{
    struct snapshot *was = op->home;

    assert_int_equal(op->verb, was->op.verb);
    assert_ptr_equal(op->done, was->op.done);
    assert_ptr_equal(op->arg, was->op.arg);
    assert_true(slice_equal(op->key, slice_of(was->key, was->op.key.len)));
    assert_true(slice_equal(op->value, slice_of(was->value, was->op.value.len)));
    assert_int_equal(op->ttl_s, was->op.ttl_s);
    assert_int_equal(op->cas, was->op.cas);
    free(was->key);
    free(was->value);
    free(was);
    op->home = NULL;
}

static void
fill_in(struct store_op *op, const struct fake_store_answer *answer)
{
    bool found = answer->status == STORE_OK && store_verb_reads(op->verb);

    op->status = answer->status;
    op->value_len = found ? answer->value.len : 0;
    op->out_cas = answer->cas;
    op->out_flags = 0;
    op->ttl_left_s = found ? answer->ttl_left_s : STORE_TTL_UNKNOWN;
    op->number = 0;
    if (found && op->verb == STORE_GET) {
        op->data = buffer_create(answer->value.len);
        assert_non_null(op->data);
        op->data->len = answer->value.len;
        if (answer->value.len > 0) {
            memcpy(op->data->data, answer->value.ptr, answer->value.len);
        }
    }
}

static bool
fake_submit(struct store *store, struct store_op *op)
{
    struct fake_store *fake = (struct fake_store *)store; /* its first member */

    assert_non_null(op->done);
    check_key(op->key);
    fake->submitted++;
    spoil_outputs(op);
    if (fake->at_once) {
        fill_in(op, &fake->answer);
        return true;
    }
    remember(op);
    op_queue_push(&fake->pending, op);
    return false;
}

static size_t
fake_value_max(const struct store_shared *shared, size_t key_len, uint32_t flags)
{
    const struct fake_store *fake =
        (const void *)((const char *)shared - offsetof(struct fake_store, shared));

    (void)flags;
    return fake->item_max - key_len;
}

static const struct store_type fake_store_type = {
    .name = "fake",
    .submit = fake_submit,
    .value_max = fake_value_max,
};

void
fake_store_init(struct fake_store *fake)
{
    *fake = (struct fake_store){
        .store.type = &fake_store_type,
        .shared.type = &fake_store_type,
        .item_max = 1000,
    };
}

void
fake_store_deinit(struct fake_store *fake)
{
    assert_int_equal(fake->pending.count, 0);
}

struct store_op *
fake_store_oldest(struct fake_store *fake)
{
    assert_non_null(fake->pending.head);
    return fake->pending.head;
}

static void
complete(struct store_op *op, const struct fake_store_answer *answer)
{
    check_unchanged(op);
    fill_in(op, answer);
    op->done(op);
}

void
fake_store_complete(struct fake_store *fake, const struct fake_store_answer *answer)
{
    struct store_op *op = op_queue_pop(&fake->pending);

    assert_non_null(op);
    complete(op, answer);
}

void
fake_store_complete_ok(struct fake_store *fake)
{
    fake_store_complete(fake, &(struct fake_store_answer){ .status = STORE_OK });
}

void
fake_store_complete_bad(struct fake_store *fake, enum store_status status)
{
    fake_store_complete(fake, &(struct fake_store_answer){ .status = status });
}

void
fake_store_complete_newest(struct fake_store *fake, const struct fake_store_answer *answer)
{
    struct op_queue older = { 0 };

    while (fake->pending.count > 1) {
        op_queue_push(&older, op_queue_pop(&fake->pending));
    }
    struct store_op *newest = op_queue_pop(&fake->pending);
    op_queue_append(&fake->pending, &older);
    assert_non_null(newest);
    complete(newest, answer);
}
