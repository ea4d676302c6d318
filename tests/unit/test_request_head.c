/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_request_head.c: headers that are refused: framing, targets, methods and Allow, and which
 * fault is named when there are several. What a good one tells the store: test_request_write.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "request_rig.h"

#define GO_ON REPLY_ID_COUNT

/* ---- framing ---- */

static const struct {
    const char *what;
    struct request_head head; /* method and target are filled in below */
    enum reply_id id;
} framings[] = {
    { "plain", { .version_1_1 = true, .hosts = 1, .lengths = 1 }, GO_ON },
    { "chunked", { .version_1_1 = true, .hosts = 1, .transfers = 1, .chunked = true }, GO_ON },
    { "1.0 without Host", { .lengths = 1 }, GO_ON },
    { "1.0 with Host", { .hosts = 1, .lengths = 1 }, GO_ON },
    { "no Host", { .version_1_1 = true, .lengths = 1 }, REPLY_BAD_HOST },
    { "two Host", { .version_1_1 = true, .hosts = 2, .lengths = 1 }, REPLY_BAD_HOST },
    { "1.0, two Host", { .hosts = 2, .lengths = 1 }, REPLY_BAD_HOST },
    { "two lengths", { .version_1_1 = true, .hosts = 1, .lengths = 2 }, REPLY_BAD_LENGTH },
    { "bad length",
      { .version_1_1 = true, .hosts = 1, .lengths = 1, .bad_length = true },
      REPLY_BAD_LENGTH },
    { "length and chunked",
      { .version_1_1 = true, .hosts = 1, .lengths = 1, .transfers = 1, .chunked = true },
      REPLY_BAD_LENGTH },
    { "length and another transfer",
      { .version_1_1 = true, .hosts = 1, .lengths = 1, .transfers = 1, .bad_transfer = true },
      REPLY_BAD_LENGTH },
    { "two transfers",
      { .version_1_1 = true, .hosts = 1, .transfers = 2, .chunked = true },
      REPLY_BAD_TRANSFER },
    { "gzip",
      { .version_1_1 = true, .hosts = 1, .transfers = 1, .bad_transfer = true },
      REPLY_BAD_TRANSFER },
    { "chunked and gzip",
      { .version_1_1 = true, .hosts = 1, .transfers = 2, .chunked = true, .bad_transfer = true },
      REPLY_BAD_TRANSFER },
    { "a name with a space",
      { .version_1_1 = true, .hosts = 1, .lengths = 1, .bad_header = true },
      REPLY_BAD_HEADER },
    { "a damaged target",
      { .version_1_1 = true, .hosts = 1, .lengths = 1, .target_damaged = true },
      REPLY_BAD_TARGET },
    { "connections",
      { .version_1_1 = true, .hosts = 1, .lengths = 1, .quota = QUOTA_CONNECTIONS },
      REPLY_TOO_MANY_CONNECTIONS },
    { "connections of an address",
      { .version_1_1 = true, .hosts = 1, .lengths = 1, .quota = QUOTA_ADDRESS },
      REPLY_TOO_MANY_FROM_ADDRESS },
};

static void
framing(void **state)
{
    /* Framing is judged whatever is asked for, also where nothing would be stored. */
    static const char *const targets[] = { "/k", "/", "/-/health", "/-/nothing", "*", "junk" };
    static const char *const methods[] = {
        "PUT", "POST", "GET", "HEAD", "DELETE", "OPTIONS", "BREW"
    };

    for (size_t i = 0; i < sizeof(framings) / sizeof(framings[0]); i++) {
        for (size_t k = 0; k < 6 * 7; k++) {
            struct request_head head = framings[i].head;
            enum reply_id id;

            if (framings[i].id == GO_ON && k > 0) {
                break;
            }
            head.target = slice_from_string(targets[k / 7]);
            head.method = slice_from_string(methods[k % 7]);
            id = request_rig_refusal(*state, head);
            if (id != framings[i].id) {
                fail_msg("%s, %s %s: %d, not %d", framings[i].what, methods[k % 7], targets[k / 7],
                         (int)id, (int)framings[i].id);
            }
        }
    }
    assert_int_equal(request_rig_submitted(*state), 0);
}

