/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_memcached_wire.c: both dialects against a real memcached: the server's own parser proves the
 * commands, and its answers prove the decoders.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "memcached_process.h"
#include "clock.h"
#include "memcached_codec.h"

static struct memcached_process server;

/* One connection, and the last answer on it. */
static struct {
    const struct memcached_dialect *dialect; /* (ref) */
    struct memcached_context context;
    int fd;
    char in[2 * 1024 * 1024]; /* received and not used up */
    size_t len;               /* bytes of it */
    struct memcached_reply reply;
    char value[1024]; /* the value of the last GET, if it fits */
} wire;

static void
wire_open(const struct memcached_dialect *dialect, bool no_cas)
{
    wire.dialect = dialect;
    wire.context = (struct memcached_context){ .now_s = clock_wall_ms() / 1000,
                                               .opaque = 4294967290,
                                               .no_cas = no_cas };
    wire.fd = memcached_process_connect(&server);
    wire.len = 0;
    assert_true(wire.fd >= 0);
}

static void
wire_close(void)
{
    assert_int_equal(wire.len, 0);
    close(wire.fd);
}

static void
wire_send(struct slice bytes)
{
    while (bytes.len > 0) {
        ssize_t n = send(wire.fd, bytes.ptr, bytes.len, MSG_NOSIGNAL);

        assert_true(n > 0);
        bytes = slice_of(bytes.ptr + n, bytes.len - (size_t)n);
    }
}

static void
wire_receive(void)
{
    ssize_t n = recv(wire.fd, wire.in + wire.len, sizeof(wire.in) - wire.len, 0);

    assert_true(n > 0);
    wire.len += (size_t)n;
}

static void
wire_use(size_t n)
{
    assert_true(n <= wire.len);
    memmove(wire.in, wire.in + n, wire.len - n);
    wire.len -= n;
}

/* Sends OP; false if the dialect cannot say it. */
static bool
wire_ask(const struct store_op *op)
{
    char command[MEMCACHED_COMMAND_MAX];
    size_t len = wire.dialect->encode(op, &wire.context, command);

    if (len == 0) {
        return false;
    }
    wire_send(slice_of(command, len));
    if (store_verb_has_value(op->verb)) {
        wire_send(op->value);
        wire_send(SLICE("\r\n"));
    }
    return true;
}

/* Waits for the answer to OP, with its value and tail. */
static enum store_status
wire_answer(const struct store_op *op)
{
    struct memcached_reply *r = &wire.reply;
    enum memcached_parse parse;

    while ((parse = wire.dialect->decode(op, &wire.context, wire.in, wire.len, r)) ==
           MEMCACHED_MORE) {
        wire_receive();
    }
    assert_int_equal(parse, MEMCACHED_REPLY);
    wire_use(r->line_len);
    if (r->has_value) {
        while (wire.len < r->value_len + r->tail.len) {
            wire_receive();
        }
        if (r->value_len < sizeof(wire.value)) {
            memcpy(wire.value, wire.in, r->value_len);
            wire.value[r->value_len] = '\0';
        }
        assert_memory_equal(wire.in + r->value_len, r->tail.ptr, r->tail.len);
        wire_use(r->value_len + r->tail.len);
    }
    return r->status;
}

/* One command and its answer, after which the connection is in step. */
static enum store_status
wire_do(const struct store_op *op)
{
    enum store_status status;

    if (!wire_ask(op)) {
        return STORE_UNSUPPORTED;
    }
    status = wire_answer(op);
    assert_false(wire.reply.close);
    assert_int_equal(wire.len, 0);
    wire.context.opaque++; /* wraps on the way */
    return status;
}

/* An op on KEY with VALUE; the rest is left to the caller. */
static struct store_op
an_op(enum store_verb verb, const char *key, const char *value)
{
    struct store_op op;

    store_op_init(&op, verb, slice_from_string(key));
    op.value = slice_from_string(value);
    return op;
}

static enum store_status
wire_simple(enum store_verb verb, const char *key, const char *value)
{
    struct store_op op = an_op(verb, key, value);

    op.delta = 5;
    return wire_do(&op);
}

static void
expect_stored(const char *key, const char *value)
{
    assert_int_equal(wire_simple(STORE_GET, key, NULL), STORE_OK);
    assert_int_equal(wire.reply.value_len, strlen(value));
    assert_string_equal(wire.value, value);
}

