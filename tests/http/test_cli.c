/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_cli.c: the command line: options, exit codes, messages, the line that says "ready".
 */
#include "gateway.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static struct gateway place; /* a directory to run in; no program */
static char out[65536], err[65536];

static int
setup(void **state)
{
    (void)state;
    return gateway_prepare(&place, NULL) ? 0 : -1;
}

static int
teardown(void **state)
{
    (void)state;
    gateway_deinit(&place);
    return 0;
}

/* Runs kvgate with up to five arguments to its end; stdout and stderr go to OUT and ERR. */
static int
run(const char *a, const char *b, const char *c, const char *d, const char *e)
{
    const char *const argv[] = { gateway_program(), a, b, c, d, e, NULL };
    struct process p;
    int status;

    assert_true(process_start(&p, place.directory, argv));
    status = process_wait(&p, GATEWAY_TIMEOUT_MS);
    process_read_out(&p, out, sizeof(out));
    process_read_err(&p, err, sizeof(err));
    process_deinit(&p);
    return status;
}

static void
write_config(const char *text)
{
    char path[128];
    FILE *f;

    snprintf(path, sizeof(path), "%s/kvgate.conf", place.directory);
    f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static void
expect_in(const char *text, const char *part)
{
    if (strstr(text, part) == NULL) {
        fail_msg("no \"%s\" in: %s", part, text);
    }
}

static void
test_version_and_help(void **state)
{
    (void)state;
    assert_int_equal(run("-V", NULL, NULL, NULL, NULL), 0);
    expect_in(out, "kvgate 0.1.0\n");
    assert_string_equal(err, "");
    assert_int_equal(run("-h", NULL, NULL, NULL, NULL), 0);
    expect_in(out, "usage: kvgate");
    expect_in(out, "-c FILE");
    assert_string_equal(err, "");
}

static void
test_usage_errors(void **state)
{
    (void)state;
    assert_int_equal(run("-x", NULL, NULL, NULL, NULL), 64);
    expect_in(err, "x");
    assert_string_equal(out, "");
    assert_int_equal(run("--verbose", NULL, NULL, NULL, NULL), 64);
    assert_int_equal(run("-c", NULL, NULL, NULL, NULL), 64);
    assert_int_equal(run("surplus", NULL, NULL, NULL, NULL), 64);
    expect_in(err, "surplus");
    assert_int_equal(run("-w", "many", NULL, NULL, NULL), 64);
    expect_in(err, "many");
    assert_int_equal(run("-w", "-1", NULL, NULL, NULL), 64);
    assert_int_equal(run("-l", "nowhere", NULL, NULL, NULL), 64);
    expect_in(err, "nowhere");
    assert_int_equal(run("-l", "127.0.0.1:65536", NULL, NULL, NULL), 64);
    assert_int_equal(run("-s", "mysql://x", NULL, NULL, NULL), 64);
    expect_in(err, "mysql");
    assert_int_equal(run("-s", "memcached://", NULL, NULL, NULL), 64);
}

static void
test_bad_configuration(void **state)
{
    static const struct {
        const char *text, *place, *word;
    } cases[] = {
        { "[server]\nworkers = 2\nno_such = 1\n", "kvgate.conf:3: ", "no_such" },
        { "[server]\nworkers = many\n", "kvgate.conf:2: ", "workers" },
        { "\n\n[nothing]\nx = 1\n", "kvgate.conf:", "nothing" },
        { "[server]\nidle_timeout = 1500ms\n", "kvgate.conf:2: ", "idle_timeout" },
        { "[store a]\ntype = redis\n", "kvgate.conf:2: ", "redis" },
        { "[server]\nlisten = nowhere\n", "kvgate.conf:2: ", "nowhere" },
        { "[server]\nworkers = 1\nworkers = 2\n", "kvgate.conf:3: ", "workers" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        write_config(cases[i].text);
        assert_int_equal(run("-c", "kvgate.conf", NULL, NULL, NULL), 78);
        expect_in(err, cases[i].place);
        expect_in(err, cases[i].word);
        assert_string_equal(out, "");
        assert_int_equal(run("-t", "-c", "kvgate.conf", NULL, NULL), 1);
        /* At the beginning of the line, so that editors jump there. */
        assert_memory_equal(err, cases[i].place, strlen(cases[i].place));
        expect_in(err, cases[i].word);
        assert_string_equal(out, "");
    }
    assert_int_equal(run("-c", "no-such-file.conf", NULL, NULL, NULL), 78);
    expect_in(err, "no-such-file.conf");
    assert_int_equal(run("-t", "-c", "no-such-file.conf", NULL, NULL), 1);
    expect_in(err, "no-such-file.conf");
}

/* What -t prints is a configuration that means the same. */
static void
test_check(void **state)
{
    static char first[sizeof(out)];

    (void)state;
    write_config("[server]\nlisten = 127.0.0.1:0\n[store a]\ntype = memcached\n"
                 "servers = 127.0.0.1:1\n[route /a/]\nttl = 5s\nstore = a\n");
    assert_int_equal(run("-t", "-c", "kvgate.conf", NULL, NULL), 0);
    expect_in(out, "memcached");
    expect_in(out, "[route /a/]");
    strcpy(first, out);
    write_config(first);
    assert_int_equal(run("-t", "-c", "kvgate.conf", NULL, NULL), 0);
    assert_string_equal(out, first);
    assert_int_equal(run("-t", "-l", "127.0.0.1:0", "-s", "embedded:x"), 0);
    expect_in(out, "embedded");
    assert_int_equal(run("-t", NULL, NULL, NULL, NULL), 0);
    expect_in(out, "127.0.0.1:8085");
    expect_in(out, "kvgate-data");
}

static void
test_address_in_use(void **state)
{
    struct gateway g;
    char address[64];

    (void)state;
    assert_true(gateway_start_embedded(&g));
    snprintf(address, sizeof(address), "127.0.0.1:%u", (unsigned)g.port);
    assert_int_equal(run("-l", address, "-s", "embedded:other", NULL), 69);
    expect_in(err, address);
    expect_in(err, "in use");
    assert_string_equal(out, "");
    /* The first one did not suffer. */
    for (int i = 0; i < 10; i++) {
        assert_value(g.port, "/missing", NULL, 0);
    }
    assert_int_equal(gateway_stop(&g, SIGTERM), 0);
}

static void
test_unusable_directory(void **state)
{
    int status;

    (void)state;
    status = run("-l", "127.0.0.1:0", "-s", "embedded:/dev/null/data", NULL);
    assert_true(status == 69 || status == 78);
    expect_in(err, "/dev/null/data");
    assert_string_equal(out, "");
}

/* One line, from which the address and a first command can be copied. */
static void
test_ready_line(void **state)
{
    const char *const argv[] = { gateway_program(), "-l", "127.0.0.1:0", NULL };
    struct gateway g;
    struct http_client c;
    char path[128], rest[256];

    (void)state;
    assert_true(gateway_prepare(&g, NULL));
    assert_true(gateway_launch(&g, argv));
    assert_memory_equal(g.ready, "kvgate 0.1.0 ready on http://127.0.0.1:", 39);
    expect_in(g.ready, "(store: ");
    expect_in(g.ready, "try: curl ");
    assert_true(g.port != 0);
    assert_once(&c, g.port, "PUT", "/first", NULL, "x", 1, GATEWAY_STORED);
    http_client_close(&c);
    snprintf(path, sizeof(path), "%s/kvgate-data", g.directory);
    assert_int_equal(access(path, F_OK), 0);
    assert_int_equal(process_stop(&g.process, SIGTERM, GATEWAY_TIMEOUT_MS), 0);
    process_read_out(&g.process, rest, sizeof(rest));
    assert_string_equal(rest, "");
    gateway_deinit(&g);
}

static void
test_two_addresses(void **state)
{
    const char *const argv[] = { gateway_program(), "-l", "127.0.0.1:0",   "-l",
                                 "127.0.0.1:0",     "-s", "embedded:data", NULL };
    struct gateway g;
    const char *second;
    unsigned port = 0;

    (void)state;
    assert_true(gateway_prepare(&g, NULL));
    assert_true(gateway_launch(&g, argv));
    second = strstr(strstr(g.ready, "http://127.0.0.1:") + 1, "http://127.0.0.1:");
    assert_non_null(second);
    assert_int_equal(sscanf(second, "http://127.0.0.1:%u", &port), 1);
    assert_int_not_equal(port, g.port);
    assert_value(g.port, "/missing", NULL, 0);
    assert_value((uint16_t)port, "/missing", NULL, 0);
    assert_int_equal(gateway_stop(&g, SIGTERM), 0);
}

/* -l and -s override the file, -w too. */
static void
test_override(void **state)
{
    const char *const argv[] = {
        gateway_program(),    "-c", "kvgate.conf", "-l", "127.0.0.1:0", "-s",
        "embedded:elsewhere", "-w", "1",           NULL
    };
    struct gateway g;
    struct http_client c;
    char path[128];

    (void)state;
    assert_true(gateway_prepare(&g, "[server]\nlisten = 127.0.0.1:1\nworkers = 8\n"
                                    "[store a]\ntype = memcached\nservers = 127.0.0.1:1\n"));
    assert_true(gateway_launch(&g, argv));
    assert_once(&c, g.port, "PUT", "/x", NULL, "x", 1, GATEWAY_STORED);
    http_client_close(&c);
    snprintf(path, sizeof(path), "%s/elsewhere", g.directory);
    assert_int_equal(access(path, F_OK), 0);
    assert_int_equal(gateway_stop(&g, SIGTERM), 0);
}

static int
connect_unix(const char *path)
{
    struct sockaddr_un to = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(to.sun_path, sizeof(to.sun_path), "%.100s", path);
    if (connect(fd, (struct sockaddr *)&to, sizeof(to)) == -1) {
        close(fd);
        return -1;
    }
    return fd;
}

static void
test_unix_socket(void **state)
{
    static const char request[] = "GET /-/health HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n";
    struct gateway g;
    char listen[128], line[1024], answer[32] = "";
    const char *argv[] = { gateway_program(), "-l", listen, "-s", "embedded:data", NULL };
    int fd;

    (void)state;
    assert_true(gateway_prepare(&g, NULL));
    snprintf(listen, sizeof(listen), "unix:%s/socket", g.directory);
    for (int round = 0; round < 2; round++) {
        /* The second finds the socket file that the first one, killed, has left. */
        assert_true(process_start(&g.process, g.directory, argv));
        assert_true(process_read_line(&g.process, line, sizeof(line), GATEWAY_TIMEOUT_MS));
        expect_in(line, listen);
        fd = connect_unix(listen + 5);
        assert_int_not_equal(fd, -1);
        assert_int_equal(write(fd, request, sizeof(request) - 1), sizeof(request) - 1);
        assert_int_equal(read(fd, answer, 15), 15);
        assert_string_equal(answer, "HTTP/1.1 200 OK");
        close(fd);
        assert_int_equal(process_stop(&g.process, round == 0 ? SIGKILL : SIGTERM, 20000),
                         round == 0 ? 128 + SIGKILL : 0);
        process_deinit(&g.process);
    }
    gateway_deinit(&g);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_version_and_help),  cmocka_unit_test(test_usage_errors),
        cmocka_unit_test(test_bad_configuration), cmocka_unit_test(test_check),
        cmocka_unit_test(test_address_in_use),    cmocka_unit_test(test_unusable_directory),
        cmocka_unit_test(test_ready_line),        cmocka_unit_test(test_two_addresses),
        cmocka_unit_test(test_override),          cmocka_unit_test(test_unix_socket),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
