/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz_memcached.c: any bytes as a server's reply, in both dialects, and as its version line.
 *
 * The first two bytes of the input choose verb, dialect and options; the rest is the reply. What
 * must hold: no byte beyond the end is read (the input is an allocation of its exact size); no
 * reply is longer than its bytes; a verdict stays when more bytes come; nothing is waited for
 * endlessly.
 */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "memcached_codec.h"

/* Longer than any line, and without an end of line: whoever waits must give up. */
#define GROWTH 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct subject {
    const struct memcached_dialect *dialect; /* (ref) */
    struct store_op op;
    struct memcached_context context;
};

static struct subject
choose(const uint8_t choice[2])
{
    struct subject s = { .dialect = (choice[1] & 1) != 0 ? &memcached_meta : &memcached_text };

    s.op.verb = (enum store_verb)(choice[0] % STORE_VERB_COUNT);
    s.op.key = SLICE("k");
    s.op.cas = (choice[1] & 2) != 0 ? 5 : 0;
    s.op.create = (choice[1] & 4) != 0;
    s.context.no_cas = (choice[1] & 8) != 0;
    s.context.opaque = 77;
    return s;
}

/* Decodes the first LEN bytes of DATA, and then GROW bytes C, from a block of exactly that size. */
static enum memcached_parse
decode(const struct subject *s, const char *data, size_t len, size_t grow, char c,
       struct memcached_reply *reply)
{
    enum memcached_parse parse;
    char *copy = malloc(len + grow > 0 ? len + grow : 1);

    assert(copy != NULL);
    if (len > 0) {
        memcpy(copy, data, len);
    }
    memset(copy + len, c, grow);
    memset(reply, 0, sizeof(*reply));
    parse = s->dialect->decode(&s->op, &s->context, copy, len + grow, reply);
    free(copy);
    return parse;
}

static void
check_equal(const struct memcached_reply *a, const struct memcached_reply *b)
{
    assert(a->status == b->status && a->line_len == b->line_len);
    assert(a->has_value == b->has_value && a->value_len == b->value_len);
    assert(slice_equal(a->tail, b->tail) && a->flags == b->flags && a->cas == b->cas);
    assert(a->ttl_left_s == b->ttl_left_s && a->number == b->number && a->close == b->close);
}

static void
check_reply(const struct subject *s, const char *data, size_t len, const struct memcached_reply *r)
{
    struct memcached_reply other;

    assert(r->line_len >= 2 && r->line_len <= len);
    assert(memcmp(data + r->line_len - 2, "\r\n", 2) == 0);
    assert((unsigned)r->status < STORE_STATUS_COUNT);
    assert(!r->has_value || (store_verb_reads(s->op.verb) && r->status == STORE_OK));
    assert(r->has_value == (r->tail.len > 0));
    assert(r->value_len <= (size_t)1 << 30);
    assert(r->ttl_left_s >= STORE_TTL_UNKNOWN && r->ttl_left_s <= UINT32_MAX);
    assert(r->status != STORE_MISS || (r->cas == 0 && !r->close));

    /* Its own bytes say the same, one byte less says nothing yet. */
    assert(decode(s, data, r->line_len, 0, 0, &other) == MEMCACHED_REPLY);
    check_equal(r, &other);
    assert(decode(s, data, len, 3, '\n', &other) == MEMCACHED_REPLY);
    check_equal(r, &other);
    assert(decode(s, data, r->line_len - 1, 0, 0, &other) == MEMCACHED_MORE);
}

static void
check_version(const char *data, size_t len)
{
    bool meta = false;
    size_t line_len = 0;

    if (memcached_version_parse(data, len, &meta, &line_len) == MEMCACHED_REPLY) {
        bool again = !meta;
        size_t len_again = 0;

        assert(line_len >= 2 && line_len <= len);
        assert(memcached_version_parse(data, line_len, &again, &len_again) == MEMCACHED_REPLY);
        assert(again == meta && len_again == line_len);
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char command[MEMCACHED_COMMAND_MAX];
    struct memcached_reply reply, other;
    struct subject s;
    const char *text;
    size_t len;

    if (size < 2) {
        return 0;
    }
    s = choose(data);
    text = (const char *)data + 2;
    len = size - 2;
    assert(s.dialect->encode(&s.op, &s.context, command) <= sizeof(command));
    switch (decode(&s, text, len, 0, 0, &reply)) {
    case MEMCACHED_REPLY:
        check_reply(&s, text, len, &reply);
        break;
    case MEMCACHED_NONSENSE:
        assert(decode(&s, text, len, 1, '\n', &other) == MEMCACHED_NONSENSE);
        assert(decode(&s, text, len, GROWTH, ' ', &other) == MEMCACHED_NONSENSE);
        break;
    case MEMCACHED_MORE:
        /* Either the line has no end yet, or the number of a counter has none. */
        assert(len < MEMCACHED_LINE_MAX + 128);
        assert(len == 0 || memchr(text, '\n', len) == NULL || s.op.verb == STORE_INCR ||
               s.op.verb == STORE_DECR);
        assert(decode(&s, text, len, GROWTH, ' ', &other) == MEMCACHED_NONSENSE);
        break;
    }
    check_version(text, len);
    return 0;
}
