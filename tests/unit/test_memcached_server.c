/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_memcached_server.c: which address is dialled next, when several lanes dial at the same time. What a
 * server does with operations is tested with the store, in tests/store.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "address_book.h"
#include "loop.h"
#include "memcached_server.h"

struct scene {
    struct config_store config;
    struct memcached_server_shared shared;
    struct loop loop;
    unsigned changes;               /* of the server: DOWN and back */
    struct memcached_server server; /* of two addresses, neither of which was tried */
};

static int
setup(void **state)
{
    struct scene *scene = calloc(1, sizeof(*scene));

    *state = scene;
    config_store_defaults(&scene->config, "s");
    scene->config.server_count = 1;
    scene->config.servers[0] = (struct config_server_address){ "127.0.0.1", 11211, 1 };
    scene->shared.book = address_book_create(&scene->config.servers[0]);
    if (scene->shared.book == NULL || loop_init(&scene->loop) < 0 ||
        memcached_server_init(&scene->server, &scene->config, &scene->shared, &scene->loop,
                              &scene->changes) < 0) {
        return -1;
    }
    scene->server.address_count = 2;
    return 0;
}

static int
teardown(void **state)
{
    struct scene *scene = *state;

    memcached_server_deinit(&scene->server);
    loop_deinit(&scene->loop);
    address_book_destroy(scene->shared.book);
    free(scene);
    return 0;
}

/* Three lanes dial the first address, which refuses: that is one address that is tried. */
static void
lanes_that_dial_together(void **state)
{
    struct memcached_server *server = &((struct scene *)*state)->server;

    for (int lane = 0; lane < 3; lane++) {
        memcached_server_dial_failed(server, 0, "refused");
        assert_int_equal(server->address_next, 1);
        assert_int_equal(server->health.failures, 0);
    }
    for (int lane = 0; lane < 3; lane++) {
        memcached_server_dial_failed(server, 1, "refused");
        assert_int_equal(server->health.failures, 1);
        assert_int_equal(server->address_next, 0);
    }
    assert_true(server->health.dial_after_ms > server->loop->now_ms);
    assert_true(server->shared->down);
}

/* A server that answers is dialled at its first address again, at once. */
static void
back_again(void **state)
{
    struct memcached_server *server = &((struct scene *)*state)->server;

    memcached_server_dial_failed(server, 0, "refused");
    memcached_server_dial_failed(server, 1, "refused");
    memcached_server_alive(server);
    assert_int_equal(server->health.state, MEMCACHED_UP);
    assert_int_equal(server->health.dial_after_ms, 0);
    assert_int_equal(server->address_next, 0);
    assert_false(server->shared->down);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(lanes_that_dial_together, setup, teardown),
        cmocka_unit_test_setup_teardown(back_again, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
