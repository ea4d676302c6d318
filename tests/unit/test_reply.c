/* SPDX-License-Identifier: BSD-2-Clause */
/* test_reply.c: the table of answers, row by row, against the design's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "config_file.h"
#include "reply.h"

enum body { NONE, TEXT, PROBLEM };

/* What the design says of each answer. */
static const struct {
    enum reply_id id;
    unsigned status;
    enum body body;
    bool closes;
} answers[] = {
    { REPLY_VALUE, 200, NONE, false },
    { REPLY_PART, 206, NONE, false },
    { REPLY_NOT_MODIFIED, 304, NONE, false },
    { REPLY_STORED, 204, NONE, false },
    { REPLY_CREATED, 201, NONE, false },
    { REPLY_DELETED, 204, NONE, false },
    { REPLY_OPTIONS, 204, NONE, false },
    { REPLY_HEALTHY, 200, TEXT, false },
    { REPLY_READY, 200, TEXT, false },
    { REPLY_BAD_TARGET, 400, PROBLEM, false },
    { REPLY_BAD_ESCAPE, 400, PROBLEM, false },
    { REPLY_EMPTY_KEY, 400, PROBLEM, false },
    { REPLY_BAD_KEY, 400, PROBLEM, false },
    { REPLY_BAD_TTL, 400, PROBLEM, false },
    { REPLY_TTL_STAYS, 400, PROBLEM, false },
    { REPLY_BAD_NUMBER, 400, PROBLEM, false },
    { REPLY_BAD_OPERATION, 400, PROBLEM, false },
    { REPLY_BAD_PRECONDITION, 400, PROBLEM, false },
    { REPLY_PARTIAL, 400, PROBLEM, false },
    { REPLY_BAD_KEYS, 400, PROBLEM, false },
    { REPLY_BAD_LENGTH, 400, PROBLEM, true },
    { REPLY_BAD_TRANSFER, 400, PROBLEM, true },
    { REPLY_BAD_HOST, 400, PROBLEM, true },
    { REPLY_BAD_HEADER, 400, PROBLEM, true },
    { REPLY_MISS, 404, PROBLEM, false },
    { REPLY_NO_ROUTE, 404, PROBLEM, false },
    { REPLY_NO_PAGE, 404, PROBLEM, false },
    { REPLY_METHOD, 405, PROBLEM, false },
    { REPLY_SLOW, 408, PROBLEM, true },
    { REPLY_NOT_A_NUMBER, 409, PROBLEM, false },
    { REPLY_LENGTH_REQUIRED, 411, PROBLEM, true },
    { REPLY_PRECONDITION, 412, PROBLEM, false },
    { REPLY_TOO_LARGE, 413, PROBLEM, false },
    { REPLY_KEY_TOO_LONG, 414, PROBLEM, false },
    { REPLY_RANGE, 416, PROBLEM, false },
    { REPLY_EXPECTATION, 417, PROBLEM, true },
    { REPLY_TOO_MANY_FROM_ADDRESS, 429, PROBLEM, true },
    { REPLY_INTERNAL, 500, PROBLEM, false },
    { REPLY_UNSUPPORTED, 501, PROBLEM, false },
    { REPLY_NO_TOUCH, 501, PROBLEM, false },
    { REPLY_NO_CAS, 501, PROBLEM, false },
    { REPLY_NO_INITIAL, 501, PROBLEM, false },
    { REPLY_STORE_NONSENSE, 502, PROBLEM, false },
    { REPLY_TOO_MANY_CONNECTIONS, 503, PROBLEM, true },
    { REPLY_OVERLOADED, 503, PROBLEM, false },
    { REPLY_STORE_DOWN, 503, PROBLEM, false },
    { REPLY_NOT_READY, 503, TEXT, false },
    { REPLY_STOPPING, 503, PROBLEM, true },
    { REPLY_STORE_SILENT, 504, PROBLEM, false },
    { REPLY_STORE_FULL, 507, PROBLEM, false },
};

/* ---- a reader of the JSON that problems need: one object of strings and whole numbers ---- */

struct member {
    struct slice name, value; /* (ref) of the text, without quotes */
    bool is_string;
};

static const char *
read_string(const char *at, const char *end, struct slice *out)
{
    if (at == end || *at != '"') {
        return NULL;
    }
    const char *start = ++at;
    for (; at < end && *at != '"'; at++) {
        if ((unsigned char)*at < 0x20 || (unsigned char)*at > 0x7e) {
            return NULL;
        }
        if (*at == '\\' && (++at == end || strchr("\"\\/bfnrt", *at) == NULL || *at == '\0')) {
            return NULL;
        }
    }
    if (at == end) {
        return NULL;
    }
    *out = slice_of(start, (size_t)(at - start));
    return at + 1;
}

