/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_request.c: the life of a request and of its op: late answers, answers at once, orphans,
 * spare requests, /-/ready. Headers are in test_request_head.c, bodies in test_request_body.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "request_rig.h"

static const struct fake_store_answer hello = {
    .status = STORE_OK, .value = SLICE_LITERAL("hello"), .cas = 7, .ttl_left_s = 30
};

/* ---- late and at once ---- */

static void
a_late_value(void **state)
{
    struct request_rig *rig = *state;
    struct request *r = request_rig_begin(rig, request_rig_head("GET", "/two/k"));
    struct store_op *op;
    struct reply *reply;

    assert_false(request_is_done(r));
    assert_int_equal(rig->context.waiting, 0);
    assert_int_equal(request_rig_submitted(rig), 0);
    request_end(r);
    assert_false(request_is_done(r));
    assert_int_equal(rig->context.waiting, 1);
    assert_int_equal(rig->stores[1].submitted, 1);
    assert_false(rig->loop.progress);
    op = fake_store_oldest(&rig->stores[1]);
    assert_int_equal(op->verb, STORE_GET);
    assert_true(slice_equal(op->key, SLICE("2:k")));
    assert_int_equal(op->value.len, 0);

    fake_store_complete(&rig->stores[1], &hello);
    assert_true(request_is_done(r));
    assert_true(rig->loop.progress);
    assert_int_equal(rig->context.waiting, 0);
    reply = request_reply(r);
    assert_int_equal(reply->id, REPLY_VALUE);
    assert_true(slice_equal(slice_of(reply->data->data, reply->data->len), SLICE("hello")));
    assert_int_equal(reply->value_len, 5);
    assert_int_equal(reply->cas, 7);
    assert_int_equal(reply->ttl_left_s, 30);
    assert_string_equal(reply->content_type, "type/of/two/");
    assert_false(request_is_head(r));
    assert_int_equal(request_rig_bytes(rig), 5);
    request_release(r);
    assert_int_equal(request_rig_bytes(rig), 0);
}

static void
a_value_at_once(void **state)
{
    struct request_rig *rig = *state;
    struct request *r;

    rig->stores[0].at_once = true;
    rig->stores[0].answer = hello;
    r = request_rig_send(rig, request_rig_head("GET", "/k"), "");
    assert_true(request_is_done(r));
    assert_int_equal(rig->context.waiting, 0);
    assert_int_equal(request_reply(r)->id, REPLY_VALUE);
    assert_int_equal(request_reply(r)->data->len, 5);
    assert_int_equal(request_rig_bytes(rig), 5);
    assert_int_equal(request_rig_finish(r), REPLY_VALUE);
}

static void
head_has_no_body(void **state)
{
    struct request_rig *rig = *state;
    struct request *r = request_rig_send(rig, request_rig_head("HEAD", "/k"), "");

    assert_true(request_is_head(r));
    assert_int_equal(fake_store_oldest(&rig->stores[0])->verb, STORE_HEAD);
    fake_store_complete(&rig->stores[0], &hello);
    assert_null(request_reply(r)->data);
    assert_int_equal(request_reply(r)->value_len, 5);
    assert_int_equal(request_reply(r)->cas, 7);
    assert_int_equal(request_reply(r)->ttl_left_s, 30);
    assert_int_equal(request_rig_bytes(rig), 0);
    assert_int_equal(request_rig_finish(r), REPLY_VALUE);
    /* a HEAD that is refused has no body either */
    r = request_rig_begin(rig, request_rig_head("HEAD", "/%zz"));
    assert_true(request_is_head(r));
    assert_int_equal(request_rig_finish(r), REPLY_BAD_ESCAPE);
}

