/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * net_pair.h: two network namespaces joined by a pair of virtual Ethernet devices, so that a test
 * sees real packets: MTU 1500, and nothing that joins or splits segments behind its back.
 *
 * The namespaces have no names. They belong to the process and its children, and the kernel removes
 * them, and the devices in them, with the last of these: also when the test crashes or is killed.
 */
#ifndef KVGATE_TESTS_NET_PAIR_H
#define KVGATE_TESTS_NET_PAIR_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

/* Addresses and the port in the private namespaces: nobody else can be there. */
#define NET_PAIR_CLIENT_ADDRESS  "10.0.0.1"
#define NET_PAIR_GATEWAY_ADDRESS "10.0.0.2"
#define NET_PAIR_SILENT_ADDRESS  "10.0.0.9" /* known to the gateway's side, to no kernel */
#define NET_PAIR_PORT            8085

/* What a segment can carry with MTU 1500: with TCP time stamps, as Linux has them, and without. */
#define NET_PAIR_SEGMENT       1448
#define NET_PAIR_PLAIN_SEGMENT 1460

enum net_side { NET_CLIENT, NET_GATEWAY };

struct net_pair {
    int fd[2];               /* the namespaces, by enum net_side (owned); -1: none */
    int device[2];           /* indices of the devices, each in its namespace */
    unsigned char mac[2][6]; /* their Ethernet addresses */
    char why_not[128];       /* why there is no pair */
};

/*
 * Makes the pair and leaves this thread on the client's side. As root, or where a user may make
 * namespaces; it is called before any thread exists, and there is no way back to where the process
 * came from. False: not permitted here, see WHY_NOT.
 */
bool net_pair_open(struct net_pair *pair);

/* What this thread opens and starts from now on is on SIDE. */
bool net_pair_enter(const struct net_pair *pair, enum net_side side);

/* Loopback of the gateway's side becomes like the pair: MTU 1500, nothing joined. */
bool net_pair_narrow_loopback(const struct net_pair *pair);

/* May be called twice. */
void net_pair_close(struct net_pair *pair);

struct sockaddr_in net_pair_address(const char *address, uint16_t port);

#endif
