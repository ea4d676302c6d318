/* SPDX-License-Identifier: BSD-2-Clause */
/* test_request_body.c: bodies in pieces, limits of their size, bodies that nobody wants, and the
 * bytes that all requests together may hold. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "request_rig.h"

/* LEN bytes that are not the same everywhere; the caller frees. */
static char *
pattern(size_t len)
{
    char *bytes = malloc(len + 1);

    assert_non_null(bytes);
    for (size_t i = 0; i < len; i++) {
        bytes[i] = (char)(i * 31 + i / 256);
    }
    return bytes;
}

/* Sends LEN bytes in pieces of PIECE; false as soon as one is not taken. */
static bool
send_pieces(struct request *r, const char *bytes, size_t len, size_t piece)
{
    for (size_t at = 0; at < len; at += piece) {
        if (!request_body(r, bytes + at, len - at < piece ? len - at : piece)) {
            return false;
        }
    }
    return true;
}

static void
expect_stored(struct request_rig *rig, struct request *r, const char *bytes, size_t len)
{
    request_end(r);
    assert_true(slice_equal(fake_store_oldest(&rig->stores[0])->value, slice_of(bytes, len)));
    assert_int_equal(fake_store_oldest(&rig->stores[0])->verb, STORE_SET);
    fake_store_complete_ok(&rig->stores[0]);
    assert_int_equal(request_rig_finish(r), REPLY_STORED);
    assert_int_equal(request_rig_bytes(rig), 0);
}

/* ---- pieces ---- */

static void
in_pieces(void **state)
{
    static const size_t lens[] = { 1, 2, 100, 4095, 4096, 4097, 8192, 8193, 100000 };
    static const size_t pieces[] = { 1, 7, 4096, 100000 };
    struct request_rig *rig = *state;
    char *bytes = pattern(100000);

    rig->stores[0].item_max = 1000000;
    for (size_t i = 0; i < 2 * sizeof(lens) / sizeof(lens[0]); i++) {
        for (size_t k = 0; k < sizeof(pieces) / sizeof(pieces[0]); k++) {
            size_t len = lens[i / 2];
            struct request_head head = i % 2 == 0 ? request_rig_head_sized("PUT", "/k", len)
                                                  : request_rig_head_chunked("POST", "/k");
            struct request *r = request_rig_begin(rig, head);

            assert_false(request_is_done(r));
            assert_true(send_pieces(r, bytes, len, pieces[k]));
            assert_false(request_is_done(r));
            assert_true(request_rig_bytes(rig) >= len);
            assert_true(i % 2 != 0 || request_rig_bytes(rig) == len);
            expect_stored(rig, r, bytes, len);
        }
    }
    free(bytes);
}

static void
no_bytes(void **state)
{
    struct request_rig *rig = *state;
    struct request *r = request_rig_begin(rig, request_rig_head_sized("PUT", "/k", 0));

    expect_stored(rig, r, "", 0);
    r = request_rig_begin(rig, request_rig_head_chunked("PUT", "/k"));
    expect_stored(rig, r, "", 0);
    r = request_rig_begin(rig, request_rig_head_chunked("PUT", "/k"));
    assert_true(request_body(r, "", 0));
    expect_stored(rig, r, "", 0);
}

/* ---- too large ---- */

/* A sized body and a chunked one of LEN bytes to TARGET: both are taken, or both refused. */
static void
expect_limit(struct request_rig *rig, const char *target, size_t len, bool fits)
{
    char *bytes = pattern(len);
    size_t before = request_rig_submitted(rig);

    for (size_t piece = 1; piece <= len + 1; piece += len) {
        struct request *r = request_rig_begin(rig, request_rig_head_chunked("PUT", target));

        assert_int_equal(send_pieces(r, bytes, len, piece), fits);
        if (fits) {
            expect_stored(rig, r, bytes, len);
            continue;
        }
        assert_true(request_is_done(r));
        assert_false(request_body(r, "x", 1));
        request_end(r);
        assert_int_equal(request_rig_finish(r), REPLY_TOO_LARGE);
    }
    struct request *r = request_rig_begin(rig, request_rig_head_sized("PUT", target, len));
    assert_int_equal(request_is_done(r), !fits);
    if (fits) {
        assert_true(request_body(r, bytes, len));
        expect_stored(rig, r, bytes, len);
    } else {
        assert_int_equal(request_rig_bytes(rig), 0);
        assert_int_equal(request_rig_finish(r), REPLY_TOO_LARGE);
        assert_int_equal(request_rig_submitted(rig), before);
    }
    free(bytes);
}

