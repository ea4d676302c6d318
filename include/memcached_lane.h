/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * memcached_lane.h: one pipelined connection to one memcached server.
 *
 *   lane_assign     lane_flush                  lane_ready (EPOLLIN)
 *   ----------> unsent ----------> sent, in order ----------------> memcached_server_complete
 *                    one sendmsg                   one reply each
 *
 * Ops are answered in the order in which they were sent. A lane owns its socket and its buffers;
 * the ops are their callers'. Whatever goes wrong ends in lane_fail, which closes the socket and
 * hands every op back to the server, which decides whether it is sent again. A connection that saw
 * a time-out or nonsense is never used again: a late reply cannot answer another request.
 */
#ifndef KVGATE_MEMCACHED_LANE_H
#define KVGATE_MEMCACHED_LANE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "loop.h"
#include "memcached_codec.h"
#include "op_queue.h"

struct memcached_server;
struct address;

/*
 * A value over this many bytes holds up small ones behind it: no small op is put on a lane that
 * carries one. 64 KB take some 0.5 ms on a 1 Gbit/s link.
 */
#define MEMCACHED_BIG_VALUE (64 * 1024)

enum lane_state {
    LANE_CLOSED,
    LANE_CONNECTING, /* connect(2) is under way */
    LANE_AUTH,       /* name and password were sent */
    LANE_VERSION,    /* dialect `auto`: waiting for the answer to `version` */
    LANE_PROBE,      /* ... and for the answer to the probe of the meta dialect */
    LANE_READY
};

struct memcached_lane {
    struct watch watch;              /* the socket (owned); its fd is -1 when closed */
    struct memcached_server *server; /* (ref) whose lane this is */
    enum lane_state state;
    const struct memcached_dialect *dialect; /* valid when READY */
    int64_t opened_ms;                       /* when it was dialled */
    int64_t deadline_ms;                     /* until READY: give up then */
    int64_t last_used_ms;                    /* when the last op completed */
    size_t address;                          /* which of the server's addresses it goes to */
    bool has_replied;                        /* a reply has come on this connection */
    bool served;                             /* ... to an op; kept until the next dial */

    struct op_queue unsent; /* assigned, no byte of them sent */
    struct op_queue sent;   /* in the batch that is being sent, or sent: wait for replies */
    unsigned big;           /* values over MEMCACHED_BIG_VALUE among these ops */

    char *commands;        /* command lines and CRLFs of the batch (owned) */
    size_t commands_cap;   /* bytes allocated */
    struct iovec *iov;     /* the batch: pieces of commands[], callers' values (owned array) */
    size_t iov_cap;        /* entries allocated */
    size_t iov_count;      /* entries of the batch */
    size_t iov_pos;        /* entries that have left completely */
    uint64_t bytes_queued; /* of the stream, up to the end of the batch */
    uint64_t bytes_sent;   /* of the stream */
    bool want_out;         /* EPOLLOUT is asked for */
    bool in_paused;        /* EPOLLIN is not: a reply came before its command had left */

    char *in;                     /* receive buffer: lines and small values (owned) */
    size_t in_len;                /* bytes in it that are not parsed yet */
    struct buffer *value;         /* the value that is being received, with its tail (owned) */
    size_t value_want;            /* bytes that value must come to: value and tail */
    struct memcached_reply reply; /* of the value that is being received */
    bool counted_big;             /* the reply that is being received is counted in `big` */
    bool handshake_meta;          /* the version says meta; the probe decides */
};

/* A closed lane without any memory; never fails. */
void lane_init(struct memcached_lane *lane, struct memcached_server *server);

/* Closes without a word (its ops must be gone) and frees its buffers. */
void lane_deinit(struct memcached_lane *lane);

/* Begins to connect to ADDRESS; done or failed by DEADLINE_MS. False: refused at once, errno. */
bool lane_open(struct memcached_lane *lane, const struct address *address, int64_t deadline_ms);

/* Queues OP, which leaves with the next flush once the lane is ready. */
void lane_assign(struct memcached_lane *lane, struct store_op *op);

/* Sends what waits, in one gathered write. May fail the lane. */
void lane_flush(struct memcached_lane *lane);

/* Fails the lane if its connect, or its oldest op, has waited too long by NOW_MS. */
void lane_expire(struct memcached_lane *lane, int64_t now_ms);

/* When lane_expire has something to do, or CLOCK_NEVER. */
int64_t lane_next_deadline(const struct memcached_lane *lane);

/*
 * Closes the socket and hands all ops to the server: those with bytes sent through
 * memcached_server_broken (oldest first), the others back to be assigned anew. REASON is for the
 * log.
 */
void lane_fail(struct memcached_lane *lane, enum store_status status, const char *reason);

/* Dialled, and not READY yet. */
static inline bool
lane_is_opening(const struct memcached_lane *lane)
{
    return lane->state != LANE_CLOSED && lane->state != LANE_READY;
}

/* Ops on the lane. */
static inline size_t
lane_load(const struct memcached_lane *lane)
{
    return lane->unsent.count + lane->sent.count;
}

#endif
