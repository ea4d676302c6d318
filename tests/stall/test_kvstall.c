/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_kvstall.c: the program kvstall against small servers that have one fault each, or none.
 *
 * The program is named by KVSTALL; else it is the one beside KVGATE. What it judges by time has
 * margins of 25 ms and more in itself; nothing is measured here.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "clock.h"
#include "process.h"
#include "stall_server.h"

/* ---- the program --------------------------------------------------------------------------- */

#define TIMEOUT_MS 60000

/* Not on the stack: a test that fails leaves them to the teardown. */
static struct stall_server server;
static struct process child;
static struct process peer; /* that child talks to */

static int
clean_up(void **state)
{
    (void)state;
    process_deinit(&child);
    process_deinit(&peer);
    stall_server_stop(&server);
    return 0;
}

static const char *
program(void)
{
    static char path[4096];
    const char *named = getenv("KVSTALL"), *gateway = getenv("KVGATE");
    const char *slash = gateway == NULL ? NULL : strrchr(gateway, '/');

    if (named != NULL) {
        return named;
    }
    if (slash == NULL) {
        fail_msg("neither KVSTALL nor KVGATE names a program");
    }
    snprintf(path, sizeof(path), "%.*s/kvstall", (int)(slash - gateway), gateway);
    return path;
}

/* Runs kvstall with ARGS, a list that ends with NULL. Returns its exit code; OUT: its stdout. */
static int
run(const char *const args[], char *out, size_t size)
{
    const char *argv[16] = { program() };
    int code;

    for (size_t i = 0; args[i] != NULL && i < 14; i++) {
        argv[i + 1] = args[i];
    }
    assert_true(process_start(&child, NULL, argv));
    code = process_wait(&child, TIMEOUT_MS);
    process_read_out(&child, out, size);
    if (code > 1) {
        process_show_err(&child);
    }
    process_deinit(&child);
    return code;
}

static void
assert_has(const char *text, const char *part)
{
    if (strstr(text, part) == NULL) {
        fail_msg("\"%s\" is not in:\n%s", part, text);
    }
}

static void
assert_has_not(const char *text, const char *part)
{
    if (strstr(text, part) != NULL) {
        fail_msg("\"%s\" is in:\n%s", part, text);
    }
}

/* Probes a server of MODE; checks that its key, and only that, was written and removed. */
static int
probe(int mode, const char *rounds, char *out, size_t size)
{
    char url[64];
    int code;

    stall_server_start(&server, mode);
    snprintf(url, sizeof(url), "http://127.0.0.1:%u/p/", server.port);
    code =
        run((const char *const[]){ "probe", "--json", "--rounds", rounds, url, NULL }, out, size);
    stall_server_stop(&server);
    assert_false(server.foreign);
    if (code <= 1) {
        assert_true(server.writes > 0);
        assert_int_equal(server.deletes, (mode & STALL_SERVER_NO_WRITES) == 0);
        assert_int_equal(strncmp(server.key, "/p/kvstall-", 11), 0);
    }
    return code;
}

/* Probes a server of MODE, which must show exactly FINDING; NULL: none. */
static void
assert_finding(int mode, const char *finding)
{
    char out[16384], wanted[256];
    int code = probe(mode, "5", out, sizeof(out));

    if (finding != NULL) {
        snprintf(wanted, sizeof(wanted), "\"findings\": [\n    \"%s\"\n  ],", finding);
    } else {
        snprintf(wanted, sizeof(wanted), "\"findings\": [],");
    }
    assert_has(out, wanted);
    assert_int_equal(code, finding != NULL);
    assert_has(out, finding != NULL ? "\"verdict\": \"stall\"" : "\"verdict\": \"no-stall\"");
}

static void
a_good_server_is_found_good(void **state)
{
    (void)state;
    assert_finding(STALL_SERVER_WELL, NULL);
}

static void
a_split_answer_is_found(void **state)
{
    (void)state;
    assert_finding(STALL_SERVER_SPLIT, "split-answer");
}

static void
a_delayed_ack_is_found(void **state)
{
    (void)state;
    assert_finding(STALL_SERVER_DELAYED_ACK, "delayed-ack-of-half-request");
}

static void
a_missing_continue_is_found(void **state)
{
    (void)state;
    assert_finding(STALL_SERVER_NO_CONTINUE, "no-100-continue");
}

static void
a_late_continue_is_found(void **state)
{
    (void)state;
    assert_finding(STALL_SERVER_LATE_CONTINUE, "late-100-continue");
}

static void
a_refused_expect_is_no_stall(void **state)
{
    (void)state;
    assert_finding(STALL_SERVER_EXPECT_REFUSED, NULL);
}