/* Every way that a store can end, for every method, late and at once. */
static void
every_status(void **state)
{
    static const struct {
        const char *method, *body;
        enum store_verb verb;
    } rows[] = {
        { "GET", "", STORE_GET },  { "HEAD", "", STORE_HEAD },     { "PUT", "x", STORE_SET },
        { "POST", "", STORE_SET }, { "DELETE", "", STORE_DELETE },
    };
    struct request_rig *rig = *state;

    for (size_t i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
        for (int s = 0; s < STORE_STATUS_COUNT; s++) {
            struct fake_store_answer answer = { .status = (enum store_status)s };
            bool late = i % 2 == 0;
            struct request *r;

            rig->stores[0].at_once = !late;
            rig->stores[0].answer = answer;
            r = request_rig_send(
                rig, request_rig_head_sized(rows[i / 2].method, "/k", strlen(rows[i / 2].body)),
                rows[i / 2].body);
            if (late) {
                assert_int_equal(fake_store_oldest(&rig->stores[0])->verb, rows[i / 2].verb);
                fake_store_complete(&rig->stores[0], &answer);
            }
            assert_int_equal(request_rig_finish(r),
                             reply_from_store(rows[i / 2].verb, answer.status));
            assert_int_equal(request_rig_bytes(rig), 0);
        }
    }
}

static void
a_write_tells_its_cas(void **state)
{
    struct request_rig *rig = *state;
    struct request *r = request_rig_send(rig, request_rig_head_sized("PUT", "/k", 3), "abc");

    fake_store_complete(&rig->stores[0],
                        &(struct fake_store_answer){ .status = STORE_OK, .cas = 99 });
    assert_int_equal(request_reply(r)->cas, 99);
    assert_null(request_reply(r)->data);
    assert_int_equal(request_rig_finish(r), REPLY_STORED);
}

static void
answers_in_any_order(void **state)
{
    struct request_rig *rig = *state;
    struct request *r[10];

    for (size_t i = 0; i < 10; i++) {
        r[i] = request_rig_send(rig, request_rig_head("GET", "/k"), "");
    }
    assert_int_equal(rig->context.waiting, 10);
    for (size_t i = 0; i < 10; i++) {
        size_t left = 9 - i;

        fake_store_complete_newest(&rig->stores[0], &hello);
        assert_true(request_is_done(r[left]));
        assert_true(left == 0 || !request_is_done(r[left - 1]));
        assert_int_equal(rig->context.waiting, left);
    }
    assert_int_equal(request_rig_bytes(rig), 50);
    for (size_t i = 0; i < 10; i++) {
        assert_int_equal(request_rig_finish(r[i]), REPLY_VALUE);
    }
}

/* Whoever sends the value may hold it for longer than the request lives. */
static void
the_value_outlives_its_request(void **state)
{
    struct request_rig *rig = *state;
    struct request *r = request_rig_send(rig, request_rig_head("GET", "/k"), "");
    struct buffer *data;

    fake_store_complete(&rig->stores[0], &hello);
    data = buffer_ref(request_reply(r)->data);
    request_release(r);
    assert_int_equal(data->refs, 1);
    assert_memory_equal(data->data, "hello", 5);
    buffer_unref(data);
}

/* ---- orphans ---- */

/* The op's key and value must stay where they are until it is complete: the store looks. */
static void
an_orphaned_write(void **state)
{
    struct request_rig *rig = *state;
    struct request *r = request_rig_send(rig, request_rig_head_sized("PUT", "/k", 5), "value");

    request_release(r);
    assert_int_equal(rig->context.waiting, 1);
    assert_int_equal(request_rig_bytes(rig), 5);
    assert_null(rig->context.spare);
    fake_store_complete_ok(&rig->stores[0]);
    assert_int_equal(rig->context.waiting, 0);
    assert_int_equal(request_rig_bytes(rig), 0);
    assert_ptr_equal(rig->context.spare, r);
}

