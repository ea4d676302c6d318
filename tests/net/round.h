/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * round.h: one request, written in one of the ways in which clients write requests, and its time.
 *
 * What stalls is a matter of how a request is cut into writes. The client's socket is as most
 * clients have it: with Nagle's algorithm.
 */
#ifndef KVGATE_TESTS_ROUND_H
#define KVGATE_TESTS_ROUND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "http_client.h"

struct round_style {
    const char *name;
    const char *method; /* PUT or GET */
    bool (*send)(struct http_client *c, const struct round_style *style, const char *target,
                 const char *body, size_t len, int64_t *paused_ns);
    size_t piece;   /* bytes of body in each write; 0: does not matter */
    size_t len_max; /* larger bodies would only take long; 0: no limit */
};

/* All that there are; the last has no name. */
extern const struct round_style round_styles[];

/*
 * One request and its whole answer on C; LEN bytes of value, which BODY holds. Returns nanoseconds
 * without the style's own pauses, or -1: it was not answered as it should be.
 */
int64_t round_run(struct http_client *c, const struct round_style *style, const char *target,
                  const char *body, size_t len);

#endif
