/* SPDX-License-Identifier: BSD-2-Clause */
/* test_quota.c: connections, connections of one address, and bytes; also from several threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/un.h>

#include "quota.h"

struct scene {
    struct config *config; /* (owned) */
    struct quota quota;
};

/* A quota of 10 connections, 2 per address, 1000 bytes. */
static int
setup(void **state)
{
    struct scene *scene = calloc(1, sizeof(*scene));

    assert_non_null(scene);
    scene->config = config_create();
    assert_non_null(scene->config);
    scene->config->connections = 10;
    scene->config->connections_per_address = 2;
    scene->config->bytes_in_flight = 1000;
    *state = scene;
    return quota_init(&scene->quota, scene->config);
}

static int
teardown(void **state)
{
    struct scene *scene = *state;

    quota_deinit(&scene->quota);
    quota_deinit(&scene->quota);
    config_destroy(scene->config);
    free(scene);
    return 0;
}

/* Room for the address of any family. */
struct any {
    union {
        struct sockaddr plain;
        struct sockaddr_storage storage;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
        struct sockaddr_un path;
    } of;
};

static struct any
v4(const char *text, uint16_t port)
{
    struct any a = { .of.v4 = { .sin_family = AF_INET, .sin_port = htons(port) } };

    assert_int_equal(inet_pton(AF_INET, text, &a.of.v4.sin_addr), 1);
    return a;
}

static struct any
v6(const char *text, uint16_t port)
{
    struct any a = { .of.v6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) } };

    assert_int_equal(inet_pton(AF_INET6, text, &a.of.v6.sin6_addr), 1);
    return a;
}

static unsigned
open_now(struct scene *scene)
{
    return atomic_load(&scene->quota.connections);
}

static size_t
bytes_now(struct scene *scene)
{
    return atomic_load(&scene->quota.bytes);
}

/* ---- connections ---- */

static void
connections(void **state)
{
    struct scene *scene = *state;

    for (unsigned i = 1; i <= 12; i++) {
        assert_int_equal(quota_connect(&scene->quota, NULL),
                         i <= 10 ? QUOTA_OK : QUOTA_CONNECTIONS);
        assert_int_equal(open_now(scene), i);
    }
    /* those that are too many were counted, so 11 are left, then 10 */
    quota_disconnect(&scene->quota, NULL);
    quota_disconnect(&scene->quota, NULL);
    assert_int_equal(quota_connect(&scene->quota, NULL), QUOTA_CONNECTIONS);
    quota_disconnect(&scene->quota, NULL);
    quota_disconnect(&scene->quota, NULL);
    assert_int_equal(quota_connect(&scene->quota, NULL), QUOTA_OK);
    for (unsigned i = 0; i < 10; i++) {
        quota_disconnect(&scene->quota, NULL);
    }
    assert_int_equal(open_now(scene), 0);
}

static void
of_one_address(void **state)
{
    struct any same[] = { v4("192.0.2.7", 1), v4("192.0.2.7", 2), v6("::ffff:192.0.2.7", 3) };
    struct any six[] = { v6("2001:db8::7", 1), v6("2001:db8::7", 2), v6("2001:db8::7", 3) };
    struct any others[] = { v4("192.0.2.8", 1), v6("2001:db8::8", 1), v6("::192.0.2.7", 1),
                            v4("7.2.0.192", 1) };
    struct scene *scene = *state;

    assert_int_equal(quota_connect(&scene->quota, &same[0].of.plain), QUOTA_OK);
    assert_int_equal(quota_connect(&scene->quota, &same[1].of.plain), QUOTA_OK);
    assert_int_equal(quota_connect(&scene->quota, &same[2].of.plain), QUOTA_ADDRESS);
    assert_int_equal(quota_connect(&scene->quota, &six[0].of.plain), QUOTA_OK);
    assert_int_equal(quota_connect(&scene->quota, &six[1].of.plain), QUOTA_OK);
    assert_int_equal(quota_connect(&scene->quota, &six[2].of.plain), QUOTA_ADDRESS);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(quota_connect(&scene->quota, &others[i].of.plain), QUOTA_OK);
    }
    assert_int_equal(open_now(scene), 10);
    /* the one that was too many goes: two are left, and a third still is too many */
    quota_disconnect(&scene->quota, &same[2].of.plain);
    assert_int_equal(quota_connect(&scene->quota, &same[0].of.plain), QUOTA_ADDRESS);
    quota_disconnect(&scene->quota, &same[0].of.plain);
    quota_disconnect(&scene->quota, &same[1].of.plain);
    assert_int_equal(quota_connect(&scene->quota, &same[2].of.plain), QUOTA_OK);
    /* what is left is freed with the quota */
}

static void
addresses_that_do_not_count(void **state)
{
    struct any path = { .of.path = { .sun_family = AF_UNIX, .sun_path = "/x" } };
    struct scene *scene = *state;

    for (unsigned i = 0; i < 5; i++) {
        assert_int_equal(quota_connect(&scene->quota, &path.of.plain), QUOTA_OK);
        assert_int_equal(quota_connect(&scene->quota, NULL), QUOTA_OK);
    }
    for (unsigned i = 0; i < 5; i++) {
        quota_disconnect(&scene->quota, &path.of.plain);
        quota_disconnect(&scene->quota, NULL);
    }
    assert_int_equal(open_now(scene), 0);
}

