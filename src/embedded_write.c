/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * embedded_write.c: carries out operations on the embedded database, many in one transaction. It
 * has no thread of its own and answers nobody; the transactions are embedded_txn.c's.
 *
 * A batch is a row of segments, one transaction each; nearly always one segment is all of it.
 *
 *   begin --> apply op, op, op ... --> commit             all is said
 *               |     |    |             '--> failed       nobody is told OK
 *               |     |    '--> no room for this op: NO_MEMORY, and on with the next
 *               |     '--> no room left in this transaction: commit, the next segment starts here
 *               '--> LMDB failed: abort, refuse that op, the segment once more without it
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "embedded_db.h"
#include "embedded_priv.h"
#include "embedded_record.h"

/* A segment is tried again this often, each time without the op that broke it. */
#define ATTEMPTS_MAX 16

/* A longer scratch buffer is given back after the batch. Bytes. */
#define SCRATCH_KEEP ((size_t)1 << 20)

/* What an op may cost besides its value, before the depth of the trees is looked up. Pages. */
#define OP_PAGES_GUESS 10

/* The state of one embedded_db_write. While it runs, op->opaque is the status that an op was
 * refused with; STORE_OK means that it was not. */
struct batch {
    struct embedded_txn txn;     /* of the segment under way */
    struct store_op *const *ops; /* (ref) */
    size_t count;                /* of ops */
};

static enum store_status
status_of(int rc)
{
    switch (rc) {
    case MDB_MAP_FULL:
    case MDB_TXN_FULL:
    case ENOSPC:
    case EDQUOT:
    case ENOMEM:
    case EFBIG:
        return STORE_NO_MEMORY;
    default:
        return STORE_UNAVAILABLE;
    }
}

static void
refuse(struct store_op *op, enum store_status status)
{
    op->opaque = (uint32_t)status;
    op->status = status;
    op->out_cas = 0;
    op->number = 0;
}

/* Plans and carries out OP; with DONE, op->status says how it went. */
static enum embedded_outcome
apply(struct embedded_txn *txn, struct store_op *op)
{
    struct embedded_record record, *there = &record, *alive;
    struct embedded_change change;
    int rc = embedded_txn_find(txn, op->key, &record);

    if (rc == MDB_NOTFOUND) {
        there = NULL;
    } else if (rc != 0) {
        txn->error = rc;
        return EMBEDDED_BROKEN;
    }
    alive = there != NULL && embedded_record_expired(there, txn->now_ms) ? NULL : there;
    op->status = embedded_plan(op, alive, txn->now_ms, &change);
    if (op->status != STORE_OK) {
        return EMBEDDED_DONE;
    }
    if (change.remove) {
        assert(alive != NULL);
        return embedded_txn_remove(txn, op->key, alive->expiry_ms);
    }
    return embedded_txn_put(txn, op->key, there, &change, &op->out_cas);
}

/* Applies from FIRST on. Returns the index of the first op that is not in this transaction or,
 * when txn.error is set, of the one that broke it. */
static size_t
apply_from(struct batch *batch, size_t first)
{
    for (size_t i = first; i < batch->count; i++) {
        struct store_op *op = batch->ops[i];
        if (op->opaque != STORE_OK) {
            continue;
        }
        switch (apply(&batch->txn, op)) {
        case EMBEDDED_DONE:
            break;
        case EMBEDDED_REFUSED:
            embedded_complain(batch->txn.db, "no room for a write (map_size can be raised)",
                              MDB_MAP_FULL);
            refuse(op, STORE_NO_MEMORY);
            break;
        case EMBEDDED_CUT:
        case EMBEDDED_BROKEN:
            return i;
        }
    }
    return batch->count;
}

static void
refuse_all(struct batch *batch, size_t first, size_t end, int rc)
{
    embedded_complain(batch->txn.db, "writes failed", rc);
    for (size_t i = first; i < end; i++) {
        refuse(batch->ops[i], status_of(rc));
    }
}

/* One transaction, from FIRST on. Returns where the next one starts. */
static size_t
run_segment(struct batch *batch, size_t first)
{
    struct embedded_txn *txn = &batch->txn;
    size_t end;
    int rc = 0;

    for (int attempt = 1; attempt <= ATTEMPTS_MAX; attempt++) {
        if ((rc = embedded_txn_begin(txn)) != 0) {
            break;
        }
        end = apply_from(batch, first);
        if (txn->error != 0) {
            rc = txn->error;
            embedded_txn_abort(txn);
            embedded_complain(txn->db, "a write failed", rc);
            refuse(batch->ops[end], status_of(rc));
        } else if ((rc = embedded_txn_commit(txn)) == 0) {
            return end;
        } else if (rc != MDB_MAP_FULL || txn->too_big == 1) {
            refuse_all(batch, first, end, rc);
            return end;
        }
        /* When the list of free pages did not fit, or little helps, removals alone may pass. */
        if (txn->error == 0 || attempt > ATTEMPTS_MAX / 2) {
            txn->too_big = 1;
        }
    }
    refuse_all(batch, first, batch->count, rc);
    return batch->count;
}

static void
shrink_scratch(struct embedded_db *db)
{
    if (db->scratch_cap > SCRATCH_KEEP) {
        free(db->scratch);
        db->scratch = NULL;
        db->scratch_cap = 0;
    }
}

void
embedded_db_write(struct embedded_db *db, struct store_op *const *ops, size_t count, int64_t now_ms)
{
    struct batch batch = { .txn = { .db = db, .now_ms = now_ms }, .ops = ops, .count = count };

    for (size_t i = 0; i < count; i++) {
        assert(!store_verb_reads(ops[i]->verb));
        ops[i]->opaque = STORE_OK;
        batch.txn.estimate += embedded_pages(db, ops[i]->value.len) + OP_PAGES_GUESS;
    }
    for (size_t at = 0; at < count;) {
        at = run_segment(&batch, at);
    }
    shrink_scratch(db);
}
