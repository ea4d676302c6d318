/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_coalescing.c: GETs that share one command are exact. 64 readers and 4 writers hammer one key
 * on real memcached. No reader may see a value that is certainly older than a write which was
 * acknowledged before it asked; and memcached sees fewer GETs than the gateway answers.
 *
 * How that is judged: each write has a serial number, and the moments at which it was sent and
 * acknowledged. NEWEST is the latest moment of sending among the acknowledged writes. A reader looks
 * at NEWEST, then asks. What it gets is too old if that write was acknowledged before NEWEST: then
 * another write was sent after its end, and ended before the question.
 *
 * That leaves room while writes overlap. A second judge leaves none: an entity tag is memcached's CAS,
 * which grows with each write of the key. No answer may have a smaller one than an answer, or a
 * writer's acknowledgement, that had come before the question.
 *
 * KVGATE_SECONDS says for how long, 0.4 by default, for each form.
 */
#include "gateway.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "etag.h"
#include "memcached_process.h"

#define READER_THREADS 2
#define CONNECTIONS    32 /* of each reader thread, all with a GET under way */
#define WRITERS        4
#define WRITES_MAX     2000000
#define HEAD_LEN       18 /* "s%08u l%06zu " */
#define VALUE_MAX      100000

/* A machine that is busy with something else must not look like a store that is silent. */
#define PATIENT "connect_timeout = 5s\nop_timeout = 8s\n"

struct form {
    const char *dialect;
    size_t value_len; /* bytes */
};

static struct gateway gateway;
static struct memcached_process server;
static const struct form *form;
static int64_t end_ns;              /* monotonic */
static _Atomic int64_t newest;      /* see above; 0: nothing is acknowledged */
static _Atomic int64_t *acked;      /* of each write by serial; 0: not yet */
static _Atomic uint64_t newest_cas; /* the greatest that has come in an answer; 0: none */
static atomic_uint next_serial = 1;
static atomic_ulong reads, writes;
static char trouble[200]; /* the first thing that was wrong */
static atomic_flag has_trouble = ATOMIC_FLAG_INIT;

static int64_t
now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static void
complain(const char *what, unsigned serial, int status)
{
    if (!atomic_flag_test_and_set(&has_trouble)) {
        snprintf(trouble, sizeof(trouble), "%s: serial %u, status %d", what, serial, status);
    }
}

static void
make_value(char *value, unsigned serial)
{
    char head[64];

    snprintf(head, sizeof(head), "s%08u l%06zu ", serial, form->value_len);
    memcpy(value, head, HEAD_LEN);
    memset(value + HEAD_LEN, 'a' + (int)(serial % 26), form->value_len - HEAD_LEN);
}

/* The serial number of a whole value; 0: it is none. */
static unsigned
check_value(const char *value, size_t len)
{
    unsigned serial;
    size_t told;

    if (len != form->value_len || sscanf(value, "s%u l%zu", &serial, &told) != 2 || told != len ||
        serial == 0 || serial >= WRITES_MAX) {
        return 0;
    }
    for (size_t i = HEAD_LEN; i < len; i++) {
        if (value[i] != 'a' + (char)(serial % 26)) {
            return 0;
        }
    }
    return serial;
}

/* The CAS that the last answer on C tells in its ETag; 0: none. */
static uint64_t
told_cas(struct http_client *c)
{
    const char *text = http_client_header(c, "ETag");
    uint64_t cas;

    return text != NULL && etag_parse_one((struct slice){ text, strlen(text) }, &cas) ? cas : 0;
}

static void
note_cas(uint64_t cas)
{
    uint64_t last = atomic_load(&newest_cas);

    while (last < cas && !atomic_compare_exchange_weak(&newest_cas, &last, cas)) {
    }
}

/* ---- writers --------------------------------------------------------------------------------- */

static bool
write_once(struct http_client *c, char *value)
{
    unsigned serial = atomic_fetch_add(&next_serial, 1);
    int64_t sent = now_ns(), last;
    int status;

    if (serial >= WRITES_MAX) {
        return false;
    }
    make_value(value, serial);
    status = http_client_request(c, "PUT", "/k", NULL, value, form->value_len);
    if (status != 204 && status != 201) {
        complain("a write failed", serial, status);
        return false;
    }
    atomic_store(&acked[serial], now_ns());
    last = atomic_load(&newest);
    while (last < sent && !atomic_compare_exchange_weak(&newest, &last, sent)) {
    }
    note_cas(told_cas(c));
    atomic_fetch_add(&writes, 1);
    return true;
}

static void *
writer_main(void *arg)
{
    char *value = malloc(VALUE_MAX);
    struct http_client c;

    (void)arg;
    if (value == NULL || !http_client_open(&c, gateway.port)) {
        complain("cannot connect", 0, 0);
        free(value);
        return NULL;
    }
    while (now_ns() < end_ns && write_once(&c, value)) {
    }
    http_client_close(&c);
    free(value);
    return NULL;
}

/* ---- readers --------------------------------------------------------------------------------- */

/* What was known when a GET was sent. */
struct question {
    int64_t newest;      /* monotonic ns */
    uint64_t newest_cas; /* as the global of that name */
};

