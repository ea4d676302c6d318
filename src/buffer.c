/* SPDX-License-Identifier: BSD-2-Clause */
/* buffer.c: counted value blocks. Knows nothing of what is in them. */
#include "buffer.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

struct buffer *
buffer_create(size_t cap)
{
    struct buffer *b;

    if (cap > SIZE_MAX - sizeof(*b)) {
        return NULL;
    }
    b = malloc(sizeof(*b) + cap);
    if (b == NULL) {
        return NULL;
    }
    b->refs = 1;
    b->len = 0;
    b->cap = cap;
    return b;
}

struct buffer *
buffer_ref(struct buffer *b)
{
    assert(b->refs > 0);
    b->refs++;
    return b;
}

void
buffer_unref(struct buffer *b)
{
    if (b == NULL) {
        return;
    }
    assert(b->refs > 0);
    b->refs--;
    if (b->refs == 0) {
        free(b);
    }
}

int
buffer_reserve(struct buffer **b, size_t cap)
{
    struct buffer *grown;

    assert((*b)->refs == 1);
    if (cap <= (*b)->cap) {
        return 0;
    }
    if (cap > SIZE_MAX - sizeof(*grown)) {
        return -1;
    }
    grown = realloc(*b, sizeof(*grown) + cap);
    if (grown == NULL) {
        return -1;
    }
    grown->cap = cap;
    *b = grown;
    return 0;
}
