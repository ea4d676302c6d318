/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_waiting.c: while one request waits for a silent store, everybody else goes on, on the same worker:
 * no request may lose its wake-up, and none may cost the processor anything while it waits.
 */
#include "gateway.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "memcached_process.h"

/* A lost wake-up is found again after 100 ms; ten of them in a row were. */
#define SOON_MS 90

static struct gateway gateway;
static struct http_client waiter = { .fd = -1 }; /* its request is with the silent store */
static int silent_fd = -1; /* a store whose connections the kernel takes, and nobody answers */

static uint16_t
listen_silently(void)
{
    struct sockaddr_in address = { .sin_family = AF_INET };
    socklen_t len = sizeof(address);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    silent_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(silent_fd >= 0);
    assert_int_equal(bind(silent_fd, (struct sockaddr *)&address, len), 0);
    assert_int_equal(listen(silent_fd, 16), 0);
    assert_int_equal(getsockname(silent_fd, (struct sockaddr *)&address, &len), 0);
    return ntohs(address.sin_port);
}

static int
setup(void **state)
{
    unsigned port = listen_silently();

    (void)state;
    return gateway_start_config(&gateway,
                                "[server]\nworkers = 1\nidle_timeout = 1s\n"
                                "[store one]\ntype = memcached\nservers = 127.0.0.1:%u\n"
                                "dialect = text\nop_timeout = 3s\n"
                                "[store two]\ntype = memcached\nservers = 127.0.0.1:%u\n"
                                "dialect = text\nop_timeout = 3s\n"
                                "[store here]\ntype = embedded\ndirectory = data\n"
                                "[route /one/]\nstore = one\n[route /two/]\nstore = two\n"
                                "[route /]\nstore = here\n",
                                port, port)
               ? 0
               : -1;
}

static int
teardown(void **state)
{
    (void)state;
    gateway_deinit(&gateway);
    close(silent_fd);
    return 0;
}

/* Begins a request that will wait. Only the first on a store does: after its time-out it is DOWN. */
static void
begin_waiting(const char *request)
{
    assert_true(http_client_open(&waiter, gateway.port));
    assert_true(http_client_send_text(&waiter, request));
    assert_false(http_client_has_input(&waiter, 100));
}

/* More than idle_timeout and no less than op_timeout: an answer all the same. */
static void
end_waiting(void)
{
    assert_response(&waiter, false, 504);
    http_client_close(&waiter);
}

/* Sends TEXT on a connection of its own and takes COUNT answers of 404. Returns how long that took. */
static int64_t
time_of(const char *text, int count)
{
    struct http_client c;
    int64_t begin;

    assert_true(http_client_open(&c, gateway.port));
    assert_request(&c, "GET", "/missing", NULL, NULL, 0, 404);
    begin = clock_monotonic_ms();
    assert_true(http_client_send_text(&c, text));
    for (int i = 0; i < count; i++) {
        assert_response(&c, false, 404);
    }
    begin = clock_monotonic_ms() - begin;
    http_client_close(&c);
    return begin;
}

/* The best of a few tries: a busy machine is slow now and then, a lost wake-up always. */
static void
assert_soon(const char *what, const char *text, int count)
{
    int64_t best = INT64_MAX;

    for (int i = 0; i < 4 && best >= SOON_MS; i++) {
        int64_t now = time_of(text, count);
        best = now < best ? now : best;
    }
    if (best >= SOON_MS) {
        fail_msg("%s: %lld ms", what, (long long)best);
    }
}

static void
test_others_go_on(void **state)
{
    static const char get[] = "GET /missing HTTP/1.1\r\nHost: t\r\n";
    static const size_t header_sizes[] = { 5000, 10000, 13000 };
    char text[16000] = "";

    (void)state;
    begin_waiting("GET /one/k HTTP/1.1\r\nHost: t\r\n\r\n");
    for (int i = 0; i < 10; i++) {
        strcat(strcat(text, get), "\r\n");
    }
    assert_soon("ten requests in one write", text, 10);
    for (size_t i = 0; i < sizeof(header_sizes) / sizeof(header_sizes[0]); i++) {
        int len = snprintf(text, sizeof(text), "%sX: ", get);
        memset(text + len, 'x', header_sizes[i]);
        strcpy(text + len + header_sizes[i], "\r\n\r\n");
        assert_soon("a long header", text, 1);
    }
    end_waiting();
}

/* Clock ticks of processor time that the gateway has used. */
static long
ticks_used(void)
{
    char path[64], text[1024];
    unsigned long user = 0, system = 0;
    FILE *file;
    size_t n;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)gateway.process.pid);
    file = fopen(path, "r");
    assert_non_null(file);
    n = fread(text, 1, sizeof(text) - 1, file);
    fclose(file);
    text[n] = '\0';
    assert_int_equal(sscanf(strrchr(text, ')') + 2,
                            "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system),
                     2);
    return (long)(user + system);
}

/* A client that has closed its side waits as cheaply as any: a spin would take all of 3 s. */
static void
test_half_closed_waits_cheaply(void **state)
{
    long before, hz = sysconf(_SC_CLK_TCK);

    (void)state;
    begin_waiting("GET /two/k HTTP/1.1\r\nHost: t\r\n\r\n");
    http_client_half_close(&waiter);
    before = ticks_used();
    end_waiting();
    assert_true(ticks_used() - before < hz);
}

static void
test_stops_cleanly(void **state)
{
    (void)state;
    assert_int_equal(gateway_stop(&gateway, SIGTERM), 0);
}

/* ---- the handshake with memcached ------------------------------------------------------------ */

/* A value under the key that the handshake asks for makes no difference. */
static void
test_probe_key_is_a_key(void **state)
{
    struct memcached_process memcached;
    struct gateway g;
    struct http_client c;

    (void)state;
    assert_true(memcached_process_start(&memcached, NULL));
    for (int start = 0; start < 2; start++) {
        assert_true(gateway_start_config(&g, GATEWAY_MEMCACHED, "auto", (unsigned)memcached.port));
        assert_once(&c, g.port, "PUT", "/kvgate:probe", NULL, "x", 1, GATEWAY_STORED);
        http_client_close(&c);
        assert_once(&c, g.port, "GET", "/kvgate:probe", NULL, NULL, 0, 200);
        http_client_close(&c);
        assert_int_equal(gateway_stop(&g, SIGTERM), 0);
    }
    memcached_process_stop(&memcached);
}

int
main(void)
{
    const struct CMUnitTest waiting[] = {
        cmocka_unit_test(test_others_go_on),
        cmocka_unit_test(test_half_closed_waits_cheaply),
        cmocka_unit_test(test_stops_cleanly),
    };
    const struct CMUnitTest dialling[] = {
        cmocka_unit_test(test_probe_key_is_a_key),
    };
    int failed = cmocka_run_group_tests_name("waiting", waiting, setup, teardown);

    return failed + cmocka_run_group_tests_name("dialling", dialling, NULL, NULL);
}
