/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * memcached_text.c: the classic text dialect, which every compatible store speaks.
 *
 * Knows no counter that is created in the same step, no conditional delete, no remaining time to
 * live; HEAD fetches the value, and the connection throws it away.
 */
#include "memcached_codec_priv.h"

#include <assert.h>

#define SPACE SLICE(" ")
#define CRLF  SLICE("\r\n")

/* What each verb is called; GET's and HEAD's is `get` where the server has no `gets`. */
static const struct slice commands[STORE_VERB_COUNT] = {
    [STORE_GET] = SLICE_LITERAL("gets "),        [STORE_HEAD] = SLICE_LITERAL("gets "),
    [STORE_SET] = SLICE_LITERAL("set "),         [STORE_ADD] = SLICE_LITERAL("add "),
    [STORE_REPLACE] = SLICE_LITERAL("replace "), [STORE_CAS] = SLICE_LITERAL("cas "),
    [STORE_APPEND] = SLICE_LITERAL("append "),   [STORE_PREPEND] = SLICE_LITERAL("prepend "),
    [STORE_DELETE] = SLICE_LITERAL("delete "),   [STORE_INCR] = SLICE_LITERAL("incr "),
    [STORE_DECR] = SLICE_LITERAL("decr "),       [STORE_TOUCH] = SLICE_LITERAL("touch "),
};

/* ---- commands ---- */

/* The protocol has no words for these: cas without `gets`, a conditional delete, a new counter. */
static bool
has_no_words(const struct store_op *op, const struct memcached_context *context)
{
    switch (op->verb) {
    case STORE_CAS:
        return context->no_cas;
    case STORE_DELETE:
        return op->cas != 0;
    case STORE_INCR:
    case STORE_DECR:
        return op->create;
    default:
        return false;
    }
}

/* " FLAGS EXPTIME BYTES [CAS]". Append and prepend keep the item's own flags and exptime. */
static char *
put_storage(char *p, const struct store_op *op, const struct memcached_context *context)
{
    bool joins = op->verb == STORE_APPEND || op->verb == STORE_PREPEND;

    if (joins) {
        p = memcached_put(p, SLICE(" 0 0 "));
    } else {
        p = memcached_put(p, SPACE);
        p = memcached_put_u64(p, op->flags);
        p = memcached_put(p, SPACE);
        p = memcached_put_exptime(p, op, context);
        p = memcached_put(p, SPACE);
    }
    p = memcached_put_u64(p, op->value.len);
    if (op->verb == STORE_CAS) {
        p = memcached_put(p, SPACE);
        p = memcached_put_u64(p, op->cas);
    }
    return p;
}

static size_t
encode(const struct store_op *op, const struct memcached_context *context,
       char out[MEMCACHED_COMMAND_MAX])
{
    char *p = out;

    assert(op->key.len >= 1 && op->key.len <= STORE_KEY_MAX);
    assert((unsigned)op->verb < STORE_VERB_COUNT);
    if (has_no_words(op, context)) {
        return 0;
    }
    if (store_verb_reads(op->verb) && context->no_cas) {
        p = memcached_put(p, SLICE("get "));
    } else {
        p = memcached_put(p, commands[op->verb]);
    }
    p = memcached_put(p, op->key);
    if (store_verb_has_value(op->verb)) {
        p = put_storage(p, op, context);
    } else if (op->verb == STORE_INCR || op->verb == STORE_DECR) {
        p = memcached_put(p, SPACE);
        p = memcached_put_u64(p, op->delta);
    } else if (op->verb == STORE_TOUCH) {
        p = memcached_put(p, SPACE);
        p = memcached_put_exptime(p, op, context);
    }
    p = memcached_put(p, CRLF);
    return (size_t)(p - out);
}

/* ---- replies ---- */

/*
 * "VALUE <key> <flags> <bytes>[ <cas>]". A server may leave out the cas that it was asked for; it
 * may not send one unasked.
 */
static bool
take_value_line(const struct store_op *op, const struct memcached_context *context,
                struct slice line, struct memcached_reply *reply)
{
    uint64_t flags, bytes, cas = 0;

    if (!memcached_take(&line, SLICE("VALUE ")) || !memcached_take(&line, op->key) ||
        !memcached_take_char(&line, ' ') || !memcached_take_u64(&line, UINT32_MAX, &flags) ||
        !memcached_take_char(&line, ' ') ||
        !memcached_take_u64(&line, MEMCACHED_VALUE_MAX, &bytes)) {
        return false;
    }
    if (!context->no_cas && memcached_take_char(&line, ' ') &&
        !memcached_take_u64(&line, UINT64_MAX, &cas)) {
        return false;
    }
    reply->has_value = true;
    reply->value_len = (size_t)bytes;
    reply->tail = SLICE("\r\nEND\r\n");
    reply->flags = (uint32_t)flags;
    reply->cas = cas;
    return line.len == 0;
}

/* The words that answer the verbs without a value or a number; each only where it makes sense. */
static bool
status_of_word(enum store_verb verb, struct slice word, enum store_status *status)
{
    bool stores = store_verb_has_value(verb);

    if (stores && slice_equal(word, SLICE("STORED"))) {
        *status = STORE_OK;
    } else if (stores && slice_equal(word, SLICE("NOT_STORED"))) {
        /* Set and cas have no such condition: the server refused, and did not say why. */
        *status = verb == STORE_SET || verb == STORE_CAS ? STORE_BAD_REPLY : STORE_NOT_STORED;
    } else if (verb == STORE_CAS && slice_equal(word, SLICE("EXISTS"))) {
        *status = STORE_EXISTS;
    } else if (verb == STORE_DELETE && slice_equal(word, SLICE("DELETED"))) {
        *status = STORE_OK;
    } else if (verb == STORE_TOUCH && slice_equal(word, SLICE("TOUCHED"))) {
        *status = STORE_OK;
    } else if ((verb == STORE_CAS || !(stores || store_verb_reads(verb))) &&
               slice_equal(word, SLICE("NOT_FOUND"))) {
        *status = STORE_MISS;
    } else if (store_verb_reads(verb) && slice_equal(word, SLICE("END"))) {
        *status = STORE_MISS;
    } else {
        return false;
    }
    return true;
}

/* LINE as the answer that OP hopes for. False: it is something else; *REPLY is spoilt. */
static bool
good_reply(const struct store_op *op, const struct memcached_context *context, struct slice line,
           struct memcached_reply *reply)
{
    memcached_reply_init(reply, STORE_OK, line);
    if (store_verb_reads(op->verb) && take_value_line(op, context, line, reply)) {
        return true;
    }
    if ((op->verb == STORE_INCR || op->verb == STORE_DECR) &&
        memcached_take_counter(line, &reply->number)) {
        return true;
    }
    return status_of_word(op->verb, line, &reply->status);
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
    if (!good_reply(op, context, line, &result)) {
        parse = memcached_error_reply(op, line, &result);
    }
    if (parse == MEMCACHED_REPLY) {
        *reply = result;
    }
    return parse;
}

const struct memcached_dialect memcached_text = {
    .name = "text",
    .encode = encode,
    .decode = decode,
};
