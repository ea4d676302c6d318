/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_syscalls.c: what a request costs in system calls, and what leaves in how many writes, as
 * strace sees it. This is where a stall begins: two writes where one would do.
 *
 * The first test drives the gateway under strace and keeps the trace; each of the others looks at
 * one stretch of it. A stretch lies between two requests on the same connection that are answered
 * without the store: /-/begin-NAME and /-/end-NAME.
 */
#include "gateway.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "clock.h"
#include "memcached_process.h"
#include "syscall_trace.h"

#define REPEAT 20     /* how often each small request is made */
#define LARGE  307200 /* the value of the classic accident */

#define CONNECTION_BUFFER 16384 /* the default */

static char *trace; /* the whole trace, lines ended by NUL; NULL: there is none */
static size_t trace_len;

static int
teardown(void **state)
{
    (void)state;
    free(trace);
    trace = NULL;
    return 0;
}

static bool
start_traced(struct gateway *g, uint16_t store_port)
{
    const char *const argv[] = { SYSCALL_TRACE_ARGS(
                                     "trace=%network,epoll_ctl,read,readv,write,writev"),
                                 gateway_program(),
                                 "-l",
                                 "127.0.0.1:0",
                                 "-c",
                                 "kvgate.conf",
                                 NULL };
    char text[512];

    snprintf(text, sizeof(text), "[server]\nworkers = 1\n" GATEWAY_MEMCACHED, "auto",
             (unsigned)store_port);
    return gateway_prepare(g, text) && gateway_launch(g, argv);
}

/* Keeps the trace when it is complete, cut into lines. */
static void
load_trace(const char *directory)
{
    assert_true(syscall_trace_await(directory, "+++ exited with", 0));
    trace = syscall_trace_read(directory);
    trace_len = strlen(trace);
    for (size_t i = 0; i < trace_len; i++) {
        trace[i] = trace[i] == '\n' ? '\0' : trace[i];
    }
}

static void
mark(struct http_client *c, const char *which, const char *name)
{
    char target[64];

    snprintf(target, sizeof(target), "/-/%s-%s", which, name);
    assert_request(c, "GET", target, NULL, NULL, 0, 404);
}

static void
drive_small(struct http_client *c, const char *name, const char *method, const char *target,
            const char *body, int status)
{
    mark(c, "begin", name);
    for (int i = 0; i < REPEAT; i++) {
        assert_request(c, method, target, NULL, body, body == NULL ? 0 : strlen(body), status);
    }
    mark(c, "end", name);
}

#define ACKNOWLEDGED "TCP_QUICKACK, [1]"

/* Sends a part of a request, and returns when the gateway has told the kernel to acknowledge it. */
static void
send_part(struct http_client *c, const char *directory, const char *text)
{
    unsigned before = syscall_trace_count(directory, ACKNOWLEDGED);

    assert_true(http_client_send_text(c, text));
    if (!syscall_trace_await(directory, ACKNOWLEDGED, before)) {
        fail_msg("not acknowledged: %s", text);
    }
}

/* Requests that come in pieces, each of which waits for the one before to be acknowledged. */
static void
drive_pieces(struct http_client *c, const char *directory)
{
    mark(c, "begin", "pieces");
    send_part(c, directory, "PUT /pieces HTTP/1.1\r\nHost: t\r\nContent-Length: 6\r\n\r\n");
    send_part(c, directory, "pie");
    assert_true(http_client_send_text(c, "ces"));
    assert_response(c, false, GATEWAY_STORED);
    mark(c, "end", "pieces");

    mark(c, "begin", "header-lines");
    send_part(c, directory, "GET /pieces HTTP/1.1\r\n");
    assert_true(http_client_send_text(c, "Host: t\r\n\r\n"));
    assert_response(c, false, 200);
    mark(c, "end", "header-lines");
}

/* A client that waits for the 100 before it sends its body. */
static void
drive_expect(struct http_client *c)
{
    mark(c, "begin", "expect");
    assert_true(http_client_send_text(c, "PUT /expect HTTP/1.1\r\nHost: t\r\nContent-Length: 4\r\n"
                                         "Expect: 100-continue\r\n\r\n"));
    assert_response(c, false, 100);
    assert_true(http_client_send_text(c, "body"));
    assert_response(c, false, GATEWAY_STORED);
    mark(c, "end", "expect");
}

static void
drive(struct http_client *c, const char *directory)
{
    char *large = malloc(LARGE);

    gateway_fill(large, LARGE, 1);
    assert_request(c, "PUT", "/small", NULL, "small value", 11, GATEWAY_STORED);
    assert_request(c, "GET", "/small", NULL, NULL, 0, 200);
    drive_small(c, "get", "GET", "/small", NULL, 200);
    drive_small(c, "miss", "GET", "/missing", NULL, 404);
    drive_small(c, "head", "HEAD", "/small", NULL, 200);
    drive_small(c, "put", "PUT", "/small", "another value", GATEWAY_STORED);
    mark(c, "begin", "large-put");
    assert_request(c, "PUT", "/large", NULL, large, LARGE, GATEWAY_STORED);
    mark(c, "end", "large-put");
    mark(c, "begin", "large-get");
    assert_request(c, "GET", "/large", NULL, NULL, 0, 200);
    assert_int_equal(c->body_len, LARGE);
    assert_memory_equal(c->body, large, LARGE);
    mark(c, "end", "large-get");
    drive_pieces(c, directory);
    drive_expect(c);
    free(large);
}

