/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_ring.c: keys go where every other client of the fleet looks for them: known answers, and a
 * libmemcached handle of its own, set up as a client of libmemcached would.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <libmemcached/memcached.h>

#include "ring.h"

#define KEYS    10000
#define THREADS 4

static struct config_store config;

static void
begin(enum config_distribution distribution, enum config_hash hash)
{
    memset(&config, 0, sizeof(config));
    config.distribution = distribution;
    config.hash = hash;
}

/* PORT 0: HOST is a unix socket. */
static void
add(const char *host, uint16_t port, uint32_t weight)
{
    struct config_server_address *server = &config.servers[config.server_count++];

    snprintf(server->host, sizeof(server->host), "%s", host);
    server->port = port;
    server->weight = weight;
}

static struct ring *
build(void)
{
    char error[CONFIG_ERROR_MAX] = "";
    struct ring *ring = ring_create(&config, error);

    if (ring == NULL) {
        fail_msg("%s", error);
    }
    return ring;
}

/* ---- known answers ---- */

static void
expect_vector(enum config_distribution distribution, enum config_hash hash, uint32_t first_weight,
              const char *want)
{
    static const char *const keys[] = {
        "foo",     "bar",           "key:1",       "key:2",      "a",
        "user/42", "/img/logo.png", "caf\xc3\xa9", "0123456789",
    };
    struct ring *ring;

    begin(distribution, hash);
    add("10.0.0.1", 11211, first_weight);
    add("10.0.0.2", 11211, 1);
    add("10.0.0.3", 11212, 1);
    add("10.0.0.4", 11213, 1);
    ring = build();
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        assert_int_equal(ring_lookup(ring, slice_from_string(keys[i])), want[i] - '0');
    }
    ring_destroy(ring);
}

static void
test_vectors(void **state)
{
    (void)state;
    expect_vector(CONFIG_KETAMA, CONFIG_HASH_AUTO, 1, "113233033");
    expect_vector(CONFIG_KETAMA, CONFIG_HASH_MD5, 1, "113233033");
    expect_vector(CONFIG_KETAMA, CONFIG_HASH_AUTO, 3, "013233033");
    expect_vector(CONFIG_KETAMA, CONFIG_HASH_FNV1A_64, 1, "120013203");
    expect_vector(CONFIG_MODULA, CONFIG_HASH_AUTO, 1, "110122122");
    expect_vector(CONFIG_MODULA, CONFIG_HASH_ONE_AT_A_TIME, 1, "110122122");
}

/* A key is bytes: those behind a NUL count. */
static void
test_key_with_nul(void **state)
{
    size_t at_nul, same = 0;
    struct ring *ring;

    (void)state;
    begin(CONFIG_KETAMA, CONFIG_HASH_AUTO);
    for (uint16_t i = 0; i < 10; i++) {
        add("10.0.0.1", (uint16_t)(11211 + i), 1);
    }
    ring = build();
    at_nul = ring_lookup(ring, slice_of("a", 1));
    for (char c = 'a'; c <= 'z'; c++) {
        char key[3] = { 'a', '\0', c };

        same += ring_lookup(ring, slice_of(key, 3)) == at_nul;
    }
    assert_true(same < 26);
    ring_destroy(ring);
}

/* ---- against libmemcached as a client ---- */

/* The host and port that a client's own handle would go to. */
static void
expect_same_server(memcached_st *client, const struct ring *ring, const char *key)
{
    memcached_return_t error;
    const memcached_instance_st *theirs = memcached_server_by_key(client, key, strlen(key), &error);
    const struct config_server_address *ours =
        &config.servers[ring_lookup(ring, slice_from_string(key))];

    assert_non_null(theirs);
    assert_string_equal(memcached_server_name(theirs), ours->host);
    if (ours->port != 0) {
        assert_int_equal(memcached_server_port(theirs), ours->port);
    }
}

/* Behaviours first, servers after them, one by one: as most clients do it. */
static void
expect_agreement(memcached_st *client)
{
    struct ring *ring = build();

    for (size_t i = 0; i < config.server_count; i++) {
        const struct config_server_address *s = &config.servers[i];
        memcached_return_t result =
            s->port == 0 ? memcached_server_add_unix_socket_with_weight(client, s->host, s->weight)
                         : memcached_server_add_with_weight(client, s->host, s->port, s->weight);

        assert_int_equal(result, MEMCACHED_SUCCESS);
    }
    for (int i = 0; i < KEYS; i++) {
        char key[32];

        snprintf(key, sizeof(key), "user:%d/%x", i, (unsigned)i * 2654435761U);
        expect_same_server(client, ring, key);
    }
    ring_destroy(ring);
    memcached_free(client);
}

/* Out of order, so that sorting would show; two on one host; weights; a name; a unix socket. */
static void
add_mixed_fleet(void)
{
    add("cache-9.example.net", 11211, 1);
    add("10.0.0.7", 11212, 3);
    add("10.0.0.7", 11211, 1);
    add("10.0.0.1", 11211, 2);
    add("/run/memcached/a.sock", 0, 2);
    add("::1", 11211, 1);
}

static void
test_agreement_ketama(void **state)
{
    memcached_st *client = memcached_create(NULL);

    (void)state;
    begin(CONFIG_KETAMA, CONFIG_HASH_AUTO);
    add_mixed_fleet();
    memcached_behavior_set(client, MEMCACHED_BEHAVIOR_KETAMA_WEIGHTED, 1);
    expect_agreement(client);
}

