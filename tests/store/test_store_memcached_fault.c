/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_store_memcached_fault.c: the memcached store against servers that answer wrongly: what each
 * wrong answer is called, that the connection is not used again, and that no value is ever wrong.
 * Servers that are absent, late or dead are in test_store_memcached_outage.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "clock.h"
#include "scene.h"

#define TIMEOUT_MS 100

/* A set of statuses. */
#define ONE_OF(status) (1u << (status))
#define BAD            ONE_OF(STORE_BAD_REPLY)
#define GONE           ONE_OF(STORE_UNAVAILABLE)
#define LATE           ONE_OF(STORE_TIMEOUT)
#define FULL           ONE_OF(STORE_NO_MEMORY)
#define FINE           ONE_OF(STORE_OK)

/* One wrong answer, in both dialects; a NULL means that the dialect cannot say this. */
struct fault {
    const char *name;
    const char *text;
    const char *meta;
    enum fake_step_kind then; /* FAKE_STEP_SILENT, _CLOSE; _BEHAVE where it may go on */
    unsigned allowed;         /* statuses */
};

#define LONG_LINE                                                                                  \
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx" \
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
#define VERY_LONG_LINE                                                                             \
    LONG_LINE LONG_LINE LONG_LINE LONG_LINE LONG_LINE LONG_LINE LONG_LINE LONG_LINE LONG_LINE      \
        LONG_LINE LONG_LINE LONG_LINE LONG_LINE LONG_LINE LONG_LINE LONG_LINE LONG_LINE LONG_LINE

