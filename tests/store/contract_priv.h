/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * contract_priv.h: what the files of the contract suite share: a fixture per test, short ways to
 * run one operation, and the lists of tests.
 *
 * Includes cmocka and what it needs, so that the files need not.
 */
#ifndef KVGATE_CONTRACT_PRIV_H
#define KVGATE_CONTRACT_PRIV_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "loop_driver.h"
#include "slice.h"
#include "store_contract.h"

#define FIXTURE_KEYS 1024 /* keys that one test can name */

struct fixture {
    const struct contract *contract; /* (ref) */
    struct store_shared *shared;     /* (ref) */
    struct driver driver;            /* open during a test */
    struct store_op op;              /* the last op that was run; its data is the fixture's */
    unsigned salt;                   /* of the suite: two may run on one server */
    unsigned serial;                 /* of the test: no two use the same keys */
    size_t key_count;                /* of `keys` */
    char keys[FIXTURE_KEYS][64];     /* bytes of the keys of this test */
};

/* Compares by name, so that a failure can be read. */
#define assert_status(actual, wanted)                                                              \
    assert_string_equal(store_status_name(actual), store_status_name(wanted))

/* A key that no other test uses; valid until the test ends. */
struct slice fixture_key(struct fixture *f, const char *name, unsigned number);
#define KEY(name) fixture_key(f, (name), 0)

/* Run one op, with everything else at its default. The op is in f->op afterwards. */
enum store_status fixture_run_op(struct fixture *f, const struct store_op *op);
enum store_status fixture_run(struct fixture *f, enum store_verb verb, struct slice key);
enum store_status fixture_run_value(struct fixture *f, enum store_verb verb, struct slice key,
                                    struct slice value);
enum store_status fixture_run_ttl(struct fixture *f, enum store_verb verb, struct slice key,
                                  struct slice value, uint64_t ttl_s);
enum store_status fixture_run_flags(struct fixture *f, enum store_verb verb, struct slice key,
                                    struct slice value, uint32_t flags);
enum store_status fixture_run_cas(struct fixture *f, enum store_verb verb, struct slice key,
                                  struct slice value, uint64_t cas);
enum store_status fixture_run_count(struct fixture *f, enum store_verb verb, struct slice key,
                                    uint64_t delta);

/* The test fails unless KEY has this value; f->op is the GET. */
void fixture_has(struct fixture *f, struct slice key, struct slice value);

/* The test fails unless f->op tells TTL_S, as well as this store can. */
void fixture_ttl(struct fixture *f, uint64_t ttl_s);

/* Whether B is exactly VALUE. */
bool fixture_buffer_is(const struct buffer *b, struct slice value);

/* The cas of KEY, which must be there. */
uint64_t fixture_cas(struct fixture *f, struct slice key);

/* LEN bytes of every kind, the same for the same SEED. The caller frees. */
char *fixture_bytes(size_t len, unsigned seed);

extern const struct CMUnitTest contract_value_tests[], contract_verb_tests[], contract_flow_tests[];
extern const size_t contract_value_count, contract_verb_count, contract_flow_count;

#endif
