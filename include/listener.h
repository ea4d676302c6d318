/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * listener.h: one listen address and its sockets.
 *
 * On TCP every worker has a socket of its own (SO_REUSEPORT): the kernel spreads the connections. A
 * unix socket is one, and the workers share it.
 */
#ifndef KVGATE_LISTENER_H
#define KVGATE_LISTENER_H

#include <stddef.h>

#include "config.h"

/* Sockets of one address, at the most: one per worker. */
#define LISTENER_SOCKETS_MAX 256

struct listener {
    char name[CONFIG_TEXT_MAX + 16]; /* "http://127.0.0.1:8085/" or "unix:/path": what was bound */
    char path[CONFIG_TEXT_MAX];      /* of a unix socket, to be removed; "" else */
    size_t count;                    /* sockets */
    int sockets[LISTENER_SOCKETS_MAX]; /* (owned) listening, non-blocking */
};

/*
 * Binds ADDRESS (as in the configuration) for WORKERS workers. Port 0 picks one, the same for all.
 * -1: ERROR says why; an address that somebody serves already is an error. The listener is the
 * caller's to close.
 */
int listener_open(struct listener *listener, const char *address, size_t workers,
                  char error[CONFIG_ERROR_MAX]);

/* The socket of worker INDEX (ref). */
int listener_socket(const struct listener *listener, size_t index);

/* Closes the sockets and removes a unix socket's path. A listener of zeros is allowed. */
void listener_close(struct listener *listener);

#endif