/* Answers to a GET of "k". The right one: 5 bytes, "hello". */
static const struct fault get_faults[] = {
    { "nothing", "", "", FAKE_STEP_CLOSE, GONE },
    { "half a line", "VALUE k 0", "VA 5 f0 c7", FAKE_STEP_CLOSE, GONE },
    { "half a line, silence", "VALUE k 0", "VA 5 f0 c7", FAKE_STEP_SILENT, LATE },
    { "a line", "VALUE k 0 5 7\r\n", "VA 5 f0 c7 t-1 %O\r\n", FAKE_STEP_CLOSE, GONE },
    { "half a value", "VALUE k 0 5 7\r\nhel", "VA 5 f0 c7 t-1 %O\r\nhel", FAKE_STEP_CLOSE, GONE },
    { "half a value, silence", "VALUE k 0 5 7\r\nhel", "VA 5 f0 c7 t-1 %O\r\nhel", FAKE_STEP_SILENT,
      LATE },
    { "no CRLF", "VALUE k 0 5 7\r\nhello", "VA 5 f0 c7 t-1 %O\r\nhello", FAKE_STEP_CLOSE, GONE },
    { "half a CRLF", "VALUE k 0 5 7\r\nhello\r", "VA 5 f0 c7 t-1 %O\r\nhello\r", FAKE_STEP_CLOSE,
      GONE },
    { "no END", "VALUE k 0 5 7\r\nhello\r\n", NULL, FAKE_STEP_CLOSE, GONE },
    { "half an END", "VALUE k 0 5 7\r\nhello\r\nEND", NULL, FAKE_STEP_CLOSE, GONE },
    { "length 2 too small", "VALUE k 0 3 7\r\nhello\r\nEND\r\n", "VA 3 f0 c7 t-1 %O\r\nhello\r\n",
      FAKE_STEP_SILENT, BAD },
    { "length 2 too big", "VALUE k 0 7 7\r\nhello\r\nEND\r\n", "VA 7 f0 c7 t-1 %O\r\nhello\r\n",
      FAKE_STEP_SILENT, BAD | LATE },
    { "length 2 too big, closed", "VALUE k 0 7 7\r\nhello\r\nEND\r\n",
      "VA 7 f0 c7 t-1 %O\r\nhello\r\n", FAKE_STEP_CLOSE, BAD | GONE },
    { "length 100 MB", "VALUE k 0 104857600 7\r\nhello\r\nEND\r\n",
      "VA 104857600 f0 c7 t-1 %O\r\nhello\r\n", FAKE_STEP_SILENT, BAD },
    { "length 2^31", "VALUE k 0 2147483648 7\r\nhello\r\nEND\r\n",
      "VA 2147483648 f0 c7 t-1 %O\r\nhello\r\n", FAKE_STEP_SILENT, BAD },
    { "length 2^63-1", "VALUE k 0 9223372036854775807 7\r\nhello\r\nEND\r\n",
      "VA 9223372036854775807 f0 c7 t-1 %O\r\nhello\r\n", FAKE_STEP_SILENT, BAD },
    { "length 2^64-1", "VALUE k 0 18446744073709551615 7\r\nhello\r\nEND\r\n",
      "VA 18446744073709551615 f0 c7 t-1 %O\r\nhello\r\n", FAKE_STEP_SILENT, BAD },
    { "length 2^64+5", "VALUE k 0 18446744073709551621 7\r\nhello\r\nEND\r\n",
      "VA 18446744073709551621 f0 c7 t-1 %O\r\nhello\r\n", FAKE_STEP_SILENT, BAD },
    { "length below 0", "VALUE k 0 -5 7\r\nhello\r\nEND\r\n", "VA -5 f0 c7 t-1 %O\r\nhello\r\n",
      FAKE_STEP_SILENT, BAD },
    { "length with a plus", "VALUE k 0 +5 7\r\nhello\r\nEND\r\n", "VA +5 f0 c7 t-1 %O\r\nhello\r\n",
      FAKE_STEP_SILENT, BAD },
    { "length with a letter", "VALUE k 0 5a 7\r\nhello\r\nEND\r\n",
      "VA 5a f0 c7 t-1 %O\r\nhello\r\n", FAKE_STEP_SILENT, BAD },
    { "no length", "VALUE k 0  7\r\nhello\r\nEND\r\n", "VA  f0 c7 t-1 %O\r\nhello\r\n",
      FAKE_STEP_SILENT, BAD },
    { "another key", "VALUE q 0 5 7\r\nhello\r\nEND\r\n", NULL, FAKE_STEP_SILENT, BAD },
    { "a longer key", "VALUE kk 0 5 7\r\nhello\r\nEND\r\n", NULL, FAKE_STEP_SILENT, BAD },
    { "another opaque", NULL, "VA 5 f0 c7 t-1 O424242\r\nhello\r\n", FAKE_STEP_SILENT, BAD },
    { "another opaque on a miss", NULL, "EN O424242\r\n", FAKE_STEP_SILENT, BAD },
    { "no opaque", NULL, "VA 5 f0 c7 t-1\r\nhello\r\n", FAKE_STEP_SILENT, BAD },
    { "flags over 2^32", "VALUE k 4294967296 5 7\r\nhello\r\nEND\r\n",
      "VA 5 f4294967296 c7 t-1 %O\r\nhello\r\n", FAKE_STEP_SILENT, BAD },
    { "the answer to a set", "STORED\r\n", "NS %O\r\n", FAKE_STEP_SILENT, BAD },
    { "a number", "15\r\n", "15\r\n", FAKE_STEP_SILENT, BAD },
    { "words", "hello world\r\n", "hello world\r\n", FAKE_STEP_SILENT, BAD },
    { "HTTP", "HTTP/1.1 400 Bad Request\r\n\r\n", "HTTP/1.1 400 Bad Request\r\n\r\n",
      FAKE_STEP_SILENT, BAD },
    { "binary", "\x81\x01\x02\xff\xfe\r\n", "\x81\x01\x02\xff\xfe\r\n", FAKE_STEP_SILENT, BAD },
    { "an empty line", "\r\nEND\r\n", "\r\nEN %O\r\n", FAKE_STEP_SILENT, BAD },
    { "a bare LF", "END\n", "EN %O\n", FAKE_STEP_SILENT, BAD },
    { "a line without end", VERY_LONG_LINE, VERY_LONG_LINE, FAKE_STEP_SILENT, BAD },
    { "SERVER_ERROR", "SERVER_ERROR out of memory writing get response\r\n",
      "SERVER_ERROR out of memory writing get response\r\n", FAKE_STEP_BEHAVE, BAD | FULL },
    { "CLIENT_ERROR", "CLIENT_ERROR bad command line format\r\n",
      "CLIENT_ERROR bad command line format\r\n", FAKE_STEP_BEHAVE, BAD },
    { "too many connections", "ERROR Too many open connections\r\n",
      "ERROR Too many open connections\r\n", FAKE_STEP_CLOSE, GONE },
};