static void
an_orphaned_read(void **state)
{
    struct request_rig *rig = *state;

    request_release(request_rig_send(rig, request_rig_head("GET", "/k"), ""));
    request_release(request_rig_send(rig, request_rig_head("GET", "/k"), ""));
    request_release(request_rig_send(rig, request_rig_head("DELETE", "/k"), ""));
    fake_store_complete(&rig->stores[0], &hello);
    fake_store_complete_bad(&rig->stores[0], STORE_CANCELLED);
    fake_store_complete_bad(&rig->stores[0], STORE_MISS);
    assert_int_equal(request_rig_bytes(rig), 0);
}

/* New requests must not be given the memory of an orphan. */
static void
an_orphan_is_not_spare(void **state)
{
    struct request_rig *rig = *state;
    struct request *orphan = request_rig_send(rig, request_rig_head_sized("PUT", "/old", 3), "old");
    struct request *r;

    request_release(orphan);
    r = request_rig_send(rig, request_rig_head_sized("PUT", "/new", 3), "new");
    assert_ptr_not_equal(r, orphan);
    fake_store_complete_ok(&rig->stores[0]);
    assert_false(request_is_done(r));
    fake_store_complete_ok(&rig->stores[0]);
    assert_int_equal(request_rig_finish(r), REPLY_STORED);
}

static void
an_orphan_does_not_ask_on(void **state)
{
    struct request_rig *rig = *state;

    request_release(request_rig_send(rig, request_rig_head("GET", "/-/ready"), ""));
    fake_store_complete_ok(&rig->stores[0]);
    assert_int_equal(request_rig_submitted(rig), 1);
    assert_int_equal(rig->context.waiting, 0);
}

/* ---- requests that are used again ---- */

static void
released_early(void **state)
{
    struct request_rig *rig = *state;
    struct request *r = request_rig_begin(rig, request_rig_head_sized("PUT", "/k", 500));

    assert_true(request_body(r, "half", 4));
    assert_int_equal(request_rig_bytes(rig), 500);
    request_release(r);
    assert_int_equal(request_rig_bytes(rig), 0);
    assert_int_equal(request_rig_submitted(rig), 0);
}

/* Nothing of the one before may be seen in the next. */
static void
used_again(void **state)
{
    struct request_rig *rig = *state;
    struct request *first = request_rig_send(rig, request_rig_head("GET", "/k"), "");
    struct request *r;

    fake_store_complete(&rig->stores[0], &hello);
    request_release(first);
    r = request_rig_begin(rig, request_rig_head("PUT", "/ro/k"));
    assert_ptr_equal(r, first);
    assert_int_equal(request_reply(r)->allow, CONFIG_GET | CONFIG_HEAD);
    assert_null(request_reply(r)->data);
    assert_int_equal(request_reply(r)->cas, 0);
    assert_int_equal(request_rig_finish(r), REPLY_METHOD);

    r = request_rig_send(rig, request_rig_head("HEAD", "/-/ready"), "");
    assert_ptr_equal(r, first);
    fake_store_complete_bad(&rig->stores[0], STORE_TIMEOUT);
    assert_true(request_is_head(r));
    assert_int_equal(request_reply(r)->allow, 0);
    assert_int_equal(request_rig_finish(r), REPLY_NOT_READY);

    r = request_rig_begin(rig, request_rig_head_chunked("PUT", "/k"));
    assert_ptr_equal(r, first);
    assert_false(request_is_head(r));
    request_end(r);
    assert_int_equal(fake_store_oldest(&rig->stores[0])->value.len, 0);
    fake_store_complete_ok(&rig->stores[0]);
    assert_null(request_reply(r)->data);
    assert_true(request_reply(r)->ttl_left_s == STORE_TTL_UNKNOWN);
    assert_int_equal(request_rig_finish(r), REPLY_STORED);
}

static void
end_of_a_refused_request(void **state)
{
    struct request_rig *rig = *state;
    struct request *r = request_rig_begin(rig, request_rig_head("GET", "/"));

    assert_true(request_is_done(r));
    assert_false(request_body(r, "x", 1));
    request_end(r);
    assert_int_equal(request_rig_submitted(rig), 0);
    assert_int_equal(request_rig_finish(r), REPLY_EMPTY_KEY);
}