static const char *
read_value(const char *at, const char *end, struct member *member)
{
    const char *start = at;

    member->is_string = at < end && *at == '"';
    if (member->is_string) {
        return read_string(at, end, &member->value);
    }
    while (at < end && *at >= '0' && *at <= '9') {
        at++;
    }
    member->value = slice_of(start, (size_t)(at - start));
    return at == start ? NULL : at;
}

/* How many members TEXT has; 0: it is no such object. White space is only allowed at the end. */
static size_t
read_object(struct slice text, struct member *members, size_t room)
{
    const char *at = text.ptr, *end = text.ptr + text.len;
    size_t count = 0;

    while (end > at && end[-1] == '\n') {
        end--;
    }
    do {
        char before = count == 0 ? '{' : ',';
        if (count == room || at == end || *at++ != before) {
            return 0;
        }
        at = read_string(at, end, &members[count].name);
        if (at == NULL || at == end || *at++ != ':') {
            return 0;
        }
        at = read_value(at, end, &members[count]);
        if (at == NULL) {
            return 0;
        }
        count++;
    } while (at < end && *at == ',');
    return end - at == 1 && *at == '}' ? count : 0;
}

static const struct member *
find_member(const struct member *members, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (slice_equal(members[i].name, slice_from_string(name))) {
            return &members[i];
        }
    }
    fail_msg("no %s", name);
    return NULL;
}

static void
the_reader_sees_faults(void **state)
{
    static const char *const bad[] = {
        "",
        "{}",
        "{\"a\":1",
        "{\"a\":}",
        "{\"a\"1}",
        "{a:1}",
        "{\"a\":\"}",
        "{\"a\":1}}",
        "{\"a\":1,}",
        "{\"a\":\"b\"c\"}",
        "{\"a\":x}",
        "{\"a\":\"\n\"}",
        "{\"a\":\"\\x\"}",
        "\"a\":1}",
        "{\"a\":1 \"b\":2}",
    };
    struct member members[4];

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(read_object(slice_from_string(bad[i]), members, 4), 0);
    }
    assert_int_equal(read_object(SLICE("{\"a\":1,\"b\":\"c\\\"\"}\n"), members, 4), 2);
}

/* ---- the rows ---- */

static void
every_id_is_listed(void **state)
{
    (void)state;
    assert_int_equal(sizeof(answers) / sizeof(answers[0]), REPLY_ID_COUNT);
    for (size_t i = 0; i < REPLY_ID_COUNT; i++) {
        assert_int_equal(answers[i].id, i);
    }
}

static void
statuses(void **state)
{
    (void)state;
    for (size_t i = 0; i < REPLY_ID_COUNT; i++) {
        enum reply_id id = answers[i].id;

        assert_in_range(reply_status(id), 200, 599);
        assert_int_equal(reply_status(id), answers[i].status);
        assert_non_null(reply_reason(id));
        assert_true(strlen(reply_reason(id)) > 1);
        assert_null(strpbrk(reply_reason(id), "\r\n"));
        assert_int_equal(reply_closes(id), answers[i].closes);
        /* one code, one phrase */
        for (size_t k = 0; k < i; k++) {
            if (answers[k].status == answers[i].status) {
                assert_string_equal(reply_reason(answers[k].id), reply_reason(id));
            }
        }
    }
}

static void
retry_after(void **state)
{
    (void)state;
    for (size_t i = 0; i < REPLY_ID_COUNT; i++) {
        bool passes = answers[i].status == 503 || answers[i].status == 429;

        assert_int_equal(reply_retry_after(answers[i].id), passes);
    }
}

static void
check_problem(enum reply_id id, struct slice body)
{
    struct member members[8];
    const struct member *member;
    size_t count = read_object(body, members, 8);
    uint64_t status = 0;

    if (count == 0) {
        fail_msg("no JSON object: %.*s", (int)body.len, body.ptr);
    }
    assert_string_equal(reply_content_type(id), "application/problem+json");
    member = find_member(members, count, "title");
    assert_true(member->is_string);
    assert_true(slice_equal(member->value, slice_from_string(reply_reason(id))));
    member = find_member(members, count, "status");
    assert_false(member->is_string);
    assert_true(slice_to_u64(member->value, &status));
    assert_int_equal(status, reply_status(id));
    member = find_member(members, count, "detail");
    assert_true(member->is_string);
    assert_true(member->value.len > 10);
}

