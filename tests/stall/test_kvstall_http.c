/* SPDX-License-Identifier: BSD-2-Clause */
/* test_kvstall_http.c: kvstall's parsers and writers: answers, requests, URLs, options, JSON. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "../../src/kvstall/answer.h"
#include "../../src/kvstall/exchange.h"
#include "../../src/kvstall/json.h"
#include "../../src/kvstall/options.h"
#include "../../src/kvstall/url.h"

/* ---- answers ------------------------------------------------------------------------------- */

/* Feeds TEXT in pieces of STEP bytes. */
static enum answer_state
feed(struct answer *a, const char *text, size_t step)
{
    size_t len = strlen(text), at = 0;

    answer_init(a);
    while (at < len && a->state < ANSWER_DONE) {
        size_t n = len - at < step ? len - at : step;

        at += answer_feed(a, text + at, n);
    }
    return a->state;
}

static void
assert_answer(const char *text, enum answer_state wanted, int status, uint64_t body, bool keep)
{
    static struct answer a;

    for (size_t step = 1; step <= strlen(text); step++) {
        assert_int_equal(feed(&a, text, step), wanted);
        if (wanted != ANSWER_NONSENSE) {
            assert_int_equal(a.status, status);
            assert_int_equal(a.body_len, body);
            assert_int_equal(a.keep_alive, keep);
        }
    }
}

static void
answers_end_where_they_end(void **state)
{
    (void)state;
    assert_answer("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", ANSWER_DONE, 200, 5, true);
    assert_answer("HTTP/1.1 200 OK\r\ncontent-length:0\r\n\r\n", ANSWER_DONE, 200, 0, true);
    assert_answer("HTTP/1.1 204 No Content\r\n\r\n", ANSWER_DONE, 204, 0, true);
    assert_answer("HTTP/1.1 204\r\nConnection: close\r\n\r\n", ANSWER_DONE, 204, 0, false);
    assert_answer("HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx", ANSWER_DONE, 200, 1, false);
    assert_answer("HTTP/1.0 200 OK\nConnection: Keep-Alive\nContent-Length: 1\n\nx", ANSWER_DONE,
                  200, 1, true);
    assert_answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                  "5;x=y\r\nhello\r\nA\r\n0123456789\r\n0\r\nTrailer: 1\r\n\r\n",
                  ANSWER_DONE, 200, 15, true);
    assert_answer("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n",
                  ANSWER_DONE, 201, 0, true);
    assert_answer("HTTP/1.1 200 OK\r\n\r\nuntil", ANSWER_UNTIL_CLOSE, 200, 5, false);
    assert_answer("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", ANSWER_SIZED, 200, 5, true);
}

static void
what_follows_an_answer_is_not_its(void **state)
{
    static const char text[] = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloX";
    static struct answer a;

    (void)state;
    answer_init(&a);
    assert_int_equal(answer_feed(&a, text, sizeof(text) - 1), sizeof(text) - 2);
    assert_int_equal(a.state, ANSWER_DONE);
    assert_int_equal(a.body_len, 5);
}

static void
nonsense_is_refused(void **state)
{
    (void)state;
    assert_answer("SSH-2.0-OpenSSH_9.2\r\n", ANSWER_NONSENSE, 0, 0, false);
    assert_answer("HTTP/2 200 OK\r\n", ANSWER_NONSENSE, 0, 0, false);
    assert_answer("HTTP/1.1 20x OK\r\n", ANSWER_NONSENSE, 0, 0, false);
    assert_answer("HTTP/1.1 2000 OK\r\n", ANSWER_NONSENSE, 0, 0, false);
    assert_answer("HTTP/1.1 099 OK\r\n", ANSWER_NONSENSE, 0, 0, false);
    assert_answer("HTTP/1.1 200 OK\r\nno colon\r\n", ANSWER_NONSENSE, 0, 0, false);
    assert_answer("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", ANSWER_NONSENSE, 0, 0, false);
    assert_answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", ANSWER_NONSENSE,
                  0, 0, false);
    assert_answer("HTTP/1.1 101 Switching\r\n\r\n", ANSWER_NONSENSE, 0, 0, false);
}

static void
a_line_without_end_is_nonsense(void **state)
{
    static struct answer a;
    static char block[ANSWER_LINE_MAX];

    (void)state;
    memset(block, 'x', sizeof(block));
    answer_init(&a);
    answer_feed(&a, block, sizeof(block));
    assert_int_equal(a.state, ANSWER_STATUS);
    answer_feed(&a, block, 1);
    assert_int_equal(a.state, ANSWER_NONSENSE);
}

static void
interim_answers_stand_apart(void **state)
{
    static const char text[] = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n";
    static struct answer a;
    size_t used;

    (void)state;
    answer_init(&a);
    used = answer_feed(&a, text, sizeof(text) - 1);
    assert_int_equal(used, strlen("HTTP/1.1 100 Continue\r\n\r\n"));
    assert_int_equal(a.interim, 1);
    assert_false(a.begun);
    answer_feed(&a, text + used, sizeof(text) - 1 - used);
    assert_true(a.begun);
    assert_false(a.head_done);
    assert_false(answer_end(&a));
}

/* ---- requests, URLs, options --------------------------------------------------------------- */

