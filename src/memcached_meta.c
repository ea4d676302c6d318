/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * memcached_meta.c: the meta dialect, as memcached 1.6.13 and later speak it.
 *
 *   mg <key> v f c t O<opaque>             GET     VA <len> f.. c.. t.. O..  + block | EN
 *   mg <key> f c t s O..                   HEAD    HD f.. c.. t.. s.. O..            | EN
 *   mg <key> T<ttl> O..                    TOUCH   HD O..                            | EN
 *   ms <key> <len> [C..] T.. F.. c M. O..  SET...  HD c.. O..   | NS | EX | NF
 *   md <key> [C..] O..                     DELETE  HD O..       | NF | EX
 *   ma <key> M. D.. [N.. J..] v c t O..    INCR    VA <len> c.. t.. O.. + number     | NF
 *
 * The opaque is echoed, and compared here. An N must stand before the t that asks for what it did:
 * the server works through the flags in their order. The key is never asked for.
 */
#include "memcached_codec_priv.h"

#include <assert.h>

/* The longest block that holds a counter: 20 digits, and some spaces to pad it. Bytes. */
#define COUNTER_MAX 64

/* The flags of a reply, as bits. */
enum flag {
    FLAG_CAS = 1,
    FLAG_CLIENT_FLAGS = 2,
    FLAG_OPAQUE = 4,
    FLAG_SIZE = 8,
    FLAG_TTL = 16,
    FLAG_NOTES = 32 /* W X Z: another client marked the item stale; it is served all the same */
};

/* ---- commands ---- */

static char *
put_number(char *p, struct slice name, uint64_t n)
{
    return memcached_put_u64(memcached_put(p, name), n);
}

/* Append and prepend keep the item's own flags and exptime. */
static char *
put_ms(char *p, const struct store_op *op, const struct memcached_context *context)
{
    static const char modes[STORE_VERB_COUNT] = {
        [STORE_SET] = 'S', [STORE_ADD] = 'E',    [STORE_REPLACE] = 'R',
        [STORE_CAS] = 'S', [STORE_APPEND] = 'A', [STORE_PREPEND] = 'P',
    };

    p = put_number(p, SLICE(" "), op->value.len);
    if (op->verb == STORE_CAS) {
        p = put_number(p, SLICE(" C"), op->cas);
    }
    if (op->verb != STORE_APPEND && op->verb != STORE_PREPEND) {
        p = memcached_put_exptime(memcached_put(p, SLICE(" T")), op, context);
        p = put_number(p, SLICE(" F"), op->flags);
    }
    p = memcached_put(p, SLICE(" c M"));
    *p++ = modes[op->verb];
    return p;
}

static char *
put_ma(char *p, const struct store_op *op, const struct memcached_context *context)
{
    p = memcached_put(p, op->verb == STORE_INCR ? SLICE(" MI") : SLICE(" MD"));
    p = put_number(p, SLICE(" D"), op->delta);
    if (op->create) {
        p = memcached_put_exptime(memcached_put(p, SLICE(" N")), op, context);
        p = put_number(p, SLICE(" J"), op->initial);
    }
    return memcached_put(p, SLICE(" v c t"));
}

static size_t
encode(const struct store_op *op, const struct memcached_context *context,
       char out[MEMCACHED_COMMAND_MAX])
{
    static const char letters[STORE_VERB_COUNT] = {
        [STORE_GET] = 'g',     [STORE_HEAD] = 'g', [STORE_SET] = 's',    [STORE_ADD] = 's',
        [STORE_REPLACE] = 's', [STORE_CAS] = 's',  [STORE_APPEND] = 's', [STORE_PREPEND] = 's',
        [STORE_DELETE] = 'd',  [STORE_INCR] = 'a', [STORE_DECR] = 'a',   [STORE_TOUCH] = 'g',
    };
    char *p = out;

    assert(op->key.len >= 1 && op->key.len <= STORE_KEY_MAX);
    assert((unsigned)op->verb < STORE_VERB_COUNT);
    *p++ = 'm';
    *p++ = letters[op->verb];
    *p++ = ' ';
    p = memcached_put(p, op->key);
    switch (op->verb) {
    case STORE_GET:
        p = memcached_put(p, SLICE(" v f c t"));
        break;
    case STORE_HEAD:
        p = memcached_put(p, SLICE(" f c t s"));
        break;
    case STORE_TOUCH:
        p = memcached_put_exptime(memcached_put(p, SLICE(" T")), op, context);
        break;
    case STORE_DELETE:
        p = op->cas == 0 ? p : put_number(p, SLICE(" C"), op->cas);
        break;
    case STORE_INCR:
    case STORE_DECR:
        p = put_ma(p, op, context);
        break;
    default:
        p = put_ms(p, op, context);
        break;
    }
    p = put_number(p, SLICE(" O"), context->opaque);
    p = memcached_put(p, SLICE("\r\n"));
    return (size_t)(p - out);
}

