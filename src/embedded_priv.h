/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * embedded_priv.h: what the files of the embedded database share among themselves: embedded_db.c
 * opens and reads it, embedded_write.c carries out operations, embedded_sweep.c removes what has
 * expired, both with the transactions of embedded_txn.c. Nobody else includes this, nor <lmdb.h>.
 *
 * Three LMDB databases in one environment:
 *   (root)    "kvgate.format", "kvgate.cas"; LMDB itself keeps the other two's roots here
 *   values    key -> record (embedded_record.h)
 *   expiry    date (8 bytes, big-endian, ms) and key -> nothing; so in the order of the date
 */
#ifndef KVGATE_EMBEDDED_PRIV_H
#define KVGATE_EMBEDDED_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <lmdb.h>

#include "embedded_record.h"
#include "slice.h"
#include "store.h"

#define EMBEDDED_CAS_KEY SLICE("kvgate.cas")

struct embedded_db {
    const struct config_store *config; /* (ref) */
    int lock_fd;                       /* "kvgate.lock", locked: one process at a time */
    MDB_env *env;
    MDB_dbi root;
    MDB_dbi values;
    MDB_dbi expiry;
    size_t page_size; /* bytes */
    size_t page_max;  /* pages that the files can grow to */
    size_t reserve;   /* pages that only removals may use, see embedded_txn.c */

    /* the writer's own */
    MDB_txn *snapshot;      /* a read transaction at rest, to count free pages with */
    uint64_t cas;           /* the last one that was given out */
    int64_t next_expiry_ms; /* wall clock; no record expires before; CLOCK_NEVER */
    char *scratch;          /* an old value, while it is joined to a new one */
    size_t scratch_cap;     /* bytes */
    int64_t quiet_until_ms; /* monotonic; no second complaint before this */
};

/* One write transaction, or several in a row. All zeros but `db` and `now_ms` to start with. */
struct embedded_txn {
    struct embedded_db *db; /* (ref) */
    int64_t now_ms;         /* wall clock */
    size_t estimate;        /* pages that the caller's writes may need in all; a guess */
    size_t too_big;         /* pages; LMDB did not find as many in a row; 0: not known */
    const void *turned;     /* (ref) the key that a commit was made for; only its address counts */

    /* from begin to commit or abort */
    MDB_txn *mdb;
    uint64_t cas;    /* the last one given out */
    size_t op_pages; /* pages that a write may have to copy, besides its value's */
    size_t room;     /* pages for growing writes */
    bool counted;    /* room is all there is; else there may be more */
    size_t freed;    /* pages that the next commit makes usable */
    size_t used;     /* pages of the growing writes so far */
    size_t removing; /* pages of the removals so far */
    bool turn_over;  /* commit, even if nothing changed */
    int error;       /* what LMDB said, when a write is BROKEN; else 0 */
};

enum embedded_outcome {
    EMBEDDED_DONE,
    EMBEDDED_REFUSED, /* there is no room for it */
    EMBEDDED_CUT,     /* there may be room in the next transaction: commit this one */
    EMBEDDED_BROKEN   /* LMDB failed, txn->error says how: abort */
};

/* Bytes of a date in the expiry database, and of its longest key. */
#define EMBEDDED_DATE       8
#define EMBEDDED_EXPIRY_MAX (EMBEDDED_DATE + STORE_KEY_MAX)

/* 0 or LMDB's error; then there is no transaction. */
int embedded_txn_begin(struct embedded_txn *txn);

/* Either way the transaction is over. 0, or LMDB's error: then nothing of it counts. */
int embedded_txn_commit(struct embedded_txn *txn);
void embedded_txn_abort(struct embedded_txn *txn);

/* The record of KEY, in place until the next write: 0, MDB_NOTFOUND or another error. */
int embedded_txn_find(struct embedded_txn *txn, struct slice key, struct embedded_record *record);

/*
 * Puts what CHANGE says. OLD is what lies there, expired or not, or NULL; CHANGE may point into it,
 * and is spoilt. *CAS: the new record's.
 */
enum embedded_outcome embedded_txn_put(struct embedded_txn *txn, struct slice key,
                                       const struct embedded_record *old,
                                       struct embedded_change *change, uint64_t *cas);

/* Removes the record of KEY, which is there, and its EXPIRY_MS. Never REFUSED. */
enum embedded_outcome embedded_txn_remove(struct embedded_txn *txn, struct slice key,
                                          int64_t expiry_ms);

/* Pages that a value of VALUE_LEN bytes takes. */
size_t embedded_pages(const struct embedded_db *db, size_t value_len);

/* Logs that WHAT went wrong with LMDB's error RC, but not twice in a short time. Writer only. */
void embedded_complain(struct embedded_db *db, const char *what, int rc);

/* A slice as LMDB wants it. LMDB does not write through it. */
static inline MDB_val
embedded_val(struct slice s)
{
    return (MDB_val){ .mv_size = s.len, .mv_data = (void *)(uintptr_t)s.ptr };
}

static inline struct slice
embedded_slice(MDB_val val)
{
    return slice_of(val.mv_data, val.mv_size);
}

#endif
