/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * codec_case.h: tries replies on a memcached dialect in all the ways that a connection may bring
 * them: whole, followed by the next reply, cut at every byte, and spoilt byte by byte; each time
 * right before unreadable memory.
 */
#ifndef KVGATE_TESTS_CODEC_CASE_H
#define KVGATE_TESTS_CODEC_CASE_H

#include <stdbool.h>
#include <stdint.h>

#include "guard.h"
#include "memcached_codec.h"

/* What the ops and the context of all cases are made of. */
#define CODEC_KEY    "the:key"
#define CODEC_OPAQUE 77
#define CODEC_CAS    991

/* The op and the context of a case. */
enum codec_option {
    CODEC_PLAIN = 0,
    CODEC_WITH_CAS = 1, /* op.cas is CODEC_CAS, and 0 without (but for STORE_CAS) */
    CODEC_NO_GETS = 2   /* context.no_cas */
};

/* A reply that fits its op. What is left out of an initialiser must be 0 or unknown. */
struct codec_case {
    enum store_verb verb;
    unsigned options;         /* enum codec_option */
    struct slice bytes;       /* the reply, with data block and tail */
    enum store_status status; /* what must come of it */
    bool has_value;           /* of value_len bytes: then bytes ends with them and the tail */
    size_t value_len;
    uint32_t flags;
    uint64_t cas;
    int64_t ttl_s; /* 0 stands for STORE_TTL_UNKNOWN */
    uint64_t number;
    bool close;
};

/* An op with key, value "xyz", delta and the like filled in. */
struct store_op codec_op(enum store_verb verb, unsigned options);
struct memcached_context codec_context(unsigned options);

/* Fails the test when C does not come out as it says, in any of the ways. */
void codec_expect_reply(const struct memcached_dialect *dialect, struct guard *g,
                        const struct codec_case *c);

/* Fails the test when BYTES are not nonsense, alone or with more behind them. */
void codec_expect_nonsense(const struct memcached_dialect *dialect, struct guard *g,
                           enum store_verb verb, unsigned options, struct slice bytes);

/*
 * The same with FORMAT's one "%s" as each number that no field may hold, or only one without
 * a limit of 32 bits or 1 GiB: those are tried if NARROW.
 */
void codec_expect_bad_numbers(const struct memcached_dialect *dialect, struct guard *g,
                              enum store_verb verb, const char *format, bool narrow);

#endif
