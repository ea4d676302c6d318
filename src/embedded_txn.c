/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * embedded_txn.c: one write transaction on the embedded database: records found, put and removed
 * with their expiry dates, as long as there is room. Which operation asks for it, and what becomes
 * of the operation when it fails, is embedded_write.c's.
 *
 * A full map. LMDB copies each page that it changes, and a page set free can be used again only two
 * commits later, so even a removal needs room. Therefore growing writes are refused while there is
 * still a reserve of pages left, which only removals may use. The count of pages can say yes where
 * LMDB says no, as a big value needs its pages in a row; from then on everything that is not
 * smaller is refused.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "embedded_priv.h"
#include "embedded_record.h"

/* LMDB's database of free pages; it has this number and no name. */
#define FREE_PAGES 0

/* From here on a value has pages of its own in LMDB. Bytes, on the safe side. */
#define INLINE_MAX 1500

/* What a write may need beyond one page per level of the two trees: pages that split. */
#define SPLIT_PAGES 4

size_t
embedded_pages(const struct embedded_db *db, size_t value_len)
{
    if (value_len <= INLINE_MAX) {
        return 1;
    }
    /* 16: LMDB's page header, once at the front. */
    return (value_len + EMBEDDED_HEADER + 16 + db->page_size - 1) / db->page_size;
}

/* ---- room ------------------------------------------------------------------------------------ */

/* Pages at the end of the map that were never used. */
static size_t
pages_unused(const struct embedded_db *db)
{
    MDB_envinfo info;
    size_t end;

    mdb_env_info(db->env, &info);
    /* LMDB never hands out the last page, and counts them from 0. */
    end = info.me_last_pgno + 2;
    return end < db->page_max ? db->page_max - end : 0;
}

/*
 * Adds up free pages until WANTED are found or there are no more. What the last commit freed comes
 * last in the list and is only usable after one more.
 */
static void
count_free(struct embedded_txn *txn, size_t wanted)
{
    struct embedded_db *db = txn->db;
    size_t found = pages_unused(db), last_commit, commit, pages;
    MDB_cursor *cursor = NULL;
    MDB_val key, data;
    int rc;

    txn->freed = 0;
    if (mdb_txn_renew(db->snapshot) != 0) {
        return;
    }
    last_commit = mdb_txn_id(db->snapshot);
    rc = mdb_cursor_open(db->snapshot, FREE_PAGES, &cursor);
    while (rc == 0 && found < wanted + db->reserve) {
        rc = mdb_cursor_get(cursor, &key, &data, MDB_NEXT);
        if (rc != 0 || key.mv_size != sizeof(commit) || data.mv_size < sizeof(pages)) {
            break;
        }
        memcpy(&commit, key.mv_data, sizeof(commit));
        memcpy(&pages, data.mv_data, sizeof(pages));
        if (commit >= last_commit) {
            txn->freed += pages;
        } else {
            found += pages;
        }
    }
    txn->counted = rc != 0;
    txn->room = found > db->reserve ? found - db->reserve : 0;
    if (cursor != NULL) {
        mdb_cursor_close(cursor);
    }
    mdb_txn_reset(db->snapshot);
}

/* May KEY be put with a value of so many PAGES? DONE, REFUSED or CUT. */
static enum embedded_outcome
admit(struct embedded_txn *txn, struct slice key, size_t pages)
{
    size_t cost = pages + txn->op_pages;

    if (txn->too_big != 0 && pages >= txn->too_big) {
        return EMBEDDED_REFUSED;
    }
    if (txn->used + cost > txn->room && !txn->counted) {
        count_free(txn, 2 * (txn->used + cost) + txn->estimate);
    }
    if (txn->used + cost <= txn->room) {
        txn->used += cost;
        return EMBEDDED_DONE;
    }
    if (cost <= txn->room) {
        return EMBEDDED_CUT;
    }
    if (cost <= txn->room + txn->freed && txn->turned != key.ptr) {
        txn->turned = key.ptr;
        txn->turn_over = true;
        return EMBEDDED_CUT;
    }
    return EMBEDDED_REFUSED;
}

/* Removals use the reserve, but so that a transaction always fits into it. DONE or CUT. */
static enum embedded_outcome
admit_removal(struct embedded_txn *txn)
{
    if (txn->removing > 0 && txn->removing + txn->op_pages > txn->db->reserve / 2) {
        return EMBEDDED_CUT;
    }
    txn->removing += txn->op_pages;
    return EMBEDDED_DONE;
}

/* ---- records --------------------------------------------------------------------------------- */

static enum embedded_outcome
broken(struct embedded_txn *txn, int rc)
{
    txn->error = rc;
    return EMBEDDED_BROKEN;
}

/* The key of the expiry database, in BUFFER: in big-endian, so that bytes sort as dates do. */
static MDB_val
expiry_key(char buffer[EMBEDDED_EXPIRY_MAX], int64_t expiry_ms, struct slice key)
{
    uint64_t date = (uint64_t)expiry_ms;

    assert(key.len <= STORE_KEY_MAX);
    for (int i = EMBEDDED_DATE - 1; i >= 0; i--) {
        buffer[i] = (char)(date & 0xff);
        date >>= 8;
    }
    memcpy(buffer + EMBEDDED_DATE, key.ptr, key.len);
    return (MDB_val){ .mv_size = EMBEDDED_DATE + key.len, .mv_data = buffer };
}

