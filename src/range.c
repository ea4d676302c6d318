/* SPDX-License-Identifier: BSD-2-Clause */
/* range.c: see range.h. */
#include "range.h"

#include <string.h>

static enum range_result
suffix(struct slice digits, uint64_t len, uint64_t *first, uint64_t *count)
{
    uint64_t wanted;

    if (!slice_to_u64(digits, &wanted)) {
        return RANGE_WHOLE;
    }
    if (wanted == 0 || len == 0) {
        return RANGE_UNSATISFIABLE;
    }
    *count = wanted < len ? wanted : len;
    *first = len - *count;
    return RANGE_PART;
}

enum range_result
range_parse(struct slice text, uint64_t len, uint64_t *first, uint64_t *count)
{
    static const struct slice unit = SLICE_LITERAL("bytes=");
    struct slice one, low, high;
    const char *dash;
    uint64_t from, to = UINT64_MAX;

    if (text.len < unit.len || !slice_equal_nocase(slice_of(text.ptr, unit.len), unit)) {
        return RANGE_WHOLE;
    }
    one = slice_trim(slice_of(text.ptr + unit.len, text.len - unit.len));
    dash = one.len == 0 ? NULL : memchr(one.ptr, '-', one.len);
    if (dash == NULL) {
        return RANGE_WHOLE;
    }
    low = slice_of(one.ptr, (size_t)(dash - one.ptr));
    high = slice_of(dash + 1, one.len - low.len - 1);
    if (low.len == 0) {
        return suffix(high, len, first, count);
    }
    if (!slice_to_u64(low, &from) || (high.len > 0 && !slice_to_u64(high, &to)) || to < from) {
        return RANGE_WHOLE;
    }
    if (from >= len) {
        return RANGE_UNSATISFIABLE;
    }
    *first = from;
    *count = (to < len ? to + 1 : len) - from;
    return RANGE_PART;
}
