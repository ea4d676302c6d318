/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * place.h: an embedded store in a directory of the test's own, with one worker, and short ways to
 * use it. Keys and values follow from numbers, so that a test need not keep them.
 */
#ifndef KVGATE_TESTS_PLACE_H
#define KVGATE_TESTS_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config.h"
#include "loop_driver.h"
#include "slice.h"
#include "store.h"

/*
 * A configuration for a new directory, which does not exist yet; its parent does. Aborts when there
 * is none to be had. Removing it removes all that the store put there.
 */
struct config_store *place_config_make(uint64_t map_size, enum config_sync sync);
void place_config_remove(struct config_store *config);

/* A store in a directory of its own, with one worker. */
struct place {
    struct config_store *config; /* owned */
    struct store_shared *shared; /* owned; NULL while it is closed */
    struct driver driver;
};

/* Makes one, which must not move from here on, with sync = none. Aborts when it cannot. */
void place_make(struct place *place, uint64_t map_size);

/* Closes it, if it is open, and removes all traces. */
void place_remove(struct place *place);

/* A restart is a close and an open. */
void place_open(struct place *place);
void place_close(struct place *place);

/* The key of number N, in a buffer that the next 1024 calls leave alone. */
struct slice place_key(unsigned n);

/* LEN bytes that depend on N; at most 1 MB. Valid until the next call. */
struct slice place_value(unsigned n, size_t len);

enum store_status place_set(struct place *place, unsigned n, size_t len);
enum store_status place_erase(struct place *place, unsigned n);

/* Whether N is there with just this value; whether a GET says MISS. */
bool place_has(struct place *place, unsigned n, size_t len);
bool place_lacks(struct place *place, unsigned n);

#endif
