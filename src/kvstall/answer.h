/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * answer.h: reads an HTTP answer as it comes in, piece by piece, just far enough to know where it
 * ends. Pure: no I/O, no allocation; the body is counted and dropped.
 */
#ifndef KVSTALL_ANSWER_H
#define KVSTALL_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The longest header line that is understood. */
#define ANSWER_LINE_MAX 8192

enum answer_state {
    ANSWER_STATUS,      /* the status line is awaited */
    ANSWER_HEADER,      /* header lines */
    ANSWER_SIZED,       /* a body of known length */
    ANSWER_CHUNK_SIZE,  /* the line before a chunk */
    ANSWER_CHUNK,       /* in a chunk */
    ANSWER_CHUNK_END,   /* the empty line behind a chunk */
    ANSWER_TRAILER,     /* lines behind the last chunk */
    ANSWER_UNTIL_CLOSE, /* a body that ends with the connection */
    ANSWER_DONE,        /* the answer is whole */
    ANSWER_NONSENSE     /* this is no HTTP/1 answer */
};

struct answer {
    enum answer_state state;
    int status;                 /* of the final answer, or of the interim one being read */
    unsigned interim;           /* interim answers (100 Continue and such) that came */
    bool begun;                 /* at least a byte of the final answer came */
    bool head_done;             /* the header of the final answer is whole */
    bool keep_alive;            /* the connection stays */
    bool chunked;               /* Transfer-Encoding: chunked */
    bool has_length;            /* LEFT came from a Content-Length */
    uint64_t left;              /* bytes of the body or of the chunk that are still to come */
    uint64_t body_len;          /* bytes of the body so far */
    size_t line_len;            /* bytes in LINE */
    char line[ANSWER_LINE_MAX]; /* the line being read, without its end */
};

void answer_init(struct answer *a);

/*
 * Reads DATA; stops early only behind a whole answer, final or interim, so the caller can tell
 * when each came. Returns how many bytes were read. See STATE for the outcome.
 */
size_t answer_feed(struct answer *a, const char *data, size_t len);

/* The connection has ended. True: the answer ends with it, and is whole now. */
bool answer_end(struct answer *a);

#endif