static void
bodies(void **state)
{
    (void)state;
    for (size_t i = 0; i < REPLY_ID_COUNT; i++) {
        enum reply_id id = answers[i].id;
        char out[REPLY_BODY_MAX];
        size_t len;

        memset(out, 0x5a, sizeof(out));
        len = reply_body(id, out);
        assert_true(len < REPLY_BODY_MAX);
        switch (answers[i].body) {
        case NONE:
            assert_int_equal(len, 0);
            assert_null(reply_content_type(id));
            break;
        case TEXT:
            assert_true(len > 1);
            assert_int_equal(out[len - 1], '\n');
            assert_null(memchr(out, '\0', len));
            assert_string_equal(reply_content_type(id), "text/plain");
            break;
        default:
            check_problem(id, slice_of(out, len));
            break;
        }
    }
}

static void
allow(void **state)
{
    static const struct {
        unsigned bit;
        const char *text;
    } names[] = {
        { CONFIG_GET, "GET, " },   { CONFIG_HEAD, "HEAD, " },     { CONFIG_PUT, "PUT, " },
        { CONFIG_POST, "POST, " }, { CONFIG_DELETE, "DELETE, " },
    };
    char out[REPLY_ALLOW_MAX];

    (void)state;
    for (unsigned methods = 0; methods <= CONFIG_METHODS_ALL; methods++) {
        char wanted[256] = "";

        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
            strcat(wanted, (methods & names[i].bit) != 0 ? names[i].text : "");
        }
        strcat(wanted, "OPTIONS");
        reply_allow(methods, out);
        assert_string_equal(out, wanted);
    }
    reply_allow(CONFIG_METHODS_ALL, out);
    assert_string_equal(out, "GET, HEAD, PUT, POST, DELETE, OPTIONS");
}

/* The README's table of errors has a row for each, word for word, and no other. */
static void
the_readme_has_the_table(void **state)
{
    static const char head[] =
        "| status | detail | Retry-After | closes |\n| --- | --- | --- | --- |\n";
    char *readme = config_file_read("README.md"), row[1024];
    const char *table = strstr(readme, head), *end;
    size_t rows = 0, wanted = 0;

    (void)state;
    assert_non_null(table);
    table += sizeof(head) - 1;
    end = strstr(table, "\n\n");
    assert_non_null(end);
    for (const char *at = table; at <= end; at = strchr(at, '\n') + 1) {
        rows++;
    }
    for (size_t i = 0; i < REPLY_ID_COUNT; i++) {
        enum reply_id id = (enum reply_id)i;
        const char *type = reply_content_type(id);
        int len;

        if (type == NULL || strcmp(type, "application/problem+json") != 0) {
            continue;
        }
        len = snprintf(row, sizeof(row), "| %u | %s | %s | %s |\n", reply_status(id),
                       reply_detail(id), reply_retry_after(id) ? "yes" : "",
                       reply_closes(id) ? "yes" : "");
        wanted++;
        if (memmem(table, (size_t)(end + 1 - table), row, (size_t)len) == NULL) {
            fail_msg("the README lacks: %s", row);
        }
    }
    assert_int_equal(rows, wanted);
    free(readme);
}

/* ---- what leads to them ---- */

static void
from_route(void **state)
{
    static const struct {
        enum route_result result;
        enum reply_id id;
    } rows[] = {
        { ROUTE_HEALTH, REPLY_HEALTHY },
        { ROUTE_READY, REPLY_READY },
        { ROUTE_MGET, REPLY_BAD_KEYS },
        { ROUTE_ASTERISK, REPLY_BAD_TARGET },
        { ROUTE_NO_PAGE, REPLY_NO_PAGE },
        { ROUTE_NO_ROUTE, REPLY_NO_ROUTE },
        { ROUTE_BAD_TARGET, REPLY_BAD_TARGET },
        { ROUTE_BAD_ESCAPE, REPLY_BAD_ESCAPE },
        { ROUTE_EMPTY_KEY, REPLY_EMPTY_KEY },
        { ROUTE_BAD_KEY, REPLY_BAD_KEY },
        { ROUTE_KEY_TOO_LONG, REPLY_KEY_TOO_LONG },
    };

    (void)state;
    assert_int_equal(sizeof(rows) / sizeof(rows[0]), ROUTE_KEY_TOO_LONG);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(reply_from_route(rows[i].result), rows[i].id);
    }
}

/* Answers that a verb cannot give: anything goes that does not claim success. */
#define NO 0

