/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fake_priv.h: what the files of the fake memcached tell each other: fake_memcached.c (thread and
 * sockets), fake_script.c (what a connection does), fake_record.c (what came, and the questions
 * about it).
 */
#ifndef KVGATE_TESTS_FAKE_PRIV_H
#define KVGATE_TESTS_FAKE_PRIV_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fake_memcached.h"

#define FAKE_CONNECTIONS_MAX 1024 /* accepted in the life of one fake */
#define FAKE_SCRIPTS_MAX     64
#define FAKE_STEPS_MAX       16
#define FAKE_READS_MAX       4096 /* reads remembered per connection */
#define FAKE_RECEIVE_BYTES   (256 * 1024)

enum fake_request {
    FAKE_REQUEST_NONE,
    FAKE_REQUEST_STOP,
    FAKE_REQUEST_START,
    FAKE_REQUEST_DROP,
    FAKE_REQUEST_END
};

struct fake_script {
    struct fake_step steps[FAKE_STEPS_MAX];
    size_t count;
};

struct fake_connection {
    int fd;                     /* owned; -1 once closed */
    struct fake_bytes in;       /* received, not yet used */
    struct fake_bytes out;      /* to send */
    struct fake_bytes received; /* all of it */
    uint32_t
        reads[FAKE_READS_MAX]; /* bytes received before the Nth read; a longer history is cut */
    size_t read_count;
    struct fake_script script;
    size_t step;            /* the one under way; script.count: behaves */
    size_t step_done;       /* bytes of it that were sent or taken */
    int64_t due_ms;         /* when a step in pieces goes on; 0: now */
    bool holding;           /* in a HOLD step that was not released */
    bool client_gone;       /* end of file */
    bool hung_up;           /* the client has closed, though not all may have been read */
    char opaque[40];        /* "O123" of the command that came last */
    struct fake_bytes line; /* the command line that is being received */
    size_t data_left;       /* bytes of its data block that are yet to come */
};

struct fake_command {
    size_t connection; /* index */
    char *line;        /* owned, without CRLF */
};

struct fake {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t answered; /* request is FAKE_REQUEST_NONE again */
    enum fake_request request;
    bool release;  /* HOLD steps end */
    int wake_fd;   /* owned eventfd: there is a request */
    int keeper_fd; /* owned; bound, never listening: keeps the port while nobody listens */
    int listen_fd; /* owned; -1 while stopped */
    uint16_t port;
    unsigned lacks;                                            /* FAKE_LACKS_... */
    struct fake_table *table;                                  /* owned */
    struct fake_connection *connections[FAKE_CONNECTIONS_MAX]; /* owned */
    size_t accepted;
    struct fake_script scripts[FAKE_SCRIPTS_MAX]; /* for the connections to come */
    size_t script_count, script_next;
    struct fake_script every;      /* for those without one; empty: they behave */
    size_t played;                 /* scripts played to the end */
    struct fake_command *commands; /* owned */
    size_t command_count, command_cap;
    char surprise[512]; /* the first thing that a script did not expect */
    char receive[FAKE_RECEIVE_BYTES];
};

/* Takes note of LEN bytes that have just come on connection INDEX. */
void fake_record(struct fake *fake, size_t index, const char *data, size_t len);

/* Frees the records and the connections. */
void fake_record_free(struct fake *fake);

/* Carries out as much of C's script as can be done now; behind its end, behaves. */
void fake_play(struct fake *fake, struct fake_connection *c);

/* C's step is over. */
void fake_next_step(struct fake *fake, struct fake_connection *c);

void fake_close(struct fake_connection *c, bool reset);

/* Sends what the socket takes. */
void fake_send_some(struct fake_connection *c);

#endif
