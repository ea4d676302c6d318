/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * net_capture.h: the TCP segments of one connection as they pass a device, with the kernel's time.
 *
 * A segment is there before the program that it is for can have read it: what a test has received
 * it can look at.
 */
#ifndef KVGATE_TESTS_NET_CAPTURE_H
#define KVGATE_TESTS_NET_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The payload's first bytes that are kept; a whole segment of MTU 1500. */
#define NET_CAPTURE_PAYLOAD 1500

struct net_segment {
    int64_t time_ns; /* when it passed, by the wall clock */
    uint16_t from;   /* source port */
    uint16_t to;     /* destination port */
    uint32_t seq;    /* of its first byte */
    uint32_t ack;    /* the next byte that its sender waits for */
    uint8_t flags;   /* TH_SYN and the like */
    size_t len;      /* bytes of payload */
    char payload[NET_CAPTURE_PAYLOAD];
};

struct net_capture {
    int fd;                       /* packet socket (owned); -1: none */
    bool is_loopback;             /* each packet passes twice; one is dropped */
    uint16_t port;                /* segments from or to this port are kept; 0: all */
    struct net_segment *segments; /* in the order of passing (owned) */
    size_t count;
    size_t cap;
};

/* Begins to record what passes DEVICE of the present namespace. */
bool net_capture_open(struct net_capture *capture, int device, bool is_loopback);

/* May be called twice. */
void net_capture_close(struct net_capture *capture);

/* Forgets all that has passed so far, and keeps from now on what concerns PORT. */
void net_capture_begin(struct net_capture *capture, uint16_t port);

/* Takes in what has passed. False: some was lost, and nothing can be said. */
bool net_capture_read(struct net_capture *capture);

/* The same, after waiting until something passes, TIMEOUT_MS at the most. */
bool net_capture_wait(struct net_capture *capture, int timeout_ms);

/*
 * Whether segment I brings PORT data for the first time. A kernel that is late to acknowledge, on a
 * busy machine, is sent the same again after some milliseconds; that is not the program's doing.
 */
bool net_capture_is_data(const struct net_capture *capture, size_t i, uint16_t port);

/* The segments as text on stderr, for a failure that needs an explanation. */
void net_capture_show(const struct net_capture *capture);

#endif
