/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * histogram.h: times counted in steps of 1, 2 and 5, from 10 microseconds to a second, and drawn
 * as bars of text.
 */
#ifndef KVSTALL_HISTOGRAM_H
#define KVSTALL_HISTOGRAM_H

#include <stdint.h>
#include <stdio.h>

/* 0.01, 0.02, 0.05 ... 500, 1000 ms, and one for all that is longer. */
#define HISTOGRAM_STEPS 17

struct histogram {
    uint64_t count[HISTOGRAM_STEPS]; /* times in each step */
    uint64_t total;                  /* times in all */
};

/* The longest time that step I takes, ns; INT64_MAX for the last. */
int64_t histogram_bound_ns(unsigned i);

void histogram_add(struct histogram *h, int64_t ns);

/*
 * Draws COUNT histograms side by side under their TITLES, without the steps that are empty in all
 * of them at either end.
 */
void histogram_print(FILE *out, const struct histogram *h, const char *const *titles,
                     unsigned count);

#endif
