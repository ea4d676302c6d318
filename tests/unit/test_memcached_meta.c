/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_memcached_meta.c: the bytes of every command, and every reply, good or hostile,
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
expect_command(const struct store_op *op, uint32_t opaque, const char *want)
{
    struct memcached_context context = codec_context(CODEC_PLAIN);
    char out[MEMCACHED_COMMAND_MAX + 1];
    size_t len;

    context.opaque = opaque;
    memset(out, '#', sizeof(out));
    len = memcached_meta.encode(op, &context, out);
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
        { STORE_GET, 0, "mg the:key v f c t O77\r\n" },
        { STORE_HEAD, 0, "mg the:key f c t s O77\r\n" },
        { STORE_SET, 0, "ms the:key 3 T60 F7 c MS O77\r\n" },
        { STORE_ADD, 0, "ms the:key 3 T60 F7 c ME O77\r\n" },
        { STORE_REPLACE, 0, "ms the:key 3 T60 F7 c MR O77\r\n" },
        { STORE_CAS, 0, "ms the:key 3 C991 T60 F7 c MS O77\r\n" },
        { STORE_APPEND, 0, "ms the:key 3 c MA O77\r\n" },
        { STORE_PREPEND, 0, "ms the:key 3 c MP O77\r\n" },
        { STORE_DELETE, 0, "md the:key O77\r\n" },
        { STORE_DELETE, CODEC_WITH_CAS, "md the:key C991 O77\r\n" },
        { STORE_INCR, 0, "ma the:key MI D5 v c t O77\r\n" },
        { STORE_DECR, 0, "ma the:key MD D5 v c t O77\r\n" },
        { STORE_TOUCH, 0, "mg the:key T60 O77\r\n" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct store_op op = codec_op(table[i].verb, table[i].options);

        op.flags = 7;
        op.ttl_s = 60;
        expect_command(&op, CODEC_OPAQUE, table[i].want);
    }
}

/* N stands before t: the other way round the answer tells a wrong time to live. */
static void
test_new_counter(void **state)
{
    struct store_op op = codec_op(STORE_INCR, CODEC_PLAIN);

    (void)state;
    op.create = true;
    op.initial = 41;
    op.ttl_s = 60;
    expect_command(&op, 0, "ma the:key MI D5 N60 J41 v c t O0\r\n");
    op.verb = STORE_DECR;
    op.ttl_s = 0;
    expect_command(&op, UINT32_MAX, "ma the:key MD D5 N0 J41 v c t O4294967295\r\n");
}

static void
test_longest_commands(void **state)
{
    struct store_op op = codec_op(STORE_CAS, CODEC_PLAIN);

    (void)state;
    op.key = SLICE(KEY_250);
    op.flags = UINT32_MAX;
    op.ttl_s = STORE_TTL_MAX;
    op.cas = UINT64_MAX;
    op.delta = UINT64_MAX;
    op.initial = UINT64_MAX;
    op.create = true;
    assert_int_equal(op.key.len, 250);
    expect_command(&op, UINT32_MAX,
                   "ms " KEY_250
                   " 3 C18446744073709551615 T2147483647 F4294967295 c MS O4294967295\r\n");
    op.verb = STORE_INCR;
    expect_command(&op, UINT32_MAX,
                   "ma " KEY_250 " MI D18446744073709551615 N2147483647 J18446744073709551615"
                   " v c t O4294967295\r\n");
}

/* ---- replies ---- */

