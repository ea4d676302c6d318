/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_memcached_text.c: the bytes of every command, and every reply, good or hostile,
 * cut anywhere.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../support/codec_case.h"

#define KEY_250                                                                                    \
    "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890"  \
    "1234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901"  \
    "23456789012345678901234567890123456789012345678901234567890123456789"

static struct guard guard;

static int
setup(void **state)
{
    (void)state;
    guard_init(&guard, 8192);
    return 0;
}

static int
teardown(void **state)
{
    (void)state;
    guard_deinit(&guard);
    return 0;
}

/* ---- commands ---- */

static void
expect_command(const struct store_op *op, unsigned options, const char *want)
{
    struct memcached_context context = codec_context(options);
    char out[MEMCACHED_COMMAND_MAX + 1];
    size_t len;

    memset(out, '#', sizeof(out));
    len = memcached_text.encode(op, &context, out);
    assert_true(len <= MEMCACHED_COMMAND_MAX);
    assert_int_equal(out[len], '#');
    out[len] = '\0';
    assert_string_equal(out, want);
}

static void
test_commands(void **state)
{
    static const struct {
        enum store_verb verb;
        unsigned options;
        const char *want;
    } table[] = {
        { STORE_GET, 0, "gets the:key\r\n" },
        { STORE_GET, CODEC_NO_GETS, "get the:key\r\n" },
        { STORE_HEAD, 0, "gets the:key\r\n" },
        { STORE_HEAD, CODEC_NO_GETS, "get the:key\r\n" },
        { STORE_SET, 0, "set the:key 7 60 3\r\n" },
        { STORE_ADD, 0, "add the:key 7 60 3\r\n" },
        { STORE_REPLACE, 0, "replace the:key 7 60 3\r\n" },
        { STORE_CAS, 0, "cas the:key 7 60 3 991\r\n" },
        { STORE_APPEND, 0, "append the:key 0 0 3\r\n" },
        { STORE_PREPEND, 0, "prepend the:key 0 0 3\r\n" },
        { STORE_DELETE, 0, "delete the:key\r\n" },
        { STORE_INCR, 0, "incr the:key 5\r\n" },
        { STORE_DECR, 0, "decr the:key 5\r\n" },
        { STORE_TOUCH, 0, "touch the:key 60\r\n" },
        { STORE_DELETE, CODEC_WITH_CAS, "" },
        { STORE_CAS, CODEC_NO_GETS, "" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct store_op op = codec_op(table[i].verb, table[i].options);

        op.flags = 7;
        op.ttl_s = 60;
        expect_command(&op, table[i].options, table[i].want);
    }
}

static void
test_no_words_for_a_new_counter(void **state)
{
    (void)state;
    for (enum store_verb verb = STORE_INCR; verb <= STORE_DECR; verb++) {
        struct store_op op = codec_op(verb, CODEC_PLAIN);

        op.create = true;
        expect_command(&op, CODEC_PLAIN, "");
    }
}

static void
test_longest_command(void **state)
{
    struct store_op op = codec_op(STORE_CAS, CODEC_PLAIN);

    (void)state;
    op.key = SLICE(KEY_250);
    op.flags = UINT32_MAX;
    op.ttl_s = STORE_TTL_MAX;
    op.cas = UINT64_MAX;
    assert_int_equal(op.key.len, 250);
    expect_command(&op, CODEC_PLAIN,
                   "cas " KEY_250 " 4294967295 2147483647 3 18446744073709551615\r\n");
}

static void
test_ttl(void **state)
{
    struct store_op op = codec_op(STORE_TOUCH, CODEC_PLAIN);

    (void)state;
    op.ttl_s = 0;
    expect_command(&op, CODEC_PLAIN, "touch the:key 0\r\n");
    op.ttl_s = 2592000;
    expect_command(&op, CODEC_PLAIN, "touch the:key 2592000\r\n");
    op.ttl_s = 2592001;
    expect_command(&op, CODEC_PLAIN, "touch the:key 1702592001\r\n");
}

/* ---- replies ---- */

static const struct codec_case replies[] = {
    { .verb = STORE_GET,
      .bytes = SLICE_LITERAL("VALUE the:key 5 3 42\r\nabc\r\nEND\r\n"),
      .has_value = true,
      .value_len = 3,
      .flags = 5,
      .cas = 42 },
    { .verb = STORE_GET,
      .bytes = SLICE_LITERAL("VALUE the:key 4294967295 0 18446744073709551615\r\n\r\nEND\r\n"),
      .has_value = true,
      .flags = UINT32_MAX,
      .cas = UINT64_MAX },
    { .verb = STORE_GET,
      .bytes = SLICE_LITERAL("VALUE the:key 0 7\r\n\0\r\nEND\r\r\nEND\r\n"),
      .has_value = true,
      .value_len = 7 },
    { .verb = STORE_GET,
      .options = CODEC_NO_GETS,
      .bytes = SLICE_LITERAL("VALUE the:key 5 3\r\nabc\r\nEND\r\n"),
      .has_value = true,
      .value_len = 3,
      .flags = 5 },
    { .verb = STORE_HEAD,
      .bytes = SLICE_LITERAL("VALUE the:key 5 3 42\r\nabc\r\nEND\r\n"),
      .has_value = true,
      .value_len = 3,
      .flags = 5,
      .cas = 42 },
    { .verb = STORE_GET, .bytes = SLICE_LITERAL("END\r\n"), .status = STORE_MISS },
    { .verb = STORE_HEAD, .bytes = SLICE_LITERAL("END\r\n"), .status = STORE_MISS },
    { .verb = STORE_SET, .bytes = SLICE_LITERAL("STORED\r\n") },
    { .verb = STORE_ADD, .bytes = SLICE_LITERAL("STORED\r\n") },
    { .verb = STORE_REPLACE, .bytes = SLICE_LITERAL("STORED\r\n") },
    { .verb = STORE_CAS, .bytes = SLICE_LITERAL("STORED\r\n") },
    { .verb = STORE_APPEND, .bytes = SLICE_LITERAL("STORED\r\n") },
    { .verb = STORE_PREPEND, .bytes = SLICE_LITERAL("STORED\r\n") },
    { .verb = STORE_ADD, .bytes = SLICE_LITERAL("NOT_STORED\r\n"), .status = STORE_NOT_STORED },
    { .verb = STORE_REPLACE, .bytes = SLICE_LITERAL("NOT_STORED\r\n"), .status = STORE_NOT_STORED },
    { .verb = STORE_APPEND, .bytes = SLICE_LITERAL("NOT_STORED\r\n"), .status = STORE_NOT_STORED },
    { .verb = STORE_PREPEND, .bytes = SLICE_LITERAL("NOT_STORED\r\n"), .status = STORE_NOT_STORED },
    { .verb = STORE_SET, .bytes = SLICE_LITERAL("NOT_STORED\r\n"), .status = STORE_BAD_REPLY },
    { .verb = STORE_CAS, .bytes = SLICE_LITERAL("NOT_STORED\r\n"), .status = STORE_BAD_REPLY },
    { .verb = STORE_CAS, .bytes = SLICE_LITERAL("EXISTS\r\n"), .status = STORE_EXISTS },
    { .verb = STORE_CAS, .bytes = SLICE_LITERAL("NOT_FOUND\r\n"), .status = STORE_MISS },
    { .verb = STORE_DELETE, .bytes = SLICE_LITERAL("DELETED\r\n") },
    { .verb = STORE_DELETE, .bytes = SLICE_LITERAL("NOT_FOUND\r\n"), .status = STORE_MISS },
    { .verb = STORE_TOUCH, .bytes = SLICE_LITERAL("TOUCHED\r\n") },
    { .verb = STORE_TOUCH, .bytes = SLICE_LITERAL("NOT_FOUND\r\n"), .status = STORE_MISS },
    { .verb = STORE_INCR, .bytes = SLICE_LITERAL("0\r\n") },
    { .verb = STORE_INCR,
      .bytes = SLICE_LITERAL("18446744073709551615\r\n"),
      .number = UINT64_MAX },
    { .verb = STORE_DECR, .bytes = SLICE_LITERAL("5   \r\n"), .number = 5 },
    { .verb = STORE_INCR, .bytes = SLICE_LITERAL("NOT_FOUND\r\n"), .status = STORE_MISS },
    { .verb = STORE_DECR, .bytes = SLICE_LITERAL("NOT_FOUND\r\n"), .status = STORE_MISS },
};

static void
test_replies(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(replies) / sizeof(replies[0]); i++) {
        codec_expect_reply(&memcached_text, &guard, &replies[i]);
    }
}