/* Answers to a SET of "k". */
static const struct fault set_faults[] = {
    { "nothing", "", "", FAKE_STEP_CLOSE, GONE },
    { "silence", "", "", FAKE_STEP_SILENT, LATE },
    { "half a line", "STOR", "HD", FAKE_STEP_CLOSE, GONE },
    { "half a line, silence", "STORED", "HD", FAKE_STEP_SILENT, LATE },
    { "half a CRLF", "STORED\r", "HD c7 %O\r", FAKE_STEP_CLOSE, GONE },
    { "the answer to a get", "END\r\n", "EN %O\r\n", FAKE_STEP_SILENT, BAD },
    { "a number", "15\r\n", "15\r\n", FAKE_STEP_SILENT, BAD },
    { "another opaque", NULL, "HD c7 O424242\r\n", FAKE_STEP_SILENT, BAD },
    { "words", "hello world\r\n", "hello world\r\n", FAKE_STEP_SILENT, BAD },
    { "words behind it", "STORED now\r\n", "HD c7 %O now\r\n", FAKE_STEP_SILENT, BAD },
    { "a bare LF", "STORED\n", "HD c7 %O\n", FAKE_STEP_SILENT, BAD },
    { "SERVER_ERROR", "SERVER_ERROR out of memory storing object\r\n",
      "SERVER_ERROR out of memory storing object\r\n", FAKE_STEP_BEHAVE, FULL | BAD },
    { "CLIENT_ERROR", "CLIENT_ERROR bad data chunk\r\n", "CLIENT_ERROR bad data chunk\r\n",
      FAKE_STEP_BEHAVE, BAD },
    { "too many connections", "ERROR Too many open connections\r\n",
      "ERROR Too many open connections\r\n", FAKE_STEP_CLOSE, GONE },
};

/* The script in which every connection gives the answer of FAULT. False: not in this dialect. */
static bool
play_fault(struct scene *scene, const struct fault *fault, bool with_value)
{
    const char *answer = scene->dialect == CONFIG_DIALECT_TEXT ? fault->text : fault->meta;
    struct fake_step steps[] = {
        FAKE_LINE,
        { .kind = FAKE_STEP_TAKE, .number = with_value ? sizeof("value\r\n") - 1 : 0 },
        { .kind = FAKE_STEP_SEND, .bytes = answer, .len = answer == NULL ? 0 : strlen(answer) },
        { .kind = fault->then },
    };

    if (answer == NULL) {
        return false;
    }
    FAKE_SCRIPT_EVERY(scene->fake, steps);
    return true;
}

static void
check_fault(struct scene *scene, const struct fault *fault, struct call *call)
{
    int64_t took_ms = call->completed_ms - call->submitted_ms;

    if ((ONE_OF(call->op.status) & fault->allowed) == 0) {
        fail_msg("%s: %s", fault->name, store_status_name(call->op.status));
    }
    if (call->op.status == STORE_TIMEOUT) {
        assert_in_range(took_ms, TIMEOUT_MS - 1, 2 * TIMEOUT_MS);
    }
    /* A refusal that names its reason may leave the connection in step; nothing else may. */
    if (strstr(fault->name, "_ERROR") == NULL) {
        RIG_UNTIL(&scene->rig, fake_open(scene->fake) == 0);
    }
}

/* Each fault on a store of its own, so that no pause for dialling hides the next one. */
static void
run_fault(struct scene *scene, const struct fault *fault, enum store_verb verb)
{
    struct call call;
    size_t count;
    const char *line;

    if (!play_fault(scene, fault, verb == STORE_SET)) {
        return;
    }
    scene->rig.config.op_timeout_ms = TIMEOUT_MS;
    scene_open(scene);
    line = verb == STORE_SET ? scene_set_line(scene, "k") : scene_get_line(scene, "k");
    count = fake_count(scene->fake, line);
    rig_prepare(&scene->rig, &call, verb, "k");
    call.op.value = verb == STORE_SET ? SLICE("value") : SLICE("");
    rig_do(&call);
    check_fault(scene, fault, &call);
    count = fake_count(scene->fake, line) - count;
    assert_in_range(count, 1, verb == STORE_SET ? 1 : 2);
    fake_script_every(scene->fake, NULL, 0);
    scene_recover(scene, "k");
    rig_close(&scene->rig);
    scene->is_open = false;
}

static void
test_wrong_answers_to_get(void **state)
{
    for (size_t i = 0; i < sizeof(get_faults) / sizeof(get_faults[0]); i++) {
        run_fault(*state, &get_faults[i], STORE_GET);
    }
}

