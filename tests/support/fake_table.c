/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fake_table.c: the fake's items in a hash table of chains. It dies when memory runs out: a test
 * has no use for the rest.
 */
#include "fake_table.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"

#define MONTH_S (60 * 60 * 24 * 30)

/* memcached's default limit, and what an item costs beside key and value. */
#define ITEM_MAX      (1024 * 1024)
#define ITEM_OVERHEAD 59

/* ---- bytes ---- */

void
fake_bytes_add(struct fake_bytes *b, const char *ptr, size_t len)
{
    if (b->len + len + 1 > b->cap) {
        b->cap = (b->len + len + 1) * 2;
        b->ptr = realloc(b->ptr, b->cap);
        if (b->ptr == NULL) {
            abort();
        }
    }
    if (len > 0) {
        memcpy(b->ptr + b->len, ptr, len);
    }
    b->len += len;
    b->ptr[b->len] = '\0';
}

void
fake_bytes_printf(struct fake_bytes *b, const char *format, ...)
{
    char text[1024];
    va_list args;
    int len;

    va_start(args, format);
    len = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (len < 0 || (size_t)len >= sizeof(text)) {
        abort();
    }
    fake_bytes_add(b, text, (size_t)len);
}

void
fake_bytes_drop(struct fake_bytes *b, size_t count)
{
    if (count > 0) {
        memmove(b->ptr, b->ptr + count, b->len - count);
        b->len -= count;
    }
}

void
fake_bytes_free(struct fake_bytes *b)
{
    free(b->ptr);
    *b = (struct fake_bytes){ 0 };
}

/* ---- the table ---- */

struct fake_table *
fake_table_create(unsigned lacks)
{
    struct fake_table *table = calloc(1, sizeof(*table));

    if (table == NULL) {
        abort();
    }
    table->lacks = lacks;
    return table;
}

static void
free_item(struct fake_item *item)
{
    free(item->key);
    free(item->value);
    free(item);
}

void
fake_table_flush(struct fake_table *table)
{
    for (size_t i = 0; i < FAKE_BUCKETS; i++) {
        while (table->buckets[i] != NULL) {
            struct fake_item *item = table->buckets[i];
            table->buckets[i] = item->next;
            free_item(item);
        }
    }
}

void
fake_table_destroy(struct fake_table *table)
{
    if (table != NULL) {
        fake_table_flush(table);
        free(table);
    }
}

static struct fake_item **
bucket_of(struct fake_table *table, struct slice key)
{
    uint32_t hash = 2166136261u;

    for (size_t i = 0; i < key.len; i++) {
        hash = (hash ^ (unsigned char)key.ptr[i]) * 16777619u;
    }
    return &table->buckets[hash % FAKE_BUCKETS];
}

/* Where the pointer to KEY's item is, or NULL; an item that has expired goes first. */
static struct fake_item **
find(struct fake_table *table, struct slice key)
{
    struct fake_item **at = bucket_of(table, key);

    while (*at != NULL && !slice_equal(slice_of((*at)->key, (*at)->key_len), key)) {
        at = &(*at)->next;
    }
    if (*at == NULL) {
        return NULL;
    }
    if ((*at)->expires_ms != 0 && (*at)->expires_ms <= clock_wall_ms()) {
        struct fake_item *gone = *at;
        *at = gone->next;
        free_item(gone);
        return NULL;
    }
    return at;
}

bool
fake_table_erase(struct fake_table *table, struct slice key)
{
    struct fake_item **at = find(table, key);

    if (at != NULL) {
        struct fake_item *item = *at;
        *at = item->next;
        free_item(item);
    }
    return at != NULL;
}

static char *
copy_bytes(struct slice a, struct slice b)
{
    char *copy = malloc(a.len + b.len + 1);

    if (copy == NULL) {
        abort();
    }
    memcpy(copy, a.ptr, a.len);
    if (b.len > 0) {
        memcpy(copy + a.len, b.ptr, b.len);
    }
    copy[a.len + b.len] = '\0';
    return copy;
}

int64_t
fake_expiry_ms(int64_t exptime)
{
    if (exptime == 0) {
        return 0;
    }
    if (exptime < 0) {
        return 1;
    }
    return exptime > MONTH_S ? exptime * 1000 : clock_wall_ms() + exptime * 1000;
}