static void
slow_on_pieces_is_not_nagle(void **state)
{
    char out[16384];
    bool found = false;

    (void)state;
    /* The pieces must reach the server one by one, which a busy machine may prevent for a while. */
    for (int i = 0; i < 3 && !found; i++) {
        assert_int_equal(probe(STALL_SERVER_SLOW_PIECES, "3", out, sizeof(out)), 1);
        found = strstr(out, "slow-on-pieces") != NULL;
    }
    assert_true(found);
    assert_has_not(out, "delayed-ack-of-half-request");
}

static void
a_slow_server_does_not_stall(void **state)
{
    char out[16384];

    (void)state;
    assert_int_equal(probe(STALL_SERVER_SLOW, "3", out, sizeof(out)), 0);
    assert_has(out, "\"verdict\": \"no-stall\"");
}

static void
a_server_that_closes_is_probed(void **state)
{
    char out[16384];

    (void)state;
    assert_int_equal(probe(STALL_SERVER_CLOSES, "3", out, sizeof(out)), 0);
    assert_has(out, "\"connections_kept\": false");
}

static void
without_writes_get_is_probed(void **state)
{
    char out[16384];

    (void)state;
    assert_int_equal(
        probe(STALL_SERVER_NO_WRITES | STALL_SERVER_DELAYED_ACK, "5", out, sizeof(out)), 1);
    assert_has(out, "\"writes_taken\": false");
    assert_has(out, "\"write_status\": 405");
    assert_has(out, "delayed-ack-of-half-request");
}

static void
the_verdict_is_in_plain_words(void **state)
{
    char url[64], out[16384];

    (void)state;
    stall_server_start(&server, STALL_SERVER_DELAYED_ACK);
    snprintf(url, sizeof(url), "http://127.0.0.1:%u", server.port);
    assert_int_equal(run((const char *const[]){ "probe", "-r5", url, NULL }, out, sizeof(out)), 1);
    stall_server_stop(&server);
    assert_has(out, "Verdict: stall found.");
    assert_has(out, "The server delays its ACK of a half request.");
    assert_has(out, "Remedy: in the server, set TCP_QUICKACK");
    assert_has_not(out, "splits its answer");
    assert_has_not(out, "\033");
}

static void
errors_have_their_codes(void **state)
{
    char out[16384];
    char url[64];

    (void)state;
    assert_int_equal(probe(STALL_SERVER_GARBAGE, "3", out, sizeof(out)), 76);
    assert_string_equal(out, "");
    stall_server_start(&server, STALL_SERVER_WELL);
    snprintf(url, sizeof(url), "http://127.0.0.1:%u/", server.port);
    stall_server_stop(&server); /* nobody listens there now */
    assert_int_equal(run((const char *const[]){ "probe", url, NULL }, out, sizeof(out)), 69);
    assert_int_equal(run((const char *const[]){ "sweep", url, NULL }, out, sizeof(out)), 69);
    assert_int_equal(run((const char *const[]){ "probe", NULL }, out, sizeof(out)), 64);
    assert_int_equal(
        run((const char *const[]){ "probe", "--rounds=x", url, NULL }, out, sizeof(out)), 64);
    assert_int_equal(run((const char *const[]){ "probe", "https://x/", NULL }, out, sizeof(out)),
                     64);
    assert_int_equal(
        run((const char *const[]){ "sweep", "--plot=x.gif", url, NULL }, out, sizeof(out)), 64);
    assert_int_equal(run((const char *const[]){ "nonsense", NULL }, out, sizeof(out)), 64);
    assert_int_equal(run((const char *const[]){ "probe", "--help", NULL }, out, sizeof(out)), 0);
    assert_has(out, "usage: kvstall probe");
}

static void
a_signal_leaves_nothing_behind(void **state)
{
    char url[64], out[1024];

    (void)state;
    stall_server_start(&server, STALL_SERVER_SLOW);
    snprintf(url, sizeof(url), "http://127.0.0.1:%u/", server.port);
    assert_true(process_start(
        &child, NULL, (const char *const[]){ program(), "probe", "--rounds", "1000", url, NULL }));
    for (int64_t end = clock_monotonic_ms() + TIMEOUT_MS;
         server.writes < 3 && clock_monotonic_ms() < end;) {
        usleep(2000);
    }
    assert_true(server.writes >= 3);
    assert_int_equal(process_stop(&child, SIGINT, TIMEOUT_MS), 128 + SIGINT);
    process_read_out(&child, out, sizeof(out));
    assert_string_equal(out, "");
    process_read_err(&child, out, sizeof(out));
    assert_string_equal(out, ""); /* the removal was waited for, too */
    process_deinit(&child);
    process_deinit(&peer);
    stall_server_stop(&server);
    assert_int_equal(server.deletes, 1);
    assert_false(server.foreign);
}

