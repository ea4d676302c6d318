/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_suspend.c: hundreds of requests that wait long for their store are suspended, and lose nothing by it: each gets
 * its own answer, whatever its client and the store do meanwhile, and a stop stays a stop.
 *
 * A suspended connection is not in libmicrohttpd's epoll, which /proc tells: that is what is waited for.
 */
#include "gateway.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "memcached_process.h"

#define CLIENTS 600

/* Some stay polled, however many wait: see REQUEST_MANY_WAITING. */
#define SUSPENDED_MIN 300

static struct memcached_process server;
static struct gateway gateway;
static struct http_client clients[CLIENTS];

/* Opens client I, and has it answered once: the gateway watches its connection from then on. */
static void
open_client(int i)
{
    assert_true(http_client_open(&clients[i], gateway.port));
    assert_request(&clients[i], "GET", "/-/health", NULL, NULL, 0, 200);
}

static int
setup(void **state)
{
    char target[32], value[32];
    struct http_client c;

    (void)state;
    assert_true(memcached_process_start(&server, NULL));
    assert_true(gateway_start_config(
        &gateway,
        "[server]\nworkers = 1\ndrain_timeout = 300ms\n" GATEWAY_MEMCACHED "op_timeout = 4s\n",
        "auto", (unsigned)server.port));
    assert_true(http_client_open(&c, gateway.port));
    for (int i = 0; i < CLIENTS; i++) {
        snprintf(target, sizeof(target), "/k%d", i);
        snprintf(value, sizeof(value), "value %d", i);
        assert_request(&c, "PUT", target, NULL, value, strlen(value), GATEWAY_STORED);
        open_client(i);
    }
    http_client_close(&c);
    return 0;
}

static int
teardown(void **state)
{
    (void)state;
    for (int i = 0; i < CLIENTS; i++) {
        http_client_close(&clients[i]);
    }
    gateway_deinit(&gateway);
    memcached_process_kill(&server);
    return 0;
}

/* Descriptors that the gateway's epolls watch, all together. */
static int
count_watched(void)
{
    char path[300], line[256];
    struct dirent *entry;
    int count = 0;
    DIR *dir;

    snprintf(path, sizeof(path), "/proc/%d/fdinfo", (int)gateway.process.pid);
    dir = opendir(path);
    assert_non_null(dir);
    while ((entry = readdir(dir)) != NULL) {
        FILE *file;

        snprintf(path, sizeof(path), "/proc/%d/fdinfo/%s", (int)gateway.process.pid, entry->d_name);
        file = entry->d_name[0] == '.' ? NULL : fopen(path, "r");
        while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
            count += strncmp(line, "tfd:", 4) == 0;
        }
        if (file != NULL) {
            fclose(file);
        }
    }
    closedir(dir);
    return count;
}

/* The store is paused, all ask for their keys, and most of them are suspended. */
static void
make_wait(void)
{
    int before = count_watched();
    int64_t end = clock_monotonic_ms() + HTTP_CLIENT_TIMEOUT_MS;
    char text[64];

    memcached_process_pause(&server);
    for (int i = 0; i < CLIENTS; i++) {
        snprintf(text, sizeof(text), "GET /k%d HTTP/1.1\r\nHost: t\r\n\r\n", i);
        assert_true(http_client_send_text(&clients[i], text));
    }
    while (count_watched() > before - SUSPENDED_MIN) {
        assert_true(clock_monotonic_ms() < end);
    }
}

static void
assert_own_value(int i)
{
    char value[32];

    assert_response(&clients[i], false, 200);
    snprintf(value, sizeof(value), "value %d", i);
    assert_body(&clients[i], value);
}

static void
assert_others_go_on(void)
{
    struct http_client c;

    for (int i = 0; i < 3; i++) {
        assert_once(&c, gateway.port, "GET", "/-/health", NULL, NULL, 0, 200);
        http_client_close(&c);
    }
}

static void
test_each_gets_its_own_answer(void **state)
{
    (void)state;
    for (int round = 0; round < 3; round++) {
        make_wait();
        assert_others_go_on();
        memcached_process_resume(&server);
        for (int i = 0; i < CLIENTS; i++) {
            assert_own_value(i);
        }
    }
}

/* Of each ten clients one closes its half, one asks for more, one resets, one leaves, while suspended. */
static void
test_clients_do_what_they_like(void **state)
{
    (void)state;
    make_wait();
    for (int i = 0; i < CLIENTS; i++) {
        if (i % 10 == 1) {
            http_client_half_close(&clients[i]);
        } else if (i % 10 == 2) {
            assert_true(
                http_client_send_text(&clients[i], "GET /-/health HTTP/1.1\r\nHost: t\r\n\r\n"));
        } else if (i % 10 == 3) {
            http_client_abort(&clients[i]);
        } else if (i % 10 == 4) {
            http_client_close(&clients[i]);
        }
    }
    assert_others_go_on();
    memcached_process_resume(&server);
    for (int i = 0; i < CLIENTS; i++) {
        if (i % 10 == 3 || i % 10 == 4) {
            open_client(i);
            continue;
        }
        assert_own_value(i);
        if (i % 10 == 1) {
            assert_closed(&clients[i]);
            http_client_close(&clients[i]);
            open_client(i);
        } else if (i % 10 == 2) {
            assert_response(&clients[i], false, 200);
        }
    }
}

static void
test_the_store_stays_silent(void **state)
{
    struct http_client c;
    int64_t end;
    int status;

    (void)state;
    make_wait();
    for (int i = 0; i < CLIENTS; i++) {
        assert_int_equal(http_client_receive(&clients[i], false), HTTP_RESPONSE);
        assert_true(clients[i].status == 503 || clients[i].status == 504);
    }
    memcached_process_resume(&server);
    end = clock_monotonic_ms() + HTTP_CLIENT_TIMEOUT_MS;
    do {
        status = http_client_once(&c, gateway.port, "GET", "/k0", NULL, NULL, 0);
        http_client_close(&c);
        assert_true(clock_monotonic_ms() < end);
    } while (status != 200);
}

/* libmicrohttpd would abort at a stop with suspended connections. */
static void
test_stop(void **state)
{
    (void)state;
    make_wait();
    assert_int_equal(gateway_stop(&gateway, SIGTERM), 0);
    for (int i = 0; i < CLIENTS; i++) {
        assert_closed(&clients[i]);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_gets_its_own_answer),
        cmocka_unit_test(test_clients_do_what_they_like),
        cmocka_unit_test(test_the_store_stays_silent),
        cmocka_unit_test(test_stop),
    };

    return cmocka_run_group_tests_name("suspend", tests, setup, teardown);
}
