/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * samples.h: a set of measured times, and its quantiles. The room is made at the start, so that
 * measuring never allocates.
 */
#ifndef KVSTALL_SAMPLES_H
#define KVSTALL_SAMPLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct samples {
    int64_t *ns;  /* the times, ns (owned) */
    size_t count; /* times in NS */
    size_t cap;   /* times that NS can take */
};

/* Room for CAP times. False: no memory, and S is as after samples_deinit. */
bool samples_init(struct samples *s, size_t cap);

/* May be called twice. */
void samples_deinit(struct samples *s);

/* Takes in one time; one more than there is room for is left out. */
void samples_add(struct samples *s, int64_t ns);

/*
 * The smallest time that at least PERMILLE/1000 of all times do not exceed (nearest rank): 500 is
 * the median, 0 the least, 1000 the greatest. 0 for an empty set. Puts the times in order.
 */
int64_t samples_quantile(struct samples *s, unsigned permille);

#endif