static const struct codec_case replies[] = {
    { .verb = STORE_GET,
      .bytes = SLICE_LITERAL("VA 3 f5 c42 t-1 O77\r\nabc\r\n"),
      .has_value = true,
      .value_len = 3,
      .flags = 5,
      .cas = 42,
      .ttl_s = STORE_TTL_NEVER },
    { .verb = STORE_GET,
      .bytes = SLICE_LITERAL("VA 0 O77 t4294967295 f4294967295 c18446744073709551615\r\n\r\n"),
      .has_value = true,
      .flags = UINT32_MAX,
      .cas = UINT64_MAX,
      .ttl_s = 4294967295 },
    { .verb = STORE_GET, /* stale, and this reader was chosen to bring a new one */
      .bytes = SLICE_LITERAL("VA 5 f0 c15 t30 O77 X W\r\na\r\n\0b\r\n"),
      .has_value = true,
      .value_len = 5,
      .cas = 15,
      .ttl_s = 30 },
    { .verb = STORE_GET,
      .bytes = SLICE_LITERAL("VA 1 f0 c15 t30 O77 Z X\r\na\r\n"),
      .has_value = true,
      .value_len = 1,
      .cas = 15,
      .ttl_s = 30 },
    { .verb = STORE_HEAD,
      .bytes = SLICE_LITERAL("HD f5 c42 t100 s1048000 O77\r\n"),
      .value_len = 1048000,
      .flags = 5,
      .cas = 42,
      .ttl_s = 100 },
    { .verb = STORE_HEAD,
      .bytes = SLICE_LITERAL("HD f0 c42 t100 s1 O77 X W\r\n"),
      .value_len = 1,
      .cas = 42,
      .ttl_s = 100 },
    { .verb = STORE_GET, .bytes = SLICE_LITERAL("EN O77\r\n"), .status = STORE_MISS },
    { .verb = STORE_GET, .bytes = SLICE_LITERAL("EN\r\n"), .status = STORE_MISS },
    { .verb = STORE_HEAD, .bytes = SLICE_LITERAL("EN O77\r\n"), .status = STORE_MISS },
    { .verb = STORE_HEAD, .bytes = SLICE_LITERAL("EN\r\n"), .status = STORE_MISS },
    { .verb = STORE_TOUCH, .bytes = SLICE_LITERAL("HD O77\r\n") },
    { .verb = STORE_TOUCH, .bytes = SLICE_LITERAL("HD O77 X W\r\n") },
    { .verb = STORE_TOUCH, .bytes = SLICE_LITERAL("EN O77\r\n"), .status = STORE_MISS },
    { .verb = STORE_TOUCH, .bytes = SLICE_LITERAL("EN\r\n"), .status = STORE_MISS },
    { .verb = STORE_SET, .bytes = SLICE_LITERAL("HD c12 O77\r\n"), .cas = 12 },
    { .verb = STORE_ADD, .bytes = SLICE_LITERAL("HD c12 O77\r\n"), .cas = 12 },
    { .verb = STORE_REPLACE, .bytes = SLICE_LITERAL("HD c12 O77\r\n"), .cas = 12 },
    { .verb = STORE_CAS, .bytes = SLICE_LITERAL("HD c12 O77\r\n"), .cas = 12 },
    { .verb = STORE_APPEND, .bytes = SLICE_LITERAL("HD c12 O77\r\n"), .cas = 12 },
    { .verb = STORE_PREPEND, .bytes = SLICE_LITERAL("HD c12 O77\r\n"), .cas = 12 },
    { .verb = STORE_ADD, .bytes = SLICE_LITERAL("NS c0 O77\r\n"), .status = STORE_NOT_STORED },
    { .verb = STORE_ADD, .bytes = SLICE_LITERAL("NS O77\r\n"), .status = STORE_NOT_STORED },
    { .verb = STORE_REPLACE, .bytes = SLICE_LITERAL("NS c0 O77\r\n"), .status = STORE_NOT_STORED },
    { .verb = STORE_APPEND, .bytes = SLICE_LITERAL("NS c0 O77\r\n"), .status = STORE_NOT_STORED },
    { .verb = STORE_PREPEND, .bytes = SLICE_LITERAL("NS c0 O77\r\n"), .status = STORE_NOT_STORED },
    { .verb = STORE_SET, .bytes = SLICE_LITERAL("NS c0 O77\r\n"), .status = STORE_BAD_REPLY },
    { .verb = STORE_CAS, .bytes = SLICE_LITERAL("NS c0 O77\r\n"), .status = STORE_BAD_REPLY },
    { .verb = STORE_CAS, .bytes = SLICE_LITERAL("EX c0 O77\r\n"), .status = STORE_EXISTS },
    { .verb = STORE_CAS, .bytes = SLICE_LITERAL("EX c5 O77\r\n"), .status = STORE_EXISTS },
    { .verb = STORE_CAS, .bytes = SLICE_LITERAL("NF c0 O77\r\n"), .status = STORE_MISS },
    { .verb = STORE_DELETE, .bytes = SLICE_LITERAL("HD O77\r\n") },
    { .verb = STORE_DELETE, .bytes = SLICE_LITERAL("HD  O77\r\n") },
    { .verb = STORE_DELETE, .bytes = SLICE_LITERAL("NF O77\r\n"), .status = STORE_MISS },
    { .verb = STORE_DELETE, .bytes = SLICE_LITERAL("NF  O77\r\n"), .status = STORE_MISS },
    { .verb = STORE_DELETE,
      .options = CODEC_WITH_CAS,
      .bytes = SLICE_LITERAL("EX O77\r\n"),
      .status = STORE_EXISTS },
    { .verb = STORE_INCR,
      .bytes = SLICE_LITERAL("VA 2 c15 t-1 O77\r\n17\r\n"),
      .cas = 15,
      .ttl_s = STORE_TTL_NEVER,
      .number = 17 },
    { .verb = STORE_DECR,
      .bytes = SLICE_LITERAL("VA 20 t9 c15 O77\r\n18446744073709551615\r\n"),
      .cas = 15,
      .ttl_s = 9,
      .number = UINT64_MAX },
    { .verb = STORE_DECR,
      .bytes = SLICE_LITERAL("VA 3 c15 t9 O77\r\n5  \r\n"),
      .cas = 15,
      .ttl_s = 9,
      .number = 5 },
    { .verb = STORE_INCR, .bytes = SLICE_LITERAL("NF O77\r\n"), .status = STORE_MISS },
    { .verb = STORE_INCR, .bytes = SLICE_LITERAL("NF  O77\r\n"), .status = STORE_MISS },
    { .verb = STORE_DECR, .bytes = SLICE_LITERAL("NF O77\r\n"), .status = STORE_MISS },
    { .verb = STORE_INCR, .bytes = SLICE_LITERAL("NS O77\r\n"), .status = STORE_BAD_REPLY },
};