static void
test_wrong_answers_to_head(void **state)
{
    for (size_t i = 0; i < sizeof(get_faults) / sizeof(get_faults[0]); i++) {
        const struct fault *fault = &get_faults[i];
        struct scene *scene = *state;
        if (scene->dialect == CONFIG_DIALECT_TEXT) {
            run_fault(scene, fault, STORE_HEAD);
        }
    }
}

static void
test_wrong_answers_to_set(void **state)
{
    for (size_t i = 0; i < sizeof(set_faults) / sizeof(set_faults[0]); i++) {
        run_fault(*state, &set_faults[i], STORE_SET);
    }
}

/* ---- right answers, oddly cut ---- */

static const char text_hello[] = "VALUE k 3 5 7\r\nhello\r\nEND\r\n";
static const char meta_hello[] = "VA 5 f3 c7 t-1 %O\r\nhello\r\n";

static void
test_an_answer_in_pieces_is_an_answer(void **state)
{
    struct scene *scene = *state;
    const char *answer = scene->dialect == CONFIG_DIALECT_TEXT ? text_hello : meta_hello;

    scene_open(scene);
    for (size_t size = 1; size <= strlen(answer); size++) {
        struct fake_step steps[] = {
            FAKE_LINE,
            { FAKE_STEP_PIECES, answer, strlen(answer), size, false },
            FAKE_CLOSE,
        };
        struct call call;
        FAKE_SCRIPT(scene->fake, steps);
        rig_get(&scene->rig, &call, "k");
        rig_wait(&call);
        assert_int_equal(call.op.status, STORE_OK);
        assert_int_equal(call.op.out_flags, 3);
        assert_int_equal(call.op.out_cas, 7);
        assert_true(rig_has_value(&call, SLICE("hello")));
        RIG_UNTIL(&scene->rig, fake_open(scene->fake) == 0);
        rig_turn(&scene->rig, 0);
    }
}

static void
test_a_drip_that_ends_in_time_is_an_answer(void **state)
{
    struct scene *scene = *state;
    const char *answer = scene->dialect == CONFIG_DIALECT_TEXT ? text_hello : meta_hello;
    struct fake_step steps[] = { FAKE_LINE,
                                 { FAKE_STEP_DRIP, answer, strlen(answer), 5, false },
                                 FAKE_BEHAVE };

    FAKE_SCRIPT(scene->fake, steps);
    scene_open(scene);
    rig_expect_value(&scene->rig, "k", SLICE("hello"));
    assert_int_equal(fake_accepted(scene->fake), 1);
}

static void
test_a_drip_does_not_outlast_the_deadline(void **state)
{
    struct scene *scene = *state;
    const char *answer = scene->dialect == CONFIG_DIALECT_TEXT ? text_hello : meta_hello;
    struct fake_step steps[] = { FAKE_LINE,
                                 { FAKE_STEP_DRIP, answer, strlen(answer), 20, false },
                                 FAKE_BEHAVE };
    struct call call;

    FAKE_SCRIPT(scene->fake, steps);
    scene->rig.config.op_timeout_ms = TIMEOUT_MS;
    scene_open(scene);
    rig_get(&scene->rig, &call, "k");
    rig_wait(&call);
    assert_int_equal(call.op.status, STORE_TIMEOUT);
    assert_in_range(call.completed_ms - call.submitted_ms, TIMEOUT_MS - 1, 2 * TIMEOUT_MS);
    RIG_UNTIL(&scene->rig, fake_open(scene->fake) == 0);
    scene_recover(scene, "k");
}

/* ---- more answers than questions ---- */

static void
test_a_surplus_answer_closes_the_connection(void **state)
{
    struct scene *scene = *state;
    struct fake_step text[] = { FAKE_LINE,
                                FAKE_SEND("VALUE k 0 5 7\r\nhello\r\nEND\r\n"
                                          "VALUE k 0 5 7\r\nwrong\r\nEND\r\n"),
                                FAKE_SILENT };
    struct fake_step meta[] = { FAKE_LINE,
                                FAKE_SEND("VA 5 f0 c7 t-1 %O\r\nhello\r\n"
                                          "VA 5 f0 c7 t-1 %O\r\nwrong\r\n"),
                                FAKE_SILENT };
    struct call call;

    if (scene->dialect == CONFIG_DIALECT_TEXT) {
        FAKE_SCRIPT(scene->fake, text);
    } else {
        FAKE_SCRIPT(scene->fake, meta);
    }
    scene_open(scene);
    rig_get(&scene->rig, &call, "k");
    rig_wait(&call);
    if (call.op.status == STORE_OK) {
        assert_true(rig_has_value(&call, SLICE("hello")));
    } else {
        assert_int_equal(call.op.status, STORE_BAD_REPLY);
    }
    RIG_UNTIL(&scene->rig, fake_open(scene->fake) == 0);
    scene_recover(scene, "k");
}

