/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_concurrency.c: many connections that read, write and delete at once. Every value names its
 * key and carries its own check, so a mixed-up, torn or stale answer shows.
 */
#include "gateway.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "memcached_process.h"

#define THREADS     4
#define CONNECTIONS 8 /* of each thread, all with a request under way at a time */
#define KEYS        4 /* of each connection, which nobody else writes */
#define SHARED_KEYS 8 /* which everybody writes */
#define RUN_MS      2000
#define VALUE_MAX   20000 /* bytes; a few cross the buffers, most do not */

static struct gateway gateway;
static struct memcached_process server;
static const char *dialect; /* NULL: the embedded store */

enum action { READ, WRITE, REMOVE };

struct connection {
    struct http_client client;
    uint32_t random;           /* state of its generator */
    unsigned versions[KEYS];   /* of its own keys; 0: deleted */
    unsigned next;             /* the version that a write gives */
    enum action action;        /* of the request under way */
    bool shared;               /* whether its key is everybody's */
    unsigned key;              /* number of the key */
    char target[64];           /* its name */
    char value[VALUE_MAX + 1]; /* what is written */
};

struct worker {
    pthread_t thread;
    unsigned number;     /* among THREADS */
    unsigned long count; /* requests answered */
    char error[512];     /* the first thing that was wrong; empty: none */
    struct connection connections[CONNECTIONS];
};

static int
setup(void **state)
{
    (void)state;
    if (dialect == NULL) {
        return gateway_start_config(&gateway, "[server]\nworkers = 2\n[store main]\n"
                                              "type = embedded\ndirectory = data\n")
                   ? 0
                   : -1;
    }
    return memcached_process_start(&server, NULL) &&
                   gateway_start_config(&gateway, "[server]\nworkers = 2\n" GATEWAY_MEMCACHED,
                                        dialect, (unsigned)server.port)
               ? 0
               : -1;
}

static int
teardown(void **state)
{
    (void)state;
    gateway_deinit(&gateway);
    memcached_process_kill(&server);
    return 0;
}

static uint32_t
random_below(struct connection *c, uint32_t limit)
{
    c->random ^= c->random << 13;
    c->random ^= c->random >> 17;
    c->random ^= c->random << 5;
    return c->random % limit;
}

/* "TARGET VERSION LENGTH:" and then LENGTH bytes that follow from the version. Returns its size. */
static size_t
make_value(char *to, const char *target, unsigned version)
{
    unsigned len = version % 16 == 0 ? version * 7919 % (VALUE_MAX - 200) : version * 31 % 400;
    int head = snprintf(to, 200, "%s %u %u:", target, version, len);

    gateway_fill(to + head, len, version);
    return (size_t)head + len;
}

/* Whether the LEN bytes at VALUE are what make_value made for TARGET; *VERSION is which. */
static bool
check_value(const char *value, size_t len, const char *target, unsigned *version)
{
    static _Thread_local char wanted[VALUE_MAX + 1];
    size_t name = strlen(target);

    return len > name && memcmp(value, target, name) == 0 &&
           sscanf(value + name, " %u ", version) == 1 &&
           make_value(wanted, target, *version) == len && memcmp(wanted, value, len) == 0;
}

static void
send_request(struct worker *w, unsigned number)
{
    struct connection *c = &w->connections[number];
    uint32_t choice = random_below(c, 10);
    char head[256];
    size_t len = 0;

    c->action = choice < 5 ? READ : choice < 9 ? WRITE : REMOVE;
    c->shared = random_below(c, 3) == 0;
    c->key = random_below(c, c->shared ? SHARED_KEYS : KEYS);
    if (c->shared) {
        snprintf(c->target, sizeof(c->target), "/shared/%u", c->key);
    } else {
        snprintf(c->target, sizeof(c->target), "/own/%u/%u/%u", w->number, number, c->key);
    }
    if (c->action == WRITE) {
        len = make_value(c->value, c->target, ++c->next);
        snprintf(head, sizeof(head), "PUT %s HTTP/1.1\r\nHost: t\r\nContent-Length: %zu\r\n\r\n",
                 c->target, len);
    } else {
        snprintf(head, sizeof(head), "%s %s HTTP/1.1\r\nHost: t\r\n\r\n",
                 c->action == READ ? "GET" : "DELETE", c->target);
    }
    http_client_send_text(&c->client, head);
    http_client_send(&c->client, c->value, len);
}