static void
expectations(void **state)
{
    static const struct {
        const char *text;
        enum reply_id id;
    } rows[] = {
        { "100-continue", GO_ON },
        { "100-Continue", GO_ON },
        { "", REPLY_EXPECTATION },
        { "100-continu", REPLY_EXPECTATION },
        { "100-continue, x", REPLY_EXPECTATION },
        { "200-ok", REPLY_EXPECTATION },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct request_head head = request_rig_head_sized("PUT", "/k", 3);

        head.expect = slice_from_string(rows[i].text);
        assert_int_equal(request_rig_refusal(*state, head), rows[i].id);
        head.version_1_1 = false; /* RFC 9110, section 10.1.1: ignored in HTTP/1.0 */
        assert_int_equal(request_rig_refusal(*state, head), GO_ON);
    }
}

static void
lengths(void **state)
{
    assert_int_equal(request_rig_refusal(*state, request_rig_head("PUT", "/k")),
                     REPLY_LENGTH_REQUIRED);
    assert_int_equal(request_rig_refusal(*state, request_rig_head("POST", "/k")),
                     REPLY_LENGTH_REQUIRED);
    assert_int_equal(request_rig_refusal(*state, request_rig_head("GET", "/k")), GO_ON);
    assert_int_equal(request_rig_refusal(*state, request_rig_head("HEAD", "/k")), GO_ON);
    assert_int_equal(request_rig_refusal(*state, request_rig_head("DELETE", "/k")), GO_ON);
    assert_int_equal(request_rig_refusal(*state, request_rig_head_chunked("PUT", "/k")), GO_ON);
    assert_int_equal(request_rig_refusal(*state, request_rig_head_sized("PUT", "/k", 0)), GO_ON);
}

/* ---- targets, methods, Allow ---- */

static void
targets(void **state)
{
    static const struct {
        const char *method, *target;
        enum reply_id id;
    } rows[] = {
        { "GET", "/k", GO_ON },
        { "GET", "/-/ready", GO_ON },
        { "GET", "/-/health", REPLY_HEALTHY },
        { "GET", "/-/x", REPLY_NO_PAGE },
        { "PUT", "/-/x", REPLY_NO_PAGE },
        { "GET", "/", REPLY_EMPTY_KEY },
        { "PUT", "/", REPLY_EMPTY_KEY },
        { "GET", "/%", REPLY_BAD_ESCAPE },
        { "GET", "/%20", REPLY_BAD_KEY },
        { "GET", "k", REPLY_BAD_TARGET },
        { "GET", "*", REPLY_BAD_TARGET },
        { "DELETE", "*", REPLY_BAD_TARGET },
    };
    struct request_rig *rig = *state;
    char target[300] = "/";

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(request_rig_refusal(rig, request_rig_head(rows[i].method, rows[i].target)),
                         rows[i].id);
    }
    memset(target + 1, 'k', STORE_KEY_MAX + 1);
    assert_int_equal(request_rig_refusal(rig, request_rig_head("GET", target)), REPLY_KEY_TOO_LONG);
    target[STORE_KEY_MAX + 1] = '\0';
    assert_int_equal(request_rig_refusal(rig, request_rig_head("GET", target)), GO_ON);
    rig->config->route_count = 0;
    assert_int_equal(request_rig_refusal(rig, request_rig_head("GET", "/k")), REPLY_NO_ROUTE);
}

/* A header that is answered with ID and ALLOW. */
static void
expect_allow(struct request_rig *rig, const char *method, const char *target, enum reply_id id,
             unsigned allow)
{
    struct request *r = request_rig_begin(rig, request_rig_head(method, target));

    if (!request_is_done(r) || request_reply(r)->id != id || request_reply(r)->allow != allow) {
        fail_msg("%s %s: done %d, id %d, allow %u", method, target, (int)request_is_done(r),
                 request_is_done(r) ? (int)request_reply(r)->id : -1,
                 request_is_done(r) ? request_reply(r)->allow : 0);
    }
    request_release(r);
}

