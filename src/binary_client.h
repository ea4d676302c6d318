/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * binary_client.h: one blocking client of memcached's binary protocol, for one thread of
 * store_binary.c. libmemcached does all of the talking, SASL (RFC 4616) included.
 */
#ifndef KVGATE_BINARY_CLIENT_H
#define KVGATE_BINARY_CLIENT_H

#include "config.h"
#include "store.h"

struct binary_client;

/* Connects with the first op. NULL: ERROR says why. CONFIG outlives the client, the caller's. */
struct binary_client *binary_client_open(const struct config_store *config,
                                         char error[CONFIG_ERROR_MAX]);

/* NULL is allowed. */
void binary_client_close(struct binary_client *client);

/*
 * Carries OP out: status and results are in it then. Takes no longer than connect_timeout and twice
 * op_timeout, unless the server sends its answer in drops.
 */
void binary_client_run(struct binary_client *client, struct store_op *op);

/* What went wrong with the last op, for the log. */
const char *binary_client_error(struct binary_client *client);

#endif
