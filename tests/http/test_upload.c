/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_upload.c: large bodies, which come straight from their sockets: whatever their sizes and the pieces in which they
 * come, whatever follows or cuts them off, and however many come at once, each is the value that was sent.
 *
 * That they do come straight is test_syscalls.c's to see.
 */
#include "gateway.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "memcached_process.h"

#define VALUE_MAX 1000000

static struct memcached_process server;
static struct gateway gateway;
static char *value;

static int
setup(void **state)
{
    static const char *const args[] = { "-I", "4m", NULL };

    (void)state;
    value = malloc(VALUE_MAX);
    assert_non_null(value);
    assert_true(memcached_process_start(&server, args));
    assert_true(
        gateway_start_config(&gateway,
                             "[server]\nworkers = 1\nrequest_timeout = 3s\n" GATEWAY_MEMCACHED
                             "[route /]\nstore = main\n",
                             "auto", (unsigned)server.port));
    return 0;
}

static int
teardown(void **state)
{
    (void)state;
    assert_int_equal(gateway_stop(&gateway, SIGTERM), 0);
    memcached_process_kill(&server);
    free(value);
    return 0;
}

/* A whole PUT in memory of its own. */
struct text {
    char *data;      /* (owned) */
    size_t len;      /* bytes */
    size_t head_len; /* bytes of them before the body */
};

static struct text
make_put(const char *target, size_t len, unsigned seed)
{
    struct text text;

    gateway_fill(value, len, seed);
    text.data = malloc(len + 200);
    assert_non_null(text.data);
    text.head_len = (size_t)snprintf(
        text.data, 200, "PUT %s HTTP/1.1\r\nHost: t\r\nContent-Length: %zu\r\n\r\n", target, len);
    memcpy(text.data + text.head_len, value, len);
    text.len = text.head_len + len;
    return text;
}

static void
send_pieces(struct http_client *c, const char *data, size_t len, size_t piece)
{
    for (size_t at = 0; at < len; at += piece) {
        assert_true(http_client_send(c, data + at, len - at < piece ? len - at : piece));
    }
}

/* Around what libmicrohttpd reads at once, around what is read straight, and the value of the classic accident. */
static const size_t sizes[] = { 8191,  8192,  8193,  16000,  16384,  16385,  24576,    32768,
                                40960, 65535, 65536, 131072, 262144, 307200, VALUE_MAX };

static void
test_sizes_in_pieces(void **state)
{
    static const size_t pieces[] = { VALUE_MAX * 2, 1460, 8191, 8192, 8193, 16384, 50000 };
    struct http_client c;
    unsigned seed = 0;

    (void)state;
    assert_true(http_client_open(&c, gateway.port));
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        for (size_t j = 0; j < sizeof(pieces) / sizeof(pieces[0]); j++) {
            struct text put = make_put("/sizes", sizes[i], ++seed);

            send_pieces(&c, put.data, put.len, pieces[j]);
            assert_response(&c, false, GATEWAY_STORED);
            assert_request(&c, "GET", "/sizes", NULL, NULL, 0, 200);
            assert_int_equal(c.body_len, sizes[i]);
            assert_memory_equal(c.body, put.data + put.head_len, sizes[i]);
            free(put.data);
        }
    }
    http_client_close(&c);
}

/* What is sent while nothing reads it lies there all at once. */
static void
test_all_there_at_once(void **state)
{
    struct text put = make_put("/once", 50000, 1);
    struct http_client c;

    (void)state;
    assert_true(http_client_open(&c, gateway.port));
    for (size_t cut = put.head_len - 1; cut <= put.head_len + 8192; cut += 2731) {
        assert_true(http_client_send(&c, put.data, cut));
        kill(gateway.process.pid, SIGSTOP);
        assert_true(http_client_send(&c, put.data + cut, put.len - cut));
        assert_true(http_client_send_text(&c, "GET /once HTTP/1.1\r\nHost: t\r\n\r\n"));
        kill(gateway.process.pid, SIGCONT);
        assert_response(&c, false, GATEWAY_STORED);
        assert_response(&c, false, 200);
        assert_int_equal(c.body_len, 50000);
        assert_memory_equal(c.body, put.data + put.head_len, 50000);
    }
    http_client_close(&c);
    free(put.data);
}

/* ---- what follows ---------------------------------------------------------------------------- */