static void
test_largest_value(void **state)
{
    struct codec_case c = { .verb = STORE_GET, .flags = 1, .cas = 2 };
    struct store_op op = codec_op(STORE_GET, CODEC_PLAIN);
    struct memcached_context context = codec_context(CODEC_PLAIN);
    struct memcached_reply reply;

    (void)state;
    c.bytes = SLICE("VALUE the:key 1 1073741824 2\r\n");
    assert_int_equal(memcached_text.decode(&op, &context, c.bytes.ptr, c.bytes.len, &reply),
                     MEMCACHED_REPLY);
    assert_int_equal(reply.value_len, 1073741824);
    codec_expect_nonsense(&memcached_text, &guard, STORE_GET, CODEC_PLAIN,
                          SLICE("VALUE the:key 1 1073741825 2\r\n"));
}

/* The answers of one verb mean nothing to another. */
static void
test_answers_of_other_verbs(void **state)
{
    const unsigned reads = 1U << STORE_GET | 1U << STORE_HEAD;
    const unsigned counts = 1U << STORE_INCR | 1U << STORE_DECR;
    const unsigned stores = 1U << STORE_SET | 1U << STORE_ADD | 1U << STORE_REPLACE |
                            1U << STORE_CAS | 1U << STORE_APPEND | 1U << STORE_PREPEND;
    const struct {
        struct slice bytes;
        unsigned verbs; /* that it is an answer to, as bits */
    } table[] = {
        { SLICE("END\r\n"), reads },
        { SLICE("VALUE the:key 0 1 1\r\nx\r\nEND\r\n"), reads },
        { SLICE("STORED\r\n"), stores },
        { SLICE("NOT_STORED\r\n"), stores },
        { SLICE("EXISTS\r\n"), 1U << STORE_CAS },
        { SLICE("NOT_FOUND\r\n"),
          counts | 1U << STORE_CAS | 1U << STORE_DELETE | 1U << STORE_TOUCH },
        { SLICE("DELETED\r\n"), 1U << STORE_DELETE },
        { SLICE("TOUCHED\r\n"), 1U << STORE_TOUCH },
        { SLICE("12\r\n"), counts },
        { SLICE("OK\r\n"), 0 },
        { SLICE("HD\r\n"), 0 },
        { SLICE("VERSION 1.6.18\r\n"), 0 },
    };

    (void)state;
    for (enum store_verb verb = STORE_GET; verb < STORE_VERB_COUNT; verb++) {
        for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
            if ((table[i].verbs & 1U << verb) == 0) {
                codec_expect_nonsense(&memcached_text, &guard, verb, CODEC_PLAIN, table[i].bytes);
            }
        }
    }
}