static void
test_agreement_ketama_fnv(void **state)
{
    memcached_st *client = memcached_create(NULL);

    (void)state;
    begin(CONFIG_KETAMA, CONFIG_HASH_FNV1A_64);
    add_mixed_fleet();
    memcached_behavior_set(client, MEMCACHED_BEHAVIOR_KETAMA_WEIGHTED, 1);
    memcached_behavior_set(client, MEMCACHED_BEHAVIOR_HASH, MEMCACHED_HASH_FNV1A_64);
    expect_agreement(client);
}

static void
test_agreement_ketama_one_at_a_time(void **state)
{
    memcached_st *client = memcached_create(NULL);

    (void)state;
    begin(CONFIG_KETAMA, CONFIG_HASH_ONE_AT_A_TIME);
    add_mixed_fleet();
    memcached_behavior_set(client, MEMCACHED_BEHAVIOR_KETAMA_WEIGHTED, 1);
    memcached_behavior_set(client, MEMCACHED_BEHAVIOR_HASH, MEMCACHED_HASH_DEFAULT);
    expect_agreement(client);
}

static void
test_agreement_modula(void **state)
{
    (void)state;
    begin(CONFIG_MODULA, CONFIG_HASH_AUTO);
    add_mixed_fleet();
    expect_agreement(memcached_create(NULL));
}

static void
test_agreement_modula_md5(void **state)
{
    memcached_st *client = memcached_create(NULL);

    (void)state;
    begin(CONFIG_MODULA, CONFIG_HASH_MD5);
    add_mixed_fleet();
    memcached_behavior_set(client, MEMCACHED_BEHAVIOR_HASH, MEMCACHED_HASH_MD5);
    expect_agreement(client);
}

/* ---- sizes ---- */

static void
test_one_server(void **state)
{
    struct ring *ring;

    (void)state;
    begin(CONFIG_KETAMA, CONFIG_HASH_AUTO);
    add("10.0.0.1", 11211, 5);
    ring = build();
    assert_int_equal(ring_lookup(ring, SLICE("foo")), 0);
    assert_int_equal(ring_lookup(ring, SLICE("bar")), 0);
    ring_destroy(ring);
    ring_destroy(NULL);
}

static void
add_many(size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char host[32];

        snprintf(host, sizeof(host), "10.0.1.%zu", i);
        add(host, 11211, (uint32_t)(1 + i % 3));
    }
}

static void
test_largest_rings(void **state)
{
    static const struct {
        enum config_distribution distribution;
        size_t count;
    } table[] = { { CONFIG_KETAMA, 100 }, { CONFIG_MODULA, CONFIG_SERVER_MAX } };

    (void)state;
    for (size_t t = 0; t < 2; t++) {
        bool met[CONFIG_SERVER_MAX] = { false };
        struct ring *ring;

        begin(table[t].distribution, CONFIG_HASH_AUTO);
        add_many(table[t].count);
        ring = build();
        for (int i = 0; i < KEYS; i++) {
            char key[32];
            size_t index;

            snprintf(key, sizeof(key), "k%d", i);
            index = ring_lookup(ring, slice_from_string(key));
            assert_true(index < table[t].count);
            met[index] = true;
        }
        for (size_t i = 0; i < table[t].count; i++) {
            assert_true(met[i]);
        }
        ring_destroy(ring);
    }
}

/* libmemcached would end the process. */
static void
test_too_many_servers_for_ketama(void **state)
{
    char error[CONFIG_ERROR_MAX] = "";

    (void)state;
    begin(CONFIG_KETAMA, CONFIG_HASH_AUTO);
    add_many(101);
    assert_null(ring_create(&config, error));
    assert_non_null(strstr(error, "101"));
}

/* ---- threads ---- */

static void *
look_up_all(void *arg)
{
    const struct ring *ring = arg;
    size_t sum = 0;

    for (int round = 0; round < 3; round++) {
        sum = 0;
        for (int i = 0; i < KEYS; i++) {
            char key[32];

            snprintf(key, sizeof(key), "k%d", i);
            sum += ring_lookup(ring, slice_from_string(key)) * (size_t)(i + 1);
        }
    }
    return (void *)(uintptr_t)sum;
}

static void
test_threads(void **state)
{
    pthread_t threads[THREADS];
    struct ring *ring;
    void *alone;

    (void)state;
    begin(CONFIG_KETAMA, CONFIG_HASH_AUTO);
    add_mixed_fleet();
    ring = build();
    alone = look_up_all(ring);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, look_up_all, ring), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        void *sum;

        pthread_join(threads[i], &sum);
        assert_ptr_equal(sum, alone);
    }
    ring_destroy(ring);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_key_with_nul),
        cmocka_unit_test(test_agreement_ketama),
        cmocka_unit_test(test_agreement_ketama_fnv),
        cmocka_unit_test(test_agreement_ketama_one_at_a_time),
        cmocka_unit_test(test_agreement_modula),
        cmocka_unit_test(test_agreement_modula_md5),
        cmocka_unit_test(test_one_server),
        cmocka_unit_test(test_largest_rings),
        cmocka_unit_test(test_too_many_servers_for_ketama),
        cmocka_unit_test(test_threads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