static void
try_storing(bool meta)
{
    struct store_op op = an_op(STORE_SET, "k", "one");

    assert_int_equal(wire_simple(STORE_GET, "k", NULL), STORE_MISS);
    assert_int_equal(wire_simple(STORE_HEAD, "k", NULL), STORE_MISS);
    op.flags = UINT32_MAX;
    assert_int_equal(wire_do(&op), STORE_OK);
    assert_true(meta == (wire.reply.cas != 0));
    expect_stored("k", "one");
    assert_int_equal(wire.reply.flags, UINT32_MAX);
    assert_true(wire.reply.cas != 0);
    assert_int_equal(wire.reply.ttl_left_s, meta ? STORE_TTL_NEVER : STORE_TTL_UNKNOWN);
    assert_int_equal(wire_simple(STORE_HEAD, "k", NULL), STORE_OK);
    assert_int_equal(wire.reply.value_len, 3);
    assert_true(wire.reply.has_value == !meta);
    assert_int_equal(wire.reply.flags, UINT32_MAX);

    assert_int_equal(wire_simple(STORE_ADD, "k", "x"), STORE_NOT_STORED);
    assert_int_equal(wire_simple(STORE_ADD, "new", "x"), STORE_OK);
    assert_int_equal(wire_simple(STORE_REPLACE, "none", "x"), STORE_NOT_STORED);
    assert_int_equal(wire_simple(STORE_REPLACE, "k", "two"), STORE_OK);
    assert_int_equal(wire_simple(STORE_APPEND, "none", "x"), STORE_NOT_STORED);
    assert_int_equal(wire_simple(STORE_PREPEND, "none", "x"), STORE_NOT_STORED);
    assert_int_equal(wire_simple(STORE_APPEND, "k", "!"), STORE_OK);
    assert_int_equal(wire_simple(STORE_PREPEND, "k", ">"), STORE_OK);
    expect_stored("k", ">two!");
    assert_int_equal(wire_simple(STORE_SET, "k", ""), STORE_OK);
    expect_stored("k", "");
    assert_int_equal(wire_simple(STORE_SET, "k", "\r\nEND\r\n"), STORE_OK);
    expect_stored("k", "\r\nEND\r\n");
}

/* Append and prepend leave flags and time to live as they are. */
static void
try_joining(void)
{
    struct store_op op = an_op(STORE_SET, "j", "m");

    op.flags = 9;
    op.ttl_s = 500;
    assert_int_equal(wire_do(&op), STORE_OK);
    for (op.verb = STORE_APPEND; op.verb <= STORE_PREPEND; op.verb++) {
        op.flags = 3;
        op.ttl_s = 1;
        assert_int_equal(wire_do(&op), STORE_OK);
    }
    expect_stored("j", "mmm");
    assert_int_equal(wire.reply.flags, 9);
    assert_true(wire.reply.ttl_left_s == STORE_TTL_UNKNOWN || wire.reply.ttl_left_s > 400);
}

static void
try_cas(bool meta)
{
    struct store_op op = an_op(STORE_CAS, "c", "two");

    op.cas = 5;
    assert_int_equal(wire_do(&op), STORE_MISS);
    assert_int_equal(wire_simple(STORE_SET, "c", "one"), STORE_OK);
    expect_stored("c", "one");
    op.cas = wire.reply.cas + 1;
    assert_int_equal(wire_do(&op), STORE_EXISTS);
    op.cas = 0;
    assert_int_equal(wire_do(&op), STORE_EXISTS);
    op.cas = UINT64_MAX;
    assert_int_equal(wire_do(&op), STORE_EXISTS);
    expect_stored("c", "one");
    op.cas = wire.reply.cas;
    assert_int_equal(wire_do(&op), STORE_OK);
    expect_stored("c", "two");

    op = an_op(STORE_DELETE, "c", NULL);
    op.cas = wire.reply.cas + 1;
    assert_int_equal(wire_do(&op), meta ? STORE_EXISTS : STORE_UNSUPPORTED);
    op.cas--;
    assert_int_equal(wire_do(&op), meta ? STORE_OK : STORE_UNSUPPORTED);
    op.cas = 0;
    assert_int_equal(wire_do(&op), meta ? STORE_MISS : STORE_OK);
    assert_int_equal(wire_do(&op), STORE_MISS);
}

