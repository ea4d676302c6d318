/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * embedded_db.c: opens the embedded store's database, reads it and closes it. It writes nothing but
 * what a new database starts with.
 */
#include "embedded_db.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clock.h"
#include "embedded_priv.h"
#include "embedded_record.h"
#include "log.h"

#define FORMAT     UINT64_C(1) /* of the records; another one is refused */
#define FORMAT_KEY SLICE("kvgate.format")

/* Threads that read at the same time: workers, and a person's mdb_stat. 64 bytes each. */
#define READERS_MAX 1024

/* Below this there is no room for the reserve. Bytes. */
#define MAP_MIN ((size_t)1 << 20)

/*
 * The reserve: a 64th of all pages within these bounds. The smallest lets a transaction of a few
 * removals copy the pages that it changes; the largest is enough for a full batch of them.
 */
#define RESERVE_MIN   64
#define RESERVE_MAX   4096
#define RESERVE_SHARE 64

/* Two complaints are this far apart, in ms: a full disk must not fill the log as well. */
#define COMPLAINT_REST 10000

struct embedded_reader {
    struct embedded_db *db; /* (ref) */
    MDB_txn *txn;           /* at rest between reads, so that it holds no page back */
};

static void __attribute__((format(printf, 2, 3)))
say(char error[CONFIG_ERROR_MAX], const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(error, CONFIG_ERROR_MAX, format, args);
    va_end(args);
}

/* Makes the directory and takes the lock. False: ERROR says why. */
static bool
take_directory(struct embedded_db *db, char error[CONFIG_ERROR_MAX])
{
    const char *directory = db->config->directory;
    char path[CONFIG_TEXT_MAX + sizeof("/kvgate.lock")];

    if (mkdir(directory, 0700) != 0 && errno != EEXIST) {
        say(error, "cannot make the directory %s: %s", directory, strerror(errno));
        return false;
    }
    snprintf(path, sizeof(path), "%s/kvgate.lock", directory);
    db->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (db->lock_fd < 0) {
        say(error, "cannot open the database in %s: %s: %s", directory, path, strerror(errno));
        return false;
    }
    if (flock(db->lock_fd, LOCK_EX | LOCK_NB) != 0) {
        say(error, "cannot open the database in %s: %s", directory,
            errno == EWOULDBLOCK ? "another process is using it" : strerror(errno));
        return false;
    }
    return true;
}

static int
open_environment(struct embedded_db *db)
{
    uint64_t size = db->config->map_size;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned flags = MDB_NOTLS | (db->config->sync == CONFIG_SYNC_NONE ? MDB_NOSYNC : 0);
    int stale, rc;

    size = size < MAP_MIN ? MAP_MIN : size - size % page;
    if (size > SIZE_MAX / 2) {
        return EFBIG;
    }
    if ((rc = mdb_env_create(&db->env)) != 0 || (rc = mdb_env_set_maxdbs(db->env, 2)) != 0 ||
        (rc = mdb_env_set_maxreaders(db->env, READERS_MAX)) != 0 ||
        (rc = mdb_env_set_mapsize(db->env, (size_t)size)) != 0 ||
        (rc = mdb_env_open(db->env, db->config->directory, flags, 0600)) != 0) {
        return rc;
    }
    /* Readers of a process that was killed would keep pages from being used again. */
    return mdb_reader_check(db->env, &stale);
}

static void
measure(struct embedded_db *db)
{
    MDB_envinfo info;
    MDB_stat stat;

    mdb_env_info(db->env, &info);
    mdb_env_stat(db->env, &stat);
    db->page_size = stat.ms_psize;
    db->page_max = info.me_mapsize / db->page_size;
    db->reserve = db->page_max / RESERVE_SHARE;
    db->reserve = db->reserve < RESERVE_MIN ? RESERVE_MIN : db->reserve;
    db->reserve = db->reserve > RESERVE_MAX ? RESERVE_MAX : db->reserve;
}

/* Reads a number of the root database; as it is when there is none. */
static int
load_number(const struct embedded_db *db, MDB_txn *txn, struct slice name, uint64_t *number)
{
    MDB_val key = embedded_val(name), data;
    int rc = mdb_get(txn, db->root, &key, &data);

    if (rc == 0 && data.mv_size != sizeof(*number)) {
        return MDB_CORRUPTED;
    }
    if (rc == 0) {
        memcpy(number, data.mv_data, sizeof(*number));
    }
    return rc == MDB_NOTFOUND ? 0 : rc;
}

static int
load(struct embedded_db *db, MDB_txn *txn)
{
    uint64_t format = FORMAT;
    MDB_val key = embedded_val(FORMAT_KEY), data = { sizeof(format), &format };
    int rc;

    if ((rc = mdb_dbi_open(txn, NULL, 0, &db->root)) != 0 ||
        (rc = load_number(db, txn, FORMAT_KEY, &format)) != 0) {
        return rc;
    }
    if (format != FORMAT) {
        return MDB_VERSION_MISMATCH;
    }
    if ((rc = mdb_put(txn, db->root, &key, &data, MDB_NOOVERWRITE)) != 0 && rc != MDB_KEYEXIST) {
        return rc;
    }
    if ((rc = mdb_dbi_open(txn, "values", MDB_CREATE, &db->values)) != 0 ||
        (rc = mdb_dbi_open(txn, "expiry", MDB_CREATE, &db->expiry)) != 0) {
        return rc;
    }
    return load_number(db, txn, EMBEDDED_CAS_KEY, &db->cas);
}

