/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_store_memcached_dialect.c: how the memcached store finds out what its server speaks, and
 * what it does with one that lacks a command.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "clock.h"
#include "scene.h"

#define TIMEOUT_MS 100

static void
expect_ok(struct scene *scene, enum store_verb verb, const char *key, struct slice value)
{
    struct call call;

    rig_prepare(&scene->rig, &call, verb, key);
    call.op.value = value;
    assert_string_equal(store_status_name(rig_do(&call)), "ok");
}

/* ---- the choice ---- */

static void
test_a_new_server_is_spoken_to_in_meta(void **state)
{
    struct scene *scene = *state;

    scene_open(scene);
    expect_ok(scene, STORE_SET, "k", SLICE("v"));
    rig_expect_value(&scene->rig, "k", SLICE("v"));
    assert_int_equal(fake_count(scene->fake, "version"), 1);
    assert_int_equal(fake_count(scene->fake, "ms k "), 1);
    assert_int_equal(fake_count(scene->fake, "mg k "), 1);
    assert_int_equal(fake_count(scene->fake, "get"), 0);
}

static void
test_an_old_server_is_spoken_to_in_text(void **state)
{
    struct scene *scene = *state;

    scene_fake_without(scene, FAKE_LACKS_META);
    scene_open(scene);
    expect_ok(scene, STORE_SET, "k", SLICE("v"));
    rig_expect_value(&scene->rig, "k", SLICE("v"));
    assert_int_equal(fake_count(scene->fake, "set k "), 1);
    assert_int_equal(fake_count(scene->fake, "gets k"), 1);
    assert_int_equal(fake_count(scene->fake, "mg k "), 0);
    assert_int_equal(fake_accepted(scene->fake), 1);
}

/* The answers to `version` and to the probe, and whether meta is to be spoken then. */
static const struct {
    const char *version;
    const char *probe;
    bool meta;
} choices[] = {
    { "VERSION 1.6.18\r\n", "EN\r\n", true },
    { "VERSION 1.6.13\r\n", "EN\r\n", true },
    { "VERSION 1.6.40-beta (something)\r\n", "EN\r\n", true },
    { "VERSION 1.7.0\r\n", "EN\r\n", true },
    { "VERSION 15.0.3.Final\r\n", "EN\r\n", false }, /* not memcached's numbers */
    { "VERSION 1.6.12\r\n", "EN\r\n", false },
    { "VERSION 1.5.22\r\n", "ERROR\r\n", false },
    { "VERSION 1.6.18\r\n", "ERROR\r\n", false },
    { "VERSION 1.6.18\r\n", "SERVER_ERROR unknown command\r\n", false },
    { "VERSION df-1.2.3\r\n", "ERROR\r\n", false },
    { "ERROR\r\n", "ERROR\r\n", false },
};

static void
test_the_choice(void **state)
{
    struct scene *scene = *state;

    for (size_t i = 0; i < sizeof(choices) / sizeof(choices[0]); i++) {
        struct fake_step steps[] = {
            FAKE_EXPECT("version\r\n"),
            { FAKE_STEP_PIECES, choices[i].version, strlen(choices[i].version), 1 + i, false },
            FAKE_LINE,
            { FAKE_STEP_PIECES, choices[i].probe, strlen(choices[i].probe), 1 + i, false },
            FAKE_BEHAVE,
        };
        size_t mg = fake_count(scene->fake, "mg k "), gets = fake_count(scene->fake, "gets k");
        struct call call;
        FAKE_SCRIPT(scene->fake, steps);
        scene_open(scene);
        rig_get(&scene->rig, &call, "k");
        rig_wait(&call);
        if (call.op.status != STORE_MISS) {
            fail_msg("choice %zu: %s", i, store_status_name(call.op.status));
        }
        mg = fake_count(scene->fake, "mg k ") - mg;
        gets = fake_count(scene->fake, "gets k") - gets;
        if (mg != choices[i].meta || gets == choices[i].meta) {
            fail_msg("choice %zu: %zu mg, %zu gets", i, mg, gets);
        }
        rig_close(&scene->rig);
        scene->is_open = false;
    }
}

/* ---- a handshake that fails ---- */

#define ONE_OF(status) (1u << (status))