static void
test_replies(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(replies) / sizeof(replies[0]); i++) {
        codec_expect_reply(&memcached_meta, &guard, &replies[i]);
    }
}

static void
expect_nonsense(enum store_verb verb, struct slice bytes)
{
    codec_expect_nonsense(&memcached_meta, &guard, verb, CODEC_PLAIN, bytes);
}

/* The answers of one verb mean nothing to another. */
static void
test_answers_of_other_verbs(void **state)
{
    const unsigned counts = 1U << STORE_INCR | 1U << STORE_DECR;
    const unsigned stores = 1U << STORE_SET | 1U << STORE_ADD | 1U << STORE_REPLACE |
                            1U << STORE_CAS | 1U << STORE_APPEND | 1U << STORE_PREPEND;
    const struct {
        struct slice bytes;
        unsigned verbs; /* that it is an answer to, as bits */
    } table[] = {
        { SLICE("VA 1 f0 c1 t-1 O77\r\nx\r\n"), 1U << STORE_GET },
        { SLICE("VA 1 c1 t-1 O77\r\n5\r\n"), counts },
        { SLICE("HD f0 c1 t-1 s1 O77\r\n"), 1U << STORE_HEAD },
        { SLICE("HD f0 c1 t-1 O77\r\n"), 0 },
        { SLICE("HD c1 O77\r\n"), stores },
        { SLICE("HD O77\r\n"), 1U << STORE_DELETE | 1U << STORE_TOUCH },
        { SLICE("EN O77\r\n"), 1U << STORE_GET | 1U << STORE_HEAD | 1U << STORE_TOUCH },
        { SLICE("NF O77\r\n"), counts | 1U << STORE_CAS | 1U << STORE_DELETE },
        { SLICE("NS c0 O77\r\n"), stores | counts },
        { SLICE("EX c0 O77\r\n"), 1U << STORE_CAS },
        { SLICE("MN\r\n"), 0 },
        { SLICE("OK O77\r\n"), 0 },
        { SLICE("END\r\n"), 0 },
        { SLICE("STORED\r\n"), 0 },
        { SLICE("DELETED\r\n"), 0 },
    };

    (void)state;
    for (enum store_verb verb = STORE_GET; verb < STORE_VERB_COUNT; verb++) {
        for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
            if ((table[i].verbs & 1U << verb) == 0) {
                expect_nonsense(verb, table[i].bytes);
            }
        }
    }
}

