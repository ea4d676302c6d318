/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * embedded_record.h: how the embedded store keeps a value, and what each verb makes of it.
 *
 * Pure functions: no database, no clock, no memory. A record is
 *
 *   cas (8) | expiry (8) | flags (4) | zero (4) | the value
 *
 * in the machine's own byte order, as LMDB's own pages are: the files move only between like
 * machines.
 */
#ifndef KVGATE_EMBEDDED_RECORD_H
#define KVGATE_EMBEDDED_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "slice.h"
#include "store.h"

/* Longest value, bytes. LMDB writes one with a single call and wants its pages in a row: much
 * beyond this, a database of the usual size would refuse it for want of such a row. */
#define EMBEDDED_VALUE_MAX ((size_t)64 << 20)

/* Bytes before the value. */
#define EMBEDDED_HEADER 24

struct embedded_record {
    uint64_t cas;
    int64_t expiry_ms;  /* wall clock; 0: never */
    uint32_t flags;     /* the caller's */
    struct slice value; /* (ref) inside the bytes that were decoded */
};

/* What a write makes of the record that was there. */
struct embedded_change {
    bool remove;           /* the record goes; nothing else in here counts */
    bool keep_cas;         /* TOUCH: the value is the same, so its cas is */
    uint32_t flags;        /* of the new record */
    int64_t expiry_ms;     /* of the new record */
    struct slice parts[2]; /* (ref) the new value, in two pieces: the op's, the old, or `digits` */
    int old_part;          /* which of the parts is the old value's bytes; -1: none */
    char digits[24];       /* INCR DECR: the new value; no NUL */
};

/* False: too short to be a record. */
bool embedded_record_decode(struct slice bytes, struct embedded_record *record);

/* Writes all of RECORD but its value. */
void embedded_record_encode(const struct embedded_record *record, char out[EMBEDDED_HEADER]);

static inline bool
embedded_record_expired(const struct embedded_record *record, int64_t now_ms)
{
    return record->expiry_ms != 0 && record->expiry_ms <= now_ms;
}

/* Seconds left, rounded up so that a fresh ttl of N says N; or STORE_TTL_NEVER. */
int64_t embedded_record_ttl(const struct embedded_record *record, int64_t now_ms);

/*
 * What OP, a write, makes of OLD (NULL: absent or expired). STORE_OK: *CHANGE is what to do, and
 * op->number is set for a counter. Any other status: nothing is to be done. CHANGE points into OP,
 * OLD and itself.
 */
enum store_status embedded_plan(struct store_op *op, const struct embedded_record *old,
                                int64_t now_ms, struct embedded_change *change);

#endif
