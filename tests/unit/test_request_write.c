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

/* Neither one of these is one ETag. */
static const char *const bad_etags[] = {
    "",          "\"",           "123",         "\"123",   "123\"",
    "w/\"123\"", "\"1\", \"2\"", "\"1\",\"2\"", "\" 1\"",  "\"1 \"",
    "**",        "*, \"1\"",     "'1'",         "\"1\"\"", "?",
    ",",
};

/* These are, and no value of this gateway has one of them. */
static const char *const other_etags[] = {
    "\"\"",    "W/\"123\"", "\"-1\"", "\"+1\"",  "\"0x1\"",
    "\"abc\"", "\"*\"",     "\"0\"",  "\"007\"", "\"18446744073709551616\"",
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
        { " \"1\" ", NULL, GO_ON, STORE_CAS, 1 },
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
    for (size_t i = 0; i < sizeof(other_etags) / sizeof(other_etags[0]); i++) {
        struct precondition match = { other_etags[i], NULL, REPLY_PRECONDITION, STORE_SET, 0 };
        struct precondition none = { NULL, other_etags[i], REPLY_BAD_PRECONDITION, STORE_SET, 0 };

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
    for (size_t i = 0; i < sizeof(other_etags) / sizeof(other_etags[0]); i++) {
        struct precondition match = { other_etags[i], NULL, REPLY_PRECONDITION, STORE_DELETE, 0 };

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

/* ---- max-age --------------------------------------------------------------------------------- */

static void
max_age(void **state)
{
    static const struct {
        const char *target, *cache_control;
        enum reply_id id;
        uint64_t ttl_s;
    } rows[] = {
        { "/k", "max-age=60", GO_ON, 60 },
        { "/k", "MAX-AGE=60", GO_ON, 60 },
        { "/k", "no-cache, max-age=60", GO_ON, 60 },
        { "/k", "max-age=60,no-transform", GO_ON, 60 },
        { "/k", "max-age=\"60\"", GO_ON, 60 },
        { "/k", "max-age=0", GO_ON, 0 },
        { "/k", "max-age=2678400", GO_ON, 2678400 },
        { "/k", "max-age=315360000", GO_ON, 315360000 },
        { "/k?ttl=5", "max-age=60", GO_ON, 5 },
        { "/k?ttl=5", "max-age=x", GO_ON, 5 },
        { "/ttl/k", "no-cache", GO_ON, 77 },
        { "/ttl/k", "s-maxage=60", GO_ON, 77 },
        { "/ttl/k", "x-max-age=60", GO_ON, 77 },
        { "/ttl/k", "max-agent=60", GO_ON, 77 },
        { "/ttl/k", "", GO_ON, 77 },
        { "/ttl/k", ",,", GO_ON, 77 },
        { "/k", "max-age", REPLY_BAD_TTL, 0 },
        { "/k", "max-age=", REPLY_BAD_TTL, 0 },
        { "/k", "max-age=-1", REPLY_BAD_TTL, 0 },
        { "/k", "max-age=1.5", REPLY_BAD_TTL, 0 },
        { "/k", "max-age= 60", REPLY_BAD_TTL, 0 },
        { "/k", "max-age=60s", REPLY_BAD_TTL, 0 },
        { "/k", "max-age=\"60", REPLY_BAD_TTL, 0 },
        { "/k", "max-age=3155760001", REPLY_BAD_TTL, 0 },
        { "/k", "max-age=99999999999999999999", REPLY_BAD_TTL, 0 },
    };
    struct request_rig *rig = *state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct request_head head = request_rig_head_sized("PUT", rows[i].target, 0);
        struct request *r;

        head.cache_control = slice_from_string(rows[i].cache_control);
        if (request_rig_refusal(rig, head) != rows[i].id) {
            fail_msg("%s, Cache-Control: %s", rows[i].target, rows[i].cache_control);
        }
        if (rows[i].id == GO_ON) {
            r = request_rig_send(rig, head, "");
            assert_int_equal(fake_store_oldest(&rig->stores[0])->ttl_s, rows[i].ttl_s);
            fake_store_complete_ok(&rig->stores[0]);
            request_rig_finish(r);
        }
    }
}

/* ---- ops ------------------------------------------------------------------------------------- */

struct op_row {
    const char *method, *target;
    enum reply_id id;
    struct store_op op; /* the inputs that are expected */
};

static void
expect_op(struct request_rig *rig, const struct op_row *row)
{
    struct request_head head = request_rig_head_sized(row->method, row->target, 0);
    const struct store_op *op;
    struct request *r;

    if (request_rig_refusal(rig, head) != row->id) {
        fail_msg("%s %s: %d", row->method, row->target, (int)request_rig_refusal(rig, head));
    }
    if (row->id != GO_ON) {
        return;
    }
    r = request_rig_send(rig, head, "");
    op = fake_store_oldest(&rig->stores[0]);
    assert_int_equal(op->verb, row->op.verb);
    assert_int_equal(op->delta, row->op.delta);
    assert_int_equal(op->initial, row->op.initial);
    assert_int_equal(op->create, row->op.create);
    assert_int_equal(op->ttl_s, row->op.ttl_s);
    fake_store_complete_bad(&rig->stores[0], STORE_MISS);
    assert_int_equal(request_rig_finish(r), REPLY_MISS);
}

#define OP(...)                                                                                    \
    GO_ON,                                                                                         \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

static void
operations(void **state)
{
    static const struct op_row rows[] = {
        { "POST", "/k?op=incr", OP(.verb = STORE_INCR, .delta = 1) },
        { "POST", "/k?op=incr&by=0", OP(.verb = STORE_INCR, .delta = 0) },
        { "POST", "/k?by=18446744073709551615&op=decr",
          OP(.verb = STORE_DECR, .delta = UINT64_MAX) },
        { "POST", "/k?op=incr&by=2&initial=7&ttl=9",
          OP(.verb = STORE_INCR, .delta = 2, .initial = 7, .create = true, .ttl_s = 9) },
        { "POST", "/ttl/k?op=decr&initial=0",
          OP(.verb = STORE_DECR, .delta = 1, .create = true, .ttl_s = 77) },
        { "POST", "/k?op=append", OP(.verb = STORE_APPEND) },
        { "POST", "/k?op=prepend", OP(.verb = STORE_PREPEND) },
        { "POST", "/k?op=touch&ttl=5", OP(.verb = STORE_TOUCH, .ttl_s = 5) },
        { "POST", "/ttl/k?op=touch", OP(.verb = STORE_TOUCH, .ttl_s = 77) },
        { "POST", "/ttl/k?op=touch&ttl=0", OP(.verb = STORE_TOUCH) },
        { "POST", "/k?xop=incr", OP(.verb = STORE_SET) },
        { "POST", "/k?op=incr&by=", .id = REPLY_BAD_NUMBER },
        { "POST", "/k?op=incr&by=-1", .id = REPLY_BAD_NUMBER },
        { "POST", "/k?op=incr&by=+1", .id = REPLY_BAD_NUMBER },
        { "POST", "/k?op=incr&by=1.0", .id = REPLY_BAD_NUMBER },
        { "POST", "/k?op=incr&by=0x1", .id = REPLY_BAD_NUMBER },
        { "POST", "/k?op=incr&by=18446744073709551616", .id = REPLY_BAD_NUMBER },
        { "POST", "/k?op=decr&initial=x", .id = REPLY_BAD_NUMBER },
        { "POST", "/k?op=decr&initial=", .id = REPLY_BAD_NUMBER },
        { "POST", "/k?op=incr&ttl=5", .id = REPLY_TTL_STAYS },
        { "POST", "/k?op=incr&initial=1&ttl=x", .id = REPLY_BAD_TTL },
        { "POST", "/k?op=append&ttl=5", .id = REPLY_TTL_STAYS },
        { "POST", "/k?op=prepend&ttl=x", .id = REPLY_TTL_STAYS },
        { "POST", "/k?op=touch&ttl=-5", .id = REPLY_BAD_TTL },
        { "POST", "/k?op=", .id = REPLY_BAD_OPERATION },
        { "POST", "/k?op", .id = REPLY_BAD_OPERATION },
        { "POST", "/k?op=INCR", .id = REPLY_BAD_OPERATION },
        { "POST", "/k?op=incr%20", .id = REPLY_BAD_OPERATION },
        { "POST", "/k?op=flush_all", .id = REPLY_BAD_OPERATION },
        { "PUT", "/k?op=append", .id = REPLY_BAD_OPERATION },
        { "DELETE", "/k?op=touch", .id = REPLY_BAD_OPERATION },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        expect_op(*state, &rows[i]);
    }
}

/* An op looks at no ETag, so it takes none; and its body, where it has none, means nothing. */
static void
ops_and_headers(void **state)
{
    struct request_rig *rig = *state;
    struct request_head head = request_rig_head_sized("POST", "/k?op=append", 0);

    head.if_match = SLICE("*");
    assert_int_equal(request_rig_refusal(rig, head), REPLY_BAD_PRECONDITION);
    head.if_match = slice_of(NULL, 0);
    head.if_none_match = SLICE("*");
    assert_int_equal(request_rig_refusal(rig, head), REPLY_BAD_PRECONDITION);
    assert_int_equal(request_rig_refusal(rig, request_rig_head("POST", "/k?op=append")),
                     REPLY_LENGTH_REQUIRED);
    assert_int_equal(request_rig_refusal(rig, request_rig_head("POST", "/k?op=incr")), GO_ON);
    assert_int_equal(request_rig_refusal(rig, request_rig_head("POST", "/k?op=touch")), GO_ON);
    assert_int_equal(request_rig_submitted(rig), 0);
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
        TEST(max_age),
        TEST(operations),
        TEST(ops_and_headers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