static void
test_hostile_values(void **state)
{
    static const struct slice table[] = {
        SLICE_LITERAL("VALUE the:kez 0 1 1\r\nx\r\nEND\r\n"),
        SLICE_LITERAL("VALUE the:ke 0 1 1\r\nx\r\nEND\r\n"),
        SLICE_LITERAL("VALUE the:key2 0 1 1\r\nx\r\nEND\r\n"),
        SLICE_LITERAL("VALUE THE:KEY 0 1 1\r\nx\r\nEND\r\n"),
        SLICE_LITERAL("VALUE the:key\0 0 1 1\r\nx\r\nEND\r\n"),
        SLICE_LITERAL("VALUE  the:key 0 1 1\r\nx\r\nEND\r\n"),
        SLICE_LITERAL("VALUE the:key  0 1 1\r\nx\r\nEND\r\n"),
        SLICE_LITERAL("VALUE the:key 0  1 1\r\nx\r\nEND\r\n"),
        SLICE_LITERAL("VALUE the:key 0 1 1 \r\nx\r\nEND\r\n"),
        SLICE_LITERAL("VALUE the:key 0 1 1 1\r\nx\r\nEND\r\n"),
        SLICE_LITERAL("VALUE the:key 0 1 \r\nx\r\nEND\r\n"),
        SLICE_LITERAL("VALUE the:key 0 1 1\nx\r\nEND\r\n"),
        SLICE_LITERAL("VALUE the:key 0 1 1\r\r\nx\r\nEND\r\n"),
        SLICE_LITERAL("VALUE the:key 0 1 1\0\r\nx\r\nEND\r\n"),
        SLICE_LITERAL("VALUE the:key 0 1\0 1\r\nx\r\nEND\r\n"),
        SLICE_LITERAL("VALUE the:key 0\r\n"),
        SLICE_LITERAL("VALUE the:key 0 \r\n"),
        SLICE_LITERAL("VALUE the:key\r\n"),
        SLICE_LITERAL("VALUE the:key \r\n"),
        SLICE_LITERAL("VALUE \r\n"),
        SLICE_LITERAL("VALUE\r\n"),
        SLICE_LITERAL(" VALUE the:key 0 1 1\r\nx\r\nEND\r\n"),
        SLICE_LITERAL("value the:key 0 1 1\r\nx\r\nEND\r\n"),
        SLICE_LITERAL("\r\nVALUE the:key 0 1 1\r\nx\r\nEND\r\n"),
        SLICE_LITERAL("\0VALUE the:key 0 1 1\r\nx\r\nEND\r\n"),
        SLICE_LITERAL("END\n"),
        SLICE_LITERAL("END \r\n"),
        SLICE_LITERAL("END\0\r\n"),
        SLICE_LITERAL("ENDING\r\n"),
        SLICE_LITERAL("\r\n"),
        SLICE_LITERAL("\n"),
        SLICE_LITERAL("HTTP/1.1 400 Bad Request\r\n"),
        SLICE_LITERAL("-ERR unknown command\r\n"),
    };

    (void)state;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        codec_expect_nonsense(&memcached_text, &guard, STORE_GET, CODEC_PLAIN, table[i]);
        codec_expect_nonsense(&memcached_text, &guard, STORE_HEAD, CODEC_PLAIN, table[i]);
    }
    codec_expect_nonsense(&memcached_text, &guard, STORE_GET, CODEC_NO_GETS,
                          SLICE("VALUE the:key 0 1 1\r\nx\r\nEND\r\n"));
    codec_expect_nonsense(&memcached_text, &guard, STORE_SET, CODEC_PLAIN, SLICE("STORED \r\n"));
    codec_expect_nonsense(&memcached_text, &guard, STORE_SET, CODEC_PLAIN, SLICE("STORED\n"));
    codec_expect_nonsense(&memcached_text, &guard, STORE_SET, CODEC_PLAIN, SLICE("\0STORED\r\n"));
    codec_expect_nonsense(&memcached_text, &guard, STORE_DECR, CODEC_PLAIN, SLICE("5 5\r\n"));
    codec_expect_nonsense(&memcached_text, &guard, STORE_DECR, CODEC_PLAIN, SLICE("   \r\n"));
}

