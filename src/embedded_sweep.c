/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * embedded_sweep.c: removes from the embedded database what has expired, a little at a time. When
 * that happens is store_embedded.c's; readers do not wait for it, as they look at the date.
 */
#include <string.h>

#include "clock.h"
#include "embedded_db.h"
#include "embedded_priv.h"
#include "embedded_record.h"

/* Records that one sweep removes at the most, and bytes: writes wait no longer than that. */
#define SWEEP_RECORDS 256
#define SWEEP_BYTES   ((size_t)16 << 20)

/* Removes the record at the head of the expiry database, and adds its size to *BYTES. */
static int
sweep_head(struct embedded_txn *txn, MDB_val head, size_t *bytes)
{
    struct embedded_db *db = txn->db;
    char copy[EMBEDDED_EXPIRY_MAX];
    MDB_val entry = { head.mv_size, copy }, key;
    struct embedded_record record;
    int rc;

    if (head.mv_size > sizeof(copy)) {
        return MDB_CORRUPTED;
    }
    memcpy(copy, head.mv_data, head.mv_size);
    key = (MDB_val){ head.mv_size - EMBEDDED_DATE, copy + EMBEDDED_DATE };
    rc = embedded_txn_find(txn, embedded_slice(key), &record);
    if (rc == 0 && embedded_record_expired(&record, txn->now_ms)) {
        *bytes += record.value.len;
        rc = mdb_del(txn->mdb, db->values, &key, NULL);
    }
    if (rc != 0 && rc != MDB_NOTFOUND) {
        return rc;
    }
    return mdb_del(txn->mdb, db->expiry, &entry, NULL);
}

/* The head of the expiry database and its date. MDB_NOTFOUND: it is empty. */
static int
sweep_look(MDB_cursor *cursor, MDB_val *head, int64_t *date_ms)
{
    MDB_val nothing;
    uint64_t date = 0;
    int rc = mdb_cursor_get(cursor, head, &nothing, MDB_FIRST);

    if (rc != 0) {
        return rc;
    }
    if (head->mv_size <= EMBEDDED_DATE) {
        return MDB_CORRUPTED;
    }
    for (int i = 0; i < EMBEDDED_DATE; i++) {
        date = date << 8 | ((unsigned char *)head->mv_data)[i];
    }
    *date_ms = (int64_t)date;
    return 0;
}

/* Removes LIMIT records at the most. *NEXT_MS: the date of the first that stays. */
static int
sweep_some(struct embedded_txn *txn, size_t limit, int64_t *next_ms)
{
    MDB_cursor *cursor;
    MDB_val head;
    size_t bytes = 0;
    int rc = mdb_cursor_open(txn->mdb, txn->db->expiry, &cursor);

    if (rc != 0) {
        return rc;
    }
    for (size_t n = 0; rc == 0; n++) {
        rc = sweep_look(cursor, &head, next_ms);
        if (rc != 0 || *next_ms > txn->now_ms || n == limit || bytes >= SWEEP_BYTES) {
            break;
        }
        rc = sweep_head(txn, head, &bytes);
    }
    mdb_cursor_close(cursor);
    if (rc == MDB_NOTFOUND) {
        *next_ms = CLOCK_NEVER;
        rc = 0;
    }
    return rc;
}

/* As sweep_some, in a transaction of its own. */
static int
sweep_once(struct embedded_txn *txn, size_t limit, int64_t *next_ms)
{
    size_t fits;
    int rc = embedded_txn_begin(txn);

    if (rc != 0) {
        return rc;
    }
    /* As with all removals: what a transaction changes must fit into the reserve. */
    fits = txn->db->reserve / 2 / txn->op_pages + 1;
    rc = sweep_some(txn, limit < fits ? limit : fits, next_ms);
    if (rc != 0) {
        embedded_txn_abort(txn);
        return rc;
    }
    return embedded_txn_commit(txn);
}

bool
embedded_db_sweep(struct embedded_db *db, int64_t now_ms)
{
    struct embedded_txn txn = { .db = db, .now_ms = now_ms };
    int64_t next_ms = CLOCK_NEVER;
    int rc = sweep_once(&txn, SWEEP_RECORDS, &next_ms);

    if (rc == MDB_MAP_FULL) {
        rc = sweep_once(&txn, 1, &next_ms);
    }
    if (rc != 0) {
        embedded_complain(db, "cannot sweep out what has expired", rc);
        return false;
    }
    db->next_expiry_ms = next_ms;
    return next_ms <= now_ms;
}