/* ---- /-/health and /-/ready ---- */

static void
health_asks_nobody(void **state)
{
    struct request_rig *rig = *state;

    assert_int_equal(request_rig_refusal(rig, request_rig_head("GET", "/-/health")), REPLY_HEALTHY);
    assert_int_equal(request_rig_refusal(rig, request_rig_head("HEAD", "/-/health")),
                     REPLY_HEALTHY);
    assert_int_equal(request_rig_submitted(rig), 0);
}

static void
ready_asks_all_that_are_used(void **state)
{
    struct request_rig *rig = *state;
    struct request *r = request_rig_send(rig, request_rig_head("GET", "/-/ready"), "");

    assert_int_equal(rig->stores[0].submitted, 1);
    assert_int_equal(rig->stores[1].submitted, 0);
    assert_int_equal(fake_store_oldest(&rig->stores[0])->verb, STORE_HEAD);
    fake_store_complete_bad(&rig->stores[0], STORE_MISS);
    assert_false(request_is_done(r));
    assert_int_equal(rig->context.waiting, 1);
    assert_int_equal(rig->stores[1].submitted, 1);
    fake_store_complete_ok(&rig->stores[1]);
    assert_int_equal(rig->stores[2].submitted, 0);
    assert_int_equal(request_rig_finish(r), REPLY_READY);
}

static void
ready_at_once(void **state)
{
    struct request_rig *rig = *state;

    rig->stores[0].at_once = true;
    rig->stores[1].at_once = true;
    rig->stores[0].answer.status = STORE_MISS;
    rig->stores[1].answer.status = STORE_MISS;
    assert_int_equal(
        request_rig_finish(request_rig_send(rig, request_rig_head("GET", "/-/ready"), "")),
        REPLY_READY);
    assert_int_equal(request_rig_submitted(rig), 2);
}

static void
ready_without_stores(void **state)
{
    struct request_rig *rig = *state;

    rig->config->route_count = 0;
    assert_int_equal(
        request_rig_finish(request_rig_send(rig, request_rig_head("GET", "/-/ready"), "")),
        REPLY_READY);
    assert_int_equal(request_rig_submitted(rig), 0);
}

/* A store in trouble, whichever it is; the ones after it are not asked. */
static void
not_ready(void **state)
{
    struct request_rig *rig = *state;

    for (int s = 0; s < STORE_STATUS_COUNT; s++) {
        enum store_status status = (enum store_status)s;
        bool fine = status == STORE_OK || status == STORE_MISS;
        struct request *r = request_rig_send(rig, request_rig_head("GET", "/-/ready"), "");

        fake_store_complete_ok(&rig->stores[0]);
        fake_store_complete_bad(&rig->stores[1], status);
        assert_int_equal(request_rig_finish(r), fine ? REPLY_READY : REPLY_NOT_READY);
        if (!fine) {
            size_t before = rig->stores[1].submitted;

            r = request_rig_send(rig, request_rig_head("GET", "/-/ready"), "");
            fake_store_complete_bad(&rig->stores[0], status);
            assert_int_equal(request_rig_finish(r), REPLY_NOT_READY);
            assert_int_equal(rig->stores[1].submitted, before);
        }
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, request_rig_setup, request_rig_teardown)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_late_value),
        TEST(a_value_at_once),
        TEST(head_has_no_body),
        TEST(every_status),
        TEST(a_write_tells_its_cas),
        TEST(answers_in_any_order),
        TEST(the_value_outlives_its_request),
        TEST(an_orphaned_write),
        TEST(an_orphaned_read),
        TEST(an_orphan_is_not_spare),
        TEST(an_orphan_does_not_ask_on),
        TEST(released_early),
        TEST(used_again),
        TEST(end_of_a_refused_request),
        TEST(health_asks_nobody),
        TEST(ready_asks_all_that_are_used),
        TEST(ready_at_once),
        TEST(ready_without_stores),
        TEST(not_ready),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
