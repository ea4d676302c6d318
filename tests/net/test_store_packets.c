/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_store_packets.c: that no command to a store waits for a delayed ACK, by the packets between
 * the gateway and memcached, on a loopback with MTU 1500.
 */
#include "net_scene.h"

#include <stdio.h>

static struct net_scene scene;

static int
setup(void **state)
{
    (void)state;
    if (!net_scene_open(&scene)) {
        return -1;
    }
    return scene.pair.fd[NET_CLIENT] == -1 || net_scene_start(&scene, NULL) ? 0 : -1;
}

static int
teardown(void **state)
{
    (void)state;
    return net_scene_stop(&scene) ? 0 : -1;
}

static const char *
target(const char *store, size_t len)
{
    static char text[64];

    snprintf(text, sizeof(text), "/%s/p%zu", store, len);
    return text;
}

/*
 * The segments of one set to memcached: command and the value's first bytes share the first, and
 * no segment but the last is less than full unless the one before was. Returns the longest pause.
 */
static int64_t
check_command(const char *store, size_t len)
{
    size_t total = 0, first = 0, count = 0;
    int64_t last = 0, longest = 0;

    for (size_t i = 0; i < scene.wire.count; i++) {
        const struct net_segment *s = &scene.wire.segments[i];
        if (!net_capture_is_data(&scene.wire, i, scene.memcached.port)) {
            continue;
        }
        first = count++ == 0 ? s->len : first;
        total += s->len;
        if (last != 0 && s->time_ns - last > longest) {
            longest = s->time_ns - last;
        }
        last = s->time_ns;
    }
    net_scene_check(total > len + 2 && total < len + 200, &scene.wire, "not one command", store,
                    len);
    net_scene_check(first == (total < NET_PAIR_SEGMENT ? total : NET_PAIR_SEGMENT), &scene.wire,
                    "command and value apart", store, len);
    return longest;
}

static void
test_command_to_the_store_is_gathered(void **state)
{
    static const size_t sizes[] = {
        1, 100, 1300, 1448, 1449, 2000, 2500, 2896, 16000, 65483, 307200
    };

    (void)state;
    net_scene_require_pair(&scene);
    for (const char *const *store = net_scene_stores + 1; *store != NULL; store++) {
        struct http_client c;

        assert_true(net_scene_connect(&c, NET_PAIR_GATEWAY_ADDRESS, NET_PAIR_PORT, true));
        assert_true(net_scene_settle(&c, target(*store, 1)));
        for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
            int64_t gaps[NET_REPEAT], median;

            for (int i = 0; i < NET_REPEAT; i++) {
                net_capture_begin(&scene.wire, scene.memcached.port);
                assert_true(net_scene_put(&c, target(*store, sizes[k]), sizes[k]));
                assert_true(net_capture_read(&scene.wire));
                gaps[i] = check_command(*store, sizes[k]);
            }
            median = net_median(gaps, NET_REPEAT);
            print_message("set %s %zu bytes: longest gap %.3f ms\n", *store, sizes[k],
                          (double)median / 1e6);
            net_scene_check(median < NET_STALL_NS, &scene.wire, "a pause in the command", *store,
                            sizes[k]);
        }
        http_client_close(&c);
    }
}

/* A command does not wait for the acknowledgement of the one before it. */
static void
test_second_command_to_the_store_does_not_wait(void **state)
{
    (void)state;
    net_scene_require_pair(&scene);
    for (const char *const *store = net_scene_stores + 1; *store != NULL; store++) {
        int64_t gaps[NET_REPEAT], median;

        for (int i = 0; i < NET_REPEAT; i++) {
            gaps[i] = net_scene_second_command(&scene, *store);
            net_scene_check(gaps[i] >= 0, &scene.wire, "two commands", *store, 5);
        }
        median = net_median(gaps, NET_REPEAT);
        print_message("%s: the second command follows after %.3f ms\n", *store,
                      (double)median / 1e6);
        net_scene_check(median < NET_STALL_NS, &scene.wire, "the second command waits", *store, 5);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_command_to_the_store_is_gathered),
        cmocka_unit_test(test_second_command_to_the_store_does_not_wait),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
