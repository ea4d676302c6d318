/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_store_memcached_chaos.c: many ops of every kind while the server drops its connections, cuts
 * its answers anywhere, closes under half a command and goes away for a while. Whatever an op is
 * told, it is told once, and what it is told about values is true.
 *
 * The order of events is drawn from a seed, which a failure prints.
 */
#include <inttypes.h>
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

enum { OPS = 4000, KEYS = 12, FIXED = 8, SLOTS = 64, BIG = 100000 };

/* Keys whose value never changes: the index says how long it is. */
static const size_t fixed_lens[FIXED] = { 0, 1, 100, 4000, 16000, 17000, 66000, BIG };

struct story {
    uint64_t acknowledged; /* the newest version that a SET was told OK for */
    uint64_t written;      /* the newest version that was submitted */
    bool busy;             /* a SET is under way: one at a time, so that versions have an order */
};

struct slot {
    struct call call;
    bool used;
    char key[16];
    char value[BIG + 32];
    struct story *story; /* (ref) of a SET or GET of a key that changes */
    uint64_t floor;      /* GET: the version that was acknowledged when it was submitted */
    uint64_t version;    /* SET */
    size_t fixed;        /* GET of a fixed key: its index; FIXED for none */
};

struct chaos {
    struct scene *scene;
    uint64_t random;
    struct story stories[KEYS];
    struct slot *slots;                 /* SLOTS of them (owned) */
    uint64_t incremented, acknowledged; /* of the counter */
    size_t ok, failed;
    bool paused;        /* the store does not dial for a while: ask little, let it recover */
    size_t cut_at_once; /* connections that were cut in their first command */
    char *fixed_value;  /* BIG bytes (owned) */
};

static uint64_t
draw(struct chaos *chaos, uint64_t below)
{
    chaos->random ^= chaos->random << 13;
    chaos->random ^= chaos->random >> 7;
    chaos->random ^= chaos->random << 17;
    return chaos->random % below;
}

/* ---- what may be told ---- */

/* Every value of a key that changes begins with its version. */
static void
check_get(struct slot *slot, struct chaos *chaos)
{
    struct call *call = &slot->call;
    uint64_t version = 0;

    if (call->op.status == STORE_MISS) {
        assert_int_equal(slot->fixed, FIXED);
        assert_int_equal(slot->floor, 0);
        return;
    }
    assert_int_equal(call->op.status, STORE_OK);
    if (slot->fixed < FIXED) {
        assert_true(rig_has_value(call, slice_of(chaos->fixed_value, fixed_lens[slot->fixed])));
        return;
    }
    assert_true(call->op.data->len > 16);
    assert_memory_equal(call->op.data->data, slot->key, strlen(slot->key));
    assert_int_equal(sscanf(call->op.data->data + strlen(slot->key), "=%" SCNu64 ";", &version), 1);
    assert_true(version >= slot->floor);
    assert_true(version <= slot->story->written);
    buffer_unref(call->op.data);
    call->op.data = NULL;
}

static void
check_write(struct slot *slot, struct chaos *chaos)
{
    if (slot->call.op.verb == STORE_SET) {
        slot->story->busy = false;
        assert_int_equal(slot->call.op.status, STORE_OK);
        slot->story->acknowledged = slot->version;
    } else {
        assert_int_equal(slot->call.op.status, STORE_OK);
        chaos->acknowledged++;
        assert_in_range(slot->call.op.number, 1, chaos->incremented);
    }
}

/* A completed slot: what it was told must be true, or an excuse. */
static void
settle(struct slot *slot, struct chaos *chaos)
{
    enum store_status status = slot->call.op.status;

    slot->used = false;
    if (status == STORE_UNAVAILABLE) {
        chaos->failed++;
        chaos->paused = chaos->paused || slot->call.completed_ms <= slot->call.submitted_ms + 1;
        if (slot->call.op.verb == STORE_SET) {
            slot->story->busy = false;
        }
        return;
    }
    chaos->ok++;
    chaos->paused = false;
    if (slot->call.op.verb == STORE_GET) {
        check_get(slot, chaos);
    } else {
        check_write(slot, chaos);
    }
}

/* ---- what is asked ---- */

static void
submit_get(struct slot *slot, struct chaos *chaos)
{
    uint64_t key = draw(chaos, FIXED + KEYS);

    slot->fixed = key < FIXED ? (size_t)key : FIXED;
    if (key < FIXED) {
        snprintf(slot->key, sizeof(slot->key), "fixed%d", (int)key);
    } else {
        slot->story = &chaos->stories[key - FIXED];
        slot->floor = slot->story->acknowledged;
        snprintf(slot->key, sizeof(slot->key), "key%d", (int)(key - FIXED));
    }
    rig_get(&chaos->scene->rig, &slot->call, slot->key);
}

/* False: a SET of this key is under way already. */
static bool
submit_set(struct slot *slot, struct chaos *chaos)
{
    uint64_t key = draw(chaos, KEYS);
    size_t len;

    slot->story = &chaos->stories[key];
    if (slot->story->busy) {
        return false;
    }
    slot->story->busy = true;
    slot->version = ++slot->story->written;
    snprintf(slot->key, sizeof(slot->key), "key%d", (int)key);
    len = (size_t)snprintf(slot->value, 64, "%s=%" PRIu64 ";%016d", slot->key, slot->version, 0);
    if (draw(chaos, 10) == 0) {
        memset(slot->value + len, 'x', BIG - 64);
        len += BIG - 64;
    }
    rig_write(&chaos->scene->rig, &slot->call, STORE_SET, slot->key, slice_of(slot->value, len));
    return true;
}

