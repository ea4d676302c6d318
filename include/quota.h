/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * quota.h: what all workers together may hold at one moment: connections, and bytes of bodies and
 * values. The counters are relaxed atomics: a limit may be passed by what other workers take in the
 * same instant, never by more. Connections of one address are counted in a small table behind a
 * lock, which is only taken when that limit is set.
 */
#ifndef KVGATE_QUOTA_H
#define KVGATE_QUOTA_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include "config.h"

struct quota_peers;

struct quota {
    const struct config *config; /* (ref) the maxima */
    unsigned connections_max;    /* config->connections, or what this process can open */
    atomic_uint connections;     /* open now */
    atomic_size_t bytes;         /* of bodies and values, now */
    atomic_llong quiet_until_ms; /* monotonic: a limit that is reached is logged once in a while */
    struct quota_peers *peers;   /* open connections by address (owned); NULL without that limit */
};

/* -1: no memory. CONFIG outlives it. */
int quota_init(struct quota *quota, const struct config *config);
void quota_deinit(struct quota *quota);

enum quota_verdict { QUOTA_OK, QUOTA_CONNECTIONS, QUOTA_ADDRESS };

/* Counts a connection from ADDRESS and says whether it is one too many (it is counted all the
 * same). */
enum quota_verdict quota_connect(struct quota *quota, const struct sockaddr *address);

/* The same connection has gone. */
void quota_disconnect(struct quota *quota, const struct sockaddr *address);

/* Takes N bytes. False: that would be too many, and none are taken. */
bool quota_take(struct quota *quota, size_t n);

/* Takes N bytes that are there already, and cannot be refused any more. */
void quota_add(struct quota *quota, size_t n);

/* Gives N bytes back. */
void quota_give(struct quota *quota, size_t n);

#endif
