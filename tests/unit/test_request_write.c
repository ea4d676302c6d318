/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_request_write.c: what the header of a write or a delete tells the store: time to live,
 * preconditions, operations.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "request_rig.h"

#define GO_ON REPLY_ID_COUNT

static void
time_to_live(void **state)
{
    static const struct {
        const char *target;
        enum reply_id id;
        uint64_t ttl_s;
    } rows[] = {
        { "/k", GO_ON, 0 },
        { "/ttl/k", GO_ON, 77 },
        { "/ttl/k?ttl=5", GO_ON, 5 },
        { "/ttl/k?ttl=0", GO_ON, 0 },
        { "/ttl/k?x=5", GO_ON, 77 },
        { "/k?ttl=0", GO_ON, 0 },
        { "/k?ttl=1", GO_ON, 1 },
        { "/k?ttl=007", GO_ON, 7 },
        { "/k?ttl=2592000", GO_ON, 2592000 },
        { "/k?ttl=2592001", GO_ON, 2592001 },
        { "/k?ttl=2678400", GO_ON, 2678400 },
        { "/k?ttl=4294967296", REPLY_BAD_TTL, 0 },
        { "/k?ttl=3155760000", GO_ON, STORE_TTL_MAX },
        { "/k?ttl=3155760001", REPLY_BAD_TTL, 0 },
        { "/k?ttl=9223372036854775807", REPLY_BAD_TTL, 0 },
        { "/k?ttl=18446744073709551615", REPLY_BAD_TTL, 0 },
        { "/k?ttl=18446744073709551616", REPLY_BAD_TTL, 0 },
        { "/k?ttl=18446744073709551617", REPLY_BAD_TTL, 0 },
        { "/k?ttl=99999999999999999999999", REPLY_BAD_TTL, 0 },
        { "/k?ttl=-1", REPLY_BAD_TTL, 0 },
        { "/k?ttl=%2d1", REPLY_BAD_TTL, 0 },
        { "/k?ttl=+1", REPLY_BAD_TTL, 0 },
        { "/k?ttl=1.5", REPLY_BAD_TTL, 0 },
        { "/k?ttl=1e3", REPLY_BAD_TTL, 0 },
        { "/k?ttl=0x10", REPLY_BAD_TTL, 0 },
        { "/k?ttl=", REPLY_BAD_TTL, 0 },
        { "/k?ttl", REPLY_BAD_TTL, 0 },
        { "/ttl/k?ttl=", REPLY_BAD_TTL, 0 },
        { "/k?ttl= 1", REPLY_BAD_TTL, 0 },
        { "/k?ttl=1 ", REPLY_BAD_TTL, 0 },
        { "/k?ttl=1%20", REPLY_BAD_TTL, 0 },
        { "/k?ttl=1s", REPLY_BAD_TTL, 0 },
        { "/k?ttl=1;x", REPLY_BAD_TTL, 0 },
        { "/k?ttl=x&ttl=1", REPLY_BAD_TTL, 0 },
        { "/k?ttl=1&ttl=x", GO_ON, 1 },
    };
    struct request_rig *rig = *state;

    for (size_t i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
        struct request_head head =
            request_rig_head_sized(i % 2 == 0 ? "PUT" : "POST", rows[i / 2].target, 0);
        enum reply_id id = request_rig_refusal(rig, head);

        if (id != rows[i / 2].id) {
            fail_msg("%s: %d, not %d", rows[i / 2].target, (int)id, (int)rows[i / 2].id);
        }
        if (id == GO_ON) {
            struct request *r = request_rig_send(rig, head, "");

            assert_int_equal(fake_store_oldest(&rig->stores[0])->ttl_s, rows[i / 2].ttl_s);
            fake_store_complete_ok(&rig->stores[0]);
            assert_int_equal(request_rig_finish(r), REPLY_STORED);
        }
    }
    /* it means nothing to the others */
    assert_int_equal(request_rig_refusal(rig, request_rig_head("GET", "/k?ttl=x")), GO_ON);
    assert_int_equal(request_rig_refusal(rig, request_rig_head("DELETE", "/k?ttl=x")), GO_ON);
}

struct precondition {
    const char *if_match, *if_none_match; /* NULL: the header is not there */
    enum reply_id id;
    enum store_verb verb;
    uint64_t cas;
};

static void
expect_precondition(struct request_rig *rig, const char *method, const struct precondition *row)
{
    struct request_head head = request_rig_head_sized(method, "/k", 0);
    enum reply_id id;

    head.if_match = slice_from_string(row->if_match);
    head.if_none_match = slice_from_string(row->if_none_match);
    id = request_rig_refusal(rig, head);
    if (id != row->id) {
        fail_msg("%s, If-Match: %s, If-None-Match: %s: %d, not %d", method,
                 row->if_match == NULL ? "-" : row->if_match,
                 row->if_none_match == NULL ? "-" : row->if_none_match, (int)id, (int)row->id);
    }
    if (id == GO_ON) {
        struct request *r = request_rig_send(rig, head, "");
        const struct store_op *op = fake_store_oldest(&rig->stores[0]);

        assert_int_equal(op->verb, row->verb);
        assert_int_equal(op->cas, row->cas);
        fake_store_complete_ok(&rig->stores[0]);
        request_rig_finish(r);
    }
}

/* Neither one of these is an ETag of this gateway. */
static const char *const bad_etags[] = {
    "",
    "\"",
    "\"\"",
    "123",
    "\"123",
    "123\"",
    "W/\"123\"",
    "w/\"123\"",
    "\"1\", \"2\"",
    "\"1\",\"2\"",
    "\"1\" ",
    " \"1\"",
    "\" 1\"",
    "\"1 \"",
    "\"-1\"",
    "\"+1\"",
    "\"0x1\"",
    "\"abc\"",
    "\"*\"",
    "**",
    "*, \"1\"",
    "'1'",
    "\"18446744073709551616\"",
    "\"1\"\"",
};