/* Without the right opaque no answer counts, whatever else it says. */
static void
test_wrong_opaque(void **state)
{
    static const char *const wrong[] = {
        "O78",  "O7",   "O770",    "O077",        "O",   "O-77",
        "O+77", "O 77", "O77 O77", "O4294967373", "o77", "O18446744073709551693",
        "O77x", "",     "O77 ",
    };
    static const struct {
        enum store_verb verb;
        const char *before;
        const char *after;
    } table[] = {
        { STORE_GET, "VA 1 f0 c1 t-1 ", "\r\nx\r\n" },
        { STORE_HEAD, "HD f0 c1 t-1 s3 ", "\r\n" },
        { STORE_TOUCH, "HD ", "\r\n" },
        { STORE_SET, "HD c1 ", "\r\n" },
        { STORE_ADD, "NS c0 ", "\r\n" },
        { STORE_CAS, "EX c0 ", "\r\n" },
        { STORE_CAS, "NF c0 ", "\r\n" },
        { STORE_DELETE, "HD ", "\r\n" },
        { STORE_DELETE, "NF ", "\r\n" },
        { STORE_INCR, "NF ", "\r\n" },
        { STORE_INCR, "VA 1 c1 t-1 ", "\r\n5\r\n" },
        { STORE_GET, "EN ", "\r\n" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        for (size_t j = 0; j < sizeof(wrong) / sizeof(wrong[0]); j++) {
            char text[128];

            strcpy(text, table[i].before);
            strcat(text, wrong[j]);
            strcat(text, table[i].after);
            expect_nonsense(table[i].verb, slice_from_string(text));
        }
    }
    expect_nonsense(STORE_SET, SLICE("HD c1\r\n"));
    expect_nonsense(STORE_DELETE, SLICE("HD\r\n"));
    expect_nonsense(STORE_DELETE, SLICE("NF\r\n"));
    expect_nonsense(STORE_INCR, SLICE("NF\r\n"));
}

static void
test_hostile_lines(void **state)
{
    static const struct slice table[] = {
        SLICE_LITERAL("VA 1 f0 c1 t-1 O77\nx\r\n"),
        SLICE_LITERAL("VA 1 f0 c1 t-1 O77\r\r\nx\r\n"),
        SLICE_LITERAL("VA 1 f0 c1 t-1 O77 \r\nx\r\n"),
        SLICE_LITERAL("VA 1 f0 c1 t-1  O77\r\nx\r\n"),
        SLICE_LITERAL("VA  1 f0 c1 t-1 O77\r\nx\r\n"),
        SLICE_LITERAL("VA 1  f0 c1 t-1 O77\r\nx\r\n"),
        SLICE_LITERAL("VA 1f0 c1 t-1 O77\r\nx\r\n"),
        SLICE_LITERAL("VA1 f0 c1 t-1 O77\r\nx\r\n"),
        SLICE_LITERAL("VA f0 c1 t-1 O77\r\nx\r\n"),
        SLICE_LITERAL("VA\r\n"),
        SLICE_LITERAL("VA \r\n"),
        SLICE_LITERAL("VA 1\r\nx\r\n"),
        SLICE_LITERAL("VA 1 \r\nx\r\n"),
        SLICE_LITERAL("VA 1 c1 t-1 O77\r\nx\r\n"),
        SLICE_LITERAL("VA 1 f0 t-1 O77\r\nx\r\n"),
        SLICE_LITERAL("VA 1 f0 c1 O77\r\nx\r\n"),
        SLICE_LITERAL("VA 1 f0 c1 t-1\r\nx\r\n"),
        SLICE_LITERAL("VA 1 f0 f0 c1 t-1 O77\r\nx\r\n"),
        SLICE_LITERAL("VA 1 f0 c1 c1 t-1 O77\r\nx\r\n"),
        SLICE_LITERAL("VA 1 f0 c1 t-1 s1 O77\r\nx\r\n"),
        SLICE_LITERAL("VA 1 f0 c1 t-1 O77 kthe:key\r\nx\r\n"),
        SLICE_LITERAL("VA 1 f0 c1 t-1 O77 W1\r\nx\r\n"),
        SLICE_LITERAL("VA 1 f0 c1 t-2 O77\r\nx\r\n"),
        SLICE_LITERAL("VA 1 f0 c1 t-10 O77\r\nx\r\n"),
        SLICE_LITERAL("VA 1 f0 c1 t-1 O77\0\r\nx\r\n"),
        SLICE_LITERAL("VA 1\0 f0 c1 t-1 O77\r\nx\r\n"),
        SLICE_LITERAL("\0VA 1 f0 c1 t-1 O77\r\nx\r\n"),
        SLICE_LITERAL("va 1 f0 c1 t-1 O77\r\nx\r\n"),
        SLICE_LITERAL(" VA 1 f0 c1 t-1 O77\r\nx\r\n"),
        SLICE_LITERAL("\r\nVA 1 f0 c1 t-1 O77\r\nx\r\n"),
        SLICE_LITERAL("VALUE the:key 0 1 1\r\nx\r\nEND\r\n"),
        SLICE_LITERAL("EN x\r\n"),
        SLICE_LITERAL("EN \r\n"),
        SLICE_LITERAL("EN\n"),
        SLICE_LITERAL("EN  O77\r\n"),
        SLICE_LITERAL("ENO77\r\n"),
        SLICE_LITERAL("E\r\n"),
        SLICE_LITERAL("\r\n"),
        SLICE_LITERAL("\n"),
    };

    (void)state;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        expect_nonsense(STORE_GET, table[i]);
    }
    expect_nonsense(STORE_HEAD, SLICE("HD f0 c1 t-1 O77\r\n"));
    expect_nonsense(STORE_SET, SLICE("HD O77\r\n"));
    expect_nonsense(STORE_SET, SLICE("HD c1 O77 W\r\n"));
    expect_nonsense(STORE_SET, SLICE("HD  c1 O77\r\n"));
    expect_nonsense(STORE_SET, SLICE("HD\r\n"));
    expect_nonsense(STORE_SET, SLICE("HDc1 O77\r\n"));
    expect_nonsense(STORE_DELETE, SLICE("HD   O77\r\n"));
    expect_nonsense(STORE_DELETE, SLICE("HD O77 c1\r\n"));
}

