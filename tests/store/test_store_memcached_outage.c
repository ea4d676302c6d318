/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_store_memcached_outage.c: the memcached store while its server is absent or dies: every op completes once, nothing that changes a value is sent twice, dials are few, and
 * the store is well again soon after the server is.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "clock.h"
#include "scene.h"

/* An op that can be refused at once is refused within this time, on a busy machine too. */
#define AT_ONCE_MS 40

/* Every connect(2) of this process; only the store makes any. */
static size_t dials;

int
connect(int fd, __CONST_SOCKADDR_ARG address, socklen_t len)
{
    dials++;
    return (int)syscall(SYS_connect, fd, address.__sockaddr__, len);
}

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

/* ---- nobody there ---- */

static void
test_refused(void **state)
{
    struct scene *scene = *state;
    struct call get, set;

    fake_stop(scene->fake);
    scene_open(scene);
    rig_get(&scene->rig, &get, "k");
    rig_write(&scene->rig, &set, STORE_SET, "k", SLICE("v"));
    rig_wait(&get);
    rig_wait(&set);
    assert_status(&get, STORE_UNAVAILABLE);
    assert_status(&set, STORE_UNAVAILABLE);
    assert_true(took_ms(&get) < AT_ONCE_MS);
    fake_start(scene->fake);
    scene_recover(scene, "k");
}

struct load {
    struct call call;
    bool stop;
    size_t ok;
    size_t failed;
    int64_t slowest_ms;
    int64_t first_ok_ms; /* monotonic; 0: none */
};

/* One op after the other, a millisecond apart, until UNTIL_MS or the first that succeeds. */
static void
run_load(struct scene *scene, struct load *load, int64_t until_ms, bool until_ok)
{
    memset(load, 0, sizeof(*load));
    while (clock_monotonic_ms() < until_ms && !(until_ok && load->ok > 0)) {
        rig_prepare(&scene->rig, &load->call, load->failed % 2 ? STORE_GET : STORE_SET, "k");
        load->call.op.value = load->failed % 2 ? SLICE("") : SLICE("v");
        rig_do(&load->call);
        if (load->call.op.status == STORE_OK || load->call.op.status == STORE_MISS) {
            load->ok++;
        } else {
            assert_status(&load->call, STORE_UNAVAILABLE);
            load->failed++;
        }
        if (took_ms(&load->call) > load->slowest_ms) {
            load->slowest_ms = took_ms(&load->call);
        }
        buffer_unref(load->call.op.data);
        rig_turn(&scene->rig, 1);
    }
}

/* A pause of 50 ms that doubles, halved by jitter at the worst: 25+50+100+200+400 ms in 775 ms. */
static void
test_dials_are_few_while_refused_and_recovery_is_soon(void **state)
{
    struct scene *scene = *state;
    struct load load;
    size_t before = dials;
    int64_t back_ms;

    fake_stop(scene->fake);
    scene_open(scene);
    run_load(scene, &load, clock_monotonic_ms() + 700, false);
    assert_int_equal(load.ok, 0);
    assert_true(load.failed > 100);
    assert_in_range(dials - before, 2, 8);
    assert_true(load.slowest_ms < AT_ONCE_MS);
    fake_start(scene->fake);
    back_ms = clock_monotonic_ms();
    run_load(scene, &load, back_ms + 2000, true);
    assert_int_equal(load.ok, 1);
    run_load(scene, &load, clock_monotonic_ms() + 20, false);
    assert_int_equal(load.failed, 0);
    assert_int_equal(fake_accepted(scene->fake), 1);
}

/* An outage of a minute, as the store's clock has it; that is moved on by the test. */
static void
test_recovery_is_soon_after_a_long_outage(void **state)
{
    struct scene *scene = *state;
    struct call call;
    size_t before = dials;
    int64_t back_ms;

    fake_stop(scene->fake);
    scene_open(scene);
    while (scene->rig.skew_ms < 60 * 1000) {
        rig_prepare(&scene->rig, &call, STORE_DELETE, "k");
        assert_int_equal(rig_do(&call), STORE_UNAVAILABLE);
        scene->rig.skew_ms += 20;
    }
    assert_in_range(dials - before, 20,
                    130); /* a pause of a second, less a half of it for jitter */
    fake_start(scene->fake);
    back_ms = scene->rig.skew_ms;
    do {
        scene->rig.skew_ms += 20;
        rig_turn(&scene->rig, 1); /* the probe needs the real time of a round trip */
        rig_prepare(&scene->rig, &call, STORE_DELETE, "k");
    } while (rig_do(&call) == STORE_UNAVAILABLE && scene->rig.skew_ms < back_ms + 2000);
    assert_int_equal(call.op.status, STORE_MISS);
}

static void
test_dials_are_few_while_each_is_closed(void **state)
{
    struct scene *scene = *state;
    static const struct fake_step steps[] = { FAKE_CLOSE };
    struct load load;

    FAKE_SCRIPT_EVERY(scene->fake, steps);
    scene_open(scene);
    run_load(scene, &load, clock_monotonic_ms() + 400, false);
    assert_int_equal(load.ok, 0);
    assert_true(load.failed > 50);
    assert_in_range(fake_accepted(scene->fake), 2, 8);
    fake_script_every(scene->fake, NULL, 0);
    run_load(scene, &load, clock_monotonic_ms() + 2000, true);
    assert_int_equal(load.ok, 1);
}