static void
without_a_limit_per_address(void **state)
{
    struct any a = v4("192.0.2.7", 1);
    struct scene *scene = *state;

    quota_deinit(&scene->quota);
    scene->config->connections_per_address = 0;
    assert_int_equal(quota_init(&scene->quota, scene->config), 0);
    for (unsigned i = 0; i < 10; i++) {
        assert_int_equal(quota_connect(&scene->quota, &a.of.plain), QUOTA_OK);
    }
    assert_int_equal(quota_connect(&scene->quota, &a.of.plain), QUOTA_CONNECTIONS);
    for (unsigned i = 0; i < 11; i++) {
        quota_disconnect(&scene->quota, &a.of.plain);
    }
    assert_int_equal(open_now(scene), 0);
}

/* Far more addresses than the table has places, gone in another order than they came. */
static void
many_addresses(void **state)
{
    enum { COUNT = 20011, STEP = 7919 }; /* primes: STEP visits each once */
    struct scene *scene = *state;

    scene->quota.connections_max = UINT32_MAX;
    for (unsigned round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < COUNT; i++) {
            struct any a = v4("10.0.0.0", 1);

            a.of.v4.sin_addr.s_addr |= htonl(i);
            assert_int_equal(quota_connect(&scene->quota, &a.of.plain), QUOTA_OK);
            assert_int_equal(quota_connect(&scene->quota, &a.of.plain), QUOTA_OK);
            assert_int_equal(quota_connect(&scene->quota, &a.of.plain), QUOTA_ADDRESS);
        }
        for (uint32_t i = 0; i < COUNT; i++) {
            struct any a = v4("10.0.0.0", 1);

            a.of.v4.sin_addr.s_addr |= htonl(i * STEP % COUNT);
            for (int k = 0; k < 3; k++) {
                quota_disconnect(&scene->quota, &a.of.plain);
            }
        }
        assert_int_equal(open_now(scene), 0);
    }
}

/* ---- bytes ---- */

static void
bytes(void **state)
{
    struct scene *scene = *state;

    assert_true(quota_take(&scene->quota, 0));
    assert_true(quota_take(&scene->quota, 1000));
    assert_false(quota_take(&scene->quota, 1));
    assert_true(quota_take(&scene->quota, 0));
    assert_int_equal(bytes_now(scene), 1000);
    quota_give(&scene->quota, 1);
    assert_false(quota_take(&scene->quota, 2));
    assert_true(quota_take(&scene->quota, 1));
    quota_give(&scene->quota, 1000);
    assert_int_equal(bytes_now(scene), 0);
    assert_false(quota_take(&scene->quota, 1001));
    assert_false(quota_take(&scene->quota, SIZE_MAX));
    assert_false(quota_take(&scene->quota, SIZE_MAX - 999));
    assert_int_equal(bytes_now(scene), 0);
    assert_true(quota_take(&scene->quota, 500));
    assert_false(quota_take(&scene->quota, SIZE_MAX));
    assert_false(quota_take(&scene->quota, SIZE_MAX - 499));
    assert_int_equal(bytes_now(scene), 500);
    quota_give(&scene->quota, 500);
}

static void
bytes_that_cannot_be_refused(void **state)
{
    struct scene *scene = *state;

    quota_add(&scene->quota, 5000);
    assert_int_equal(bytes_now(scene), 5000);
    assert_false(quota_take(&scene->quota, 1));
    quota_give(&scene->quota, 4000);
    assert_false(quota_take(&scene->quota, 1));
    quota_give(&scene->quota, 1);
    assert_true(quota_take(&scene->quota, 1));
    quota_give(&scene->quota, 1000);
    assert_int_equal(bytes_now(scene), 0);
}

static void
as_many_as_one_likes(void **state)
{
    struct scene *scene = *state;

    scene->config->bytes_in_flight = UINT64_MAX;
    assert_true(quota_take(&scene->quota, SIZE_MAX / 2));
    assert_true(quota_take(&scene->quota, SIZE_MAX / 2));
    assert_false(quota_take(&scene->quota, 2));
    quota_give(&scene->quota, SIZE_MAX - 1);
    assert_int_equal(bytes_now(scene), 0);
    scene->config->bytes_in_flight = 0;
    assert_true(quota_take(&scene->quota, 0));
    assert_false(quota_take(&scene->quota, 1));
}

/* ---- threads ---- */

static void *
worker(void *arg)
{
    struct scene *scene = arg;
    struct any a = v4("192.0.2.7", 1), b = v6("2001:db8::7", 1);

    for (int i = 0; i < 20000; i++) {
        struct any *mine = i % 3 == 0 ? &b : &a;

        quota_connect(&scene->quota, &mine->of.plain);
        if (quota_take(&scene->quota, 300)) {
            quota_give(&scene->quota, 300);
        }
        quota_disconnect(&scene->quota, &mine->of.plain);
    }
    return NULL;
}

static void
from_several_threads(void **state)
{
    struct any a = v4("192.0.2.7", 1);
    struct scene *scene = *state;
    pthread_t threads[4];

    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, worker, scene), 0);
    }
    for (size_t i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_int_equal(open_now(scene), 0);
    assert_int_equal(bytes_now(scene), 0);
    /* the table has forgotten them, too */
    assert_int_equal(quota_connect(&scene->quota, &a.of.plain), QUOTA_OK);
    assert_int_equal(quota_connect(&scene->quota, &a.of.plain), QUOTA_OK);
    assert_int_equal(quota_connect(&scene->quota, &a.of.plain), QUOTA_ADDRESS);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(connections),
        TEST(of_one_address),
        TEST(addresses_that_do_not_count),
        TEST(without_a_limit_per_address),
        TEST(many_addresses),
        TEST(bytes),
        TEST(bytes_that_cannot_be_refused),
        TEST(as_many_as_one_likes),
        TEST(from_several_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
