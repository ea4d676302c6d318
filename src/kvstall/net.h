/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * net.h: sockets that never wait without a deadline, and the few TCP switches that matter here.
 * Deadlines are in the unit of timing_now_ns. Every socket is non-blocking.
 */
#ifndef KVSTALL_NET_H
#define KVSTALL_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define NET_HOST_MAX 256 /* a DNS name has at most 253 characters */
#define NET_PORT_MAX 8   /* "65535" */

struct net_name {
    char host[NET_HOST_MAX]; /* a name, or an address in figures without brackets */
    char port[NET_PORT_MAX]; /* in figures */
};

struct net_address {
    struct sockaddr_storage addr; /* where it is */
    socklen_t len;                /* bytes of ADDR that count */
};

enum net_result {
    NET_OK,
    NET_CLOSED,      /* the other side has closed, by FIN or RST */
    NET_TIMEOUT,     /* the deadline has passed */
    NET_INPUT,       /* while writing: there is something to read, and no room to write */
    NET_INTERRUPTED, /* a signal asks the program to end */
    NET_FAILED       /* see errno */
};

/*
 * Takes apart "host:port" or "[v6]:port"; without ":port" DEFAULT_PORT is taken, NULL: it must be
 * there. False: it is neither.
 */
bool net_split(const char *text, size_t len, const char *default_port, struct net_name *name);

/*
 * Connects to the first address of NAME that accepts, and stores it in ADDRESS. Returns the socket;
 * -1: *REASON says why (static, or valid until the next call).
 */
int net_dial(const struct net_name *name, int64_t deadline_ns, struct net_address *address,
             const char **reason);

/* Connects to ADDRESS; -1: see errno (ETIMEDOUT, EINTR and so on). */
int net_connect(const struct net_address *address, int64_t deadline_ns);

/* Listens on NAME; stores the address that it really got. -1: as net_dial. */
int net_listen(const struct net_name *name, struct net_address *address, const char **reason);

/* Takes the next connection; -1: none before the deadline, or LISTENER was shut down. */
int net_accept(int listener, int64_t deadline_ns);

/* The address in figures with its port. */
void net_print_address(const struct net_address *address, char *text, size_t size);

/* Turns Nagle's algorithm off (or on). */
void net_set_nodelay(int fd, bool nodelay);

/*
 * True: acknowledges what has come and what will come next at once. False: delays ACKs, as after
 * some exchanges on a connection. The kernel forgets either soon: call it at every step.
 */
void net_set_quickack(int fd, bool quick);

/* Sends all of DATA with as few writes as the socket allows: normally one. */
enum net_result net_write(int fd, const void *data, size_t len, int64_t deadline_ns);

/* One read of at most CAP bytes; *GOT is at least 1 after NET_OK. */
enum net_result net_read(int fd, void *data, size_t cap, size_t *got, int64_t deadline_ns);

#endif
