/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_store_memcached_lane.c: which connection an op takes: small ops share one, a big value holds
 * up none of them, and there are never more connections than allowed.
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

#define BIG_LEN 300000

static char *
pattern(size_t len, unsigned seed)
{
    char *bytes = malloc(len + 1);

    assert_non_null(bytes);
    for (size_t i = 0; i < len; i++) {
        bytes[i] = (char)('a' + (i * 7 + i / 251 + seed) % 26);
    }
    bytes[len] = '\0';
    return bytes;
}

/* The beginning of the answer to a GET of "big", then nothing until released, then the rest. */
static void
hold_big(struct scene *scene, const char *value)
{
    bool text = scene->dialect == CONFIG_DIALECT_TEXT;
    const char *line = text ? "VALUE big 0 300000 7\r\n" : "VA 300000 f0 c7 t-1 %O\r\n";
    const char *end = text ? "\r\nEND\r\n" : "\r\n";
    struct fake_step steps[] = {
        FAKE_LINE,
        { .kind = FAKE_STEP_SEND, .bytes = line, .len = strlen(line) },
        FAKE_SEND_RAW(value, 1000),
        FAKE_HOLD,
        FAKE_SEND_RAW(value + 1000, BIG_LEN - 1000),
        FAKE_SEND_RAW(end, strlen(end)),
    };

    FAKE_SCRIPT(scene->fake, steps);
}

static void
get_big_and_hold(struct scene *scene, struct call *call, size_t holding)
{
    rig_get(&scene->rig, call, "big");
    rig_flush(&scene->rig);
    RIG_UNTIL(&scene->rig, fake_holding(scene->fake) == holding);
    /* What was sent before the hold is in the socket: two turns read it. */
    rig_turn(&scene->rig, 0);
    rig_turn(&scene->rig, 0);
}

static void
test_a_small_get_passes_a_big_one(void **state)
{
    struct scene *scene = *state;
    char *value = pattern(BIG_LEN, 3);
    struct call big;

    hold_big(scene, value);
    fake_put(scene->fake, SLICE("small"), SLICE("tiny"), 0);
    scene_open(scene);
    get_big_and_hold(scene, &big, 1);
    for (int i = 0; i < 3; i++) {
        rig_expect_value(&scene->rig, "small", SLICE("tiny"));
    }
    assert_int_equal(big.completions, 0);
    assert_int_equal(fake_accepted(scene->fake), 2);
    assert_int_equal(fake_connection_of(scene->fake, scene_get_line(scene, "small")), 1);
    fake_release(scene->fake);
    rig_wait(&big);
    assert_true(rig_has_value(&big, slice_of(value, BIG_LEN)));
    /* The first connection is free again, and is the one to be used. */
    rig_expect_value(&scene->rig, "small", SLICE("tiny"));
    assert_int_equal(fake_count_on(scene->fake, 0, scene_get_line(scene, "small")), 1);
    assert_int_equal(fake_accepted(scene->fake), 2);
    free(value);
}

/* Lanes beyond the first are closed when they had nothing to do for a while; the first stays. */
static void
test_idle_lanes_are_closed(void **state)
{
    struct scene *scene = *state;
    char *value = pattern(BIG_LEN, 8);
    struct call big;

    hold_big(scene, value);
    fake_put(scene->fake, SLICE("small"), SLICE("tiny"), 0);
    scene_open(scene);
    get_big_and_hold(scene, &big, 1);
    rig_expect_value(&scene->rig, "small", SLICE("tiny"));
    fake_release(scene->fake);
    rig_wait(&big);
    assert_true(rig_has_value(&big, slice_of(value, BIG_LEN)));
    for (int i = 0; i < 10; i++) {
        rig_turn(&scene->rig, 0);
    }
    assert_int_equal(fake_open(scene->fake), 2);
    scene->rig.skew_ms = 60 * 1000;
    RIG_UNTIL(&scene->rig, fake_open(scene->fake) == 1);
    rig_expect_value(&scene->rig, "small", SLICE("tiny"));
    assert_true(fake_is_open(scene->fake, 0));
    assert_int_equal(fake_accepted(scene->fake), 2);
    free(value);
}

static void
test_a_small_get_passes_a_big_set(void **state)
{
    struct scene *scene = *state;
    static const struct fake_step steps[] = { FAKE_HOLD, FAKE_BEHAVE };
    char *value = pattern(BIG_LEN, 4);
    struct call set;

    FAKE_SCRIPT(scene->fake, steps);
    fake_put(scene->fake, SLICE("small"), SLICE("tiny"), 0);
    scene_open(scene);
    rig_write(&scene->rig, &set, STORE_SET, "big", slice_of(value, BIG_LEN));
    rig_flush(&scene->rig);
    RIG_UNTIL(&scene->rig, fake_holding(scene->fake) == 1);
    rig_expect_value(&scene->rig, "small", SLICE("tiny"));
    assert_int_equal(set.completions, 0);
    assert_int_equal(fake_connection_of(scene->fake, scene_get_line(scene, "small")), 1);
    fake_release(scene->fake);
    rig_wait(&set);
    assert_int_equal(set.op.status, STORE_OK);
    rig_expect_value(&scene->rig, "big", slice_of(value, BIG_LEN));
    free(value);
}