static void
submit_incr(struct slot *slot, struct chaos *chaos)
{
    chaos->incremented++;
    rig_prepare(&chaos->scene->rig, &slot->call, STORE_INCR, "counter");
    slot->call.op.delta = 1;
    rig_submit(&slot->call);
}

static void
submit_some(struct chaos *chaos, uint64_t below)
{
    for (uint64_t n = draw(chaos, below); n > 0; n--) {
        struct slot *slot = &chaos->slots[draw(chaos, SLOTS)];
        uint64_t what = draw(chaos, 10);
        if (slot->used) {
            continue;
        }
        slot->used = true;
        if (what < 6) {
            submit_get(slot, chaos);
        } else if (what < 9) {
            slot->used = submit_set(slot, chaos);
        } else {
            submit_incr(slot, chaos);
        }
    }
}

/* ---- what goes wrong ---- */

/*
 * The connections to come are cut after so many bytes of answers. Now and then one is cut in its
 * first command: after that the store pauses its dials, and the test with it.
 */
static void
plan_trouble(struct chaos *chaos)
{
    struct fake_step steps[] = { FAKE_BEHAVE_FOR(1000 + draw(chaos, 300000)) };
    struct fake_step at_once[] = { FAKE_CLOSE_AFTER(1 + draw(chaos, 12)) };

    if (draw(chaos, 3) == 0) {
        steps[0] = (struct fake_step)FAKE_BEHAVE_FOR(1 + draw(chaos, 300));
    }
    FAKE_SCRIPT_EVERY(chaos->scene->fake, steps);
    if (chaos->cut_at_once < 6) {
        chaos->cut_at_once++;
        at_once[0].kind = draw(chaos, 3) == 0 ? FAKE_STEP_RESET : FAKE_STEP_CLOSE_AFTER;
        FAKE_SCRIPT(chaos->scene->fake, at_once);
    }
}

static void
make_trouble(struct chaos *chaos)
{
    switch (draw(chaos, 60)) {
    case 0:
        fake_drop(chaos->scene->fake);
        break;
    case 1:
        fake_stop(chaos->scene->fake);
        fake_start(chaos->scene->fake);
        break;
    case 2:
        fake_script_every(chaos->scene->fake, NULL, 0);
        break;
    case 3:
    case 4:
        plan_trouble(chaos);
        break;
    default:
        break;
    }
}

static void
settle_all(struct chaos *chaos)
{
    for (size_t i = 0; i < SLOTS; i++) {
        if (chaos->slots[i].used && chaos->slots[i].call.completions > 0) {
            settle(&chaos->slots[i], chaos);
        }
    }
}

static void
prepare_chaos(struct chaos *chaos, struct scene *scene, uint64_t seed)
{
    char key[16];

    *chaos = (struct chaos){ .scene = scene, .random = seed };
    chaos->slots = calloc(SLOTS, sizeof(*chaos->slots));
    chaos->fixed_value = malloc(BIG);
    assert_non_null(chaos->slots);
    assert_non_null(chaos->fixed_value);
    for (size_t i = 0; i < BIG; i++) {
        chaos->fixed_value[i] = (char)(i * 13 + i / 255);
    }
    for (size_t i = 0; i < FIXED; i++) {
        snprintf(key, sizeof(key), "fixed%zu", i);
        fake_put(scene->fake, slice_from_string(key), slice_of(chaos->fixed_value, fixed_lens[i]),
                 0);
    }
    fake_put(scene->fake, SLICE("counter"), SLICE("0"), 0);
}

static void
test_chaos(void **state)
{
    struct scene *scene = *state;
    struct chaos chaos;
    struct call counter;
    size_t sets_on_wire;
    uint64_t versions = 0;
    uint64_t seed = (uint64_t)clock_wall_ms() | 1;

    print_message("seed %" PRIu64 "\n", seed);
    prepare_chaos(&chaos, scene, seed);
    scene->rig.config.lanes = 4;
    scene->rig.config.op_timeout_ms = RIG_PATIENCE_MS;
    scene_open(scene);
    while (scene->rig.submitted < OPS) {
        submit_some(&chaos, chaos.paused ? 2 : 12);
        if (chaos.paused) {
            fake_script_every(scene->fake, NULL, 0);
        } else {
            make_trouble(&chaos);
        }
        rig_turn(&scene->rig, chaos.paused ? 10 : (int64_t)draw(&chaos, 2));
        settle_all(&chaos);
    }
    fake_script_every(scene->fake, NULL, 0);
    fake_drop(scene->fake);
    RIG_UNTIL(&scene->rig, scene->rig.completed == scene->rig.submitted);
    settle_all(&chaos);
    print_message("%zu ok, %zu failed, %zu connections\n", chaos.ok, chaos.failed,
                  fake_accepted(scene->fake));
    assert_int_equal(chaos.ok + chaos.failed, scene->rig.submitted);
    assert_true(chaos.ok > OPS / 4);
    assert_true(chaos.failed > 0);
    for (size_t i = 0; i < KEYS; i++) {
        versions += chaos.stories[i].written;
    }
    sets_on_wire =
        fake_count(scene->fake, scene->dialect == CONFIG_DIALECT_TEXT ? "set key" : "ms key");
    assert_true(sets_on_wire <= versions);
    scene_recover(scene, "k");
    rig_prepare(&scene->rig, &counter, STORE_INCR, "counter");
    assert_int_equal(rig_do(&counter), STORE_OK);
    assert_in_range(counter.op.number, chaos.acknowledged, chaos.incremented);
    free(chaos.slots);
    free(chaos.fixed_value);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = { SCENE_BOTH(test_chaos) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