static const struct {
    const char *answer;       /* to `version`, or to both */
    enum fake_step_kind then; /* FAKE_STEP_SILENT or FAKE_STEP_CLOSE */
    unsigned allowed;         /* statuses of a GET */
} handshakes[] = {
    { "", FAKE_STEP_CLOSE, ONE_OF(STORE_UNAVAILABLE) },
    { "", FAKE_STEP_SILENT, ONE_OF(STORE_TIMEOUT) },
    { "VERSI", FAKE_STEP_CLOSE, ONE_OF(STORE_UNAVAILABLE) },
    { "VERSI", FAKE_STEP_SILENT, ONE_OF(STORE_TIMEOUT) },
    { "VERSION 1.6.18\r\n", FAKE_STEP_CLOSE, ONE_OF(STORE_UNAVAILABLE) },
    { "VERSION 1.6.18\r\n", FAKE_STEP_SILENT, ONE_OF(STORE_TIMEOUT) },
    { "VERSION 1.6.18\r\nE", FAKE_STEP_CLOSE, ONE_OF(STORE_UNAVAILABLE) },
    { "VERSION 1.6.18\r\nEN\r\nEN\r\n", FAKE_STEP_SILENT,
      ONE_OF(STORE_BAD_REPLY) | ONE_OF(STORE_UNAVAILABLE) },
    { "ERROR Too many open connections\r\n", FAKE_STEP_CLOSE, ONE_OF(STORE_UNAVAILABLE) },
    { "SSH-2.0-OpenSSH_9.2\r\n", FAKE_STEP_SILENT,
      ONE_OF(STORE_BAD_REPLY) | ONE_OF(STORE_UNAVAILABLE) },
    { "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n", FAKE_STEP_CLOSE,
      ONE_OF(STORE_BAD_REPLY) | ONE_OF(STORE_UNAVAILABLE) },
    { "VERSION 1.6.18\r\nhello\r\n", FAKE_STEP_SILENT,
      ONE_OF(STORE_BAD_REPLY) | ONE_OF(STORE_UNAVAILABLE) },
};

static void
test_a_handshake_that_fails(void **state)
{
    struct scene *scene = *state;

    for (size_t i = 0; i < sizeof(handshakes) / sizeof(handshakes[0]); i++) {
        struct fake_step steps[] = {
            FAKE_EXPECT("version\r\n"),
            { .kind = FAKE_STEP_SEND,
              .bytes = handshakes[i].answer,
              .len = strlen(handshakes[i].answer) },
            { .kind = handshakes[i].then },
        };
        struct call get, set;
        FAKE_SCRIPT_EVERY(scene->fake, steps);
        scene->rig.config.op_timeout_ms = TIMEOUT_MS;
        scene->rig.config.connect_timeout_ms = 2 * TIMEOUT_MS;
        scene_open(scene);
        rig_get(&scene->rig, &get, "k");
        rig_write(&scene->rig, &set, STORE_SET, "k", SLICE("v"));
        rig_wait(&get);
        rig_wait(&set);
        if ((ONE_OF(get.op.status) & handshakes[i].allowed) == 0 ||
            set.op.status != get.op.status) {
            fail_msg("handshake %zu: get %s, set %s", i, store_status_name(get.op.status),
                     store_status_name(set.op.status));
        }
        assert_true(get.completed_ms - get.submitted_ms <= 2 * TIMEOUT_MS);
        RIG_UNTIL(&scene->rig, fake_open(scene->fake) == 0);
        assert_int_equal(fake_count(scene->fake, "ms k "), i);
        fake_script_every(scene->fake, NULL, 0);
        scene_recover(scene, "k");
        rig_close(&scene->rig);
        scene->is_open = false;
        /* What scene_recover has set is the one `ms` of this round. */
        assert_int_equal(fake_count(scene->fake, "ms k "), i + 1);
    }
}

/* ---- reads that are asked again ---- */

/* A handshake is an answer: no pause for dialling hides that the store tries again and again. */
static void
test_a_read_is_asked_twice_at_the_most(void **state)
{
    struct scene *scene = *state;
    static const struct fake_step steps[] = { FAKE_LINE, FAKE_SEND("EN\r\n"), FAKE_LINE,
                                              FAKE_CLOSE };
    struct call get, set;
    int64_t give_up_ms = clock_monotonic_ms() + RIG_PATIENCE_MS;

    FAKE_SCRIPT_EVERY(scene->fake, steps);
    scene_open(scene);
    rig_get(&scene->rig, &get, "k");
    rig_wait(&get);
    assert_int_equal(get.op.status, STORE_UNAVAILABLE);
    assert_int_equal(fake_count(scene->fake, "mg k "), 2);
    /* It is DOWN now, until a probe is answered. A write is sent after that, once. */
    do {
        rig_write(&scene->rig, &set, STORE_SET, "k", SLICE("v"));
        rig_wait(&set);
        assert_int_equal(set.op.status, STORE_UNAVAILABLE);
        assert_true(clock_monotonic_ms() < give_up_ms);
        rig_turn(&scene->rig, 1);
    } while (fake_count(scene->fake, "ms k ") == 0);
    assert_int_equal(fake_count(scene->fake, "ms k "), 1);
}