/* The store's limit depends on the length of the key; a route's own is lower or does not count. */
static void
limits(void **state)
{
    struct request_rig *rig = *state;

    expect_limit(rig, "/k", 999, true);
    expect_limit(rig, "/k", 1000, false);
    expect_limit(rig, "/kkkkkkkkkk", 990, true);
    expect_limit(rig, "/kkkkkkkkkk", 991, false);
    expect_limit(rig, "/small/k", 10, true);
    expect_limit(rig, "/small/k", 11, false);
    expect_limit(rig, "/big/k", 999, true);
    expect_limit(rig, "/big/k", 1000, false);
}

static void
absurd_lengths(void **state)
{
    struct request_rig *rig = *state;

    assert_int_equal(request_rig_refusal(rig, request_rig_head_sized("PUT", "/k", SIZE_MAX)),
                     REPLY_TOO_LARGE);
    assert_int_equal(request_rig_refusal(rig, request_rig_head_sized("GET", "/k", SIZE_MAX)),
                     REPLY_TOO_LARGE);
    assert_int_equal(request_rig_refusal(rig, request_rig_head_sized("PUT", "/k", SIZE_MAX / 2)),
                     REPLY_TOO_LARGE);
    /* a store without a limit leaves it to what all requests together may hold */
    rig->stores[0].item_max = SIZE_MAX;
    assert_int_equal(request_rig_refusal(rig, request_rig_head_sized("PUT", "/k", SIZE_MAX - 1)),
                     REPLY_TOO_LARGE);
}

/* ---- bodies that mean nothing ---- */

static void
dropped_bodies(void **state)
{
    static const char *const methods[] = { "GET", "HEAD", "DELETE" };
    struct request_rig *rig = *state;
    char *bytes = pattern(REQUEST_SWALLOW_MAX);

    for (size_t i = 0; i < 2 * sizeof(methods) / sizeof(methods[0]); i++) {
        const char *method = methods[i / 2];
        struct request_head head = i % 2 == 0
                                       ? request_rig_head_sized(method, "/k", REQUEST_SWALLOW_MAX)
                                       : request_rig_head_chunked(method, "/k");
        struct request *r = request_rig_begin(rig, head);

        assert_true(send_pieces(r, bytes, REQUEST_SWALLOW_MAX, 5000));
        assert_int_equal(request_rig_bytes(rig), 0);
        request_end(r);
        assert_int_equal(fake_store_oldest(&rig->stores[0])->value.len, 0);
        fake_store_complete_bad(&rig->stores[0], STORE_MISS);
        assert_int_equal(request_rig_finish(r), REPLY_MISS);
    }
    free(bytes);
}

static void
dropped_bodies_have_a_limit(void **state)
{
    static const struct {
        const char *method, *target;
    } rows[] = { { "GET", "/k" }, { "HEAD", "/k" }, { "DELETE", "/k" }, { "GET", "/-/ready" } };
    struct request_rig *rig = *state;
    char *bytes = pattern(REQUEST_SWALLOW_MAX);

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *method = rows[i].method, *target = rows[i].target;
        struct request *r;

        assert_int_equal(request_rig_refusal(
                             rig, request_rig_head_sized(method, target, REQUEST_SWALLOW_MAX + 1)),
                         REPLY_TOO_LARGE);
        r = request_rig_begin(rig, request_rig_head_chunked(method, target));
        assert_true(request_body(r, bytes, REQUEST_SWALLOW_MAX));
        assert_false(request_is_done(r));
        assert_false(request_body(r, "x", 1));
        request_end(r);
        assert_int_equal(request_rig_finish(r), REPLY_TOO_LARGE);
    }
    assert_int_equal(request_rig_submitted(rig), 0);
    free(bytes);
}