struct sending {
    struct http_client *client; /* (ref) */
    const char *data;           /* (ref) */
    size_t len;                 /* bytes */
    size_t piece;               /* bytes of each write */
    bool ok;                    /* all was sent */
};

/* For more than the sockets hold: the test reads meanwhile. */
static void *
send_beside(void *arg)
{
    struct sending *sending = arg;

    sending->ok = true;
    for (size_t at = 0; at < sending->len && sending->ok; at += sending->piece) {
        size_t left = sending->len - at;
        sending->ok = http_client_send(sending->client, sending->data + at,
                                       left < sending->piece ? left : sending->piece);
    }
    return NULL;
}

static size_t
append(char *all, size_t len, const void *data, size_t data_len)
{
    memcpy(all + len, data, data_len);
    return len + data_len;
}

/* PUT, GET, PUT, GET ... behind each other, cut anywhere: not a byte of one goes to another. */
static void
test_pipelined(void **state)
{
    static const char get[] = "GET /pipe HTTP/1.1\r\nHost: t\r\n\r\n";
    static const size_t lens[] = { 100000, 33000, 307200, 41000, 7, 65536 };
    enum { COUNT = sizeof(lens) / sizeof(lens[0]) };
    char *all = malloc(VALUE_MAX);
    size_t len = 0;

    (void)state;
    assert_non_null(all);
    for (unsigned i = 0; i < COUNT; i++) {
        struct text put = make_put("/pipe", lens[i], 100 + i);
        len = append(all, len, put.data, put.len);
        len = append(all, len, get, strlen(get));
        free(put.data);
    }
    for (size_t piece = 4099; piece < VALUE_MAX; piece = piece * 3 + 1) {
        struct http_client c;
        struct sending sending = { .client = &c, .data = all, .len = len, .piece = piece };
        pthread_t thread;

        assert_true(http_client_open(&c, gateway.port));
        assert_int_equal(pthread_create(&thread, NULL, send_beside, &sending), 0);
        for (unsigned i = 0; i < COUNT; i++) {
            assert_response(&c, false, GATEWAY_STORED);
            assert_response(&c, false, 200);
            gateway_fill(value, lens[i], 100 + i);
            assert_int_equal(c.body_len, lens[i]);
            assert_memory_equal(c.body, value, lens[i]);
        }
        pthread_join(thread, NULL);
        assert_true(sending.ok);
        http_client_close(&c);
    }
    free(all);
}

static void
test_expect(void **state)
{
    struct text put = make_put("/expect", 200000, 3);
    struct http_client c;

    (void)state;
    assert_true(http_client_open(&c, gateway.port));
    for (int i = 0; i < 3; i++) {
        assert_true(http_client_send_text(
            &c, "PUT /expect HTTP/1.1\r\nHost: t\r\nContent-Length: 200000\r\n"
                "Expect: 100-continue\r\n\r\n"));
        assert_response(&c, false, 100);
        assert_true(http_client_send(&c, put.data + put.head_len, 200000));
        assert_response(&c, false, GATEWAY_STORED);
        assert_value(gateway.port, "/expect", put.data + put.head_len, 200000);
    }
    http_client_close(&c);
    free(put.data);
}

/* ---- what cuts it off ------------------------------------------------------------------------ */

enum how { HALF_CLOSE, HALF_CLOSE_AT_ONCE, CLOSE, ABORT, HOW_COUNT };

/* Leaves with CUT bytes sent. After it the gateway closes at once where there is somebody to see it. */
static void
cut_off(const struct text *put, size_t cut, enum how how)
{
    struct http_client c;

    assert_true(http_client_open(&c, gateway.port));
    assert_request(&c, "GET", "/-/health", NULL, NULL, 0, 200);
    if (how == HALF_CLOSE_AT_ONCE) {
        kill(gateway.process.pid, SIGSTOP); /* the end comes together with the bytes before it */
    }
    assert_true(http_client_send(&c, put->data, cut));
    if (how == ABORT) {
        http_client_abort(&c);
    } else if (how != CLOSE) {
        http_client_half_close(&c);
    }
    kill(gateway.process.pid, SIGCONT);
    if (how == HALF_CLOSE || how == HALF_CLOSE_AT_ONCE) {
        assert_closed(&c);
    }
    http_client_close(&c);
}

