/* SPDX-License-Identifier: BSD-2-Clause */
/* store_rig.c: a worker's loop without the HTTP half. It knows no store type but by its contract.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "clock.h"
#include "store_rig.h"

void
rig_config(struct rig *rig, enum config_dialect dialect, uint16_t port)
{
    memset(rig, 0, sizeof(*rig));
    config_store_defaults(&rig->config, "test");
    rig->config.type = CONFIG_STORE_MEMCACHED;
    rig->config.dialect = dialect;
    snprintf(rig->config.servers[0].host, sizeof(rig->config.servers[0].host), "127.0.0.1");
    rig->config.servers[0].port = port;
    rig->config.servers[0].weight = 1;
    rig->config.server_count = 1;
}

void
rig_open(struct rig *rig)
{
    char error[CONFIG_ERROR_MAX] = "";
    const struct store_type *type = store_type_of(&rig->config);

    assert_int_equal(loop_init(&rig->loop), 0);
    rig->shared = type->setup(&rig->config, error);
    if (rig->shared == NULL) {
        fail_msg("setup: %s", error);
    }
    rig->store = type->open(rig->shared, &rig->loop);
    assert_non_null(rig->store);
}

void
rig_close(struct rig *rig)
{
    const struct store_type *type = store_type_of(&rig->config);

    type->close(rig->store);
    rig->store = NULL;
    assert_int_equal(rig->completed, rig->submitted);
    type->teardown(rig->shared);
    loop_deinit(&rig->loop);
}

static void
complete(struct call *call)
{
    call->completions++;
    call->rig->completed++;
    call->completed_ms = clock_monotonic_ms();
    assert_int_equal(call->completions, 1);
    if (call->op.status != STORE_OK || call->op.verb != STORE_GET) {
        assert_null(call->op.data);
    } else {
        assert_non_null(call->op.data);
        assert_int_equal(call->op.data->len, call->op.value_len);
    }
    if (call->then != NULL) {
        call->then(call);
    }
}

static void
op_done(struct store_op *op)
{
    complete(op->arg);
}

void
rig_prepare(struct rig *rig, struct call *call, enum store_verb verb, const char *key)
{
    *call = (struct call){ .rig = rig };
    store_op_init(&call->op, verb, slice_from_string(key));
    call->op.done = op_done;
    call->op.arg = call;
}

void
rig_submit(struct call *call)
{
    struct rig *rig = call->rig;

    rig->submitted++;
    /* the test may have been busy since the last turn */
    rig->loop.now_ms = clock_monotonic_ms() + rig->skew_ms;
    call->submitted_ms = rig->loop.now_ms;
    if (rig->store->type->submit(rig->store, &call->op)) {
        complete(call);
    }
}

void
rig_get(struct rig *rig, struct call *call, const char *key)
{
    rig_prepare(rig, call, STORE_GET, key);
    rig_submit(call);
}

void
rig_write(struct rig *rig, struct call *call, enum store_verb verb, const char *key,
          struct slice value)
{
    rig_prepare(rig, call, verb, key);
    call->op.value = value;
    rig_submit(call);
}

void
rig_flush(struct rig *rig)
{
    int64_t latest;

    rig->store->type->flush(rig->store);
    rig->store->type->expire(rig->store);
    /* Whoever waits for an op must be woken when its time is over. */
    latest = rig->loop.now_ms + rig->config.op_timeout_ms;
    assert_true(rig->completed == rig->submitted || rig->store->type == &store_binary ||
                rig->store->type->next_deadline(rig->store) <= latest);
}

void
rig_turn(struct rig *rig, int64_t cap_ms)
{
    int64_t cap = clock_monotonic_ms() + cap_ms;
    int64_t next = rig->store->type->next_deadline(rig->store);

    next = next == CLOCK_NEVER ? cap : next - rig->skew_ms;
    loop_wait(&rig->loop, next < cap ? next : cap);
    rig->loop.now_ms += rig->skew_ms;
    loop_dispatch(&rig->loop);
    rig_flush(rig);
}

void
rig_wait(struct call *call)
{
    rig_flush(call->rig);
    RIG_UNTIL(call->rig, call->completions > 0);
}

enum store_status
rig_do(struct call *call)
{
    rig_submit(call);
    rig_wait(call);
    return call->op.status;
}

bool
rig_has_value(struct call *call, struct slice value)
{
    bool same = call->op.status == STORE_OK && call->op.data != NULL &&
                slice_equal(slice_of(call->op.data->data, call->op.data->len), value);

    buffer_unref(call->op.data);
    call->op.data = NULL;
    return same;
}

void
rig_expect_value(struct rig *rig, const char *key, struct slice value)
{
    struct call call;

    rig_get(rig, &call, key);
    rig_wait(&call);
    if (!rig_has_value(&call, value)) {
        fail_msg("get %.40s: %s, or a wrong value", key, store_status_name(call.op.status));
    }
}
