/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * probe.h: what the files of `kvstall probe` share.
 *
 *     probe.c          options, the order of things
 *     probe_play.c     plays the clients, round by round     -> struct probe_cell
 *     probe_verdict.c  what the cells mean together          -> struct probe_verdict
 *     probe_print.c    both, as text or JSON
 */
#ifndef KVSTALL_PROBE_H
#define KVSTALL_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "exchange.h"
#include "judge.h"
#include "service.h"

/* What a client of a cell is judged by. */
enum probe_measure {
    PROBE_FIRST,    /* the time until the answer begins, against one write with Nagle off */
    PROBE_CONTINUE, /* the time until 100 Continue, against the same */
    PROBE_ANSWER    /* the time from the answer's first byte to its last, when the client delays
                       its ACKs, against a client that acknowledges at once */
};

/* A kind of client. */
struct probe_kind {
    const char *id;   /* for machines */
    const char *name; /* for people */
    bool write;       /* it writes a key; else it reads one */
    enum exchange_style style;
    bool nodelay; /* Nagle off */
    enum probe_measure measure;
};

/* A kind of client, and what came of it. */
struct probe_cell {
    const struct probe_kind *kind; /* (ref) */
    bool played;                   /* the rest is valid */
    struct judgement judgement;
    int status;           /* of the last answer */
    int good_status;      /* of the well-behaved client's last answer */
    size_t rounds;        /* all rounds, also those that were not judged */
    size_t together;      /* rounds whose answer came whole in its first read */
    size_t early;         /* rounds with a final answer instead of 100 Continue */
    size_t continue_none; /* rounds without a 100 Continue, and without a final answer instead */
};

#define PROBE_CELLS 16

enum probe_finding {
    PROBE_HALF_REQUEST,   /* the ACK of half a request is delayed */
    PROBE_SPLIT_ANSWER,   /* the answer is written in pieces, with Nagle on */
    PROBE_CONTINUE_LATE,  /* 100 Continue is delayed */
    PROBE_CONTINUE_NEVER, /* there is no 100 Continue */
    PROBE_SLOW_PIECES,    /* requests in pieces take longer, with Nagle off, too */
    PROBE_FINDINGS
};

struct probe_verdict {
    bool found[PROBE_FINDINGS];
    size_t unsteady; /* cells too scattered to judge */
    size_t skipped;  /* cells that there was no time for */
};

struct probe {
    struct service service;
    uint64_t size;                        /* bytes of the value */
    uint64_t rounds;                      /* judged rounds for each cell */
    uint64_t seconds;                     /* for all */
    bool json;                            /* output for machines */
    int64_t end_ns;                       /* when the time is over */
    int write_status;                     /* of the first write */
    int read_status;                      /* of the first read */
    bool writes;                          /* the service takes writes */
    bool kept;                            /* the server keeps connections */
    struct probe_cell cells[PROBE_CELLS]; /* the most telling first */
    size_t cell_count;
    struct probe_verdict verdict;
};

/* Fills in the cells and plays them. Returns EX_OK, or the exit code after a message. */
int probe_play(struct probe *p);

/* Draws the conclusions from the cells. Pure. */
void probe_judge(const struct probe_cell *cells, size_t count, bool writes,
                 struct probe_verdict *verdict);

/* Whether the verdict is a stall. */
bool probe_found(const struct probe_verdict *verdict);

/* Whether the cell is one of those that show FINDING. */
bool probe_shows(const struct probe_cell *cell, enum probe_finding finding);

void probe_print_text(const struct probe *p, FILE *out);
void probe_print_json(const struct probe *p, FILE *out);

#endif
