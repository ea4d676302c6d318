/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * memcached_server.h: one server of a memcached store, as one worker sees it: which lane an op
 * takes, when to dial, and what becomes of ops whose connection broke.
 */
#ifndef KVGATE_MEMCACHED_SERVER_H
#define KVGATE_MEMCACHED_SERVER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "address_book.h"
#include "memcached_health.h"
#include "memcached_lane.h"
#include "op_queue.h"

/* What all workers share of a server. */
struct memcached_server_shared {
    struct address_book *book; /* (owned) */
    atomic_uint down;          /* workers for which it is DOWN: the first and the last one log */
};

struct memcached_server {
    const struct config_store *config;      /* (ref) */
    struct memcached_server_shared *shared; /* (ref) */
    struct loop *loop;                      /* (ref) the worker's */
    struct memcached_lane *lanes;           /* config->lanes of them (owned) */

    struct op_queue queue;    /* ops without a lane: assigned at the next flush */
    struct op_queue finished; /* ops with a status, whose completion waits for the flush */
    size_t ops;               /* submitted and not complete */
    size_t bytes;             /* of the values of these ops */

    struct memcached_health health;
    unsigned *changes;                     /* (ref) counts what goes DOWN and comes back */
    struct address addresses[ADDRESS_MAX]; /* of the dial that is under way */
    size_t address_count;
    size_t address_next;   /* tried next, before the dial counts as failed */
    bool fresh;            /* nothing has come of the first dial yet */
    bool probing;          /* `probe` is under way */
    struct store_op probe; /* asks a server that is DOWN, where no handshake does */
    size_t value_limit;    /* bytes: a reply that announces more is nonsense */
    uint32_t opaque;       /* the last one given to a meta command */
    bool no_cas;           /* text: `gets` is not known here */
    bool closing;          /* the store is being closed: nothing is sent again */
};

/*
 * -1: no memory. CONFIG, SHARED, LOOP and CHANGES outlive the server; *CHANGES is incremented when
 * it goes DOWN and when it comes back.
 */
int memcached_server_init(struct memcached_server *server, const struct config_store *config,
                          struct memcached_server_shared *shared, struct loop *loop,
                          unsigned *changes);

/* Completes what is pending as CANCELLED and frees. A server of zeros is allowed. */
void memcached_server_deinit(struct memcached_server *server);

/* Takes OP; it completes from a later flush, expire or event, never from in here. */
void memcached_server_submit(struct memcached_server *server, struct store_op *op);

/* Takes OP, to complete it with STATUS at the next flush; nothing is sent. */
void memcached_server_refuse(struct memcached_server *server, struct store_op *op,
                             enum store_status status);

/* Whether ops are refused, until a probe finds it well again. */
static inline bool
memcached_server_is_down(const struct memcached_server *server)
{
    return server->health.state == MEMCACHED_DOWN;
}

/* Once per turn: gives each op a lane, sends, completes what could not be sent. */
void memcached_server_flush(struct memcached_server *server);

/* Once per turn. */
void memcached_server_expire(struct memcached_server *server);

/* When memcached_server_expire has something to do, or CLOCK_NEVER. */
int64_t memcached_server_next_deadline(const struct memcached_server *server);

/* ---- for lanes ------------------------------------------------------------------------------- */

/* OP, and all that joined it, is complete; DATA (may be NULL) is its value, whose reference moves.
 */
void memcached_server_complete(struct memcached_server *server, struct store_op *op,
                               enum store_status status, struct buffer *data);

/* A reply came, so the server lives. */
void memcached_server_alive(struct memcached_server *server);

/* The server does not know `gets`: OP is to be asked again with `get`. */
void memcached_server_without_cas(struct memcached_server *server, struct store_op *op);

/* The connection of OP, which was sent, broke: OP completes with STATUS, or is sent once more. */
void memcached_server_broken(struct memcached_server *server, struct store_op *op,
                             enum store_status status, bool reply_begun);

/*
 * A lane to address number ADDRESS came to nothing before its first reply: REASON says why. The next dial
 * goes to the next address; when there is none left, the server is in trouble.
 */
void memcached_server_dial_failed(struct memcached_server *server, size_t address,
                                  const char *reason);

/* LANE is READY, and has not said anything yet. */
void memcached_server_connected(struct memcached_server *server, struct memcached_lane *lane);

/* LANE, which was good, broke with ops on it: REASON says why. */
void memcached_server_lane_broken(struct memcached_server *server,
                                  const struct memcached_lane *lane, const char *reason);

#endif
