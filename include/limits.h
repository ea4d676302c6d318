/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * limits.h: what all workers together may hold at one moment: connections, and bytes of bodies and
 * values. The counters are relaxed atomics: a limit may be passed by what other workers take in the
 * same instant, never by more. Connections of one address are counted in a small table behind a
 * lock, which is only taken when that limit is set.
 */
#ifndef KVGATE_LIMITS_H
#define KVGATE_LIMITS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include "config.h"

struct limits_peers;

struct limits {
    const struct config *config; /* (ref) the maxima */
    atomic_uint connections;     /* open now */
    atomic_size_t bytes;         /* of bodies and values, now */
    struct limits_peers *peers;  /* open connections by address (owned); NULL without that limit */
};

/* -1: no memory. CONFIG outlives it. */
int limits_init(struct limits *limits, const struct config *config);
void limits_deinit(struct limits *limits);

enum limits_verdict { LIMITS_OK, LIMITS_CONNECTIONS, LIMITS_ADDRESS };

/* Counts a connection from ADDRESS and says whether it is one too many (it is counted all the
 * same). */
enum limits_verdict limits_connect(struct limits *limits, const struct sockaddr *address);

/* The same connection has gone. */
void limits_disconnect(struct limits *limits, const struct sockaddr *address);

/* Takes N bytes. False: that would be too many, and none are taken. */
bool limits_take(struct limits *limits, size_t n);

/* Takes N bytes that are there already, and cannot be refused any more. */
void limits_add(struct limits *limits, size_t n);

/* Gives N bytes back. */
void limits_give(struct limits *limits, size_t n);

#endif
