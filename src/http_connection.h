/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * http_connection.h: what the HTTP front knows of one client's connection. Private to the front (http.c).
 */
#ifndef KVGATE_HTTP_CONNECTION_H
#define KVGATE_HTTP_CONNECTION_H

#include <sys/queue.h>

#include <microhttpd.h>

#include "http.h"
#include "http_reply.h"
#include "loop.h"

struct connection;

/* Connections in the order in which they came to it: the head has waited longest. */
struct connection_list {
    TAILQ_HEAD(, connection) connections; /* (ref) */
    size_t count;                         /* connections on it */
};

/* A large body on its way: see http_upload.c. */
struct upload {
    bool is_direct; /* it goes straight into the request's body */
    size_t ahead;   /* bytes that are there and that libmicrohttpd does not count yet */
    size_t told;    /* bytes that it counts and has not handed to upload_take yet */
};

/* Connections with a direct upload, by descriptor. */
struct uploads {
    struct connection **by_fd; /* (owned, of refs) NULL where there is none */
    size_t cap;                /* descriptors that it has room for */
};

struct connection {
    struct watch hangup;             /* the same socket: tells that the client will send no more */
    struct http *http;               /* (ref) */
    struct MHD_Connection *mhd;      /* (ref) */
    int fd;                          /* (ref) the socket, libmicrohttpd's */
    bool is_tcp;                     /* TCP_QUICKACK means something */
    enum quota_verdict quota;        /* whether it is one too many */
    struct connection_list *list;    /* (ref) idle, receiving or answering */
    TAILQ_ENTRY(connection) link;    /* on that list */
    struct connection *touched_next; /* (ref) on http->touched */
    bool is_touched;                 /* it is on http->touched */
    int64_t since_ms;                /* when it came to its list */
    struct request *request; /* the request under way (owned); NULL: none, or no header yet */
    bool ended;              /* the request was received completely */
    bool answered;           /* its reply is queued */
    bool hung_up;            /* the client sends nothing more */
    bool is_suspended;       /* libmicrohttpd leaves it alone until its request is done */
    bool linger;             /* close it slowly: its client may still be writing */
    struct upload upload;    /* of the request under way */
    size_t swallowed;        /* bytes of body that came after a refusal */
    char *target;            /* the request target, as it came (owned) */
    size_t target_len;       /* bytes */
    size_t target_cap;       /* bytes allocated */
    const char *target_end;  /* where it ended in libmicrohttpd's memory; only compared */
};

struct http {
    struct request_context *context;  /* (ref) */
    struct lingers *lingers;          /* (ref) */
    struct MHD_Daemon *daemon;        /* (owned) */
    int listen_fd;                    /* (ref) */
    bool stopping;                    /* answers are the last of their connections */
    struct connection_list idle;      /* no request line yet */
    struct connection_list refused;   /* one too many, and silent yet */
    struct connection_list receiving; /* a request has begun and not ended */
    struct connection_list answering; /* a request is complete, its answer not yet sent */
    struct connection *touched;       /* (ref) those that received something in this turn */
    struct uploads uploads;           /* large bodies that come straight from their sockets */
    struct http_replies replies;      /* responses that are used again */
};

/* An empty list. */
void connection_list_init(struct connection_list *list);

/* MHD's new connection, on the idle list and counted. NULL: no memory. */
struct connection *connection_create(struct http *http, struct MHD_Connection *mhd);

/* Its socket is about to be closed by libmicrohttpd; slowly, if `linger` is set. */
void connection_destroy(struct connection *c);

/* Puts C at the end of LIST, now. */
void connection_move(struct connection *c, struct connection_list *list);

/* C received something: after the turn's passes it is seen whether its request is complete. */
void connection_touch(struct connection *c);

/*
 * Acknowledges half-received requests now: the kernel would wait up to 40 ms for something to send. Those of which
 * more has come already stay touched, with loop->progress set: libmicrohttpd reads a piece a pass, and a
 * pass without a callback (a long header) looks as if it were done.
 */
void connection_acknowledge_touched(struct http *http);

/*
 * For a request that has waited long, called from libmicrohttpd's handler: it is not looked at until it is done, and
 * resumed then. It must have been polled before: only then libmicrohttpd does not read from it when it
 * is resumed, and a client that has closed its half gets its answer.
 */
void connection_suspend(struct connection *c);

/* Resumes C now, if it is suspended. */
void connection_resume(struct connection *c);

/* MHD_run, with uploads that come straight from their sockets. */
void uploads_run(struct http *http);

/* Frees the table. No connection has an upload any more. */
void uploads_deinit(struct uploads *uploads);

/*
 * From now on the rest of C's body, if it is large, goes straight where it belongs. None of it may be in libmicrohttpd's
 * memory: call it when what that handed over has been taken.
 */
void upload_begin(struct connection *c);

/* C has no upload any more: its request is over. */
void upload_end(struct connection *c);

/* Of LEN bytes that libmicrohttpd hands over, how many at their beginning are in the request's body already. */
size_t upload_take(struct connection *c, size_t len);

/* Keeps a copy of the request target: libmicrohttpd cuts its own up. False: no memory. */
bool connection_keep_target(struct connection *c, const char *uri);

#endif