/* ---- death ---- */

/* Killed and started again while nothing was under way: nobody is to notice. */
static void
test_killed_while_idle(void **state)
{
    struct scene *scene = *state;
    struct call call;

    scene_open(scene);
    for (int i = 0; i < 5; i++) {
        rig_prepare(&scene->rig, &call, STORE_SET, "k");
        call.op.value = SLICE("v");
        assert_int_equal(rig_do(&call), STORE_OK);
        fake_stop(scene->fake);
        fake_start(scene->fake);
        rig_turn(&scene->rig, 0); /* every turn begins with a look at the sockets */
        rig_prepare(&scene->rig, &call, i % 2 ? STORE_DELETE : STORE_SET, "k");
        call.op.value = i % 2 ? SLICE("") : SLICE("w");
        assert_int_equal(rig_do(&call), STORE_OK);
    }
    assert_int_equal(fake_accepted(scene->fake), 6);
}

/* It dies between the look at the sockets and the flush: a read finds its answer all the same. */
static void
test_killed_just_before_a_read(void **state)
{
    struct scene *scene = *state;
    struct call call;

    scene_open(scene);
    fake_put(scene->fake, SLICE("k"), SLICE("v"), 0);
    for (int i = 0; i < 10; i++) {
        rig_expect_value(&scene->rig, "k", SLICE("v"));
        fake_drop(scene->fake);
        rig_get(&scene->rig, &call, "k");
        rig_flush(&scene->rig);
        rig_wait(&call);
        assert_status(&call, STORE_OK);
        assert_true(rig_has_value(&call, SLICE("v")));
    }
}

static void
test_killed_with_ops_in_flight(void **state)
{
    struct scene *scene = *state;
    static const struct fake_step steps[] = { FAKE_LINE, FAKE_HOLD };
    struct call get, set, incr, head;

    FAKE_SCRIPT(scene->fake, steps);
    fake_put(scene->fake, SLICE("a"), SLICE("1"), 0);
    scene_open(scene);
    rig_get(&scene->rig, &get, "a");
    rig_write(&scene->rig, &set, STORE_SET, "b", SLICE("v"));
    rig_prepare(&scene->rig, &incr, STORE_INCR, "a");
    incr.op.delta = 5;
    rig_submit(&incr);
    rig_prepare(&scene->rig, &head, STORE_HEAD, "a");
    rig_submit(&head);
    rig_flush(&scene->rig);
    RIG_UNTIL(&scene->rig, fake_holding(scene->fake) == 1);
    fake_drop(scene->fake);
    rig_wait(&get);
    rig_wait(&set);
    rig_wait(&incr);
    rig_wait(&head);
    assert_status(&set, STORE_UNAVAILABLE);
    assert_status(&incr, STORE_UNAVAILABLE);
    /* The reads may be asked again, unless the store takes it for a server that is down. */
    assert_true(get.op.status == STORE_OK || get.op.status == STORE_UNAVAILABLE);
    assert_true(get.op.status == STORE_UNAVAILABLE || rig_has_value(&get, SLICE("1")));
    assert_int_equal(fake_count(scene->fake, scene_set_line(scene, "b")), 1);
    assert_in_range(fake_count(scene->fake, scene->dialect == CONFIG_DIALECT_TEXT ? "incr" : "ma"),
                    1, 1);
    scene_recover(scene, "k");
}

/* As above, on a connection that was good: the reads are asked again and answered. */
static void
test_reads_in_flight_survive_a_restart(void **state)
{
    struct scene *scene = *state;
    static const struct fake_step text[] = { FAKE_LINE, FAKE_SEND("END\r\n"), FAKE_LINE,
                                             FAKE_HOLD };
    static const struct fake_step meta[] = { FAKE_LINE, FAKE_SEND("EN %O\r\n"), FAKE_LINE,
                                             FAKE_HOLD };
    struct call first, get[3], set;

    if (scene->dialect == CONFIG_DIALECT_TEXT) {
        FAKE_SCRIPT(scene->fake, text);
    } else {
        FAKE_SCRIPT(scene->fake, meta);
    }
    fake_put(scene->fake, SLICE("b"), SLICE("value of b"), 0);
    scene_open(scene);
    rig_get(&scene->rig, &first, "a");
    rig_wait(&first);
    assert_status(&first, STORE_MISS);
    rig_get(&scene->rig, &get[0], "b");
    rig_get(&scene->rig, &get[1], "b");
    rig_write(&scene->rig, &set, STORE_SET, "c", SLICE("v"));
    rig_get(&scene->rig, &get[2], "d");
    rig_flush(&scene->rig);
    RIG_UNTIL(&scene->rig, fake_holding(scene->fake) == 1);
    fake_drop(scene->fake);
    rig_wait(&get[0]);
    rig_wait(&get[1]);
    rig_wait(&get[2]);
    rig_wait(&set);
    assert_true(rig_has_value(&get[0], SLICE("value of b")));
    assert_true(rig_has_value(&get[1], SLICE("value of b")));
    assert_status(&get[2], STORE_MISS);
    assert_status(&set, STORE_UNAVAILABLE);
    assert_int_equal(fake_count(scene->fake, scene_set_line(scene, "c")), 1);
    assert_int_equal(fake_count(scene->fake, scene_get_line(scene, "b")), 2);
}

