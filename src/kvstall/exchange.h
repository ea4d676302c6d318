/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * exchange.h: one HTTP exchange with a stopwatch: a request that is written the way a certain
 * kind of client writes it, and an answer whose arrival is noted.
 */
#ifndef KVSTALL_EXCHANGE_H
#define KVSTALL_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "answer.h"
#include "net.h"

/* No single exchange may take longer. */
#define EXCHANGE_TIMEOUT_NS (5 * NS_PER_S)

/* How long to wait for 100 Continue before the body is sent all the same, as curl has it. */
#define EXCHANGE_CONTINUE_NS (1 * NS_PER_S)

/* How a client writes its request. */
enum exchange_style {
    EXCHANGE_ONE_WRITE, /* all at once */
    EXCHANGE_APART,     /* the header, then the body */
    EXCHANGE_LINES,     /* each line of the header, then the body */
    EXCHANGE_PIECES,    /* EXCHANGE_PIECE_COUNT equal pieces */
    EXCHANGE_EXPECT,    /* Expect: 100-continue; the body when the server says so */
    EXCHANGE_STYLES     /* how many there are */
};

#define EXCHANGE_PIECE_COUNT 4

/* The most writes of one request: the header has fewer lines. */
#define EXCHANGE_CUTS_MAX 16

struct exchange_request {
    char *bytes;                    /* header and body (owned) */
    size_t head_len;                /* bytes of the header */
    size_t len;                     /* bytes of all */
    size_t cuts[EXCHANGE_CUTS_MAX]; /* where each write ends; the last is LEN */
    size_t cut_count;               /* writes */
    enum exchange_style style;
};

/* Where to, and the name for the Host header. */
struct exchange_target {
    struct net_address address; /* as it was reached first */
    const char *host;           /* (ref) */
    int64_t rtt_ns;             /* the quickest connect so far: the network's round trip */
};

/* A connection as one client keeps it. FD is -1 at first; the switches stay from then on. */
struct exchange_connection {
    int fd;        /* -1: closed (owned) */
    bool nodelay;  /* Nagle off */
    bool quickack; /* acknowledges answers at once, instead of delaying its ACKs */
};

enum exchange_outcome {
    EXCHANGE_ANSWERED,
    EXCHANGE_CLOSED,      /* the server closed before the answer was whole */
    EXCHANGE_TIMED_OUT,   /* no whole answer within EXCHANGE_TIMEOUT_NS */
    EXCHANGE_NONSENSE,    /* what came is no HTTP answer */
    EXCHANGE_UNREACHABLE, /* cannot connect, see errno */
    EXCHANGE_INTERRUPTED, /* a signal asks the program to end */
    EXCHANGE_FAILED       /* see errno */
};

/* Times run from the first write of the request. */
struct exchange_result {
    int status;          /* of the final answer */
    int64_t first_ns;    /* until its first bytes were read */
    int64_t total_ns;    /* until it was whole */
    int64_t continue_ns; /* until 100 Continue came; -1: it did not, or the final answer came */
    bool early;          /* the final answer came instead of 100 Continue */
    bool together;       /* the whole answer came in one read */
    bool kept;           /* the server keeps the connection */
    uint64_t body_len;   /* bytes of the answer's body */
};

/*
 * Makes a request `METHOD PATH+KEY`; BODY_LEN of -1 is a request without a body. False: no memory.
 */
bool exchange_request_init(struct exchange_request *r, const char *method, const char *path,
                           const char *key, const char *host, int64_t body_len,
                           enum exchange_style style);

/* May be called twice. */
void exchange_request_deinit(struct exchange_request *r);

/*
 * Plays R once; opens the connection if it is closed, and opens it again if the server had closed
 * it in the meantime. Opening is not part of the measured times. After anything but ANSWERED the
 * connection is closed.
 */
enum exchange_outcome exchange_play(struct exchange_target *target, struct exchange_connection *c,
                                    const struct exchange_request *r,
                                    struct exchange_result *result);

/* May be called twice. errno stays. */
void exchange_close(struct exchange_connection *c);

/* What OUTCOME means, for an error message. */
const char *exchange_outcome_text(enum exchange_outcome outcome);

/* The exit code of a command that ends because of OUTCOME. */
int exchange_outcome_code(enum exchange_outcome outcome);

#endif