static void
methods_and_allow(void **state)
{
    struct request_rig *rig = *state;
    const unsigned reads = CONFIG_GET | CONFIG_HEAD;

    expect_allow(rig, "PUT", "/ro/k", REPLY_METHOD, reads);
    expect_allow(rig, "POST", "/ro/k", REPLY_METHOD, reads);
    expect_allow(rig, "DELETE", "/ro/k", REPLY_METHOD, reads);
    expect_allow(rig, "PATCH", "/ro/k", REPLY_METHOD, reads);
    expect_allow(rig, "PATCH", "/k", REPLY_METHOD, CONFIG_METHODS_ALL);
    expect_allow(rig, "get", "/k", REPLY_METHOD, CONFIG_METHODS_ALL);
    expect_allow(rig, "", "/k", REPLY_METHOD, CONFIG_METHODS_ALL);
    expect_allow(rig, "PUT", "/-/health", REPLY_METHOD, reads);
    expect_allow(rig, "DELETE", "/-/ready", REPLY_METHOD, reads);
    expect_allow(rig, "BREW", "/-/ready", REPLY_METHOD, reads);
    expect_allow(rig, "OPTIONS", "/k", REPLY_OPTIONS, CONFIG_METHODS_ALL);
    expect_allow(rig, "OPTIONS", "*", REPLY_OPTIONS, CONFIG_METHODS_ALL);
    expect_allow(rig, "OPTIONS", "/ro/k", REPLY_OPTIONS, reads);
    expect_allow(rig, "OPTIONS", "/ro/", REPLY_OPTIONS, reads);
    /* each bit alone */
    for (unsigned bit = 1; bit <= CONFIG_METHODS_ALL; bit <<= 1) {
        static const char *const names[] = { "GET", "HEAD", "PUT", "POST", "DELETE" };

        rig->config->routes[0].methods = bit;
        for (size_t i = 0; i < 5; i++) {
            struct request_head head = request_rig_head_sized(names[i], "/k", 0);
            bool allowed = route_method(head.method) == bit;

            assert_int_equal(request_rig_refusal(rig, head), allowed ? GO_ON : REPLY_METHOD);
        }
    }
    assert_int_equal(request_rig_submitted(rig), 0);
}

/* What OPTIONS tells of the gateway's own pages is what 405 tells. */
static void
allow_of_own_pages(void **state)
{
    expect_allow(*state, "OPTIONS", "/-/health", REPLY_OPTIONS, CONFIG_GET | CONFIG_HEAD);
    expect_allow(*state, "OPTIONS", "/-/ready", REPLY_OPTIONS, CONFIG_GET | CONFIG_HEAD);
}

/* ---- several faults at once ---- */

static void
which_fault_first(void **state)
{
    struct request_rig *rig = *state;
    struct request_head head = request_rig_head("PUT", "/ro/%zz?ttl=x");

    head.quota = QUOTA_ADDRESS;
    head.bad_header = true;
    head.target_damaged = true;
    head.if_match = SLICE("junk");
    assert_int_equal(request_rig_refusal(rig, head), REPLY_TOO_MANY_FROM_ADDRESS);
    head.quota = QUOTA_OK;
    assert_int_equal(request_rig_refusal(rig, head), REPLY_BAD_HEADER);
    head.bad_header = false;
    assert_int_equal(request_rig_refusal(rig, head), REPLY_BAD_TARGET);
    head.target_damaged = false;
    assert_int_equal(request_rig_refusal(rig, head), REPLY_BAD_ESCAPE);
    head.target = SLICE("/ro/k?ttl=x");
    assert_int_equal(request_rig_refusal(rig, head), REPLY_METHOD);
    head.target = SLICE("/small/k?ttl=x");
    assert_int_equal(request_rig_refusal(rig, head), REPLY_BAD_TTL);
    head.target = SLICE("/small/k");
    assert_int_equal(request_rig_refusal(rig, head), REPLY_BAD_PRECONDITION);
    head.if_match = slice_of(NULL, 0);
    assert_int_equal(request_rig_refusal(rig, head), REPLY_LENGTH_REQUIRED);
    head.lengths = 1;
    head.content_length = 11;
    assert_int_equal(request_rig_refusal(rig, head), REPLY_TOO_LARGE);
    head.content_length = 10;
    rig->config->bytes_in_flight = 9;
    assert_int_equal(request_rig_refusal(rig, head), REPLY_TOO_LARGE); /* it would never fit */
    rig->config->bytes_in_flight = 10;
    assert_int_equal(request_rig_refusal(rig, head), GO_ON);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, request_rig_setup, request_rig_teardown)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(framing),           TEST(expectations),       TEST(lengths),           TEST(targets),
        TEST(methods_and_allow), TEST(allow_of_own_pages), TEST(which_fault_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