/* ---- all requests together ---- */

static void
bytes_of_sized_bodies(void **state)
{
    struct request_rig *rig = *state;
    struct request *first, *r;

    rig->config->bytes_in_flight = 1000;
    first = request_rig_begin(rig, request_rig_head_sized("PUT", "/k", 600));
    assert_int_equal(request_rig_bytes(rig), 600);
    assert_int_equal(request_rig_refusal(rig, request_rig_head_sized("PUT", "/k", 401)),
                     REPLY_OVERLOADED);
    assert_int_equal(request_rig_bytes(rig), 600);
    r = request_rig_begin(rig, request_rig_head_sized("PUT", "/k", 400));
    assert_false(request_is_done(r));
    assert_int_equal(request_rig_bytes(rig), 1000);
    /* what needs no bytes still goes */
    assert_int_equal(request_rig_refusal(rig, request_rig_head_sized("PUT", "/k", 0)),
                     REPLY_ID_COUNT);
    assert_int_equal(request_rig_refusal(rig, request_rig_head("GET", "/k")), REPLY_ID_COUNT);
    assert_int_equal(request_rig_refusal(rig, request_rig_head_sized("DELETE", "/k", 50)),
                     REPLY_ID_COUNT);
    request_release(first);
    assert_int_equal(request_rig_bytes(rig), 400);
    assert_int_equal(request_rig_refusal(rig, request_rig_head_sized("PUT", "/k", 600)),
                     REPLY_ID_COUNT);
    request_release(r);
    assert_int_equal(request_rig_submitted(rig), 0);
}

static void
bytes_of_chunked_bodies(void **state)
{
    struct request_rig *rig = *state;
    char *bytes = pattern(100000);
    struct request *r;

    rig->stores[0].item_max = 1000000;
    rig->config->bytes_in_flight = 50000;
    r = request_rig_begin(rig, request_rig_head_chunked("PUT", "/k"));
    assert_false(send_pieces(r, bytes, 100000, 1000));
    assert_true(request_rig_bytes(rig) <= 50000);
    assert_false(request_body(r, bytes, 1));
    request_end(r);
    assert_int_equal(request_rig_finish(r), REPLY_OVERLOADED);
    assert_int_equal(request_rig_bytes(rig), 0);
    assert_int_equal(request_rig_submitted(rig), 0);
    /* one that fits goes again */
    r = request_rig_begin(rig, request_rig_head_chunked("PUT", "/k"));
    assert_true(send_pieces(r, bytes, 20000, 1000));
    expect_stored(rig, r, bytes, 20000);
    free(bytes);
}

/* A value that the store has sent is there: it counts, and keeps new bodies out, but is not lost. */
static void
bytes_of_values(void **state)
{
    struct request_rig *rig = *state;
    char *bytes = pattern(5000);
    struct request *r = request_rig_send(rig, request_rig_head("GET", "/k"), "");

    rig->config->bytes_in_flight = 1000;
    fake_store_complete(&rig->stores[0], &(struct fake_store_answer){
                                             .status = STORE_OK,
                                             .value = slice_of(bytes, 5000),
                                         });
    assert_int_equal(request_rig_bytes(rig), 5000);
    assert_int_equal(request_rig_refusal(rig, request_rig_head_sized("PUT", "/k", 1)),
                     REPLY_OVERLOADED);
    assert_int_equal(request_rig_finish(r), REPLY_VALUE);
    assert_int_equal(request_rig_refusal(rig, request_rig_head_sized("PUT", "/k", 1)),
                     REPLY_ID_COUNT);
    free(bytes);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, request_rig_setup, request_rig_teardown)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(in_pieces),
        TEST(no_bytes),
        TEST(limits),
        TEST(absurd_lengths),
        TEST(dropped_bodies),
        TEST(dropped_bodies_have_a_limit),
        TEST(bytes_of_sized_bodies),
        TEST(bytes_of_chunked_bodies),
        TEST(bytes_of_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
