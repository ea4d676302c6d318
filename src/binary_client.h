/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * binary_client.h: one blocking client of memcached's binary protocol, for one thread of
 * store_binary.c. libmemcached does all of the talking, SASL (RFC 4616) included.
 */
#ifndef KVGATE_BINARY_CLIENT_H
#define KVGATE_BINARY_CLIENT_H

#include <stddef.h>

#include "config.h"
#include "store.h"

struct binary_client;

/* Connects with the first op. NULL: ERROR says why. CONFIG outlives the client, the caller's. */
struct binary_client *binary_client_open(const struct config_store *config,
                                         char error[CONFIG_ERROR_MAX]);

/* NULL is allowed. */
void binary_client_close(struct binary_client *client);

/*
 * Carries OP out: status and results are in it then. A server that is silent is given up at OP's
 * deadline, or op_timeout if that is sooner; one that sends its answer in drops is not noticed.
 */
void binary_client_run(struct binary_client *client, struct store_op *op);

/* The index, in the order of the configuration, of the server that OP's key belongs to. */
size_t binary_client_server(struct binary_client *client, const struct store_op *op);

/* What went wrong with the last op, for the log. */
const char *binary_client_error(struct binary_client *client);

#endif
