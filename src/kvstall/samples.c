/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * samples.c: collects times and answers for their quantiles. Judges nothing.
 */
#include "samples.h"

#include <stdlib.h>

bool
samples_init(struct samples *s, size_t cap)
{
    *s = (struct samples){ .ns = calloc(cap > 0 ? cap : 1, sizeof(*s->ns)), .cap = cap };
    if (s->ns == NULL) {
        s->cap = 0;
        return false;
    }
    return true;
}

void
samples_deinit(struct samples *s)
{
    free(s->ns);
    *s = (struct samples){ 0 };
}

void
samples_add(struct samples *s, int64_t ns)
{
    if (s->count < s->cap) {
        s->ns[s->count++] = ns;
    }
}

static int
compare(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;

    return (a > b) - (a < b);
}

int64_t
samples_quantile(struct samples *s, unsigned permille)
{
    size_t rank;

    if (s->count == 0) {
        return 0;
    }
    qsort(s->ns, s->count, sizeof(*s->ns), compare);
    rank = (s->count * permille + 999) / 1000; /* rounded up, counted from 1 */
    if (rank == 0) {
        rank = 1;
    }
    return s->ns[rank <= s->count ? rank - 1 : s->count - 1];
}
