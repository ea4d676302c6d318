/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz_head_values.c: the readers of Range, If-Match and If-None-Match, and Content-Type, on whatever
 * bytes. What they say has to be possible, and to agree with what they print.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "etag.h"
#include "json_out.h"
#include "media_type.h"
#include "range.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

static void
check_range(struct slice text)
{
    static const uint64_t lens[] = { 0, 1, 10, 1000000, UINT64_MAX };

    for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
        uint64_t first = 0, count = 0;

        if (range_parse(text, lens[i], &first, &count) == RANGE_PART) {
            MUST(count >= 1 && first < lens[i] && count <= lens[i] - first);
        }
    }
}

static void
check_etag(struct slice text)
{
    char printed[ETAG_TEXT_MAX];
    uint64_t cas = 0;
    enum etag_single single = etag_single(text, &cas);
    enum etag_match strong = etag_list_has(text, 7, false), weak = etag_list_has(text, 7, true);

    MUST((strong == ETAG_MALFORMED) == (weak == ETAG_MALFORMED));
    MUST((strong == ETAG_MALFORMED) == (single == ETAG_SINGLE_MALFORMED));
    MUST(strong != ETAG_YES || weak == ETAG_YES);
    if (single == ETAG_SINGLE_CAS) {
        MUST(cas != 0 && etag_list_has(text, cas, false) == ETAG_YES);
        MUST(etag_parse_one(slice_of(printed, etag_print(cas, printed)), &cas));
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice text = slice_of((const char *)data, size);
    uint32_t flags = media_type_to_flags(text);
    struct buffer *out = buffer_create(1);

    check_range(text);
    check_etag(text);
    MUST(flags == 0 || media_type_from_flags(flags) != NULL);
    json_out_is_utf8(text);
    MUST(out != NULL && json_out_string(&out, text) && json_out_base64(&out, text));
    buffer_unref(out);
    return 0;
}