static void
preconditions_of_writes(void **state)
{
    static const struct precondition rows[] = {
        { NULL, NULL, GO_ON, STORE_SET, 0 },
        { NULL, "*", GO_ON, STORE_ADD, 0 },
        { "*", NULL, GO_ON, STORE_REPLACE, 0 },
        { "\"123\"", NULL, GO_ON, STORE_CAS, 123 },
        { "\"1\"", NULL, GO_ON, STORE_CAS, 1 },
        { "\"18446744073709551615\"", NULL, GO_ON, STORE_CAS, UINT64_MAX },
        { "*", "*", REPLY_BAD_PRECONDITION, STORE_SET, 0 },
        { "\"1\"", "*", REPLY_BAD_PRECONDITION, STORE_SET, 0 },
        { NULL, "\"1\"", REPLY_BAD_PRECONDITION, STORE_SET, 0 },
        { NULL, "\"*\"", REPLY_BAD_PRECONDITION, STORE_SET, 0 },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        expect_precondition(*state, "PUT", &rows[i]);
        expect_precondition(*state, "POST", &rows[i]);
    }
    for (size_t i = 0; i < sizeof(bad_etags) / sizeof(bad_etags[0]); i++) {
        struct precondition match = { bad_etags[i], NULL, REPLY_BAD_PRECONDITION, STORE_SET, 0 };
        struct precondition none = { NULL, bad_etags[i], REPLY_BAD_PRECONDITION, STORE_SET, 0 };

        expect_precondition(*state, "PUT", &match);
        expect_precondition(*state, "PUT", &none);
    }
}

static void
preconditions_of_deletes(void **state)
{
    static const struct precondition rows[] = {
        { NULL, NULL, GO_ON, STORE_DELETE, 0 },
        { "\"123\"", NULL, GO_ON, STORE_DELETE, 123 },
        { "\"18446744073709551615\"", NULL, GO_ON, STORE_DELETE, UINT64_MAX },
        { NULL, "*", REPLY_BAD_PRECONDITION, STORE_DELETE, 0 },
        { "\"1\"", "\"1\"", REPLY_BAD_PRECONDITION, STORE_DELETE, 0 },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        expect_precondition(*state, "DELETE", &rows[i]);
    }
    for (size_t i = 0; i < sizeof(bad_etags) / sizeof(bad_etags[0]); i++) {
        struct precondition match = { bad_etags[i], NULL, REPLY_BAD_PRECONDITION, STORE_DELETE, 0 };

        expect_precondition(*state, "DELETE", &match);
    }
}

/* A cas of 0 means "any" to a store's DELETE: If-Match: "0" must never become that. */
static void
an_etag_of_zero_deletes_nothing(void **state)
{
    struct request_rig *rig = *state;
    struct request_head head = request_rig_head("DELETE", "/k");
    struct request *r;

    head.if_match = SLICE("\"0\"");
    r = request_rig_begin(rig, head);
    request_end(r);
    if (rig->stores[0].submitted == 0) {
        assert_in_range(reply_status(request_reply(r)->id), 400, 499);
    } else {
        uint64_t cas = fake_store_oldest(&rig->stores[0])->cas;

        fake_store_complete_bad(&rig->stores[0], STORE_EXISTS);
        assert_int_not_equal(cas, 0);
    }
    request_release(r);
}

/* Design, section 8: DELETE takes If-Match as writes do, so "*", too: 412 where nothing is. */
static void
delete_if_present(void **state)
{
    struct request_rig *rig = *state;
    struct request_head head = request_rig_head("DELETE", "/k");
    struct request *r;

    head.if_match = SLICE("*");
    r = request_rig_begin(rig, head);
    assert_false(request_is_done(r));
    request_end(r);
    assert_int_equal(fake_store_oldest(&rig->stores[0])->verb, STORE_DELETE);
    assert_int_equal(fake_store_oldest(&rig->stores[0])->cas, 0);
    fake_store_complete_ok(&rig->stores[0]);
    assert_int_equal(request_rig_finish(r), REPLY_DELETED);
}

/* Operations that are not built are named as such, and never taken for a plain write. */
static void
operations(void **state)
{
    static const struct {
        const char *target;
        enum reply_id id;
    } rows[] = {
        { "/k?op=incr", REPLY_UNSUPPORTED },
        { "/k?op=decr&by=2", REPLY_UNSUPPORTED },
        { "/k?op=append", REPLY_UNSUPPORTED },
        { "/k?op=prepend", REPLY_UNSUPPORTED },
        { "/k?op=touch&ttl=1", REPLY_UNSUPPORTED },
        { "/k?op=", REPLY_BAD_OPERATION },
        { "/k?op", REPLY_BAD_OPERATION },
        { "/k?op=INCR", REPLY_BAD_OPERATION },
        { "/k?op=incr%20", REPLY_BAD_OPERATION },
        { "/k?op=flush_all", REPLY_BAD_OPERATION },
        { "/k?xop=incr", GO_ON },
        { "/k", GO_ON },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(
            request_rig_refusal(*state, request_rig_head_sized("POST", rows[i].target, 0)),
            rows[i].id);
    }
    assert_int_equal(request_rig_submitted(*state), 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, request_rig_setup, request_rig_teardown)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(time_to_live),
        TEST(preconditions_of_writes),
        TEST(preconditions_of_deletes),
        TEST(an_etag_of_zero_deletes_nothing),
        TEST(delete_if_present),
        TEST(operations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