static void
requests_are_cut_as_clients_do(void **state)
{
    static const size_t writes[EXCHANGE_STYLES] = { [EXCHANGE_ONE_WRITE] = 1,
                                                    [EXCHANGE_APART] = 2,
                                                    [EXCHANGE_LINES] = 8,
                                                    [EXCHANGE_PIECES] = EXCHANGE_PIECE_COUNT,
                                                    [EXCHANGE_EXPECT] = 2 };

    (void)state;
    for (int style = 0; style < EXCHANGE_STYLES; style++) {
        struct exchange_request r;
        size_t before = 0;

        assert_true(exchange_request_init(&r, "PUT", "/p/", "key", "h:1", 1000,
                                          (enum exchange_style)style));
        assert_int_equal(r.cut_count, writes[style]);
        assert_int_equal(r.cuts[r.cut_count - 1], r.len);
        assert_int_equal(r.len, r.head_len + 1000);
        assert_memory_equal(r.bytes, "PUT /p/key HTTP/1.1\r\nHost: h:1\r\n", 32);
        assert_memory_equal(r.bytes + r.head_len - 4, "\r\n\r\n", 4);
        for (size_t i = 0; i < r.cut_count; i++) {
            assert_true(r.cuts[i] > before);
            before = r.cuts[i];
        }
        exchange_request_deinit(&r);
        exchange_request_deinit(&r);
    }
}

static void
a_get_has_no_body(void **state)
{
    struct exchange_request r;

    (void)state;
    assert_true(exchange_request_init(&r, "GET", "/", "", "h", -1, EXCHANGE_APART));
    assert_int_equal(r.len, r.head_len);
    assert_int_equal(r.cut_count, 1);
    assert_null(memmem(r.bytes, r.len, "Content-Length", 14));
    exchange_request_deinit(&r);
    assert_true(exchange_request_init(&r, "PUT", "/", "k", "h", 0, EXCHANGE_EXPECT));
    assert_non_null(memmem(r.bytes, r.len, "Content-Length: 0\r\n", 19));
    assert_non_null(memmem(r.bytes, r.len, "Expect: 100-continue\r\n", 22));
    exchange_request_deinit(&r);
}

static const char *const bad_urls[] = {
    "",
    "example.org",
    "https://h/",
    "ftp://h/",
    "http://",
    "http:///k",
    "http://h:0x50/",
    "http://h:65536/",
    "http://h:/",
    "http://u@h/",
    "http://[::1",
    "http://[::1]8080/",
    "http://h/a b",
    "http://h/?q",
    "http://h/#f",
    "http://h?q",
    "http://h h/",
    "http://h/\n",
    "http://[]:80/",
};

static void
urls(void **state)
{
    struct url u;

    (void)state;
    assert_null(url_parse("http://example.org", &u));
    assert_string_equal(u.name.host, "example.org");
    assert_string_equal(u.name.port, "80");
    assert_string_equal(u.host, "example.org");
    assert_string_equal(u.path, "/");
    assert_null(url_parse("HTTP://[::1]:8085/a/%20", &u));
    assert_string_equal(u.name.host, "::1");
    assert_string_equal(u.name.port, "8085");
    assert_string_equal(u.host, "[::1]:8085");
    assert_string_equal(u.path, "/a/%20");
    assert_non_null(strstr(url_parse("https://h/", &u), "https"));
    for (size_t i = 0; i < sizeof(bad_urls) / sizeof(bad_urls[0]); i++) {
        if (url_parse(bad_urls[i], &u) == NULL) {
            fail_msg("taken: %s", bad_urls[i]);
        }
    }
}

static void
keys_are_random(void **state)
{
    char a[URL_KEY_MAX], b[URL_KEY_MAX];

    (void)state;
    url_make_key(a);
    url_make_key(b);
    assert_int_equal(strncmp(a, "kvstall-", 8), 0);
    assert_int_equal(strlen(a), 24);
    assert_string_not_equal(a, b);
}

static void
lists(void **state)
{
    uint64_t list[3] = { 0 };

    (void)state;
    assert_int_equal(option_list("x", "5,1,9", 1, 9, list, 3), 3);
    assert_int_equal(list[0], 5);
    assert_int_equal(list[2], 9);
    assert_int_equal(option_list("x", "1,2,3,4", 1, 9, list, 3), 0);
    assert_int_equal(option_list("x", "", 1, 9, list, 3), 0);
    assert_int_equal(option_list("x", "1,", 1, 9, list, 3), 0);
    assert_int_equal(option_list("x", "10", 1, 9, list, 3), 0);
}

static void
json_is_json(void **state)
{
    char *text;
    size_t len;
    struct json j = { .out = open_memstream(&text, &len) };

    (void)state;
    json_open(&j, NULL, '{');
    json_string(&j, "a\"b", "\\\n");
    json_open(&j, "empty", '[');
    json_close(&j, ']');
    json_open(&j, "list", '[');
    json_integer(&j, NULL, -1);
    json_bool(&j, NULL, true);
    json_string(&j, NULL, NULL);
    json_close(&j, ']');
    json_ms(&j, "t", 1500000);
    json_close(&j, '}');
    fclose(j.out);
    assert_string_equal(text, "{\n  \"a\\\"b\": \"\\\\\\u000a\",\n  \"empty\": [],\n  \"list\": [\n"
                              "    -1,\n    true,\n    null\n  ],\n  \"t\": 1.500\n}\n");
    free(text);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_end_where_they_end),
        cmocka_unit_test(what_follows_an_answer_is_not_its),
        cmocka_unit_test(nonsense_is_refused),
        cmocka_unit_test(a_line_without_end_is_nonsense),
        cmocka_unit_test(interim_answers_stand_apart),
        cmocka_unit_test(requests_are_cut_as_clients_do),
        cmocka_unit_test(a_get_has_no_body),
        cmocka_unit_test(urls),
        cmocka_unit_test(keys_are_random),
        cmocka_unit_test(lists),
        cmocka_unit_test(json_is_json),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
