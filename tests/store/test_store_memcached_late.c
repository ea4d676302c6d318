/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_store_memcached_late.c: the memcached store and time: a server that is silent or late, the
 * deadlines of ops, more ops than may wait, and ops that still wait when the store is closed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "clock.h"
#include "scene.h"

#define TIMEOUT_MS 100

static int64_t
took_ms(const struct call *call)
{
    return call->completed_ms - call->submitted_ms;
}

static void
assert_status(const struct call *call, enum store_status status)
{
    if (call->op.status != status) {
        fail_msg("%s: %s, not %s", store_verb_name(call->op.verb),
                 store_status_name(call->op.status), store_status_name(status));
    }
}

/* ---- silence ---- */

static void
test_silent_from_the_start(void **state)
{
    struct scene *scene = *state;
    static const struct fake_step steps[] = { FAKE_SILENT };
    struct call get, set;

    FAKE_SCRIPT_EVERY(scene->fake, steps);
    scene->rig.config.op_timeout_ms = TIMEOUT_MS;
    scene_open(scene);
    rig_get(&scene->rig, &get, "k");
    rig_write(&scene->rig, &set, STORE_SET, "k", SLICE("v"));
    rig_wait(&get);
    rig_wait(&set);
    assert_status(&get, STORE_TIMEOUT);
    assert_status(&set, STORE_TIMEOUT);
    assert_in_range(took_ms(&get), TIMEOUT_MS - 1, 2 * TIMEOUT_MS);
    assert_in_range(took_ms(&set), TIMEOUT_MS - 1, 2 * TIMEOUT_MS);
    RIG_UNTIL(&scene->rig, fake_open(scene->fake) == 0);
    assert_in_range(fake_count(scene->fake, scene_set_line(scene, "k")), 0, 1);
    fake_script_every(scene->fake, NULL, 0);
    scene_recover(scene, "k");
}

/* An op's own deadline counts, when it comes before the store's time-out. */
static void
test_the_deadline_of_the_op(void **state)
{
    struct scene *scene = *state;
    static const struct fake_step steps[] = { FAKE_SILENT };
    struct call call;

    FAKE_SCRIPT_EVERY(scene->fake, steps);
    scene->rig.config.op_timeout_ms = 5000;
    scene_open(scene);
    rig_prepare(&scene->rig, &call, STORE_GET, "k");
    call.op.deadline_ms = clock_monotonic_ms() + TIMEOUT_MS;
    rig_do(&call);
    assert_status(&call, STORE_TIMEOUT);
    assert_in_range(took_ms(&call), TIMEOUT_MS - 1, 2 * TIMEOUT_MS);
}

/* In a pipeline an early deadline may be noticed late, but never after the store's own. */
static void
test_an_early_deadline_behind_a_patient_op(void **state)
{
    struct scene *scene = *state;
    static const struct fake_step steps[] = { FAKE_SILENT };
    struct call patient, hasty, same_key;

    FAKE_SCRIPT_EVERY(scene->fake, steps);
    scene->rig.config.op_timeout_ms = 2 * TIMEOUT_MS;
    scene->rig.config.lanes = 1;
    scene_open(scene);
    rig_get(&scene->rig, &patient, "a");
    rig_prepare(&scene->rig, &hasty, STORE_GET, "b");
    hasty.op.deadline_ms = clock_monotonic_ms() + TIMEOUT_MS;
    rig_submit(&hasty);
    rig_prepare(&scene->rig, &same_key, STORE_GET, "a");
    same_key.op.deadline_ms = hasty.op.deadline_ms;
    rig_submit(&same_key);
    rig_wait(&hasty);
    rig_wait(&same_key);
    rig_wait(&patient);
    assert_status(&hasty, STORE_TIMEOUT);
    assert_status(&same_key, STORE_TIMEOUT);
    assert_status(&patient, STORE_TIMEOUT);
    assert_in_range(took_ms(&hasty), TIMEOUT_MS - 1, 3 * TIMEOUT_MS);
    assert_in_range(took_ms(&same_key), TIMEOUT_MS - 1, 3 * TIMEOUT_MS);
    assert_in_range(took_ms(&patient), TIMEOUT_MS - 1, 3 * TIMEOUT_MS);
}

