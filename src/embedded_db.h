/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * embedded_db.h: the embedded store's database: a directory of LMDB files, read by many threads and
 * written by one.
 *
 * It knows operations but neither loops nor queues nor threads: those are store_embedded.c's. Of
 * LMDB nothing shows here.
 */
#ifndef KVGATE_EMBEDDED_DB_H
#define KVGATE_EMBEDDED_DB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config.h"
#include "store.h"

struct embedded_db;
struct embedded_reader;

/*
 * Opens the database that CONFIG describes, and makes it and its directory where they are not there
 * yet. One process has it at a time. The caller closes it. NULL: ERROR says why.
 */
struct embedded_db *embedded_db_open(const struct config_store *config,
                                     char error[CONFIG_ERROR_MAX]);

/* Every reader must be closed. NULL is allowed. */
void embedded_db_close(struct embedded_db *db);

/* The longest value that the database can take at all, in bytes. Any thread. */
size_t embedded_db_value_max(const struct embedded_db *db);

/* One thread's way to read. It must be closed before the database. NULL: no memory, or too many. */
struct embedded_reader *embedded_reader_open(struct embedded_db *db);

/* NULL is allowed. */
void embedded_reader_close(struct embedded_reader *reader);

/* Answers OP, a GET or HEAD, from what is committed at this moment. Waits for nobody. */
void embedded_reader_get(struct embedded_reader *reader, struct store_op *op, int64_t now_ms);

/*
 * The following three are for one thread at a time: the writer.
 *
 * Carries out OPS, all of them writes, one after the other and as few transactions as can be, and
 * sets the status and results of each. An op that fails undoes no other. When this returns, what
 * says STORE_OK is as safe as the configuration asks for. NOW_MS is the wall clock.
 */
void embedded_db_write(struct embedded_db *db, struct store_op *const *ops, size_t count,
                       int64_t now_ms);

/* Removes some of what had expired by NOW_MS. True: there is more, so call again. */
bool embedded_db_sweep(struct embedded_db *db, int64_t now_ms);

/* When the next record expires (wall clock, ms; may be early, never late), or CLOCK_NEVER. */
int64_t embedded_db_next_expiry(const struct embedded_db *db);

/* How many records there are, expired ones included, and how many have a date. For tests. */
void embedded_db_count(struct embedded_db *db, size_t *records, size_t *dated);

#endif