static void
test_bad_numbers(void **state)
{
    (void)state;
    codec_expect_bad_numbers(&memcached_text, &guard, STORE_GET, "VALUE the:key %s 1 1\r\n", true);
    codec_expect_bad_numbers(&memcached_text, &guard, STORE_GET, "VALUE the:key 0 %s 1\r\n", true);
    codec_expect_bad_numbers(&memcached_text, &guard, STORE_GET, "VALUE the:key 0 1 %s\r\n", false);
    codec_expect_nonsense(&memcached_text, &guard, STORE_GET, CODEC_PLAIN,
                          SLICE("VALUE the:key 0 2147483648 1\r\n"));
    codec_expect_bad_numbers(&memcached_text, &guard, STORE_INCR, "%s\r\n", false);
    codec_expect_bad_numbers(&memcached_text, &guard, STORE_DECR, "%s\r\n", false);
}

static void
test_no_end_of_line(void **state)
{
    static char endless[3000];
    struct store_op op = codec_op(STORE_GET, CODEC_PLAIN);
    struct memcached_context context = codec_context(CODEC_PLAIN);
    struct memcached_reply reply;

    (void)state;
    memset(endless, 'E', sizeof(endless));
    codec_expect_nonsense(&memcached_text, &guard, STORE_GET, CODEC_PLAIN,
                          slice_of(endless, sizeof(endless)));
    assert_int_equal(memcached_text.decode(&op, &context, endless, MEMCACHED_LINE_MAX - 1, &reply),
                     MEMCACHED_MORE);
    assert_int_equal(memcached_text.decode(&op, &context, endless, MEMCACHED_LINE_MAX, &reply),
                     MEMCACHED_NONSENSE);
    memcpy(endless, "SERVER_ERROR ", 13);
    memcpy(endless + MEMCACHED_LINE_MAX - 2, "\r\n", 2);
    assert_int_equal(memcached_text.decode(&op, &context, endless, sizeof(endless), &reply),
                     MEMCACHED_REPLY);
    memcpy(endless + MEMCACHED_LINE_MAX - 2, "E\r\n", 3);
    assert_int_equal(memcached_text.decode(&op, &context, endless, sizeof(endless), &reply),
                     MEMCACHED_NONSENSE);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_commands),
        cmocka_unit_test(test_no_words_for_a_new_counter),
        cmocka_unit_test(test_longest_command),
        cmocka_unit_test(test_ttl),
        cmocka_unit_test(test_replies),
        cmocka_unit_test(test_largest_value),
        cmocka_unit_test(test_answers_of_other_verbs),
        cmocka_unit_test(test_hostile_values),
        cmocka_unit_test(test_bad_numbers),
        cmocka_unit_test(test_no_end_of_line),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