static void
test_a_surplus_answer_never_answers_the_next(void **state)
{
    struct scene *scene = *state;
    struct fake_step text[] = { FAKE_LINE, FAKE_LINE,
                                FAKE_SEND("VALUE a 0 5 7\r\nhello\r\nEND\r\n"
                                          "VALUE a 0 5 7\r\nwrong\r\nEND\r\n"
                                          "VALUE b 0 5 7\r\nright\r\nEND\r\n"),
                                FAKE_SILENT };
    struct fake_step meta[] = { FAKE_LINE,
                                FAKE_SEND("VA 5 f0 c7 t-1 %O\r\nhello\r\n"
                                          "VA 5 f0 c7 t-1 %O\r\nwrong\r\n"),
                                FAKE_SILENT };
    struct call a, b;

    if (scene->dialect == CONFIG_DIALECT_TEXT) {
        FAKE_SCRIPT(scene->fake, text);
    } else {
        FAKE_SCRIPT(scene->fake, meta);
    }
    fake_put(scene->fake, SLICE("b"), SLICE("right"), 0);
    scene->rig.config.lanes = 1;
    scene_open(scene);
    rig_get(&scene->rig, &a, "a");
    if (scene->dialect == CONFIG_DIALECT_META) {
        /* "%O" is that of the last command: keep it a's, let b come behind. */
        rig_flush(&scene->rig);
        RIG_UNTIL(&scene->rig, fake_count(scene->fake, "mg a") == 1);
    }
    rig_get(&scene->rig, &b, "b");
    rig_wait(&b);
    rig_wait(&a);
    if (a.op.status == STORE_OK) {
        assert_true(rig_has_value(&a, SLICE("hello")));
    }
    /* Where it had not been sent yet, another connection may answer it, with the truth. */
    if (scene->dialect == CONFIG_DIALECT_META && b.op.status == STORE_OK) {
        assert_true(rig_has_value(&b, SLICE("right")));
    } else {
        assert_int_not_equal(b.op.status, STORE_OK);
        assert_int_not_equal(b.op.status, STORE_MISS);
        buffer_unref(b.op.data);
    }
    RIG_UNTIL(&scene->rig, !fake_is_open(scene->fake, 0));
}

/* Text that nobody asked for, on a connection that is idle. */
static void
test_words_out_of_turn_close_the_connection(void **state)
{
    struct scene *scene = *state;
    struct fake_step text[] = { FAKE_LINE, FAKE_SEND("END\r\n"), FAKE_HOLD, FAKE_SEND("END\r\n"),
                                FAKE_SILENT };
    struct fake_step meta[] = { FAKE_LINE, FAKE_SEND("EN %O\r\n"), FAKE_HOLD,
                                FAKE_SEND("EN %O\r\n"), FAKE_SILENT };
    struct call call;

    if (scene->dialect == CONFIG_DIALECT_TEXT) {
        FAKE_SCRIPT(scene->fake, text);
    } else {
        FAKE_SCRIPT(scene->fake, meta);
    }
    scene_open(scene);
    rig_get(&scene->rig, &call, "k");
    rig_wait(&call);
    assert_int_equal(call.op.status, STORE_MISS);
    RIG_UNTIL(&scene->rig, fake_holding(scene->fake) == 1);
    fake_release(scene->fake);
    RIG_UNTIL(&scene->rig, fake_open(scene->fake) == 0);
    scene_recover(scene, "k");
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        SCENE_BOTH(test_wrong_answers_to_get),
        SCENE_ONE(test_wrong_answers_to_head, text),
        SCENE_BOTH(test_wrong_answers_to_set),
        SCENE_BOTH(test_an_answer_in_pieces_is_an_answer),
        SCENE_BOTH(test_a_drip_that_ends_in_time_is_an_answer),
        SCENE_BOTH(test_a_drip_does_not_outlast_the_deadline),
        SCENE_BOTH(test_a_surplus_answer_closes_the_connection),
        SCENE_BOTH(test_a_surplus_answer_never_answers_the_next),
        SCENE_BOTH(test_words_out_of_turn_close_the_connection),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
