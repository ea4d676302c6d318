/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * options.c: numbers and lists of numbers on the command line.
 */
#include "options.h"

#include <inttypes.h>
#include <string.h>

#include "report.h"
#include "slice.h"

static bool
number_of(struct slice text, uint64_t least, uint64_t most, uint64_t *number)
{
    uint64_t n;

    if (!slice_to_u64(text, &n) || n < least || n > most) {
        return false;
    }
    *number = n;
    return true;
}

bool
option_number(const char *name, const char *text, uint64_t least, uint64_t most, uint64_t *number)
{
    if (!number_of(slice_from_string(text), least, most, number)) {
        report_usage("--%s: not a number from %" PRIu64 " to %" PRIu64 ": %s", name, least, most,
                     text);
        return false;
    }
    return true;
}

size_t
option_list(const char *name, const char *text, uint64_t least, uint64_t most, uint64_t *list,
            size_t max)
{
    size_t count = 0;

    for (const char *at = text;; at++) {
        size_t len = strcspn(at, ",");

        if (count == max) {
            report_usage("--%s: more than %zu numbers", name, max);
            return 0;
        }
        if (!number_of(slice_of(at, len), least, most, &list[count])) {
            report_usage("--%s: not a list of numbers from %" PRIu64 " to %" PRIu64 ": %s", name,
                         least, most, text);
            return 0;
        }
        count++;
        at += len;
        if (*at == '\0') {
            return count;
        }
    }
}