static void
test_traffic(void **state)
{
    struct memcached_process server;
    struct gateway g;
    struct http_client c;

    (void)state;
    if (!syscall_trace_possible()) {
        skip();
    }
    assert_true(memcached_process_start(&server, NULL));
    assert_true(start_traced(&g, server.port));
    assert_true(http_client_open(&c, g.port));
    drive(&c, g.directory);
    http_client_close(&c);
    assert_int_equal(process_stop(&g.process, SIGTERM, GATEWAY_TIMEOUT_MS), 0);
    load_trace(g.directory);
    gateway_deinit(&g);
    memcached_process_kill(&server);
}

/* ---- looking at the trace ------------------------------------------------------------------- */

struct stretch {
    const char *from; /* first line (ref into the trace) */
    const char *to;   /* the line after the last (ref) */
    int client;       /* fd of the client's connection */
};

static const char *
next_line(const char *line)
{
    return line + strlen(line) + 1;
}

/* The first line from FROM on that has both texts; NULL: none. */
static const char *
find_line(const char *from, const char *to, const char *a, const char *b)
{
    for (const char *line = from; line < to; line = next_line(line)) {
        if (strstr(line, a) != NULL && strstr(line, b) != NULL) {
            return line;
        }
    }
    return NULL;
}

/* The fd that the call on LINE is about: its first argument. */
static int
line_fd(const char *line)
{
    const char *at = strchr(line, '(');

    return at == NULL ? -1 : atoi(at + 1);
}

static struct stretch
find_stretch(const char *name)
{
    const char *end = trace + trace_len;
    struct stretch s;
    char text[64];
    const char *line;

    snprintf(text, sizeof(text), "GET /-/begin-%s ", name);
    line = find_line(trace, end, "recvfrom(", text);
    assert_non_null(line);
    s.client = line_fd(line);
    /* The answer to the mark is no part of the stretch. */
    line = find_line(line, end, "send", "HTTP/1.1 404");
    assert_non_null(line);
    s.from = next_line(line);
    snprintf(text, sizeof(text), "GET /-/end-%s ", name);
    s.to = find_line(s.from, end, "recvfrom(", text);
    assert_non_null(s.to);
    return s;
}

/* How many calls NAME (the whole name; NULL: any) there are on FD (-1: any). */
static unsigned
count(const struct stretch *s, const char *name, int fd)
{
    unsigned n = 0;

    for (const char *line = s->from; line < s->to; line = next_line(line)) {
        const char *call = line + strspn(line, "0123456789 ");
        size_t len = strcspn(call, "(");

        n += (name == NULL || (strlen(name) == len && memcmp(name, call, len) == 0)) &&
             (fd == -1 || line_fd(line) == fd);
    }
    return n;
}

static void
show(const struct stretch *s)
{
    for (const char *line = s->from; line < s->to; line = next_line(line)) {
        print_error("%.160s\n", line);
    }
}

#define assert_count(s, name, fd, wanted)                                                          \
    do {                                                                                           \
        unsigned got_ = count(s, name, fd);                                                        \
        if (got_ != (unsigned)(wanted)) {                                                          \
            show(s);                                                                               \
            fail_msg("%u x %s, wanted %u", got_, (name) == NULL ? "any call" : (name),             \
                     (unsigned)(wanted));                                                          \
        }                                                                                          \
    } while (0)

/* What the call on LINE returned. */
static long
line_result(const char *line)
{
    const char *at = strrchr(line, '=');

    return at == NULL ? -1 : atol(at + 1);
}

/* The connection on which the store was sent KEY. */
static int
find_store(const struct stretch *s, const char *key)
{
    for (const char *line = s->from; line < s->to; line = next_line(line)) {
        if (strstr(line, "send") != NULL && strstr(line, key) != NULL &&
            line_fd(line) != s->client) {
            return line_fd(line);
        }
    }
    fail_msg("nothing was sent to the store about %s", key);
    return -1;
}

static void
need_trace(void)
{
    if (trace == NULL) {
        skip();
    }
}

/* REPEAT small requests, whose answers have a body or none: for each, four calls on the two connections, and nothing else. */
static void
check_small(const char *name, const char *key, bool has_body)
{
    struct stretch s = find_stretch(name);
    int store = find_store(&s, key);

    assert_count(&s, "recvfrom", s.client, REPEAT);
    assert_count(&s, has_body ? "sendmsg" : "sendto", s.client, REPEAT);
    assert_count(&s, NULL, s.client, 2 * REPEAT);
    assert_count(&s, "sendmsg", store, REPEAT);
    assert_count(&s, NULL, store, 2 * REPEAT);
    assert_count(&s, "epoll_ctl", -1, 0);
    assert_count(&s, "setsockopt", -1, 0);
}

