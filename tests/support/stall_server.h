/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stall_server.h: a small HTTP server with the faults that a test asks for, or none. It keeps no
 * values; it notes which keys were written and removed.
 */
#ifndef KVGATE_TESTS_STALL_SERVER_H
#define KVGATE_TESTS_STALL_SERVER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How the server behaves; faults can be joined. */
enum {
    STALL_SERVER_WELL = 0,        /* one write, TCP_NODELAY, acknowledges half requests */
    STALL_SERVER_SPLIT = 1,       /* header and body in two writes, Nagle on */
    STALL_SERVER_DELAYED_ACK = 2, /* half a request is acknowledged when the kernel likes */
    STALL_SERVER_NO_CONTINUE =
        4, /* 100 Continue never comes, or every other time behind the body */
    STALL_SERVER_LATE_CONTINUE = 8,    /* 100 Continue after a pause */
    STALL_SERVER_SLOW = 16,            /* each answer after a pause */
    STALL_SERVER_SLOW_PIECES = 32,     /* a pause between two reads of a request */
    STALL_SERVER_NO_WRITES = 64,       /* PUT is answered 405 */
    STALL_SERVER_CLOSES = 128,         /* one answer for each connection */
    STALL_SERVER_GARBAGE = 256,        /* what it says is no HTTP */
    STALL_SERVER_SLOW_AT_1000 = 512,   /* a PUT of 1000 bytes is answered after a pause */
    STALL_SERVER_EXPECT_REFUSED = 1024 /* Expect is answered 417 */
};

/* The pause: more than the thresholds of kvstall, as a delayed ACK is. */
#define STALL_SERVER_PAUSE_MS 40

/* The most connections of one run. */
#define STALL_SERVER_CLIENTS 256

struct stall_server {
    int mode;             /* the faults */
    int listener;         /* 0 or -1: it does not run (owned) */
    uint16_t port;        /* on 127.0.0.1 */
    pthread_t thread;     /* that accepts */
    atomic_int writes;    /* PUTs and POSTs answered */
    atomic_int deletes;   /* DELETEs answered */
    atomic_bool foreign;  /* a write or delete of another target than the first */
    pthread_mutex_t lock; /* of KEY */
    char key[128];        /* the target of the first write */
    atomic_int expects;   /* requests with Expect */
    size_t count;         /* connections so far; the accepting thread's until the stop */
    int clients[STALL_SERVER_CLIENTS];       /* (owned) */
    pthread_t threads[STALL_SERVER_CLIENTS]; /* one for each */
};

void stall_server_start(struct stall_server *s, int mode);

/* Closes all connections and ends all threads. What was noted stays. May be called twice. */
void stall_server_stop(struct stall_server *s);

#endif
