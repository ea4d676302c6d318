/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * buffer.h: a counted block of bytes that holds one value.
 *
 * A value is read from its store into a buffer, and the same buffer is the body of the HTTP
 * response: it is counted so that several responses can share it. The count is not atomic: a
 * buffer belongs to one worker and is only ever touched by its thread.
 */
#ifndef KVGATE_BUFFER_H
#define KVGATE_BUFFER_H

#include <stddef.h>

struct buffer {
    unsigned refs; /* holders; the last buffer_unref frees */
    size_t len;    /* bytes of the value; <= cap */
    size_t cap;    /* bytes that data[] can take */
    char data[];   /* the value */
};

/* A new empty buffer for CAP bytes with one reference, the caller's. NULL: no memory. */
struct buffer *buffer_create(size_t cap);

/* One more holder of B. Returns B. */
struct buffer *buffer_ref(struct buffer *b);

/* Gives one reference back; the last one frees. NULL is allowed. */
void buffer_unref(struct buffer *b);

/*
 * Makes room for at least CAP bytes in *B, whose only holder the caller must be; the block may
 * move. -1: no memory, and *B is as it was.
 */
int buffer_reserve(struct buffer **b, size_t cap);

#endif