static void
test_bad_numbers(void **state)
{
    static const struct {
        enum store_verb verb;
        const char *format;
        bool narrow;
    } table[] = {
        { STORE_GET, "VA %s f0 c1 t-1 O77\r\n", true },
        { STORE_GET, "VA 1 f%s c1 t-1 O77\r\n", true },
        { STORE_GET, "VA 1 f0 c%s t-1 O77\r\n", false },
        { STORE_GET, "VA 1 f0 c1 t%s O77\r\n", true },
        { STORE_HEAD, "HD f0 c1 t-1 s%s O77\r\n", true },
        { STORE_SET, "HD c%s O77\r\n", false },
        { STORE_INCR, "VA %s c1 t-1 O77\r\n", true },
        { STORE_INCR, "VA 1 c%s t-1 O77\r\n5\r\n", false },
        { STORE_GET, "VA 1 f0 c1 t-1 O%s\r\n", true },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        codec_expect_bad_numbers(&memcached_meta, &guard, table[i].verb, table[i].format,
                                 table[i].narrow);
    }
    expect_nonsense(STORE_GET, SLICE("VA 2147483648 f0 c1 t-1 O77\r\n"));
    expect_nonsense(STORE_GET, SLICE("VA 1073741825 f0 c1 t-1 O77\r\n"));
    expect_nonsense(STORE_HEAD, SLICE("HD f0 c1 t-1 s1073741825 O77\r\n"));
}