/* ---- the other commands -------------------------------------------------------------------- */

static int
sweep(int mode, const char *plot, char *out, size_t size)
{
    char url[64];
    int code;

    stall_server_start(&server, mode);
    snprintf(url, sizeof(url), "http://127.0.0.1:%u/", server.port);
    code = run(
        (const char *const[]){ "sweep", "--sizes=2000,100,1000", "--rounds=3", url, plot, NULL },
        out, size);
    stall_server_stop(&server);
    assert_int_equal(server.deletes, 1);
    assert_false(server.foreign);
    return code;
}

static void
sweep_marks_the_size_that_stalls(void **state)
{
    char out[16384];

    (void)state;
    assert_int_equal(sweep(STALL_SERVER_WELL, NULL, out, sizeof(out)), 0);
    assert_has(out, "No size stands out.");
    assert_has_not(out, "STALL");
    assert_int_equal(sweep(STALL_SERVER_SLOW_AT_1000, NULL, out, sizeof(out)), 1);
    assert_has(out, "1 sizes of PUT, 0 of GET");
    assert_int_equal(sweep(STALL_SERVER_SPLIT, NULL, out, sizeof(out)), 0);
    assert_has(out, "kvstall probe");
}

static size_t
count_of(const char *text, const char *part)
{
    size_t n = 0;

    for (; (text = strstr(text, part)) != NULL; text++) {
        n++;
    }
    return n;
}

static void
matrix_shows_the_stall_and_its_remedy(void **state)
{
    char out[16384];

    (void)state;
    assert_int_equal(run((const char *const[]){ "matrix", "--rounds=6", NULL }, out, sizeof(out)),
                     0);
    assert_int_equal(count_of(out, ", STALL"), 1);
    assert_has(out, "The stall: Nagle holds the body back");
    assert_int_equal(
        run((const char *const[]){ "matrix", "-r6", "--quickack", NULL }, out, sizeof(out)), 0);
    assert_int_equal(count_of(out, ", STALL"), 0);
}

static void
matrix_plays_on_two_hosts(void **state)
{
    char line[128], out[16384];

    (void)state;
    assert_true(process_start(
        &peer, NULL, (const char *const[]){ program(), "matrix", "--serve=127.0.0.1:0", NULL }));
    assert_true(process_read_line(&peer, line, sizeof(line), TIMEOUT_MS));
    assert_int_equal(strncmp(line, "serving on ", 11), 0);
    assert_int_equal(run((const char *const[]){ "matrix", "-r6", "--connect", line + 11, NULL },
                         out, sizeof(out)),
                     0);
    assert_int_equal(count_of(out, ", STALL"), 1);
    assert_int_equal(process_stop(&peer, SIGTERM, TIMEOUT_MS), 128 + SIGTERM);
    process_deinit(&peer);
}

static void
stream_counts_every_message(void **state)
{
    char out[16384];

    (void)state;
    assert_int_equal(run((const char *const[]){ "stream", "-l", "100", "-s", "1", "-a", NULL }, out,
                         sizeof(out)),
                     0);
    assert_has(out, "100 bytes, 1000 messages each");
    assert_has(out, "Nagle off");
    assert_int_equal(run((const char *const[]){ "stream", "-l", "15", NULL }, out, sizeof(out)),
                     64);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_good_server_is_found_good, clean_up),
        cmocka_unit_test_teardown(a_split_answer_is_found, clean_up),
        cmocka_unit_test_teardown(a_delayed_ack_is_found, clean_up),
        cmocka_unit_test_teardown(a_missing_continue_is_found, clean_up),
        cmocka_unit_test_teardown(a_late_continue_is_found, clean_up),
        cmocka_unit_test_teardown(a_refused_expect_is_no_stall, clean_up),
        cmocka_unit_test_teardown(slow_on_pieces_is_not_nagle, clean_up),
        cmocka_unit_test_teardown(a_slow_server_does_not_stall, clean_up),
        cmocka_unit_test_teardown(a_server_that_closes_is_probed, clean_up),
        cmocka_unit_test_teardown(without_writes_get_is_probed, clean_up),
        cmocka_unit_test_teardown(the_verdict_is_in_plain_words, clean_up),
        cmocka_unit_test_teardown(errors_have_their_codes, clean_up),
        cmocka_unit_test_teardown(a_signal_leaves_nothing_behind, clean_up),
        cmocka_unit_test_teardown(sweep_marks_the_size_that_stalls, clean_up),
        cmocka_unit_test_teardown(matrix_shows_the_stall_and_its_remedy, clean_up),
        cmocka_unit_test_teardown(matrix_plays_on_two_hosts, clean_up),
        cmocka_unit_test_teardown(stream_counts_every_message, clean_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