/* The statuses of the HTTP interface, for every verb and every way that it can end. */
static const unsigned outcomes[STORE_VERB_COUNT][STORE_STATUS_COUNT] = {
    /* clang-format off */
    /*                  OK  MISS EXIST  NOTST LARGE BADV NOMEM UNAV TIME BAD  OVER CANC UNSUP */
    [STORE_GET]     = { 200, 404,  NO,    NO,   NO,   NO,   NO, 503, 504, 502, 503, 503, 501 },
    [STORE_HEAD]    = { 200, 404,  NO,    NO,   NO,   NO,   NO, 503, 504, 502, 503, 503, 501 },
    [STORE_SET]     = { 204,  NO,  NO,    NO,  413,   NO,  507, 503, 504, 502, 503, 503, 501 },
    [STORE_ADD]     = { 201,  NO,  NO,   412,  413,   NO,  507, 503, 504, 502, 503, 503, 501 },
    [STORE_REPLACE] = { 204,  NO,  NO,   412,  413,   NO,  507, 503, 504, 502, 503, 503, 501 },
    [STORE_CAS]     = { 204, 412, 412,    NO,  413,   NO,  507, 503, 504, 502, 503, 503, 501 },
    [STORE_APPEND]  = { 204,  NO,  NO,   404,  413,   NO,  507, 503, 504, 502, 503, 503, 501 },
    [STORE_PREPEND] = { 204,  NO,  NO,   404,  413,   NO,  507, 503, 504, 502, 503, 503, 501 },
    [STORE_DELETE]  = { 204, 404, 412,    NO,   NO,   NO,   NO, 503, 504, 502, 503, 503, 501 },
    [STORE_INCR]    = { 200, 404,  NO,    NO,   NO,  409,  507, 503, 504, 502, 503, 503, 501 },
    [STORE_DECR]    = { 200, 404,  NO,    NO,   NO,  409,  507, 503, 504, 502, 503, 503, 501 },
    [STORE_TOUCH]   = { 204, 404,  NO,    NO,   NO,   NO,  507, 503, 504, 502, 503, 503, 501 },
    /* clang-format on */
};

static void
from_store(void **state)
{
    (void)state;
    for (int verb = 0; verb < STORE_VERB_COUNT; verb++) {
        for (int status = 0; status < STORE_STATUS_COUNT; status++) {
            enum reply_id id = reply_from_store((enum store_verb)verb, (enum store_status)status);
            unsigned wanted = outcomes[verb][status];

            assert_in_range(id, 0, REPLY_ID_COUNT - 1);
            if (wanted == NO ? reply_status(id) < 400 : reply_status(id) != wanted) {
                fail_msg("%s, %s: %u, not %u", store_verb_name((enum store_verb)verb),
                         store_status_name((enum store_status)status), reply_status(id), wanted);
            }
        }
    }
}

/* Trouble with the store is never a miss, whatever was asked; a miss is never called trouble. */
static void
names_of_trouble(void **state)
{
    static const struct {
        enum store_status status;
        enum reply_id id;
    } rows[] = {
        { STORE_UNAVAILABLE, REPLY_STORE_DOWN },   { STORE_TIMEOUT, REPLY_STORE_SILENT },
        { STORE_BAD_REPLY, REPLY_STORE_NONSENSE }, { STORE_OVERLOADED, REPLY_OVERLOADED },
        { STORE_CANCELLED, REPLY_STOPPING },
    };

    (void)state;
    for (int verb = 0; verb < STORE_VERB_COUNT; verb++) {
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
            assert_int_equal(reply_from_store((enum store_verb)verb, rows[i].status), rows[i].id);
        }
    }
    assert_int_equal(reply_from_store(STORE_APPEND, STORE_UNSUPPORTED), REPLY_UNSUPPORTED);
    assert_int_equal(reply_from_store(STORE_TOUCH, STORE_UNSUPPORTED), REPLY_NO_TOUCH);
    assert_int_equal(reply_from_store(STORE_CAS, STORE_UNSUPPORTED), REPLY_NO_CAS);
    assert_int_equal(reply_from_store(STORE_DELETE, STORE_UNSUPPORTED), REPLY_NO_CAS);
    assert_int_equal(reply_from_store(STORE_INCR, STORE_UNSUPPORTED), REPLY_NO_INITIAL);
    assert_int_equal(reply_from_store(STORE_DECR, STORE_UNSUPPORTED), REPLY_NO_INITIAL);
    assert_int_equal(reply_from_store(STORE_GET, STORE_MISS), REPLY_MISS);
    assert_int_equal(reply_from_store(STORE_GET, STORE_OK), REPLY_VALUE);
    assert_int_equal(reply_from_store(STORE_HEAD, STORE_OK), REPLY_VALUE);
    assert_int_equal(reply_from_store(STORE_SET, STORE_NO_MEMORY), REPLY_STORE_FULL);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_reader_sees_faults),
        cmocka_unit_test(every_id_is_listed),
        cmocka_unit_test(statuses),
        cmocka_unit_test(retry_after),
        cmocka_unit_test(bodies),
        cmocka_unit_test(allow),
        cmocka_unit_test(the_readme_has_the_table),
        cmocka_unit_test(from_route),
        cmocka_unit_test(from_store),
        cmocka_unit_test(names_of_trouble),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