int64_t
fake_ttl_left(const struct fake_item *item)
{
    return item->expires_ms == 0 ? -1 : (item->expires_ms - clock_wall_ms() + 999) / 1000;
}

static void
replace_value(struct fake_table *table, struct fake_item *item, char *value, size_t len)
{
    free(item->value);
    item->value = value;
    item->len = len;
    item->cas = ++table->cas;
}

struct fake_item *
fake_table_put(struct fake_table *table, struct slice key, struct slice value)
{
    struct fake_item **bucket = bucket_of(table, key);
    struct fake_item *item = calloc(1, sizeof(*item));

    if (item == NULL) {
        abort();
    }
    fake_table_erase(table, key);
    item->key = copy_bytes(key, slice_of("", 0));
    item->key_len = key.len;
    replace_value(table, item, copy_bytes(slice_of("", 0), value), value.len);
    item->next = *bucket;
    *bucket = item;
    return item;
}

struct fake_item *
fake_table_find(struct fake_table *table, struct slice key)
{
    struct fake_item **at = find(table, key);

    return at != NULL ? *at : NULL;
}

static bool
too_large(const struct fake_write *w, size_t len)
{
    return ITEM_OVERHEAD + (w->flags != 0 ? sizeof(w->flags) : 0) + w->key.len + len > ITEM_MAX;
}

/* Whether W may go on, as the item is (AT may be NULL). */
static enum fake_outcome
may_store(const struct fake_write *w, struct fake_item *const *at)
{
    bool present = at != NULL;

    if (w->compare) {
        if (!present) {
            return FAKE_NOT_FOUND;
        }
        return (*at)->cas == w->cas ? FAKE_STORED : FAKE_EXISTS;
    }
    if ((w->mode == 'E' && present) || (strchr("RAP", w->mode) != NULL && !present)) {
        return FAKE_NOT_STORED;
    }
    return FAKE_STORED;
}

enum fake_outcome
fake_table_store(struct fake_table *table, struct fake_write *w)
{
    struct fake_item **at = find(table, w->key);
    enum fake_outcome outcome = may_store(w, at);
    struct slice old;
    struct fake_item *item;

    if (too_large(w, w->value.len)) {
        if (w->mode == 'S') {
            fake_table_erase(table, w->key);
        }
        return FAKE_TOO_LARGE;
    }
    if (outcome != FAKE_STORED) {
        return outcome;
    }
    if (w->mode == 'A' || w->mode == 'P') {
        item = *at;
        old = slice_of(item->value, item->len);
        if (too_large(w, old.len + w->value.len)) {
            return FAKE_NOT_STORED;
        }
        replace_value(table, item,
                      w->mode == 'A' ? copy_bytes(old, w->value) : copy_bytes(w->value, old),
                      old.len + w->value.len);
    } else {
        item = fake_table_put(table, w->key, w->value);
        item->flags = w->flags;
        item->expires_ms = fake_expiry_ms(w->exptime);
    }
    w->new_cas = item->cas;
    return FAKE_STORED;
}

/* Adds to a number as memcached does: the text keeps its length, spaces at the end, if it can. */
enum fake_outcome
fake_table_count(struct fake_table *table, struct fake_item *item, bool up, uint64_t delta,
                 uint64_t *result)
{
    char text[24];
    char *end;
    uint64_t n;
    size_t len;
    size_t start = strspn(item->value, " +");

    if (item->len == 0 || strspn(item->value + start, "0123456789") == 0) {
        return FAKE_NOT_A_NUMBER;
    }
    errno = 0;
    n = strtoull(item->value, &end, 10);
    if (errno != 0 || (*end != '\0' && *end != ' ')) {
        return FAKE_NOT_A_NUMBER;
    }
    n = up ? n + delta : (n < delta ? 0 : n - delta);
    len = (size_t)snprintf(text, sizeof(text), "%" PRIu64, n);
    if (len < item->len) {
        char *padded = copy_bytes(slice_of(item->value, item->len), slice_of("", 0));
        memset(padded, ' ', item->len);
        memcpy(padded, text, len);
        replace_value(table, item, padded, item->len);
    } else {
        replace_value(table, item, copy_bytes(slice_of(text, len), slice_of("", 0)), len);
    }
    *result = n;
    return FAKE_STORED;
}
