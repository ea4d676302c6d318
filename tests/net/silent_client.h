/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * silent_client.h: a TCP client that acknowledges nothing that the gateway sends.
 *
 * It speaks TCP itself, from an address that no kernel answers for. Whatever it receives was sent
 * without waiting for an acknowledgement: that is the proof that needs no clock. What waits for
 * one never comes; after 200 ms the gateway's kernel repeats its first segment, which ends the
 * wait.
 */
#ifndef KVGATE_TESTS_SILENT_CLIENT_H
#define KVGATE_TESTS_SILENT_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net_capture.h"
#include "net_pair.h"

/*
 * What comes without an acknowledgement: an initial window of 10 segments (RFC 6928), as Linux has
 * it.
 */
#define SILENT_CLIENT_MAX (10 * NET_PAIR_PLAIN_SEGMENT)

struct silent_client {
    const struct net_pair *pair; /* (ref) */
    struct net_capture *capture; /* of the client's device (ref) */
    int fd;                      /* packet socket, to send (owned) */
    uint16_t port;               /* its own */
    uint32_t seq;                /* of the next byte that it sends */
    uint32_t ack;                /* the gateway's first byte, for ever */
    size_t received;             /* bytes that came, each counted once */
    bool repeated;               /* something came twice: the gateway has waited in vain */
};

/* The three-way handshake with the gateway on NET_PAIR_PORT. */
bool silent_client_open(struct silent_client *c, const struct net_pair *pair,
                        struct net_capture *capture);

/* One segment, of NET_PAIR_PLAIN_SEGMENT bytes at the most. */
bool silent_client_send(struct silent_client *c, const void *data, size_t len);

/* Receives until LEN bytes have come, or something repeats, or nothing comes for some seconds. */
void silent_client_receive(struct silent_client *c, size_t len);

/* Resets the connection. May be called twice. */
void silent_client_close(struct silent_client *c);

#endif