/* A GET that is in a hurry must not lend its deadline to another one of the same key. */
static void
test_an_early_deadline_is_not_shared(void **state)
{
    struct scene *scene = *state;
    struct call hasty, patient;

    fake_put(scene->fake, SLICE("a"), SLICE("value"), 0);
    scene_open(scene);
    rig_prepare(&scene->rig, &hasty, STORE_GET, "a");
    hasty.op.deadline_ms = clock_monotonic_ms() - 1;
    rig_submit(&hasty);
    rig_get(&scene->rig, &patient, "a");
    rig_wait(&hasty);
    rig_wait(&patient);
    assert_status(&patient, STORE_OK);
    assert_true(rig_has_value(&patient, SLICE("value")));
    if (hasty.op.status == STORE_OK) {
        assert_true(rig_has_value(&hasty, SLICE("value")));
    } else {
        assert_status(&hasty, STORE_TIMEOUT);
    }
}

/* The answer comes when nobody waits any more, and must not be taken for that to the next op. */
static void
test_a_late_answer_answers_nothing(void **state)
{
    struct scene *scene = *state;
    static const struct fake_step text[] = { FAKE_LINE, FAKE_HOLD,
                                             FAKE_SEND("VALUE k 0 4 7\r\nlate\r\nEND\r\n"),
                                             FAKE_SILENT };
    static const struct fake_step meta[] = { FAKE_LINE, FAKE_HOLD,
                                             FAKE_SEND("VA 4 f0 c7 t-1 %O\r\nlate\r\n"),
                                             FAKE_SILENT };
    struct call call;

    if (scene->dialect == CONFIG_DIALECT_TEXT) {
        FAKE_SCRIPT(scene->fake, text);
    } else {
        FAKE_SCRIPT(scene->fake, meta);
    }
    fake_put(scene->fake, SLICE("k"), SLICE("fresh"), 0);
    scene->rig.config.op_timeout_ms = TIMEOUT_MS;
    scene_open(scene);
    rig_get(&scene->rig, &call, "k");
    rig_wait(&call);
    assert_status(&call, STORE_TIMEOUT);
    fake_release(scene->fake);
    /* The pause after the failed dial may still run. */
    do {
        rig_get(&scene->rig, &call, "k");
        rig_wait(&call);
        rig_turn(&scene->rig, 1);
    } while (call.op.status == STORE_UNAVAILABLE);
    assert_status(&call, STORE_OK);
    assert_true(rig_has_value(&call, SLICE("fresh")));
    assert_int_equal(fake_count_on(scene->fake, 0, ""), 1);
    RIG_UNTIL(&scene->rig, !fake_is_open(scene->fake, 0));
}

/* The same on a connection that has answered before, where there is no pause. */
static void
test_a_late_answer_on_a_connection_that_was_good(void **state)
{
    struct scene *scene = *state;
    static const struct fake_step text[] = { FAKE_LINE,
                                             FAKE_SEND("END\r\n"),
                                             FAKE_LINE,
                                             FAKE_HOLD,
                                             FAKE_SEND("VALUE k 0 4 7\r\nlate\r\nEND\r\n"),
                                             FAKE_SILENT };
    static const struct fake_step meta[] = { FAKE_LINE,
                                             FAKE_SEND("EN %O\r\n"),
                                             FAKE_LINE,
                                             FAKE_HOLD,
                                             FAKE_SEND("VA 4 f0 c7 t-1 %O\r\nlate\r\n"),
                                             FAKE_SILENT };
    struct call call;

    if (scene->dialect == CONFIG_DIALECT_TEXT) {
        FAKE_SCRIPT(scene->fake, text);
    } else {
        FAKE_SCRIPT(scene->fake, meta);
    }
    fake_put(scene->fake, SLICE("k"), SLICE("fresh"), 0);
    scene->rig.config.op_timeout_ms = TIMEOUT_MS;
    scene_open(scene);
    rig_get(&scene->rig, &call, "other");
    rig_wait(&call);
    assert_status(&call, STORE_MISS);
    rig_get(&scene->rig, &call, "k");
    rig_wait(&call);
    assert_status(&call, STORE_TIMEOUT);
    rig_get(&scene->rig, &call, "k");
    rig_flush(&scene->rig);
    fake_release(scene->fake);
    rig_wait(&call);
    assert_status(&call, STORE_OK);
    assert_true(rig_has_value(&call, SLICE("fresh")));
    assert_int_equal(fake_count_on(scene->fake, 0, ""), 2);
}

