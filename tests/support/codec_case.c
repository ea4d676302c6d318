/* SPDX-License-Identifier: BSD-2-Clause */
/* codec_case.c: see codec_case.h. Knows no dialect: only what must hold for all. */
#include "codec_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* What may be in the buffer behind a reply. */
static const struct slice followers[] = {
    SLICE_LITERAL("\r\n"),
    SLICE_LITERAL("STORED\r\n"),
    SLICE_LITERAL("VALUE the:key 0 1 1\r\nx\r\nEND\r\n"),
    SLICE_LITERAL("VA 1 f0 c1 t-1 O77\r\nx\r\n"),
    SLICE_LITERAL("SERVER_ERROR\r\n"),
    SLICE_LITERAL(" 5 c1 O77\r\n"),
    SLICE_LITERAL("\0\xff\r\n"),
};

#define FOLLOWER_COUNT (sizeof(followers) / sizeof(followers[0]))

struct store_op
codec_op(enum store_verb verb, unsigned options)
{
    struct store_op op;

    store_op_init(&op, verb, SLICE(CODEC_KEY));
    op.value = SLICE("xyz");
    op.delta = 5;
    if (verb == STORE_CAS || (options & CODEC_WITH_CAS) != 0) {
        op.cas = CODEC_CAS;
    }
    return op;
}

struct memcached_context
codec_context(unsigned options)
{
    return (struct memcached_context){ .now_s = 1700000000,
                                       .opaque = CODEC_OPAQUE,
                                       .no_cas = (options & CODEC_NO_GETS) != 0 };
}

/* DATA as it stands in a message. */
static const char *
shown(struct slice data)
{
    static char text[512];
    size_t n = 0;

    for (size_t i = 0; i < data.len && n + 8 < sizeof(text); i++) {
        unsigned char c = (unsigned char)data.ptr[i];
        int added = c > 0x20 && c < 0x7f ? snprintf(text + n, 8, "%c", c)
                                         : snprintf(text + n, 8, "<%02x>", c);
        n += (size_t)added;
    }
    text[n] = '\0';
    return text;
}

/* Decodes A and then B, in one piece, right before the guard page; *REPLY is poisoned first. */
static enum memcached_parse
decode(const struct memcached_dialect *dialect, struct guard *g, enum store_verb verb,
       unsigned options, struct slice a, struct slice b, struct memcached_reply *reply)
{
    static char joined[8192];
    struct store_op op = codec_op(verb, options);
    struct memcached_context context = codec_context(options);
    struct memcached_reply poison;
    enum memcached_parse parse;

    assert_true(a.len + b.len <= sizeof(joined));
    memcpy(joined, a.ptr, a.len);
    memcpy(joined + a.len, b.ptr, b.len);
    memset(&poison, 0x5a, sizeof(poison));
    memcpy(reply, &poison, sizeof(poison));
    parse =
        dialect->decode(&op, &context, guard_place(g, joined, a.len + b.len), a.len + b.len, reply);
    if (parse == MEMCACHED_REPLY) {
        assert_true(reply->line_len <= a.len + b.len);
    } else if (memcmp(reply, &poison, sizeof(poison)) != 0) {
        fail_msg("%s %s: reply touched by %s", dialect->name, store_verb_name(verb), shown(a));
    }
    return parse;
}

/* Whether R says what C says it must. */
static bool
matches(const struct codec_case *c, const struct memcached_reply *r)
{
    int64_t ttl_s = c->ttl_s == 0 ? STORE_TTL_UNKNOWN : c->ttl_s;
    size_t behind = 0;

    if (c->has_value) {
        behind = c->value_len + r->tail.len;
        if (r->tail.len == 0 || behind > c->bytes.len ||
            memcmp(c->bytes.ptr + c->bytes.len - r->tail.len, r->tail.ptr, r->tail.len) != 0) {
            return false;
        }
    }
    return r->status == c->status && r->line_len == c->bytes.len - behind &&
           r->has_value == c->has_value && r->value_len == c->value_len && r->flags == c->flags &&
           r->cas == c->cas && r->ttl_left_s == ttl_s && r->number == c->number &&
           r->close == c->close;
}