static void
test_get(void **state)
{
    (void)state;
    need_trace();
    check_small("get", "small", true);
}

static void
test_miss(void **state)
{
    (void)state;
    need_trace();
    check_small("miss", "missing", true);
}

static void
test_put(void **state)
{
    (void)state;
    need_trace();
    check_small("put", "small", false);
}

static void
test_head(void **state)
{
    (void)state;
    need_trace();
    check_small("head", "small", false);
}

/* Checks that what went out on FD was TOTAL bytes at least, in one write unless it was full. */
static void
check_one_write(const struct stretch *s, int fd, long total)
{
    const char *first = NULL;
    unsigned sends = 0;

    for (const char *line = s->from; line < s->to; line = next_line(line)) {
        if (strstr(line, "send") != NULL && line_fd(line) == fd) {
            first = first == NULL ? line : first;
            sends++;
        }
    }
    assert_non_null(first);
    assert_non_null(strstr(first, "sendmsg("));
    if (line_result(first) < total) {
        /* The socket was full: it took more than any small buffer, and the rest went later. */
        assert_true(line_result(first) > 65536);
        assert_true(sends > 1);
    } else if (sends != 1) {
        show(s);
        fail_msg("%u writes", sends);
    }
}

static void
test_large_get(void **state)
{
    struct stretch s;

    (void)state;
    need_trace();
    s = find_stretch("large-get");
    check_one_write(&s, s.client, LARGE + 100);
    assert_count(&s, "recvfrom", s.client, 1);
    assert_count(&s, "setsockopt", s.client, 0);
}

/* Its body is read past libmicrohttpd, whose memory for a connection could not take so much at once. */
static void
test_large_put(void **state)
{
    struct stretch s;
    long most = 0;

    (void)state;
    need_trace();
    s = find_stretch("large-put");
    check_one_write(&s, find_store(&s, "large"), LARGE + 10);
    for (const char *line = s.from; line < s.to; line = next_line(line)) {
        if (strstr(line, "recvfrom(") != NULL && line_fd(line) == s.client &&
            line_result(line) > most) {
            most = line_result(line);
        }
    }
    assert_true(most > CONNECTION_BUFFER);
}

/* A setsockopt of OPTION on the client's connection before the call that received TEXT. */
static void
check_armed(const struct stretch *s, const char *option, const char *after, const char *before)
{
    const char *from = find_line(s->from, s->to, "recvfrom(", after);
    const char *to = find_line(s->from, s->to, "recvfrom(", before);
    char call[64];

    assert_non_null(from);
    assert_non_null(to);
    snprintf(call, sizeof(call), "setsockopt(%d, ", s->client);
    if (find_line(from, to, call, option) == NULL) {
        show(s);
        fail_msg("no %s between '%s' and '%s'", option, after, before);
    }
}

/* What came in part is acknowledged at once: the kernel is told before the rest comes. */
static void
test_pieces(void **state)
{
    struct stretch s;

    (void)state;
    need_trace();
    s = find_stretch("pieces");
    check_armed(&s, ACKNOWLEDGED, "PUT /pieces", "\"pie\"");
    check_armed(&s, ACKNOWLEDGED, "\"pie\"", "\"ces\"");
    s = find_stretch("header-lines");
    check_armed(&s, ACKNOWLEDGED, "GET /pieces", "\"Host: t");
}

/* 100 Continue leaves at once, in a write of its own. */
static void
test_continue(void **state)
{
    struct stretch s;
    const char *line;
    char call[64];

    (void)state;
    need_trace();
    s = find_stretch("expect");
    snprintf(call, sizeof(call), "sendto(%d, ", s.client);
    line = find_line(find_line(s.from, s.to, "recvfrom(", "PUT /expect"),
                     find_line(s.from, s.to, "recvfrom(", "\"body\""), call,
                     "\"HTTP/1.1 100 Continue\\r\\n\\r\\n\", 25");
    if (line == NULL) {
        show(&s);
        fail_msg("no 100 Continue in a write of its own before the body");
    }
}

/* Both sides of the gateway have Nagle's algorithm turned off. */
static void
test_nodelay(void **state)
{
    struct stretch s;
    char call[64];

    (void)state;
    need_trace();
    s = find_stretch("get");
    snprintf(call, sizeof(call), "setsockopt(%d, ", s.client);
    assert_non_null(find_line(trace, s.to, call, "TCP_NODELAY, [1]"));
    snprintf(call, sizeof(call), "setsockopt(%d, ", find_store(&s, "small"));
    assert_non_null(find_line(trace, s.to, call, "TCP_NODELAY, [1]"));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_traffic),   cmocka_unit_test(test_get),
        cmocka_unit_test(test_miss),      cmocka_unit_test(test_put),
        cmocka_unit_test(test_head),      cmocka_unit_test(test_large_get),
        cmocka_unit_test(test_large_put), cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_nodelay),   cmocka_unit_test(test_continue),
    };

    return cmocka_run_group_tests(tests, NULL, teardown);
}