/* ---- too much ---- */

static void
test_ops_beyond_the_bound_are_refused_at_the_flush(void **state)
{
    struct scene *scene = *state;
    static const struct fake_step steps[] = { FAKE_SILENT };
    struct call calls[25];
    char keys[25][16];
    size_t refused = 0;

    FAKE_SCRIPT(scene->fake, steps);
    scene->rig.config.ops_max = 10;
    scene->rig.config.op_timeout_ms = TIMEOUT_MS;
    scene_open(scene);
    for (int i = 0; i < 25; i++) {
        snprintf(keys[i], sizeof(keys[i]), "k%d", i);
        rig_write(&scene->rig, &calls[i], STORE_SET, keys[i], SLICE("v"));
    }
    assert_int_equal(scene->rig.completed, 0);
    rig_flush(&scene->rig);
    assert_int_equal(scene->rig.completed, 15);
    for (int i = 0; i < 25; i++) {
        rig_wait(&calls[i]);
        refused += calls[i].op.status == STORE_OVERLOADED;
        assert_int_equal(calls[i].op.status == STORE_OVERLOADED, i >= 10);
    }
    assert_int_equal(refused, 15);
    assert_in_range(fake_count(scene->fake, ""), 0, 10);
    scene_recover(scene, "k");
}

/* What is pending when the store is closed is cancelled, in every state of a connection. */
static void
test_close_completes_what_is_pending(void **state)
{
    struct scene *scene = *state;
    static const struct fake_step steps[] = { FAKE_LINE, FAKE_SILENT };
    struct call sent, unsent, queued;

    FAKE_SCRIPT_EVERY(scene->fake, steps);
    scene_open(scene);
    rig_write(&scene->rig, &sent, STORE_SET, "a", SLICE("v"));
    rig_flush(&scene->rig);
    RIG_UNTIL(&scene->rig, fake_count(scene->fake, scene_set_line(scene, "a")) == 1);
    rig_get(&scene->rig, &unsent, "b");
    rig_flush(&scene->rig);
    rig_get(&scene->rig, &queued, "c");
    rig_close(&scene->rig);
    scene->is_open = false;
    assert_status(&sent, STORE_CANCELLED);
    assert_status(&unsent, STORE_CANCELLED);
    assert_status(&queued, STORE_CANCELLED);
}

static void
test_close_while_connecting(void **state)
{
    struct scene *scene = *state;
    struct call call;

    scene_open(scene);
    rig_get(&scene->rig, &call, "a");
    rig_flush(&scene->rig);
    rig_close(&scene->rig);
    scene->is_open = false;
    assert_status(&call, STORE_CANCELLED);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        SCENE_BOTH(test_silent_from_the_start),
        SCENE_BOTH(test_the_deadline_of_the_op),
        SCENE_BOTH(test_an_early_deadline_behind_a_patient_op),
        SCENE_BOTH(test_an_early_deadline_is_not_shared),
        SCENE_BOTH(test_a_late_answer_answers_nothing),
        SCENE_BOTH(test_a_late_answer_on_a_connection_that_was_good),
        SCENE_BOTH(test_ops_beyond_the_bound_are_refused_at_the_flush),
        SCENE_BOTH(test_close_completes_what_is_pending),
        SCENE_BOTH(test_close_while_connecting),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
