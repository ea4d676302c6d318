/* SPDX-License-Identifier: BSD-2-Clause */
/* test_memcached_health.c: what makes a server SUSPECT and DOWN, and how long dials pause. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "memcached_health.h"

static struct memcached_health health;

static int
setup(void **state)
{
    (void)state;
    memcached_health_init(&health, 12345);
    return 0;
}

static void
nothing_is_known_at_the_start(void **state)
{
    (void)state;
    assert_int_equal(health.state, MEMCACHED_SUSPECT);
    assert_int_equal(health.dial_after_ms, 0);
    assert_false(memcached_health_alive(&health));
    assert_int_equal(health.state, MEMCACHED_UP);
}

static void
a_dial_in_vain_is_enough(void **state)
{
    (void)state;
    assert_true(memcached_health_dial_failed(&health, 1000));
    assert_int_equal(health.state, MEMCACHED_DOWN);
    assert_false(memcached_health_dial_failed(&health, 2000)); /* it is DOWN already */
    assert_true(memcached_health_alive(&health));
    assert_int_equal(health.dial_after_ms, 0);
}

/* The pauses grow to a second, and are never the same for two workers. */
static void
pauses_grow_and_differ(void **state)
{
    struct memcached_health other;
    int64_t last = 0, differ = 0;

    (void)state;
    memcached_health_init(&other, 54321);
    for (int i = 0; i < 20; i++) {
        int64_t pause, longest = i < 2 ? 50 : i < 6 ? 50 << (i - 1) : 1000;
        memcached_health_dial_failed(&health, 0);
        memcached_health_dial_failed(&other, 0);
        pause = health.dial_after_ms;
        assert_in_range(pause, longest / 2, longest);
        differ += pause != other.dial_after_ms;
        last = pause;
    }
    assert_in_range(last, 500, 1000);
    assert_true(differ > 10);
}

static void
one_break_is_a_suspicion(void **state)
{
    (void)state;
    memcached_health_alive(&health);
    assert_false(memcached_health_broken(&health, 0, true, 5000));
    assert_int_equal(health.state, MEMCACHED_SUSPECT);
    assert_true(health.dial_after_ms <= 5000); /* the next op may dial */
}

/* Connections that were open when it happened are part of it, however many there are. */
static void
one_incident_counts_once(void **state)
{
    (void)state;
    memcached_health_alive(&health);
    for (int lane = 0; lane < 8; lane++) {
        assert_false(memcached_health_broken(&health, 0, true, 5000 + lane));
    }
    assert_int_equal(health.failures, 1);
    assert_int_equal(health.state, MEMCACHED_SUSPECT);
}

/* A server that takes connections and breaks each of them. */
static void
broken_again_at_once(void **state)
{
    (void)state;
    memcached_health_alive(&health);
    assert_false(memcached_health_broken(&health, 0, true, 5000));
    memcached_health_alive(&health);
    assert_true(memcached_health_broken(&health, 5001, false, 5010));
    assert_in_range(health.dial_after_ms, 5035, 5060);
    assert_true(memcached_health_alive(&health));
    assert_true(memcached_health_broken(&health, 5061, false, 5100)); /* and the pause grows */
    assert_in_range(health.dial_after_ms, 5150, 5200);
}

/* What happened before a connection that answered something is forgotten. */
static void
an_answer_starts_afresh(void **state)
{
    (void)state;
    memcached_health_alive(&health);
    memcached_health_broken(&health, 0, true, 5000);
    memcached_health_alive(&health);
    assert_false(memcached_health_broken(&health, 5001, true, 5002));
    assert_int_equal(health.state, MEMCACHED_SUSPECT);
}

/* It takes no more connections, and serves those that it has. */
static void
a_pause_is_no_outage(void **state)
{
    (void)state;
    memcached_health_alive(&health);
    memcached_health_pause(&health, 1000);
    assert_int_equal(health.state, MEMCACHED_UP);
    assert_true(health.dial_after_ms > 1000);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(nothing_is_known_at_the_start, setup),
        cmocka_unit_test_setup(a_dial_in_vain_is_enough, setup),
        cmocka_unit_test_setup(pauses_grow_and_differ, setup),
        cmocka_unit_test_setup(one_break_is_a_suspicion, setup),
        cmocka_unit_test_setup(one_incident_counts_once, setup),
        cmocka_unit_test_setup(broken_again_at_once, setup),
        cmocka_unit_test_setup(an_answer_starts_afresh, setup),
        cmocka_unit_test_setup(a_pause_is_no_outage, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