static void
try_counting(bool meta)
{
    struct store_op op = an_op(STORE_INCR, "new counter", NULL);

    assert_int_equal(wire_simple(STORE_INCR, "n", NULL), STORE_MISS);
    assert_int_equal(wire_simple(STORE_DECR, "n", NULL), STORE_MISS);
    assert_int_equal(wire_simple(STORE_SET, "n", "101"), STORE_OK);
    assert_int_equal(wire_simple(STORE_INCR, "n", NULL), STORE_OK);
    assert_int_equal(wire.reply.number, 106);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(wire_simple(STORE_DECR, "n", NULL), STORE_OK);
    }
    assert_int_equal(wire.reply.number, 91);
    expect_stored("n", "91 ");
    assert_int_equal(wire_simple(STORE_DECR, "n", NULL), STORE_OK);
    assert_int_equal(wire.reply.number, 86);
    assert_int_equal(wire_simple(STORE_SET, "n", "18446744073709551615"), STORE_OK);
    assert_int_equal(wire_simple(STORE_INCR, "n", NULL), STORE_OK);
    assert_int_equal(wire.reply.number, 4);
    assert_int_equal(wire_simple(STORE_DECR, "n", NULL), STORE_OK);
    assert_int_equal(wire.reply.number, 0);
    assert_int_equal(wire_simple(STORE_SET, "n", "many"), STORE_OK);
    assert_int_equal(wire_simple(STORE_INCR, "n", NULL), STORE_BAD_VALUE);
    assert_int_equal(wire_simple(STORE_DECR, "n", NULL), STORE_BAD_VALUE);

    op.key = SLICE("new:counter");
    op.create = true;
    op.initial = UINT64_MAX;
    op.delta = UINT64_MAX;
    op.ttl_s = 600;
    assert_int_equal(wire_do(&op), meta ? STORE_OK : STORE_UNSUPPORTED);
    if (meta) {
        assert_true(wire.reply.number == UINT64_MAX);
        assert_in_range(wire.reply.ttl_left_s, 590, 600);
        assert_int_equal(wire_do(&op), STORE_OK);
        assert_true(wire.reply.number == UINT64_MAX - 1);
        op.verb = STORE_DECR;
        assert_int_equal(wire_do(&op), STORE_OK);
        assert_int_equal(wire.reply.number, 0);
    }
}

static void
try_ttl(bool meta)
{
    static const uint64_t ttls[] = { 0, 100, 2592000, 2592001, 315360000, STORE_TTL_MAX };
    struct store_op op = an_op(STORE_SET, "t", "v");

    assert_int_equal(wire_simple(STORE_TOUCH, "none", NULL), STORE_MISS);
    for (size_t i = 0; i < 2 * sizeof(ttls) / sizeof(ttls[0]); i++) {
        int64_t want = (int64_t)ttls[i / 2], left = INT32_MAX - wire.context.now_s;

        op.verb = i % 2 == 0 ? STORE_SET : STORE_TOUCH;
        op.ttl_s = ttls[i / 2];
        assert_int_equal(wire_do(&op), STORE_OK);
        expect_stored("t", "v");
        if (!meta) {
            assert_int_equal(wire.reply.ttl_left_s, STORE_TTL_UNKNOWN);
            continue;
        }
        want = want < left ? want : left;
        if (want == 0) {
            assert_int_equal(wire.reply.ttl_left_s, STORE_TTL_NEVER);
        } else {
            assert_in_range(wire.reply.ttl_left_s, want - 10, want + 10);
        }
    }
}

static void
try_long_keys(void)
{
    char key[251];

    memset(key, '\xe9', sizeof(key));
    key[250] = '\0';
    for (int i = 0; i < 2; i++) {
        assert_int_equal(wire_simple(STORE_SET, key, "77"), STORE_OK);
        expect_stored(key, "77");
        assert_int_equal(wire_simple(STORE_INCR, key, NULL), STORE_OK);
        assert_int_equal(wire_simple(STORE_TOUCH, key, NULL), STORE_OK);
        assert_int_equal(wire_simple(STORE_HEAD, key, NULL), STORE_OK);
        assert_int_equal(wire_simple(STORE_DELETE, key, NULL), STORE_OK);
        key[1] = '\0';
    }
}

