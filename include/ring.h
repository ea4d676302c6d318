/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ring.h: which server of a memcached store has a key.
 *
 * libmemcached decides, so that kvgate agrees with every other client of the same fleet. The ring
 * is built once and then only read: every worker may ask at the same time.
 */
#ifndef KVGATE_RING_H
#define KVGATE_RING_H

#include <stdbool.h>
#include <stddef.h>

#include "config.h"
#include "slice.h"

struct ring;

/*
 * The ring of STORE's servers, which are at least one. The caller owns it. NULL: ERROR says why.
 * STORE is not kept.
 */
struct ring *ring_create(const struct config_store *store, char error[CONFIG_ERROR_MAX]);

/* The same without the servers that LEFT_OUT marks; one is left at least. Indexes stay as they were. */
struct ring *ring_create_without(const struct config_store *store,
                                 const bool left_out[CONFIG_SERVER_MAX],
                                 char error[CONFIG_ERROR_MAX]);

/* NULL is allowed. */
void ring_destroy(struct ring *ring);

/* The index, in the order of the configuration, of the server that KEY belongs to. Any thread. */
size_t ring_lookup(const struct ring *ring, struct slice key);

#endif