static bool
read_answer(struct http_client *c, const struct question *then)
{
    unsigned serial;
    uint64_t cas;
    int64_t end;

    if (http_client_receive(c, false) != HTTP_RESPONSE || c->status != 200) {
        complain("a read failed", 0, c->status);
        return false;
    }
    serial = check_value(c->body, c->body_len);
    if (serial == 0) {
        complain("a value is none", 0, 200);
        return false;
    }
    end = atomic_load(&acked[serial]);
    if (end != 0 && end < then->newest) {
        complain("a value is too old", serial, 200);
        return false;
    }
    cas = told_cas(c);
    if (cas == 0 || cas < then->newest_cas) {
        complain(cas == 0 ? "no ETag" : "an ETag goes back", serial, 200);
        return false;
    }
    note_cas(cas);
    atomic_fetch_add(&reads, 1);
    return true;
}

static void *
reader_main(void *arg)
{
    static const char get[] = "GET /k HTTP/1.1\r\nHost: t\r\n\r\n";
    struct http_client clients[CONNECTIONS];
    struct question then[CONNECTIONS];
    bool ok = true;

    (void)arg;
    for (size_t i = 0; i < CONNECTIONS; i++) {
        ok &= http_client_open(&clients[i], gateway.port);
    }
    while (ok && now_ns() < end_ns) {
        for (size_t i = 0; ok && i < CONNECTIONS; i++) {
            then[i] = (struct question){ atomic_load(&newest), atomic_load(&newest_cas) };
            ok = http_client_send(&clients[i], get, sizeof(get) - 1);
        }
        for (size_t i = 0; ok && i < CONNECTIONS; i++) {
            ok = read_answer(&clients[i], &then[i]);
        }
    }
    if (!ok) {
        complain("a reader broke off", 0, 0);
    }
    for (size_t i = 0; i < CONNECTIONS; i++) {
        http_client_close(&clients[i]);
    }
    return NULL;
}

/* ---- the run --------------------------------------------------------------------------------- */

/* GETs that memcached has seen. */
static unsigned long
gets_on_the_wire(void)
{
    int fd = memcached_process_connect(&server);
    char text[8192];
    size_t len = 0;
    ssize_t n;

    assert_true(fd >= 0);
    assert_int_equal(send(fd, "stats\r\n", 7, 0), 7);
    do {
        n = recv(fd, text + len, sizeof(text) - 1 - len, 0);
        assert_true(n > 0);
        len += (size_t)n;
        text[len] = '\0';
    } while (strstr(text, "END\r\n") == NULL);
    close(fd);
    assert_non_null(strstr(text, "STAT cmd_get "));
    return strtoul(strstr(text, "STAT cmd_get ") + 13, NULL, 10);
}

static void
run_form(const struct form *which)
{
    const char *seconds = getenv("KVGATE_SECONDS");
    pthread_t threads[WRITERS + READER_THREADS];
    char *value = malloc(VALUE_MAX);
    unsigned long wire;
    struct http_client c;
    int exit_status;

    form = which;
    acked = calloc(WRITES_MAX, sizeof(*acked));
    assert_true(acked != NULL && value != NULL);
    atomic_store(&newest, 0);
    atomic_store(&newest_cas, 0);
    trouble[0] = '\0';
    atomic_flag_clear(&has_trouble);
    atomic_store(&next_serial, 1);
    atomic_store(&reads, 0);
    atomic_store(&writes, 0);
    assert_true(memcached_process_start(&server, NULL));
    assert_true(gateway_start_config(&gateway, "[server]\nworkers = 2\n" GATEWAY_MEMCACHED PATIENT,
                                     which->dialect, (unsigned)server.port));
    end_ns = INT64_MAX;
    assert_true(http_client_open(&c, gateway.port) && write_once(&c, value));
    http_client_close(&c);
    end_ns =
        now_ns() + (seconds == NULL ? INT64_C(400000000) : atoi(seconds) * INT64_C(1000000000));
    for (size_t i = 0; i < WRITERS + READER_THREADS; i++) {
        assert_int_equal(
            pthread_create(&threads[i], NULL, i < WRITERS ? writer_main : reader_main, NULL), 0);
    }
    for (size_t i = 0; i < WRITERS + READER_THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    wire = gets_on_the_wire();
    printf("%s, %zu bytes: %lu reads in %lu gets, %lu writes\n", which->dialect, which->value_len,
           reads, wire, writes);
    exit_status = gateway_stop(&gateway, SIGTERM);
    memcached_process_stop(&server);
    free(acked);
    free(value);
    if (trouble[0] != '\0') {
        fail_msg("%s", trouble);
    }
    assert_int_equal(exit_status, 0);
    assert_true(writes > 10);
    assert_true(wire < reads);
}

static void
test_text(void **state)
{
    static const struct form small = { "text", 100 }, large = { "text", VALUE_MAX };

    (void)state;
    run_form(&small);
    run_form(&large);
}

static void
test_meta(void **state)
{
    static const struct form small = { "meta", 100 }, large = { "meta", VALUE_MAX };

    (void)state;
    run_form(&small);
    run_form(&large);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_meta),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
