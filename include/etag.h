/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * etag.h: entity tags (RFC 9110, sections 8.8.3 and 13.1). The tag of a value is its CAS in quotes,
 * in figures without leading zeros, and strong. Pure.
 */
#ifndef KVGATE_ETAG_H
#define KVGATE_ETAG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "slice.h"

/* Room for a tag of ours, with a NUL. */
#define ETAG_TEXT_MAX 24

enum etag_match { ETAG_MALFORMED, ETAG_NO, ETAG_YES };

/*
 * Whether LIST, the value of If-Match or If-None-Match, holds the tag of CAS, or is "*". WEAK: tags
 * with W/ count, too. CAS 0 is not known: only "*" holds it.
 */
enum etag_match etag_list_has(struct slice list, uint64_t cas, bool weak);

/* What a write is to do with If-Match, which a store can only compare with one CAS. */
enum etag_single {
    ETAG_SINGLE_MALFORMED,
    ETAG_SINGLE_ANY,   /* "*" */
    ETAG_SINGLE_CAS,   /* *CAS is set, and not 0 */
    ETAG_SINGLE_NEVER, /* one tag, weak or none of ours: it fits no value */
    ETAG_SINGLE_LIST   /* several tags */
};
enum etag_single etag_single(struct slice text, uint64_t *cas);

/* Exactly one strong tag of ours. False: anything else. */
bool etag_parse_one(struct slice text, uint64_t *cas);

/* Writes the tag of CAS, with a NUL, and returns its length without it. */
size_t etag_print(uint64_t cas, char out[ETAG_TEXT_MAX]);

#endif