static void
test_reads_are_asked_twice_at_the_most(void **state)
{
    struct scene *scene = *state;
    static const struct fake_step text[] = { FAKE_LINE, FAKE_SEND("END\r\n"), FAKE_LINE,
                                             FAKE_CLOSE };
    static const struct fake_step meta[] = { FAKE_LINE, FAKE_SEND("EN %O\r\n"), FAKE_LINE,
                                             FAKE_CLOSE };
    static const struct fake_step closes[] = { FAKE_LINE, FAKE_CLOSE };
    struct call call;

    if (scene->dialect == CONFIG_DIALECT_TEXT) {
        FAKE_SCRIPT(scene->fake, text);
    } else {
        FAKE_SCRIPT(scene->fake, meta);
    }
    FAKE_SCRIPT_EVERY(scene->fake, closes);
    scene_open(scene);
    rig_get(&scene->rig, &call, "a");
    rig_wait(&call);
    rig_get(&scene->rig, &call, "b");
    rig_wait(&call);
    assert_status(&call, STORE_UNAVAILABLE);
    assert_int_equal(fake_count(scene->fake, scene_get_line(scene, "b")), 2);
}

/* The server refuses one command and is out of step: what waits behind it is asked again. */
static void
test_a_read_behind_a_refused_command(void **state)
{
    struct scene *scene = *state;
    static const struct fake_step steps[] = { FAKE_LINE, FAKE_LINE,
                                              FAKE_SEND("CLIENT_ERROR bad command line format\r\n"),
                                              FAKE_SILENT };
    struct call refused, behind;

    FAKE_SCRIPT(scene->fake, steps);
    fake_put(scene->fake, SLICE("b"), SLICE("value of b"), 0);
    scene->rig.config.lanes = 1;
    scene_open(scene);
    rig_get(&scene->rig, &refused, "a");
    rig_get(&scene->rig, &behind, "b");
    rig_wait(&refused);
    rig_wait(&behind);
    assert_status(&refused, STORE_BAD_REPLY);
    assert_status(&behind, STORE_OK);
    assert_true(rig_has_value(&behind, SLICE("value of b")));
    RIG_UNTIL(&scene->rig, !fake_is_open(scene->fake, 0));
}

/* A set of which something may have left is not sent again; one behind it, not begun, is. */
static void
test_a_set_is_never_sent_twice(void **state)
{
    struct scene *scene = *state;
    static const struct fake_step text[] = { FAKE_LINE, FAKE_SEND("END\r\n"),
                                             FAKE_CLOSE_AFTER(5000) };
    static const struct fake_step meta[] = { FAKE_LINE, FAKE_SEND("EN %O\r\n"),
                                             FAKE_CLOSE_AFTER(5000) };
    size_t len = 8 * 1000 * 1000;
    char *big = malloc(len);
    struct call first, second;

    assert_non_null(big);
    memset(big, 'x', len);
    if (scene->dialect == CONFIG_DIALECT_TEXT) {
        FAKE_SCRIPT(scene->fake, text);
    } else {
        FAKE_SCRIPT(scene->fake, meta);
    }
    scene->rig.config.lanes = 1;
    scene->rig.config.item_max = len + 1000;
    scene_open(scene);
    rig_get(&scene->rig, &first, "k");
    rig_wait(&first);
    assert_status(&first, STORE_MISS);
    rig_write(&scene->rig, &first, STORE_SET, "a", slice_of(big, len));
    rig_write(&scene->rig, &second, STORE_SET, "b", SLICE("v"));
    rig_wait(&first);
    rig_wait(&second);
    assert_status(&first, STORE_UNAVAILABLE);
    assert_int_equal(fake_count(scene->fake, scene_set_line(scene, "a")), 1);
    assert_status(&second, STORE_OK);
    assert_int_equal(fake_count(scene->fake, scene_set_line(scene, "b")), 1);
    free(big);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        SCENE_BOTH(test_refused),
        SCENE_BOTH(test_dials_are_few_while_refused_and_recovery_is_soon),
        SCENE_BOTH(test_recovery_is_soon_after_a_long_outage),
        SCENE_BOTH(test_dials_are_few_while_each_is_closed),
        SCENE_BOTH(test_killed_while_idle),
        SCENE_BOTH(test_killed_just_before_a_read),
        SCENE_BOTH(test_killed_with_ops_in_flight),
        SCENE_BOTH(test_reads_in_flight_survive_a_restart),
        SCENE_BOTH(test_reads_are_asked_twice_at_the_most),
        SCENE_BOTH(test_a_read_behind_a_refused_command),
        SCENE_BOTH(test_a_set_is_never_sent_twice),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
