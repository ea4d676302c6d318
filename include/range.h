/* SPDX-License-Identifier: BSD-2-Clause */
/* range.h: the Range header of a GET (RFC 9110, section 14): one range of bytes. Pure. */
#ifndef KVGATE_RANGE_H
#define KVGATE_RANGE_H

#include <stdint.h>

#include "slice.h"

enum range_result {
    RANGE_WHOLE,        /* the header is to be ignored: malformed, another unit, several ranges */
    RANGE_PART,         /* *FIRST and *COUNT are set; COUNT is 1 at least */
    RANGE_UNSATISFIABLE /* it begins behind the end */
};

/* What TEXT, the header's value, asks of a value of LEN bytes. */
enum range_result range_parse(struct slice text, uint64_t len, uint64_t *first, uint64_t *count);

#endif
