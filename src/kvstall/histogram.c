/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * histogram.c: counts times in steps and draws them.
 */
#include "histogram.h"

#include <inttypes.h>
#include <stdbool.h>

#include "timing.h"

/* Characters of the longest bar; two of them and the counts fit into 80 columns. */
#define BAR_WIDTH 20

int64_t
histogram_bound_ns(unsigned i)
{
    static const int64_t factor[] = { 1, 2, 5 };
    int64_t bound = 10000; /* 0.01 ms: less than any wake-up takes */

    if (i >= HISTOGRAM_STEPS - 1) {
        return INT64_MAX;
    }
    for (unsigned tens = i / 3; tens > 0; tens--) {
        bound *= 10;
    }
    return bound * factor[i % 3];
}

void
histogram_add(struct histogram *h, int64_t ns)
{
    unsigned i = 0;

    while (ns > histogram_bound_ns(i)) {
        i++;
    }
    h->count[i]++;
    h->total++;
}

/* A bar for N of TOTAL: anything that is not nothing has a mark. */
static void
print_bar(FILE *out, uint64_t n, uint64_t total)
{
    unsigned len = total == 0 ? 0 : (unsigned)((n * BAR_WIDTH + total / 2) / total);

    if (n > 0 && len == 0) {
        len = 1;
    }
    for (unsigned i = 0; i < BAR_WIDTH; i++) {
        fputc(i < len ? '#' : ' ', out);
    }
}

static void
print_step(FILE *out, unsigned i, const struct histogram *h, unsigned count)
{
    if (i == HISTOGRAM_STEPS - 1) {
        fprintf(out, "  more than %7.2f ms ", timing_ms(histogram_bound_ns(i - 1)));
    } else {
        fprintf(out, "  up to     %7.2f ms ", timing_ms(histogram_bound_ns(i)));
    }
    for (unsigned k = 0; k < count; k++) {
        fprintf(out, " %6" PRIu64 " ", h[k].count[i]);
        print_bar(out, h[k].count[i], h[k].total);
    }
    fputc('\n', out);
}

void
histogram_print(FILE *out, const struct histogram *h, const char *const *titles, unsigned count)
{
    unsigned first = HISTOGRAM_STEPS, last = 0;

    for (unsigned i = 0; i < HISTOGRAM_STEPS; i++) {
        bool empty = true;

        for (unsigned k = 0; k < count; k++) {
            empty = empty && h[k].count[i] == 0;
        }
        if (!empty) {
            first = i < first ? i : first;
            last = i;
        }
    }
    fprintf(out, "  %21s", "");
    for (unsigned k = 0; k < count; k++) {
        fprintf(out, " %-*s", BAR_WIDTH + 7, titles[k]);
    }
    fputc('\n', out);
    for (unsigned i = first; i <= last; i++) {
        print_step(out, i, h, count);
    }
}
