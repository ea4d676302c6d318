/* SPDX-License-Identifier: BSD-2-Clause */
/* ring_priv.h: ring.c's knowledge of libmemcached, for binary_client.c, which talks through it. */
#ifndef KVGATE_RING_PRIV_H
#define KVGATE_RING_PRIV_H

#include <stdbool.h>

#include "config.h"

struct memcached_st;

/* Gives HANDLE the servers of STORE, in their order, and how keys find them. False: ERROR says why. */
bool ring_set_up(struct memcached_st *handle, const struct config_store *store,
                 char error[CONFIG_ERROR_MAX]);

#endif
