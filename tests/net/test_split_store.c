/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_split_store.c: a store that writes its replies in pieces, with Nagle's algorithm on. It holds each
 * piece back until the one before is acknowledged, so a gateway that delays its ACK waits 40 ms for every
 * value. The store is a thread of the test that speaks just enough of the text protocol.
 */
#include "net_scene.h"

#include <arpa/inet.h>
#include <limits.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"

#define ROUNDS    15
#define VALUE_LEN 3000

/* A stall is 40 ms in every round, its absence well under a millisecond. */
#define STALL_MS 20

struct split_store {
    int listen_fd;    /* (owned) */
    uint16_t port;    /* where it listens */
    pthread_t thread; /* answers one connection, until that is closed */
};

static struct split_store store;

/* ---- the store ------------------------------------------------------------------------------- */

static void
write_all(int fd, const char *text, size_t len)
{
    if (send(fd, text, len, MSG_NOSIGNAL) != (ssize_t)len) {
        perror("split store");
    }
}

/* Announcement, half of the value, the other half, the end: four writes, each a small segment. */
static void
answer(int fd, const char *key)
{
    char value[VALUE_LEN], line[64];
    int len = snprintf(line, sizeof(line), "VALUE %s 0 %d 7\r\n", key, VALUE_LEN);

    memset(value, 'v', sizeof(value));
    write_all(fd, line, (size_t)len - 4);
    write_all(fd, line + len - 4, 4);
    write_all(fd, value, VALUE_LEN / 2);
    write_all(fd, value, VALUE_LEN / 2);
    write_all(fd, "\r\nEND\r\n", 7);
}

static void *
store_main(void *arg)
{
    struct split_store *s = arg;
    char command[256], key[64];
    int fd = accept(s->listen_fd, NULL, NULL);
    ssize_t n;

    if (fd < 0) {
        return NULL;
    }
    /* one request at a time, so one command in each read */
    while ((n = recv(fd, command, sizeof(command) - 1, 0)) > 0) {
        command[n] = '\0';
        if (sscanf(command, "gets %60s", key) == 1) {
            answer(fd, key);
        } else {
            write_all(fd, "ERROR\r\n", 7);
        }
    }
    close(fd);
    return NULL;
}

static bool
store_start(struct split_store *s)
{
    struct sockaddr_in address = { .sin_family = AF_INET };
    socklen_t len = sizeof(address);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    s->listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (s->listen_fd < 0 || bind(s->listen_fd, (struct sockaddr *)&address, len) < 0 ||
        listen(s->listen_fd, 4) < 0 ||
        getsockname(s->listen_fd, (struct sockaddr *)&address, &len) < 0) {
        return false;
    }
    s->port = ntohs(address.sin_port);
    return pthread_create(&s->thread, NULL, store_main, s) == 0;
}

static void
store_stop(struct split_store *s)
{
    shutdown(s->listen_fd, SHUT_RDWR); /* wakes an accept that nobody will answer */
    pthread_join(s->thread, NULL);
    close(s->listen_fd);
}

/* ---- the rounds ------------------------------------------------------------------------------ */

/* The median of ROUNDS GETs through a gateway without RULE (NULL: with all of them), in ms. */
static int64_t
median_get(const char *switched_off)
{
    struct gateway gateway;
    char text[256], library[PATH_MAX] = "", preload[PATH_MAX + 16], rule[64];
    const char *const argv[] = { "env",
                                 preload,
                                 rule,
                                 "ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0",
                                 gateway_program(),
                                 "-w1",
                                 "-l",
                                 "127.0.0.1:0",
                                 "-c",
                                 "kvgate.conf",
                                 NULL };
    struct http_client c;
    int64_t times[ROUNDS];

    if (switched_off != NULL && !net_scene_find_switch(library, sizeof(library))) {
        printf("SKIP: there is no switch_off.so beside this test\n");
        skip();
    }
    snprintf(preload, sizeof(preload), "LD_PRELOAD=%s", library);
    snprintf(rule, sizeof(rule), "SWITCH_OFF=%s", switched_off == NULL ? "" : switched_off);
    assert_true(store_start(&store));
    snprintf(text, sizeof(text), GATEWAY_MEMCACHED, "text", (unsigned)store.port);
    assert_true(gateway_prepare(&gateway, text));
    assert_true(gateway_launch(&gateway, switched_off == NULL ? argv + 4 : argv));
    assert_true(http_client_open(&c, gateway.port));
    for (int i = 0; i < ROUNDS; i++) {
        int64_t begin = clock_monotonic_ms();
        assert_request(&c, "GET", "/k", NULL, NULL, 0, 200);
        assert_int_equal(c.body_len, VALUE_LEN);
        times[i] = clock_monotonic_ms() - begin;
    }
    http_client_close(&c);
    assert_int_equal(gateway_stop(&gateway, SIGTERM), 0);
    store_stop(&store);
    return net_median(times, ROUNDS);
}

static void
test_a_split_reply_does_not_wait(void **state)
{
    int64_t median = median_get(getenv("KVGATE_SWITCH_OFF"));

    (void)state;
    print_message("a value in five pieces: median %lld ms\n", (long long)median);
    assert_true(median < STALL_MS);
}

static void
test_without_the_rule_it_does(void **state)
{
    int64_t median = median_get("quickack-store");

    (void)state;
    print_message("without the rule: median %lld ms\n", (long long)median);
    assert_true(median >= STALL_MS);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_split_reply_does_not_wait),
        cmocka_unit_test(test_without_the_rule_it_does),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
