/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * memcached_lane_priv.h: what the files of a lane tell each other: memcached_lane.c (life and events),
 * memcached_handshake.c (until it is ready), memcached_send.c (ops to bytes), memcached_receive.c
 * (bytes to completions).
 */
#ifndef KVGATE_MEMCACHED_LANE_PRIV_H
#define KVGATE_MEMCACHED_LANE_PRIV_H

#include <stdbool.h>

#include "memcached_lane.h"

/* Lines and small values; a full buffer of 100-byte values is some 90 replies in one recv. */
#define LANE_IN_CAP (16 * 1024)

/* OP leaves the lane, answered or not. */
static inline void
lane_forget_big(struct memcached_lane *lane, const struct store_op *op)
{
    if (op->value.len > MEMCACHED_BIG_VALUE) {
        lane->big--;
    }
}

/* Asks epoll for EPOLLOUT or not, and for EPOLLIN unless PAUSE. */
void lane_watch_for(struct memcached_lane *lane, bool out, bool pause);

/* EPOLLOUT: sends the rest of the batch, then looks at replies that were held back for it. */
void lane_resume_send(struct memcached_lane *lane);

/* EPOLLIN: reads and completes, bounded. May fail the lane. */
void lane_receive(struct memcached_lane *lane);

/* Takes all complete replies off the front of in[]. False: the lane has failed. */
bool lane_parse(struct memcached_lane *lane);

/* The connection stands: begins with what has to be said first. May fail the lane. */
void lane_connected(struct memcached_lane *lane);

/* AUTH to PROBE: something has come into in[]. False: the lane has failed. */
bool lane_handshake(struct memcached_lane *lane);

/* Why a server sent what nobody asked for, or NULL: it is none of the things that servers say. */
const char *lane_refusal(const char *in, size_t in_len);

#endif