/* ---- replies ---- */

/* The opaque comes back as it was printed, so without leading zeros. */
static bool
take_opaque(struct slice *line, uint32_t opaque)
{
    bool zero = line->len > 0 && *line->ptr == '0';
    size_t before = line->len;
    uint64_t n;

    return memcached_take_u64(line, UINT32_MAX, &n) && n == opaque &&
           (!zero || before - line->len == 1);
}

static bool
take_ttl(struct slice *line, int64_t *ttl_s)
{
    uint64_t n;

    if (memcached_take(line, SLICE("-1"))) {
        *ttl_s = STORE_TTL_NEVER;
        return true;
    }
    if (!memcached_take_u64(line, UINT32_MAX, &n)) {
        return false;
    }
    *ttl_s = (int64_t)n;
    return true;
}

/* One flag, which begins with NAME, its letter. Returns its bit, or 0 for nonsense. */
static unsigned
take_flag(char name, struct slice *line, const struct memcached_context *context,
          struct memcached_reply *reply)
{
    uint64_t n;

    switch (name) {
    case 'c':
        return memcached_take_u64(line, UINT64_MAX, &reply->cas) ? FLAG_CAS : 0;
    case 'f':
        if (!memcached_take_u64(line, UINT32_MAX, &n)) {
            return 0;
        }
        reply->flags = (uint32_t)n;
        return FLAG_CLIENT_FLAGS;
    case 's':
        if (!memcached_take_u64(line, MEMCACHED_VALUE_MAX, &n)) {
            return 0;
        }
        reply->value_len = (size_t)n;
        return FLAG_SIZE;
    case 't':
        return take_ttl(line, &reply->ttl_left_s) ? FLAG_TTL : 0;
    case 'O':
        return take_opaque(line, context->opaque) ? FLAG_OPAQUE : 0;
    case 'W':
    case 'X':
    case 'Z':
        return FLAG_NOTES;
    default:
        return 0;
    }
}

/*
 * The rest of a line: all the flags that were REQUIRED, and none but those ALLOWED, each once (the
 * notes are three letters).
 */
static bool
take_flags(struct slice line, unsigned required, unsigned allowed,
           const struct memcached_context *context, struct memcached_reply *reply)
{
    unsigned seen = 0;

    while (line.len > 0) {
        unsigned bit;
        char name;

        if (!memcached_take_char(&line, ' ') || line.len == 0) {
            return false;
        }
        name = *line.ptr;
        line = slice_of(line.ptr + 1, line.len - 1);
        bit = take_flag(name, &line, context, reply);
        if ((bit & allowed) == 0 || (bit & seen & ~(unsigned)FLAG_NOTES) != 0) {
            return false;
        }
        seen |= bit;
    }
    return (required & ~seen) == 0;
}

/* What a success must tell about OP. */
static unsigned
flags_asked(enum store_verb verb)
{
    switch (verb) {
    case STORE_GET:
        return FLAG_CLIENT_FLAGS | FLAG_CAS | FLAG_TTL | FLAG_OPAQUE;
    case STORE_HEAD:
        return FLAG_CLIENT_FLAGS | FLAG_CAS | FLAG_TTL | FLAG_SIZE | FLAG_OPAQUE;
    case STORE_INCR:
    case STORE_DECR:
        return FLAG_CAS | FLAG_TTL | FLAG_OPAQUE;
    case STORE_DELETE:
    case STORE_TOUCH:
        return FLAG_OPAQUE;
    default:
        return FLAG_CAS | FLAG_OPAQUE;
    }
}

/* The two letters of a refusal; each only where it makes sense. */
static bool
status_of_code(const struct store_op *op, struct slice code, enum store_status *status)
{
    bool stores = store_verb_has_value(op->verb);
    bool counts = op->verb == STORE_INCR || op->verb == STORE_DECR;
    bool gets = store_verb_reads(op->verb) || op->verb == STORE_TOUCH;

    if (gets && slice_equal(code, SLICE("EN"))) {
        *status = STORE_MISS;
    } else if ((counts || op->verb == STORE_DELETE || op->verb == STORE_CAS) &&
               slice_equal(code, SLICE("NF"))) {
        *status = STORE_MISS;
    } else if ((op->verb == STORE_CAS || (op->verb == STORE_DELETE && op->cas != 0)) &&
               slice_equal(code, SLICE("EX"))) {
        *status = STORE_EXISTS;
    } else if (stores && slice_equal(code, SLICE("NS"))) {
        /* Set and cas have no such condition: the server refused, and did not say why. */
        *status =
            op->verb == STORE_SET || op->verb == STORE_CAS ? STORE_BAD_REPLY : STORE_NOT_STORED;
    } else if (counts && slice_equal(code, SLICE("NS"))) {
        *status = STORE_BAD_REPLY;
    } else {
        return false;
    }
    return true;
}