/* What the server refuses leaves the connection in step. */
static void
try_large(void)
{
    static char block[1500000];
    struct store_op op = an_op(STORE_SET, "big", NULL);

    memset(block, 'b', sizeof(block));
    op.value = slice_of(block, sizeof(block));
    for (op.verb = STORE_SET; op.verb <= STORE_PREPEND; op.verb++) {
        assert_int_equal(wire_do(&op), STORE_TOO_LARGE);
    }
    op.verb = STORE_SET;
    op.value.len = 1000000;
    assert_int_equal(wire_do(&op), STORE_OK);
    op.verb = STORE_APPEND;
    op.value.len = 60000;
    assert_int_equal(wire_do(&op), STORE_NOT_STORED);
    assert_int_equal(wire_simple(STORE_GET, "big", NULL), STORE_OK);
    assert_int_equal(wire.reply.value_len, 1000000);
    assert_int_equal(wire_simple(STORE_HEAD, "big", NULL), STORE_OK);
    assert_int_equal(wire.reply.value_len, 1000000);
}

/* Many commands at once; the answers come in their order. */
static void
try_pipeline(void)
{
    static const enum store_verb verbs[] = { STORE_SET,   STORE_GET,    STORE_HEAD,
                                             STORE_ADD,   STORE_APPEND, STORE_INCR,
                                             STORE_TOUCH, STORE_DELETE, STORE_GET };
    static const enum store_status want[] = { STORE_OK,         STORE_OK, STORE_OK,
                                              STORE_NOT_STORED, STORE_OK, STORE_OK,
                                              STORE_OK,         STORE_OK, STORE_MISS };
    struct store_op op = an_op(STORE_GET, "p", "12");

    for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
        op.verb = verbs[i];
        assert_true(wire_ask(&op));
    }
    for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
        op.verb = verbs[i];
        assert_int_equal(wire_answer(&op), want[i]);
    }
}

static void
try_all(const struct memcached_dialect *dialect, bool no_cas)
{
    bool meta = dialect == &memcached_meta;

    assert_true(memcached_process_restart(&server));
    wire_open(dialect, no_cas);
    if (no_cas) {
        assert_int_equal(wire_simple(STORE_SET, "k", "one"), STORE_OK);
        expect_stored("k", "one");
        assert_int_equal(wire.reply.cas, 0);
        assert_int_equal(wire_simple(STORE_CAS, "k", "two"), STORE_UNSUPPORTED);
    } else {
        try_storing(meta);
        try_joining();
        try_cas(meta);
        try_counting(meta);
        try_ttl(meta);
        try_long_keys();
        try_large();
        try_pipeline();
    }
    wire_close();
}

static void
test_text_against_memcached(void **state)
{
    (void)state;
    try_all(&memcached_text, false);
    try_all(&memcached_text, true);
}

static void
test_meta_against_memcached(void **state)
{
    (void)state;
    try_all(&memcached_meta, false);
}

/* An item that another client has marked stale comes with notes, and is served. */
static void
test_stale_item(void **state)
{
    (void)state;
    wire_open(&memcached_meta, false);
    assert_int_equal(wire_simple(STORE_SET, "stale", "7"), STORE_OK);
    wire_send(SLICE("md stale I T30\r\n"));
    while (wire.len < 4) {
        wire_receive();
    }
    assert_memory_equal(wire.in, "HD\r\n", 4);
    wire_use(4);
    expect_stored("stale", "7");
    expect_stored("stale", "7");
    assert_int_equal(wire_simple(STORE_HEAD, "stale", NULL), STORE_OK);
    assert_int_equal(wire_simple(STORE_INCR, "stale", NULL), STORE_OK);
    assert_int_equal(wire_simple(STORE_TOUCH, "stale", NULL), STORE_OK);
    wire_close();
}

static void
test_version_of_memcached(void **state)
{
    enum memcached_parse parse;
    bool meta = false;
    size_t line_len = 0;

    (void)state;
    wire_open(&memcached_text, false);
    wire_send(SLICE("version\r\n"));
    while ((parse = memcached_version_parse(wire.in, wire.len, &meta, &line_len)) ==
           MEMCACHED_MORE) {
        wire_receive();
    }
    assert_int_equal(parse, MEMCACHED_REPLY);
    wire_use(line_len);
    wire_close();
}

static int
setup(void **state)
{
    (void)state;
    return memcached_process_start(&server, NULL) ? 0 : -1;
}

static int
teardown(void **state)
{
    (void)state;
    memcached_process_stop(&server);
    return 0;
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_version_of_memcached),
        cmocka_unit_test(test_stale_item),
        cmocka_unit_test(test_text_against_memcached),
        cmocka_unit_test(test_meta_against_memcached),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
