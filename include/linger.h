/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * linger.h: closes a connection whose client is still writing, so that the answer reaches it.
 *
 * A close with unread bytes makes the kernel send a reset, which may destroy an answer that the
 * client has not read yet (RFC 9112, section 9.6). So the write side is shut, what still comes is
 * read and dropped, and the socket is closed when the client has closed, or after a bounded time
 * and number of bytes.
 */
#ifndef KVGATE_LINGER_H
#define KVGATE_LINGER_H

#include <stdbool.h>
#include <stdint.h>

#include <sys/queue.h>

#include "loop.h"

/* A client that has not noticed after so long, or so many bytes, is cut off. */
#define LINGER_MS    2000
#define LINGER_BYTES (16 * 1024 * 1024)

struct linger_socket;

/* The lingering sockets of a worker, the oldest, so the first to expire, at the head. */
struct lingers {
    struct loop *loop;                   /* (ref) */
    TAILQ_HEAD(, linger_socket) sockets; /* (owned) */
};

void linger_init(struct lingers *lingers, struct loop *loop);

/* Takes over FD, a non-blocking socket on which everything has been written. */
void linger_start(struct lingers *lingers, int fd);

/* When linger_expire has something to do, or CLOCK_NEVER. */
int64_t linger_next_deadline(const struct lingers *lingers);
void linger_expire(struct lingers *lingers);

/* Whether none is left. */
bool linger_is_empty(const struct lingers *lingers);

/* Closes them all at once. */
void linger_stop(struct lingers *lingers);

#endif