/* A refusal tells the opaque; only EN of memcached before 1.6.18 does not. */
static bool
take_refusal(const struct store_op *op, const struct memcached_context *context, struct slice code,
             struct slice flags, struct memcached_reply *reply)
{
    enum store_status status;
    unsigned required = FLAG_OPAQUE;

    if (!status_of_code(op, code, &status)) {
        return false;
    }
    if (slice_equal(code, SLICE("EN"))) {
        required = 0;
    }
    if (!take_flags(flags, required, FLAG_OPAQUE | FLAG_CAS, context, reply)) {
        return false;
    }
    reply->status = status;
    reply->cas = 0;
    return true;
}

/* "<len> flags": with GET the value follows, with INCR and DECR the number. */
static bool
take_value_line(const struct store_op *op, const struct memcached_context *context,
                struct slice rest, struct memcached_reply *reply)
{
    bool reads = op->verb == STORE_GET;
    unsigned asked = flags_asked(op->verb);
    uint64_t bytes;

    if (!memcached_take_char(&rest, ' ') ||
        !memcached_take_u64(&rest, reads ? MEMCACHED_VALUE_MAX : COUNTER_MAX, &bytes) ||
        !take_flags(rest, asked, reads ? asked | FLAG_NOTES : asked, context, reply)) {
        return false;
    }
    reply->value_len = (size_t)bytes;
    reply->has_value = reads;
    reply->tail = reads ? SLICE("\r\n") : SLICE("");
    return true;
}

/*
 * The number behind the line of INCR and DECR, which is REPLY->value_len bytes and a CRLF, and is
 * part of the reply.
 */
static enum memcached_parse
take_number(struct slice rest, struct memcached_reply *reply)
{
    size_t len = reply->value_len;

    if (rest.len < len + 2) {
        return MEMCACHED_MORE;
    }
    if (memcmp(rest.ptr + len, "\r\n", 2) != 0 ||
        !memcached_take_counter(slice_of(rest.ptr, len), &reply->number)) {
        return MEMCACHED_NONSENSE;
    }
    reply->line_len += len + 2;
    reply->value_len = 0;
    return MEMCACHED_REPLY;
}

/* LINE as an answer to OP; DATA begins with it. */
static enum memcached_parse
meta_reply(const struct store_op *op, const struct memcached_context *context, struct slice line,
           struct slice data, struct memcached_reply *reply)
{
    bool counts = op->verb == STORE_INCR || op->verb == STORE_DECR;
    bool wants_value = counts || op->verb == STORE_GET;
    bool gets = store_verb_reads(op->verb) || op->verb == STORE_TOUCH;
    unsigned asked = flags_asked(op->verb);
    struct slice code = slice_of(line.ptr, line.len < 2 ? line.len : 2);
    struct slice rest = slice_of(line.ptr + code.len, line.len - code.len);
    size_t used = line.len + 2;

    memcached_reply_init(reply, STORE_OK, line);
    if (wants_value && slice_equal(code, SLICE("VA"))) {
        if (!take_value_line(op, context, rest, reply)) {
            return MEMCACHED_NONSENSE;
        }
        return counts ? take_number(slice_of(data.ptr + used, data.len - used), reply)
                      : MEMCACHED_REPLY;
    }
    /* Before 1.6.18 there are two spaces behind the code of an md, and of an ma that misses. */
    if (slice_starts_with(rest, SLICE("  ")) && (counts || op->verb == STORE_DELETE)) {
        memcached_take_char(&rest, ' ');
    }
    if (!wants_value && slice_equal(code, SLICE("HD"))) {
        return take_flags(rest, asked, gets ? asked | FLAG_NOTES : asked, context, reply)
                   ? MEMCACHED_REPLY
                   : MEMCACHED_NONSENSE;
    }
    return take_refusal(op, context, code, rest, reply) ? MEMCACHED_REPLY : MEMCACHED_NONSENSE;
}

static enum memcached_parse
decode(const struct store_op *op, const struct memcached_context *context, const char *data,
       size_t len, struct memcached_reply *reply)
{
    struct memcached_reply result;
    struct slice line;
    enum memcached_parse parse = memcached_find_line(data, len, &line);

    if (parse != MEMCACHED_REPLY) {
        return parse;
    }
    parse = meta_reply(op, context, line, slice_of(data, len), &result);
    if (parse == MEMCACHED_NONSENSE) {
        parse = memcached_error_reply(op, line, &result);
    }
    if (parse == MEMCACHED_REPLY) {
        *reply = result;
    }
    return parse;
}

const struct memcached_dialect memcached_meta = {
    .name = "meta",
    .encode = encode,
    .decode = decode,
};