static int
open_databases(struct embedded_db *db)
{
    MDB_txn *txn;
    int rc;

    if ((rc = mdb_txn_begin(db->env, NULL, 0, &txn)) != 0) {
        return rc;
    }
    if ((rc = load(db, txn)) != 0) {
        mdb_txn_abort(txn);
        return rc;
    }
    if ((rc = mdb_txn_commit(txn)) != 0 ||
        (rc = mdb_txn_begin(db->env, NULL, MDB_RDONLY, &db->snapshot)) != 0) {
        return rc;
    }
    mdb_txn_reset(db->snapshot);
    return 0;
}

struct embedded_db *
embedded_db_open(const struct config_store *config, char error[CONFIG_ERROR_MAX])
{
    struct embedded_db *db = calloc(1, sizeof(*db));
    int rc;

    if (db == NULL) {
        say(error, "out of memory");
        return NULL;
    }
    db->config = config;
    db->lock_fd = -1;
    if (!take_directory(db, error)) {
        goto fail;
    }
    if ((rc = open_environment(db)) != 0 || (rc = open_databases(db)) != 0) {
        say(error, "cannot open the database in %s: %s", config->directory, mdb_strerror(rc));
        goto fail;
    }
    measure(db);
    return db;
fail:
    embedded_db_close(db);
    return NULL;
}

void
embedded_db_close(struct embedded_db *db)
{
    if (db == NULL) {
        return;
    }
    if (db->snapshot != NULL) {
        mdb_txn_abort(db->snapshot);
        /* With `sync = none` this is what makes an orderly stop safe. */
        mdb_env_sync(db->env, 1);
    }
    if (db->env != NULL) {
        mdb_env_close(db->env);
    }
    if (db->lock_fd >= 0) {
        close(db->lock_fd);
    }
    free(db->scratch);
    free(db);
}

size_t
embedded_db_value_max(const struct embedded_db *db)
{
    size_t room = (db->page_max - db->reserve) * db->page_size;

    return room < EMBEDDED_VALUE_MAX ? room : EMBEDDED_VALUE_MAX;
}

int64_t
embedded_db_next_expiry(const struct embedded_db *db)
{
    return db->next_expiry_ms;
}

void
embedded_db_count(struct embedded_db *db, size_t *records, size_t *dated)
{
    MDB_stat stat = { 0 };

    *records = 0;
    *dated = 0;
    if (mdb_txn_renew(db->snapshot) != 0) {
        return;
    }
    if (mdb_stat(db->snapshot, db->values, &stat) == 0) {
        *records = stat.ms_entries;
    }
    if (mdb_stat(db->snapshot, db->expiry, &stat) == 0) {
        *dated = stat.ms_entries;
    }
    mdb_txn_reset(db->snapshot);
}

void
embedded_complain(struct embedded_db *db, const char *what, int rc)
{
    int64_t now_ms = clock_monotonic_ms();

    if (now_ms >= db->quiet_until_ms) {
        db->quiet_until_ms = now_ms + COMPLAINT_REST;
        log_error("the database in %s: %s: %s", db->config->directory, what, mdb_strerror(rc));
    }
}

struct embedded_reader *
embedded_reader_open(struct embedded_db *db)
{
    struct embedded_reader *reader = malloc(sizeof(*reader));
    int rc;

    if (reader == NULL) {
        return NULL;
    }
    reader->db = db;
    rc = mdb_txn_begin(db->env, NULL, MDB_RDONLY, &reader->txn);
    if (rc != 0) {
        log_error("the database in %s: cannot read: %s", db->config->directory, mdb_strerror(rc));
        free(reader);
        return NULL;
    }
    mdb_txn_reset(reader->txn);
    return reader;
}

void
embedded_reader_close(struct embedded_reader *reader)
{
    if (reader != NULL) {
        mdb_txn_abort(reader->txn);
        free(reader);
    }
}

/* Copies what RECORD says into OP. */
static enum store_status
answer(struct store_op *op, const struct embedded_record *record, int64_t now_ms)
{
    if (op->verb == STORE_GET) {
        op->data = buffer_create(record->value.len);
        if (op->data == NULL) {
            return STORE_NO_MEMORY;
        }
        memcpy(op->data->data, record->value.ptr, record->value.len);
        op->data->len = record->value.len;
    }
    op->value_len = record->value.len;
    op->out_flags = record->flags;
    op->out_cas = record->cas;
    op->ttl_left_s = embedded_record_ttl(record, now_ms);
    return STORE_OK;
}

/*
 * Every read looks at the newest commit. To keep one snapshot for a whole turn would be cheaper,
 * but then a client could be told that a write is done and read the old value from another worker.
 */
void
embedded_reader_get(struct embedded_reader *reader, struct store_op *op, int64_t now_ms)
{
    MDB_val key = embedded_val(op->key), data;
    struct embedded_record record;
    int rc = mdb_txn_renew(reader->txn);

    assert(store_verb_reads(op->verb));
    if (rc != 0) {
        op->status = STORE_UNAVAILABLE;
        return;
    }
    rc = mdb_get(reader->txn, reader->db->values, &key, &data);
    if (rc == MDB_NOTFOUND) {
        op->status = STORE_MISS;
    } else if (rc != 0) {
        op->status = STORE_UNAVAILABLE;
    } else if (!embedded_record_decode(embedded_slice(data), &record)) {
        op->status = STORE_BAD_REPLY;
    } else if (embedded_record_expired(&record, now_ms)) {
        op->status = STORE_MISS;
    } else {
        op->status = answer(op, &record, now_ms);
    }
    mdb_txn_reset(reader->txn);
}
