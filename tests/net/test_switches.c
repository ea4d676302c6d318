/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_switches.c: the counter-proof. Each rule against stalls is taken away from the gateway (see
 * preload/switch_off.c), and what the other tests of this directory measure must then show a
 * stall: so they would notice. Where one of these fails, its proof proves nothing on this kernel.
 */
#include "net_scene.h"

#include <limits.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"

static struct net_scene scene;

static int
setup(void **state)
{
    (void)state;
    return net_scene_open(&scene) ? 0 : -1;
}

static int
teardown(void **state)
{
    (void)state;
    return net_scene_stop(&scene) ? 0 : -1;
}

static int
stop(void **state)
{
    (void)state;
    return net_scene_stop_gateway(&scene) ? 0 : -1;
}

/* A gateway without RULE; or the test is skipped. */
static void
start_without(const char *rule)
{
    char library[PATH_MAX];

    net_scene_require_pair(&scene);
    if (!net_scene_find_switch(library, sizeof(library))) {
        printf("SKIP: there is no switch_off.so beside this test\n");
        skip();
    }
    assert_true(net_scene_start(&scene, rule));
}

static void
connect_settled(struct http_client *c, bool nagle, const char *target)
{
    assert_true(net_scene_connect(c, NET_PAIR_GATEWAY_ADDRESS, NET_PAIR_PORT, nagle));
    assert_true(net_scene_settle(c, target));
}

/* ---- the rules of a client's connection ------------------------------------------------------ */

/* How long a header without its body waits for its acknowledgement. */
static int64_t
half_request(void)
{
    struct slice half = SLICE("PUT /embedded/s HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n");
    struct slice rest = SLICE("hello");
    int64_t times[NET_REPEAT], median;
    struct http_client c;

    connect_settled(&c, false, "/embedded/s");
    for (int i = 0; i < NET_REPEAT; i++) {
        assert_true(net_scene_settle(&c, "/embedded/s"));
        times[i] = net_scene_half(&scene, &c, half, rest);
        assert_true(times[i] >= 0);
    }
    http_client_close(&c);
    median = net_median(times, NET_REPEAT);
    print_message("half a request is acknowledged after %.3f ms\n", (double)median / 1e6);
    return median;
}

static void
test_nothing_off(void **state)
{
    (void)state;
    start_without("nothing");
    assert_true(half_request() < NET_STALL_NS);
}

static void
test_quickack_off(void **state)
{
    (void)state;
    start_without("quickack");
    assert_true(half_request() >= NET_STALL_NS);
}

/* In how many segments an answer of 100 bytes comes. */
static size_t
small_answer(void)
{
    struct http_client c;
    size_t count = 0;

    connect_settled(&c, true, "/embedded/s");
    net_capture_begin(&scene.front, net_scene_port(&c));
    assert_true(net_scene_get(&c, "/embedded/s", 100));
    assert_true(net_capture_read(&scene.front));
    for (size_t i = 0; i < scene.front.count; i++) {
        count += net_capture_is_data(&scene.front, i, net_scene_port(&c));
    }
    http_client_close(&c);
    return count;
}

static void
test_gather_off(void **state)
{
    (void)state;
    start_without("gather");
    assert_int_equal(small_answer(), 2);
}

/* An answer waits for the acknowledgement of the one before it. */
static void
test_nodelay_off(void **state)
{
    size_t total;
    ssize_t got;

    (void)state;
    start_without("nodelay");
    got = net_scene_silent_get(&scene, "/embedded/s", 5, 2, &total);
    assert_int_equal(got, total / 2);
}

/* The classic accident: the header leaves, and the body waits for its acknowledgement. */
static void
test_gather_and_nodelay_off(void **state)
{
    size_t total;
    ssize_t got;

    (void)state;
    start_without("gather nodelay");
    got = net_scene_silent_get(&scene, "/embedded/s", 100, 1, &total);
    assert_int_equal(got, total - 100);
}

/* ---- the rules of a store's connection ------------------------------------------------------- */

/* The time of a set of LEN bytes by way of memcached; in *FIRST, the bytes of its first segment. */
static int64_t
set_time(size_t len, size_t *first)
{
    int64_t times[NET_REPEAT], median;
    struct http_client c;

    connect_settled(&c, true, "/text/s");
    for (int i = 0; i < NET_REPEAT; i++) {
        int64_t begin = clock_monotonic_ms();

        net_capture_begin(&scene.wire, scene.memcached.port);
        assert_true(net_scene_put(&c, "/text/s", len));
        times[i] = (clock_monotonic_ms() - begin) * 1000000;
        assert_true(net_capture_read(&scene.wire));
        *first = 0;
        for (size_t k = 0; k < scene.wire.count && *first == 0; k++) {
            *first =
                scene.wire.segments[k].to == scene.memcached.port ? scene.wire.segments[k].len : 0;
        }
    }
    http_client_close(&c);
    median = net_median(times, NET_REPEAT);
    print_message("a set of %zu bytes takes %.0f ms; the first of its segments has %zu bytes\n",
                  len, (double)median / 1e6, *first);
    return median;
}

static void
test_gather_store_off(void **state)
{
    size_t first;

    (void)state;
    start_without("gather-store");
    set_time(100, &first);
    assert_in_range(first, 1, 99);
}

/* The same accident on the way to the store. */
static void
test_gather_and_nodelay_store_off(void **state)
{
    size_t first;

    (void)state;
    start_without("gather-store nodelay-store");
    assert_true(set_time(100, &first) >= NET_STALL_NS);
}

static void
test_nodelay_store_off(void **state)
{
    int64_t gaps[NET_REPEAT], median;

    (void)state;
    start_without("nodelay-store");
    for (int i = 0; i < NET_REPEAT; i++) {
        gaps[i] = net_scene_second_command(&scene, "text");
        assert_true(gaps[i] >= 0);
    }
    median = net_median(gaps, NET_REPEAT);
    print_message("the second command follows after %.3f ms\n", (double)median / 1e6);
    assert_true(median >= NET_STALL_NS);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_nothing_off, stop),
        cmocka_unit_test_teardown(test_quickack_off, stop),
        cmocka_unit_test_teardown(test_gather_off, stop),
        cmocka_unit_test_teardown(test_nodelay_off, stop),
        cmocka_unit_test_teardown(test_gather_and_nodelay_off, stop),
        cmocka_unit_test_teardown(test_gather_store_off, stop),
        cmocka_unit_test_teardown(test_gather_and_nodelay_store_off, stop),
        cmocka_unit_test_teardown(test_nodelay_store_off, stop),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