/* Any byte may be anything: whatever comes of it, nothing is read or used up beyond the end. */
static void
spoil(const struct memcached_dialect *dialect, struct guard *g, const struct codec_case *c)
{
    static const char bytes[] = { '\0', '\n', '\r', ' ', '-', '0', '9', 'O', '\xff' };
    struct memcached_reply reply;
    char copy[4096];

    assert_true(c->bytes.len <= sizeof(copy));
    memcpy(copy, c->bytes.ptr, c->bytes.len);
    for (size_t i = 0; i < c->bytes.len; i++) {
        for (size_t b = 0; b < sizeof(bytes); b++) {
            copy[i] = bytes[b];
            decode(dialect, g, c->verb, c->options, slice_of(copy, c->bytes.len), SLICE(""),
                   &reply);
        }
        copy[i] = c->bytes.ptr[i];
    }
}

void
codec_expect_reply(const struct memcached_dialect *dialect, struct guard *g,
                   const struct codec_case *c)
{
    struct memcached_reply reply;
    size_t line_len;

    if (decode(dialect, g, c->verb, c->options, c->bytes, SLICE(""), &reply) != MEMCACHED_REPLY ||
        !matches(c, &reply)) {
        fail_msg("%s %s: %s", dialect->name, store_verb_name(c->verb), shown(c->bytes));
    }
    line_len = reply.line_len;
    for (size_t i = 0; i < FOLLOWER_COUNT; i++) {
        if (decode(dialect, g, c->verb, c->options, c->bytes, followers[i], &reply) !=
                MEMCACHED_REPLY ||
            !matches(c, &reply)) {
            fail_msg("%s %s: %s and more", dialect->name, store_verb_name(c->verb),
                     shown(c->bytes));
        }
    }
    for (size_t n = 0; n < c->bytes.len; n++) {
        struct slice part = slice_of(c->bytes.ptr, n);
        enum memcached_parse want = n < line_len ? MEMCACHED_MORE : MEMCACHED_REPLY;

        if (decode(dialect, g, c->verb, c->options, part, SLICE(""), &reply) != want ||
            (want == MEMCACHED_REPLY && !matches(c, &reply))) {
            fail_msg("%s %s: cut after %zu: %s", dialect->name, store_verb_name(c->verb), n,
                     shown(c->bytes));
        }
    }
    spoil(dialect, g, c);
}

void
codec_expect_nonsense(const struct memcached_dialect *dialect, struct guard *g,
                      enum store_verb verb, unsigned options, struct slice bytes)
{
    struct memcached_reply reply;
    bool hopeless = false;

    for (size_t n = 0; n < bytes.len; n++) {
        enum memcached_parse parse =
            decode(dialect, g, verb, options, slice_of(bytes.ptr, n), SLICE(""), &reply);

        if (parse == MEMCACHED_REPLY || (hopeless && parse != MEMCACHED_NONSENSE)) {
            fail_msg("%s %s: cut after %zu, %d: %s", dialect->name, store_verb_name(verb), n,
                     (int)parse, shown(bytes));
        }
        hopeless = parse == MEMCACHED_NONSENSE;
    }
    if (decode(dialect, g, verb, options, bytes, SLICE(""), &reply) != MEMCACHED_NONSENSE) {
        fail_msg("%s %s: no nonsense: %s", dialect->name, store_verb_name(verb), shown(bytes));
    }
    for (size_t i = 0; i < FOLLOWER_COUNT; i++) {
        if (decode(dialect, g, verb, options, bytes, followers[i], &reply) != MEMCACHED_NONSENSE) {
            fail_msg("%s %s: no nonsense with more behind: %s", dialect->name,
                     store_verb_name(verb), shown(bytes));
        }
    }
}

void
codec_expect_bad_numbers(const struct memcached_dialect *dialect, struct guard *g,
                         enum store_verb verb, const char *format, bool narrow)
{
    static const char *const never[] = {
        "",
        "-",
        "-2",
        "-0",
        "+5",
        " 5",
        "5x",
        "x5",
        "0x5",
        "5.0",
        "1e3",
        "\t5",
        "5\t",
        "5,",
        "''",
        "-9223372036854775808",
        "18446744073709551616",
        "99999999999999999999",
        "100000000000000000000",
        "000000000000000000005",
        "184467440737095516150",
        NULL,
    };
    static const char *const wide[] = {
        "4294967296", "9223372036854775807", "9223372036854775808", "18446744073709551615", NULL,
    };

    for (int list = 0; list < (narrow ? 2 : 1); list++) {
        for (const char *const *number = list == 0 ? never : wide; *number != NULL; number++) {
            char text[256];
            int n;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
            n = snprintf(text, sizeof(text), format, *number);
#pragma GCC diagnostic pop
            codec_expect_nonsense(dialect, g, verb, CODEC_PLAIN, slice_of(text, (size_t)n));
        }
    }
}