/* Moves KEY from one date to another; 0 means that it has none. */
static int
move_expiry(struct embedded_txn *txn, struct slice key, int64_t from_ms, int64_t to_ms)
{
    struct embedded_db *db = txn->db;
    char buffer[EMBEDDED_EXPIRY_MAX];
    MDB_val entry, nothing = { 0, NULL };
    int rc;

    if (from_ms == to_ms) {
        return 0;
    }
    if (from_ms != 0) {
        entry = expiry_key(buffer, from_ms, key);
        rc = mdb_del(txn->mdb, db->expiry, &entry, NULL);
        if (rc != 0 && rc != MDB_NOTFOUND) {
            return rc;
        }
    }
    if (to_ms == 0) {
        return 0;
    }
    if (to_ms < db->next_expiry_ms) {
        db->next_expiry_ms = to_ms;
    }
    entry = expiry_key(buffer, to_ms, key);
    return mdb_put(txn->mdb, db->expiry, &entry, &nothing, 0);
}

/* Copies the old value aside: it lies in pages that the write is about to change. */
static int
keep_old(struct embedded_db *db, struct slice *part)
{
    if (part->len > db->scratch_cap) {
        char *grown = realloc(db->scratch, part->len);
        if (grown == NULL) {
            return ENOMEM;
        }
        db->scratch = grown;
        db->scratch_cap = part->len;
    }
    if (part->len > 0) {
        memcpy(db->scratch, part->ptr, part->len);
        part->ptr = db->scratch;
    }
    return 0;
}

enum embedded_outcome
embedded_txn_put(struct embedded_txn *txn, struct slice key, const struct embedded_record *old,
                 struct embedded_change *change, uint64_t *cas)
{
    struct embedded_db *db = txn->db;
    struct slice *parts = change->parts;
    size_t len = parts[0].len + parts[1].len, pages = embedded_pages(db, len);
    struct embedded_record record = {
        .cas = change->keep_cas ? old->cas : txn->cas + 1,
        .expiry_ms = change->expiry_ms,
        .flags = change->flags,
    };
    MDB_val name = embedded_val(key), data = { EMBEDDED_HEADER + len, NULL };
    enum embedded_outcome outcome = admit(txn, key, pages);
    char *at;
    int rc;

    if (outcome != EMBEDDED_DONE) {
        return outcome;
    }
    if (change->old_part >= 0 && (rc = keep_old(db, &parts[change->old_part])) != 0) {
        return broken(txn, rc);
    }
    if ((rc = move_expiry(txn, key, old == NULL ? 0 : old->expiry_ms, record.expiry_ms)) != 0 ||
        (rc = mdb_put(txn->mdb, db->values, &name, &data, MDB_RESERVE)) != 0) {
        if (rc == MDB_MAP_FULL) {
            txn->too_big = pages;
        }
        return broken(txn, rc);
    }
    at = data.mv_data;
    embedded_record_encode(&record, at);
    at += EMBEDDED_HEADER;
    for (int i = 0; i < 2; i++) {
        if (parts[i].len > 0) {
            memcpy(at, parts[i].ptr, parts[i].len);
            at += parts[i].len;
        }
    }
    txn->cas = change->keep_cas ? txn->cas : record.cas;
    *cas = record.cas;
    return EMBEDDED_DONE;
}

enum embedded_outcome
embedded_txn_remove(struct embedded_txn *txn, struct slice key, int64_t expiry_ms)
{
    MDB_val name = embedded_val(key);
    enum embedded_outcome outcome = admit_removal(txn);
    int rc;

    if (outcome != EMBEDDED_DONE) {
        return outcome;
    }
    if ((rc = move_expiry(txn, key, expiry_ms, 0)) != 0 ||
        (rc = mdb_del(txn->mdb, txn->db->values, &name, NULL)) != 0) {
        return broken(txn, rc);
    }
    return EMBEDDED_DONE;
}

int
embedded_txn_find(struct embedded_txn *txn, struct slice key, struct embedded_record *record)
{
    MDB_val name = embedded_val(key), data;
    int rc = mdb_get(txn->mdb, txn->db->values, &name, &data);

    if (rc == 0 && !embedded_record_decode(embedded_slice(data), record)) {
        return MDB_CORRUPTED;
    }
    return rc;
}

/* ---- begin and end --------------------------------------------------------------------------- */

int
embedded_txn_begin(struct embedded_txn *txn)
{
    struct embedded_db *db = txn->db;
    MDB_stat values = { 0 }, expiry = { 0 };
    size_t unused = pages_unused(db);
    int rc = mdb_txn_begin(db->env, NULL, 0, &txn->mdb);

    if (rc != 0) {
        return rc;
    }
    mdb_stat(txn->mdb, db->values, &values);
    mdb_stat(txn->mdb, db->expiry, &expiry);
    txn->cas = db->cas;
    txn->op_pages = values.ms_depth + expiry.ms_depth + SPLIT_PAGES;
    txn->room = unused > db->reserve ? unused - db->reserve : 0;
    txn->counted = false;
    txn->freed = 0;
    txn->used = 0;
    txn->removing = 0;
    txn->turn_over = false;
    txn->error = 0;
    return 0;
}

int
embedded_txn_commit(struct embedded_txn *txn)
{
    struct embedded_db *db = txn->db;
    MDB_val key = embedded_val(EMBEDDED_CAS_KEY), data = { sizeof(txn->cas), &txn->cas };
    int rc = 0;

    if (txn->cas != db->cas || txn->turn_over) {
        rc = mdb_put(txn->mdb, db->root, &key, &data, 0);
    }
    if (rc != 0) {
        mdb_txn_abort(txn->mdb);
        return rc;
    }
    rc = mdb_txn_commit(txn->mdb);
    /* A commit that failed may still have reached the disk: do not give its numbers out again. */
    if (rc != MDB_MAP_FULL) {
        db->cas = txn->cas;
    }
    return rc;
}

void
embedded_txn_abort(struct embedded_txn *txn)
{
    mdb_txn_abort(txn->mdb);
}
