/* SPDX-License-Identifier: BSD-2-Clause */
/* mget.c: many keys in one request. See mget.h; request.c gives it its states. */
#include "mget.h"

#include <stdlib.h>
#include <string.h>

#include "etag.h"
#include "json_out.h"
#include "loop.h"

/* Bytes of JSON around a value, for the first allocation. */
#define JSON_OVERHEAD 128

struct item {
    struct mget *mget;     /* (ref) */
    struct slice text;     /* (ref) the key as it was asked for */
    enum reply_id id;      /* the answer; valid when its op is complete */
    struct route_match at; /* its route and key, which the op borrows */
    struct store_op op;    /* its data is owned */
};

struct mget {
    struct request_context *context; /* (ref) */
    void (*done)(void *arg);
    void *arg;
    size_t count;   /* items */
    size_t pending; /* ops that have not been answered, and one more while they are submitted */
    size_t counted; /* bytes taken from the quota */
    struct item items[];
};

/* ---- the keys -------------------------------------------------------------------------------- */

/* Takes the next key off *TEXT. False: there is none. */
static bool
next_of_query(struct slice *text, struct slice *key)
{
    static const struct slice name = SLICE_LITERAL("key=");

    while (text->len > 0) {
        const char *end = memchr(text->ptr, '&', text->len);
        size_t len = end == NULL ? text->len : (size_t)(end - text->ptr);
        struct slice one = slice_of(text->ptr, len);

        len += end == NULL ? 0 : 1;
        *text = slice_of(text->ptr + len, text->len - len);
        if (slice_starts_with(one, name)) {
            *key = slice_of(one.ptr + name.len, one.len - name.len);
            return true;
        }
    }
    return false;
}

static bool
next_of_lines(struct slice *text, struct slice *key)
{
    while (text->len > 0) {
        const char *end = memchr(text->ptr, '\n', text->len);
        size_t len = end == NULL ? text->len : (size_t)(end - text->ptr);

        *key = slice_of(text->ptr, len);
        len += end == NULL ? 0 : 1;
        *text = slice_of(text->ptr + len, text->len - len);
        if (key->len > 0 && key->ptr[key->len - 1] == '\r') {
            key->len--;
        }
        if (key->len > 0) {
            return true;
        }
    }
    return false;
}

static enum reply_id
create(struct request_context *context, struct slice text,
       bool (*next)(struct slice *text, struct slice *key), struct mget **result)
{
    struct slice rest = text, key;
    struct mget *mget;
    size_t count = 0, size;

    while (count <= MGET_KEYS_MAX && next(&rest, &key)) {
        count++;
    }
    if (count == 0 || count > MGET_KEYS_MAX) {
        return REPLY_BAD_KEYS;
    }
    size = sizeof(*mget) + count * sizeof(mget->items[0]);
    if (!quota_take(context->quota, size)) {
        return REPLY_OVERLOADED;
    }
    mget = malloc(size);
    if (mget == NULL) {
        quota_give(context->quota, size);
        return REPLY_INTERNAL;
    }
    mget->context = context;
    mget->count = count;
    mget->pending = 0;
    mget->counted = size;
    for (size_t i = 0; i < count; i++) {
        mget->items[i].mget = mget;
        mget->items[i].op.data = NULL;
        next(&text, &mget->items[i].text);
    }
    *result = mget;
    return REPLY_ID_COUNT;
}

enum reply_id
mget_create_from_query(struct request_context *context, struct slice text, struct mget **mget)
{
    return create(context, text, next_of_query, mget);
}

enum reply_id
mget_create_from_lines(struct request_context *context, struct slice text, struct mget **mget)
{
    return create(context, text, next_of_lines, mget);
}

void
mget_destroy(struct mget *mget)
{
    if (mget == NULL) {
        return;
    }
    for (size_t i = 0; i < mget->count; i++) {
        buffer_unref(mget->items[i].op.data);
    }
    quota_give(mget->context->quota, mget->counted);
    free(mget);
}

/* ---- the stores ------------------------------------------------------------------------------ */

/* A value that does not fit into bytes_in_flight is let go at once. */
static void
take_result(struct item *item)
{
    struct mget *mget = item->mget;

    item->id = reply_from_store(item->op.verb, item->op.status);
    if (item->op.data != NULL && !quota_take(mget->context->quota, item->op.value_len)) {
        buffer_unref(item->op.data);
        item->op.data = NULL;
        item->id = REPLY_OVERLOADED;
    } else if (item->op.data != NULL) {
        mget->counted += item->op.value_len;
    }
    mget->pending--;
}