static void
test_small_ops_share_one_connection(void **state)
{
    struct scene *scene = *state;
    struct call calls[50];
    char keys[50][16];

    scene_open(scene);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 50; i++) {
            snprintf(keys[i], sizeof(keys[i]), "k%d", i);
            rig_write(&scene->rig, &calls[i], STORE_SET, keys[i], SLICE("v"));
        }
        for (int i = 0; i < 50; i++) {
            rig_wait(&calls[i]);
            assert_int_equal(calls[i].op.status, STORE_OK);
        }
    }
    assert_int_equal(fake_accepted(scene->fake), 1);
}

static void
test_lanes_are_bounded(void **state)
{
    enum { LANES = 3, BIGS = 8 };
    struct scene *scene = *state;
    char *value = pattern(BIG_LEN, 5);
    struct call bigs[BIGS], small;

    for (int i = 0; i < LANES; i++) {
        hold_big(scene, value);
    }
    fake_put(scene->fake, SLICE("big"), slice_of(value, BIG_LEN), 0);
    fake_put(scene->fake, SLICE("small"), SLICE("tiny"), 0);
    scene->rig.config.lanes = LANES;
    scene->rig.config.op_timeout_ms = RIG_PATIENCE_MS;
    scene_open(scene);
    for (size_t i = 0; i < BIGS; i++) {
        get_big_and_hold(scene, &bigs[i], i < LANES ? i + 1 : LANES);
    }
    rig_get(&scene->rig, &small, "small");
    rig_turn(&scene->rig, 0);
    assert_int_equal(fake_accepted(scene->fake), LANES);
    fake_release(scene->fake);
    rig_wait(&small);
    assert_true(rig_has_value(&small, SLICE("tiny")));
    for (size_t i = 0; i < BIGS; i++) {
        rig_wait(&bigs[i]);
        assert_true(rig_has_value(&bigs[i], slice_of(value, BIG_LEN)));
    }
    assert_int_equal(fake_accepted(scene->fake), LANES);
    free(value);
}

static void
test_with_one_lane_all_is_in_order(void **state)
{
    struct scene *scene = *state;
    char *value = pattern(BIG_LEN, 6);
    struct call big, set, get, second;

    hold_big(scene, value);
    scene->rig.config.lanes = 1;
    scene->rig.config.op_timeout_ms = RIG_PATIENCE_MS;
    scene_open(scene);
    get_big_and_hold(scene, &big, 1);
    rig_write(&scene->rig, &set, STORE_SET, "k", SLICE("1"));
    rig_turn(&scene->rig, 0);
    rig_get(&scene->rig, &get, "k");
    rig_turn(&scene->rig, 0);
    rig_write(&scene->rig, &second, STORE_SET, "k", SLICE("2"));
    rig_turn(&scene->rig, 0);
    assert_int_equal(big.completions + set.completions + get.completions, 0);
    fake_release(scene->fake);
    rig_wait(&second);
    assert_int_equal(big.completions + set.completions + get.completions, 3);
    assert_true(rig_has_value(&big, slice_of(value, BIG_LEN)));
    assert_true(rig_has_value(&get, SLICE("1")));
    rig_expect_value(&scene->rig, "k", SLICE("2"));
    assert_int_equal(fake_accepted(scene->fake), 1);
    free(value);
}

/* The answer is there before the command has left completely (a full table, say). */
static void
test_an_answer_before_the_end_of_the_command(void **state)
{
    struct scene *scene = *state;
    size_t len = 8 * 1000 * 1000;
    char *value = pattern(len, 7);
    bool text = scene->dialect == CONFIG_DIALECT_TEXT;
    struct fake_step steps[] = {
        FAKE_LINE,
        FAKE_SEND("SERVER_ERROR out of memory storing object\r\n"),
        FAKE_HOLD,
        FAKE_TAKE(len + 2),
    };
    struct call set;

    (void)text;
    FAKE_SCRIPT(scene->fake, steps);
    scene->rig.config.lanes = 1;
    scene->rig.config.item_max = len + 1000;
    scene->rig.config.op_timeout_ms = RIG_PATIENCE_MS;
    scene_open(scene);
    rig_write(&scene->rig, &set, STORE_SET, "big", slice_of(value, len));
    rig_flush(&scene->rig);
    RIG_UNTIL(&scene->rig, fake_holding(scene->fake) == 1);
    rig_turn(&scene->rig, 2);
    rig_turn(&scene->rig, 2);
    assert_int_equal(set.completions, 0); /* the value is still the kernel's to read */
    fake_release(scene->fake);
    rig_wait(&set);
    assert_int_equal(set.op.status, STORE_NO_MEMORY);
    rig_prepare(&scene->rig, &set, STORE_SET, "k");
    set.op.value = SLICE("v");
    assert_int_equal(rig_do(&set), STORE_OK);
    rig_expect_value(&scene->rig, "k", SLICE("v"));
    free(value);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        SCENE_BOTH(test_a_small_get_passes_a_big_one),
        SCENE_BOTH(test_idle_lanes_are_closed),
        SCENE_BOTH(test_a_small_get_passes_a_big_set),
        SCENE_BOTH(test_small_ops_share_one_connection),
        SCENE_BOTH(test_lanes_are_bounded),
        SCENE_BOTH(test_with_one_lane_all_is_in_order),
        SCENE_BOTH(test_an_answer_before_the_end_of_the_command),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