/* Where the answer has begun, the server has done the work: it is not asked again. */
static void
test_a_read_whose_answer_has_begun_is_not_asked_again(void **state)
{
    struct scene *scene = *state;
    static const char *const parts[] = { "V", "VA 5 f0 c7 t-1 %O\r\n", "VA 5 f0 c7 t-1 %O\r\nhel" };
    struct call call;

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        struct fake_step steps[] = { FAKE_LINE,
                                     FAKE_SEND("EN\r\n"),
                                     FAKE_LINE,
                                     { FAKE_STEP_SEND, parts[i], strlen(parts[i]), 0, false },
                                     FAKE_CLOSE };
        FAKE_SCRIPT(scene->fake, steps);
        scene_open(scene);
        rig_get(&scene->rig, &call, "k");
        rig_wait(&call);
        assert_int_equal(call.op.status, STORE_UNAVAILABLE);
        assert_int_equal(fake_count(scene->fake, "mg k "), i + 1);
        rig_close(&scene->rig);
        scene->is_open = false;
    }
}

/* ---- servers that lack a command ---- */

static void
test_without_gets(void **state)
{
    struct scene *scene = *state;
    struct call a, b, head, cas;

    scene_fake_without(scene, FAKE_LACKS_META | FAKE_LACKS_GETS);
    fake_put(scene->fake, SLICE("a"), SLICE("value of a"), 4);
    fake_put(scene->fake, SLICE("b"), SLICE("value of b"), 0);
    scene_open(scene);
    rig_get(&scene->rig, &a, "a");
    rig_get(&scene->rig, &b, "b");
    rig_prepare(&scene->rig, &head, STORE_HEAD, "a");
    rig_submit(&head);
    rig_wait(&a);
    rig_wait(&b);
    rig_wait(&head);
    assert_int_equal(a.op.out_cas, 0);
    assert_int_equal(a.op.out_flags, 4);
    assert_true(rig_has_value(&a, SLICE("value of a")));
    assert_true(rig_has_value(&b, SLICE("value of b")));
    assert_int_equal(head.op.status, STORE_OK);
    assert_int_equal(head.op.value_len, 10);
    /* From now on it is known. */
    rig_expect_value(&scene->rig, "b", SLICE("value of b"));
    assert_int_equal(fake_count(scene->fake, "gets b"), 1);
    assert_int_equal(fake_count(scene->fake, "get b"), 2);
    rig_prepare(&scene->rig, &cas, STORE_CAS, "a");
    cas.op.cas = 1;
    cas.op.value = SLICE("new");
    assert_int_equal(rig_do(&cas), STORE_UNSUPPORTED);
    rig_expect_value(&scene->rig, "a", SLICE("value of a"));
    assert_int_equal(fake_count(scene->fake, "cas"), 0);
    assert_int_equal(fake_count(scene->fake, "new"), 0);
    assert_int_equal(fake_accepted(scene->fake), 1);
}

static void
test_without_touch(void **state)
{
    struct scene *scene = *state;
    struct call touch;

    scene_fake_without(scene, FAKE_LACKS_META | FAKE_LACKS_TOUCH);
    scene_open(scene);
    expect_ok(scene, STORE_SET, "k", SLICE("v"));
    rig_prepare(&scene->rig, &touch, STORE_TOUCH, "k");
    touch.op.ttl_s = 60;
    assert_int_equal(rig_do(&touch), STORE_UNSUPPORTED);
    rig_expect_value(&scene->rig, "k", SLICE("v"));
    assert_int_equal(fake_accepted(scene->fake), 1); /* the connection was in step */
}

/* A server that is replaced by an older one, as in a rolling change: each connection asks anew. */
static void
test_the_dialect_changes_with_the_connection(void **state)
{
    struct scene *scene = *state;
    static const struct fake_step old[] = {
        FAKE_EXPECT("version\r\n"),
        FAKE_SEND("VERSION 1.4.39\r\n"),
        FAKE_LINE,
        FAKE_SEND("ERROR\r\n"),
        FAKE_BEHAVE,
    };

    scene_open(scene);
    expect_ok(scene, STORE_SET, "k", SLICE("v"));
    FAKE_SCRIPT(scene->fake, old);
    fake_drop(scene->fake);
    rig_turn(&scene->rig, 0);
    rig_expect_value(&scene->rig, "k", SLICE("v"));
    fake_drop(scene->fake);
    rig_turn(&scene->rig, 0);
    rig_expect_value(&scene->rig, "k", SLICE("v"));
    assert_int_equal(fake_count_on(scene->fake, 1, "gets k"), 1);
    assert_int_equal(fake_count_on(scene->fake, 2, "mg k "), 1);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        SCENE_ONE(test_a_new_server_is_spoken_to_in_meta, auto),
        SCENE_ONE(test_an_old_server_is_spoken_to_in_text, auto),
        SCENE_ONE(test_the_choice, auto),
        SCENE_ONE(test_a_handshake_that_fails, auto),
        SCENE_ONE(test_a_read_is_asked_twice_at_the_most, auto),
        SCENE_ONE(test_a_read_whose_answer_has_begun_is_not_asked_again, auto),
        SCENE_ONE(test_without_gets, auto),
        SCENE_ONE(test_without_touch, auto),
        SCENE_ONE(test_the_dialect_changes_with_the_connection, auto),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