static void
on_done(struct store_op *op)
{
    struct item *item = op->arg;
    struct mget *mget = item->mget;

    take_result(item);
    if (mget->pending == 0) {
        mget->done(mget->arg);
    }
}

static void
submit_one(struct item *item)
{
    struct request_context *context = item->mget->context;
    enum route_result result = route_find_path(context->config, item->text, &item->at);
    struct store *store;

    if (result != ROUTE_KEY) {
        /* pages of the gateway's own are no keys */
        item->id = result == ROUTE_HEALTH || result == ROUTE_READY || result == ROUTE_MGET
                       ? REPLY_NO_PAGE
                       : reply_from_route(result);
        return;
    }
    if ((item->at.route->methods & CONFIG_GET) == 0) {
        item->id = REPLY_METHOD;
        return;
    }
    store_op_init(&item->op, STORE_GET, slice_of(item->at.key, item->at.key_len));
    item->op.arg = item;
    item->op.done = on_done;
    item->mget->pending++;
    store = context->stores[item->at.route->store];
    if (store->type->submit(store, &item->op)) {
        take_result(item);
    }
}

bool
mget_submit(struct mget *mget, void (*done)(void *arg), void *arg)
{
    mget->done = done;
    mget->arg = arg;
    for (size_t i = 0; i < mget->count; i++) {
        submit_one(&mget->items[i]);
    }
    return mget->pending == 0;
}

/* ---- the answer ------------------------------------------------------------------------------ */

/* The key as JSON: what is not UTF-8 is percent-encoded, which means the same. */
static bool
write_key(struct buffer **out, struct slice text)
{
    static const char digits[] = "0123456789ABCDEF";

    if (json_out_is_utf8(text)) {
        return json_out_string(out, text);
    }
    if (!json_out_raw(out, SLICE("\""))) {
        return false;
    }
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        char coded[3] = { '%', digits[c >> 4], digits[c & 15] };
        bool plain = c > 0x20 && c < 0x7f && c != '"' && c != '\\';

        if (!json_out_raw(out, plain ? slice_of(text.ptr + i, 1) : slice_of(coded, 3))) {
            return false;
        }
    }
    return json_out_raw(out, SLICE("\""));
}

/* The value, and what a GET would have told in its header. */
static bool
write_value(struct buffer **out, const struct store_op *op)
{
    struct slice value = slice_of(op->data->data, op->value_len);
    bool is_text = json_out_is_utf8(value);
    char etag[ETAG_TEXT_MAX];

    if (!json_out_raw(out, is_text ? SLICE(",\"value\":") : SLICE(",\"base64\":")) ||
        !(is_text ? json_out_string(out, value) : json_out_base64(out, value))) {
        return false;
    }
    if (op->out_cas != 0 &&
        !(json_out_raw(out, SLICE(",\"etag\":")) &&
          json_out_string(out, slice_of(etag, etag_print(op->out_cas, etag))))) {
        return false;
    }
    return op->ttl_left_s < 0 || (json_out_raw(out, SLICE(",\"ttl\":")) &&
                                  json_out_number(out, (uint64_t)op->ttl_left_s));
}

static bool
write_item(struct buffer **out, const struct item *item)
{
    if (!json_out_raw(out, SLICE("{\"key\":")) || !write_key(out, item->text) ||
        !json_out_raw(out, SLICE(",\"status\":")) ||
        !json_out_number(out, reply_status(item->id))) {
        return false;
    }
    if (item->op.data != NULL) {
        return write_value(out, &item->op) && json_out_raw(out, SLICE("}"));
    }
    return json_out_raw(out, SLICE(",\"detail\":")) &&
           json_out_string(out, slice_from_string(reply_detail(item->id))) &&
           json_out_raw(out, SLICE("}"));
}

struct buffer *
mget_json(const struct mget *mget)
{
    size_t size = mget->counted + mget->count * JSON_OVERHEAD;
    struct buffer *out = buffer_create(size);
    bool ok = out != NULL && json_out_raw(&out, SLICE("{\"values\":["));

    for (size_t i = 0; ok && i < mget->count; i++) {
        ok = (i == 0 || json_out_raw(&out, SLICE(","))) && write_item(&out, &mget->items[i]);
    }
    if (ok && json_out_raw(&out, SLICE("]}\n"))) {
        return out;
    }
    buffer_unref(out);
    return NULL;
}