/* Whether the answer on C is one that its request can have. */
static bool
answer_is_right(struct connection *c)
{
    unsigned version = 0, *own = c->shared ? NULL : &c->versions[c->key];
    int status = c->client.status;

    if (c->action == WRITE) {
        if (own != NULL) {
            *own = c->next;
        }
        return status == 204 || status == 201;
    }
    if (c->action == REMOVE) {
        bool was_there = own == NULL || *own != 0;
        bool was_absent = own == NULL || *own == 0;

        if (own != NULL) {
            *own = 0;
        }
        return (status == 204 && was_there) || (status == 404 && was_absent);
    }
    if (status == 404) {
        return own == NULL || *own == 0;
    }
    return status == 200 && check_value(c->client.body, c->client.body_len, c->target, &version) &&
           (own == NULL || *own == version);
}

static void *
work(void *arg)
{
    struct worker *w = arg;
    int64_t end = clock_monotonic_ms() + RUN_MS;

    while (clock_monotonic_ms() < end && w->error[0] == '\0') {
        for (unsigned i = 0; i < CONNECTIONS; i++) {
            send_request(w, i);
        }
        for (unsigned i = 0; i < CONNECTIONS; i++) {
            struct connection *c = &w->connections[i];
            enum http_result result = http_client_receive(&c->client, false);

            if (result != HTTP_RESPONSE || !answer_is_right(c)) {
                snprintf(w->error, sizeof(w->error), "action %d on %s: %s, status %d, %.200s",
                         (int)c->action, c->target, http_result_name(result), c->client.status,
                         result == HTTP_RESPONSE ? c->client.body : "");
                break;
            }
            w->count++;
        }
    }
    return NULL;
}

static void
test_mixed_load(void **state)
{
    struct worker *workers = calloc(THREADS, sizeof(*workers));
    unsigned long count = 0;

    (void)state;
    for (unsigned t = 0; t < THREADS; t++) {
        workers[t].number = t;
        for (unsigned i = 0; i < CONNECTIONS; i++) {
            struct connection *c = &workers[t].connections[i];

            assert_true(http_client_open(&c->client, gateway.port));
            c->random = t * 1000 + i + 1;
            c->next = t * 100 + i;
        }
        assert_int_equal(pthread_create(&workers[t].thread, NULL, work, &workers[t]), 0);
    }
    for (unsigned t = 0; t < THREADS; t++) {
        pthread_join(workers[t].thread, NULL);
        count += workers[t].count;
        for (unsigned i = 0; i < CONNECTIONS; i++) {
            http_client_close(&workers[t].connections[i].client);
        }
    }
    for (unsigned t = 0; t < THREADS; t++) {
        if (workers[t].error[0] != '\0') {
            fail_msg("thread %u: %s", t, workers[t].error);
        }
    }
    print_message("%lu requests\n", count);
    assert_true(count > 100);
    free(workers);
}

static void
test_stops_cleanly(void **state)
{
    (void)state;
    assert_int_equal(gateway_stop(&gateway, SIGTERM), 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mixed_load),
        cmocka_unit_test(test_stops_cleanly),
    };
    int failed = cmocka_run_group_tests_name("embedded", tests, setup, teardown);

    dialect = "text";
    failed += cmocka_run_group_tests_name("memcached, text", tests, setup, teardown);
    dialect = "meta";
    return failed + cmocka_run_group_tests_name("memcached, meta", tests, setup, teardown);
}