/* The next connection has the same descriptor, and none of the bytes. */
static void
test_cut_off(void **state)
{
    static const size_t cuts[] = { 1000, 8192, 20000, 45000, 59999 };
    struct text put = make_put("/cut", 60000, 4);
    char *before = malloc(60000);
    struct http_client c;

    (void)state;
    assert_non_null(before);
    for (enum how how = HALF_CLOSE; how < HOW_COUNT; how++) {
        for (size_t i = 0; i < sizeof(cuts) / sizeof(cuts[0]); i++) {
            gateway_fill(before, 60000, 50 + (unsigned)(how * 10 + i));
            assert_once(&c, gateway.port, "PUT", "/cut", NULL, before, 60000, GATEWAY_STORED);
            http_client_close(&c);
            cut_off(&put, put.head_len + cuts[i], how);
            assert_value(gateway.port, "/cut", before, 60000);
        }
    }
    free(before);
    free(put.data);
}

static void
test_too_slow(void **state)
{
    struct text put = make_put("/slow", 200000, 5);
    struct http_client c;

    (void)state;
    assert_true(http_client_open(&c, gateway.port));
    assert_true(http_client_send(&c, put.data, 150000));
    assert_response(&c, false, 408);
    assert_closed(&c);
    http_client_close(&c);
    assert_value(gateway.port, "/slow", NULL, 0);
    free(put.data);
}

/* The store is gone: the body is taken all the same, and the connection stays. */
static void
test_store_down(void **state)
{
    struct text put = make_put("/down", 200000, 6);
    struct http_client c;
    int64_t end = clock_monotonic_ms() + HTTP_CLIENT_TIMEOUT_MS;
    int status;

    (void)state;
    assert_true(http_client_open(&c, gateway.port));
    memcached_process_kill(&server);
    for (int i = 0; i < 3; i++) {
        assert_true(http_client_send(&c, put.data, put.len));
        assert_response(&c, false, 503);
    }
    assert_true(memcached_process_restart(&server));
    do {
        assert_true(http_client_send(&c, put.data, put.len));
        assert_int_equal(http_client_receive(&c, false), HTTP_RESPONSE);
        status = c.status;
        assert_true(clock_monotonic_ms() < end);
    } while (status == 503);
    assert_true(status == 201 || status == 204);
    assert_value(gateway.port, "/down", put.data + put.head_len, 200000);
    http_client_close(&c);
    free(put.data);
}

/* ---- many at once ---------------------------------------------------------------------------- */

#define MANY 24

/* Their pieces alternate, and some go while the others come. */
static void
test_many_at_once(void **state)
{
    struct http_client clients[MANY];
    struct text puts[MANY];
    char target[32];

    (void)state;
    for (unsigned i = 0; i < MANY; i++) {
        snprintf(target, sizeof(target), "/many%u", i);
        puts[i] = make_put(target, 100000 + 1000 * i, i);
        assert_true(http_client_open(&clients[i], gateway.port));
    }
    for (size_t at = 0, piece = 3001; at < 100000; at += piece, piece = 3001 + at % 9000) {
        for (unsigned i = 0; i < MANY; i++) {
            if (i % 6 == 5 && at > 50000) {
                http_client_abort(&clients[i]);
                continue;
            }
            assert_true(http_client_send(&clients[i], puts[i].data + at,
                                         at + piece < 100000 ? piece : puts[i].len - at));
        }
    }
    for (unsigned i = 0; i < MANY; i++) {
        bool left = i % 6 == 5;

        if (!left) {
            assert_response(&clients[i], false, GATEWAY_STORED);
        }
        snprintf(target, sizeof(target), "/many%u", i);
        assert_value(gateway.port, target, left ? NULL : puts[i].data + puts[i].head_len,
                     left ? 0 : puts[i].len - puts[i].head_len);
        http_client_close(&clients[i]);
        free(puts[i].data);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes_in_pieces), cmocka_unit_test(test_all_there_at_once),
        cmocka_unit_test(test_pipelined),       cmocka_unit_test(test_expect),
        cmocka_unit_test(test_cut_off),         cmocka_unit_test(test_too_slow),
        cmocka_unit_test(test_store_down),      cmocka_unit_test(test_many_at_once),
    };

    return cmocka_run_group_tests_name("upload", tests, setup, teardown);
}