static void
test_hostile_counters(void **state)
{
    static const struct slice table[] = {
        SLICE_LITERAL("VA 2 c1 t-1 O77\r\n5\r\nx"),
        SLICE_LITERAL("VA 1 c1 t-1 O77\r\n57\r\n"),
        SLICE_LITERAL("VA 1 c1 t-1 O77\r\n5\n\r"),
        SLICE_LITERAL("VA 0 c1 t-1 O77\r\n\r\n"),
        SLICE_LITERAL("VA 1 c1 t-1 O77\r\nx\r\n"),
        SLICE_LITERAL("VA 1 c1 t-1 O77\r\n \r\n"),
        SLICE_LITERAL("VA 2 c1 t-1 O77\r\n-5\r\n"),
        SLICE_LITERAL("VA 2 c1 t-1 O77\r\n+5\r\n"),
        SLICE_LITERAL("VA 2 c1 t-1 O77\r\n 5\r\n"),
        SLICE_LITERAL("VA 2 c1 t-1 O77\r\n5\0\r\n"),
        SLICE_LITERAL("VA 20 c1 t-1 O77\r\n18446744073709551616\r\n"),
        SLICE_LITERAL("VA 65 c1 t-1 O77\r\n"),
        SLICE_LITERAL("VA 1 c1 t-1 O77 X\r\n5\r\n"),
        SLICE_LITERAL("VA 1 f0 c1 t-1 O77\r\n5\r\n"),
        SLICE_LITERAL("HD c1 t-1 O77\r\n5\r\n"),
        SLICE_LITERAL("5\r\n"),
    };

    (void)state;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        expect_nonsense(STORE_INCR, table[i]);
        expect_nonsense(STORE_DECR, table[i]);
    }
}

static void
test_no_end_of_line(void **state)
{
    static char endless[3000];
    struct store_op op = codec_op(STORE_GET, CODEC_PLAIN);
    struct memcached_context context = codec_context(CODEC_PLAIN);
    struct memcached_reply reply;

    (void)state;
    memset(endless, ' ', sizeof(endless));
    memcpy(endless, "VA 5", 4);
    expect_nonsense(STORE_GET, slice_of(endless, sizeof(endless)));
    assert_int_equal(memcached_meta.decode(&op, &context, endless, MEMCACHED_LINE_MAX - 1, &reply),
                     MEMCACHED_MORE);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_commands),
        cmocka_unit_test(test_new_counter),
        cmocka_unit_test(test_longest_commands),
        cmocka_unit_test(test_replies),
        cmocka_unit_test(test_answers_of_other_verbs),
        cmocka_unit_test(test_wrong_opaque),
        cmocka_unit_test(test_hostile_lines),
        cmocka_unit_test(test_bad_numbers),
        cmocka_unit_test(test_hostile_counters),
        cmocka_unit_test(test_no_end_of_line),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
