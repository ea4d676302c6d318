/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fake_table.h: what the fake memcached remembers: items with flags, cas and expiry, and the rules
 * of every kind of write. It knows no protocol.
 */
#ifndef KVGATE_TESTS_FAKE_TABLE_H
#define KVGATE_TESTS_FAKE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "slice.h"

/* Bytes that grow. */
struct fake_bytes {
    char *ptr;  /* owned; a NUL stands behind the last byte */
    size_t len; /* used */
    size_t cap; /* allocated */
};

void fake_bytes_add(struct fake_bytes *b, const char *ptr, size_t len);
void fake_bytes_printf(struct fake_bytes *b, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Drops the first COUNT bytes. */
void fake_bytes_drop(struct fake_bytes *b, size_t count);
void fake_bytes_free(struct fake_bytes *b);

#define FAKE_BUCKETS 4096

struct fake_item {
    struct fake_item *next; /* in the bucket (owned) */
    char *key;              /* owned */
    size_t key_len;         /* bytes */
    char *value;            /* owned */
    size_t len;             /* bytes of value */
    uint32_t flags;         /* the client's */
    uint64_t cas;           /* changes with every write */
    int64_t expires_ms;     /* wall clock; 0: never */
};

struct fake_table {
    struct fake_item *buckets[FAKE_BUCKETS]; /* owned */
    uint64_t cas;                            /* the last one given */
    unsigned lacks;                          /* FAKE_LACKS_... */
};

enum fake_outcome {
    FAKE_STORED,
    FAKE_NOT_STORED,
    FAKE_EXISTS,
    FAKE_NOT_FOUND,
    FAKE_TOO_LARGE,
    FAKE_NOT_A_NUMBER
};

/* A write, whatever protocol it came in. */
struct fake_write {
    char mode; /* 'S'et 'E' add 'R'eplace 'A'ppend 'P'repend */
    struct slice key;
    struct slice value;
    uint32_t flags;
    int64_t exptime;
    bool compare;     /* only if the item's cas is... */
    uint64_t cas;     /* ...this */
    uint64_t new_cas; /* out: 0 when nothing was written */
};

struct fake_table *fake_table_create(unsigned lacks);
void fake_table_destroy(struct fake_table *table);

/* Forgets every item. */
void fake_table_flush(struct fake_table *table);

/* KEY's item, or NULL; one that has expired is gone. */
struct fake_item *fake_table_find(struct fake_table *table, struct slice key);

/* A new item without flags or expiry, in place of the old one. */
struct fake_item *fake_table_put(struct fake_table *table, struct slice key, struct slice value);

/* False: there was none. */
bool fake_table_erase(struct fake_table *table, struct slice key);

/* Carries out W. */
enum fake_outcome fake_table_store(struct fake_table *table, struct fake_write *w);

/* Adds DELTA to ITEM (takes it away if not UP); the new number is *RESULT. */
enum fake_outcome fake_table_count(struct fake_table *table, struct fake_item *item, bool up,
                                   uint64_t delta, uint64_t *result);

/* An exptime of the protocol as a moment of the wall clock, for fake_item.expires_ms. */
int64_t fake_expiry_ms(int64_t exptime);

/* Seconds that ITEM has left; -1: for ever. */
int64_t fake_ttl_left(const struct fake_item *item);

#endif
