/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_curl.c: the client that people use first. Files go in and come out the same.
 */
#include "gateway.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memcached_process.h"

static struct gateway gateway;
static struct memcached_process server;
static char url[64];
static char out[65536];

static int
setup(void **state)
{
    (void)state;
    if (!memcached_process_start(&server, NULL) ||
        !gateway_start_config(&gateway, GATEWAY_MEMCACHED, "auto", (unsigned)server.port)) {
        return -1;
    }
    snprintf(url, sizeof(url), "http://127.0.0.1:%u/curl", (unsigned)gateway.port);
    return 0;
}

static int
teardown(void **state)
{
    (void)state;
    gateway_deinit(&gateway);
    memcached_process_kill(&server);
    return 0;
}

/* Runs `curl -sS -w %{http_code} ARGS URL` and expects STATUS at the end of what it prints. */
static void
curl(const char *const args[], const char *status)
{
    const char *argv[32] = { "curl",      "-q", "-sS", "--max-time",  "20",
                             "--noproxy", "*",  "-w",  "%{http_code}" };
    struct process p;
    size_t n = 9, len;
    int code;

    for (; *args != NULL; args++) {
        argv[n++] = *args;
    }
    argv[n] = url;
    assert_true(process_start(&p, gateway.directory, argv));
    process_read_out(&p, out, sizeof(out));
    code = process_wait(&p, 30000);
    if (code != 0) {
        process_show_err(&p);
    }
    process_deinit(&p);
    assert_int_equal(code, 0);
    len = strlen(out);
    assert_true(len >= 3);
    assert_string_equal(out + len - 3, status);
    out[len - 3] = '\0';
}

#define CURL(status, ...) curl((const char *const[]){ __VA_ARGS__, NULL }, status)

static void
write_file(const char *name, const char *data, size_t len)
{
    char path[128];
    FILE *f;

    snprintf(path, sizeof(path), "%s/%s", gateway.directory, name);
    f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, len, f), len);
    assert_int_equal(fclose(f), 0);
}

static void
expect_file(const char *name, const char *data, size_t len)
{
    char *got = malloc(len + 1), path[128];
    FILE *f;

    snprintf(path, sizeof(path), "%s/%s", gateway.directory, name);
    f = fopen(path, "r");
    assert_non_null(f);
    assert_int_equal(fread(got, 1, len + 1, f), len);
    assert_memory_equal(got, data, len);
    fclose(f);
    free(got);
}

/* Puts the file "in" with these arguments, gets it to "out", compares. */
static void
round_trip(const char *value, size_t len, const char *const args[])
{
    write_file("in", value, len);
    curl(args, "204");
    CURL("200", "-o", "out");
    expect_file("out", value, len);
    CURL("204", "-X", "DELETE");
    CURL("404", "-o", "out");
}

#define ROUND_TRIP(...) round_trip(value, sizes[i], (const char *const[]){ __VA_ARGS__, NULL })

static void
test_files(void **state)
{
    static const size_t sizes[] = { 0, 1, 1449, 65484, 307200, 1048000 };
    char *value = malloc(1048000);

    (void)state;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        gateway_fill(value, sizes[i], 1);
        ROUND_TRIP("-T", "in");
        ROUND_TRIP("--data-binary", "@in");
        ROUND_TRIP("-T", "in", "-H", "Expect: 100-continue");
        ROUND_TRIP("-T", "in", "-H", "Expect:");
        ROUND_TRIP("-T", "in", "--http1.0");
        if (sizes[i] > 0) { /* of an empty file curl 7.88 never sends the last chunk */
            ROUND_TRIP("-T", "in", "-H", "Transfer-Encoding: chunked");
        }
        ROUND_TRIP("-X", "POST", "--data-binary", "@in", "-H", "Content-Type: text/plain");
    }
    free(value);
}

static void
test_head(void **state)
{
    (void)state;
    CURL("204", "-X", "PUT", "-d", "hello");
    CURL("200", "-I");
    assert_memory_equal(out, "HTTP/1.1 200", 12);
    assert_non_null(strstr(out, "Content-Length: 5\r\n"));
    CURL("200", "-i");
    assert_non_null(strstr(out, "\r\n\r\nhello"));
    CURL("200", "--http1.0");
    assert_string_equal(out, "hello");
    CURL("204", "-X", "DELETE");
    CURL("404", "-I");
}

static void
test_too_large(void **state)
{
    char *value = calloc(1, 2000000);

    (void)state;
    write_file("in", value, 2000000);
    free(value);
    CURL("413", "-T", "in");
    CURL("413", "-T", "in", "-H", "Expect:");
    CURL("413", "--data-binary", "@in");
    CURL("413", "-T", "in", "-H", "Transfer-Encoding: chunked");
    CURL("404", "-I");
}

/* Four requests over one connection, as -w %{num_connects} counts. */
static void
test_reuses_connection(void **state)
{
    char value[4096];

    (void)state;
    gateway_fill(value, sizeof(value), 2);
    write_file("in", value, sizeof(value));
    CURL("204", "-T", "in");
    CURL("200", "-o", "1", url, "-o", "2", url, "-o", "3", url, "-w", "%{num_connects}%{http_code}",
         "-o", "4");
    assert_string_equal(out, "1200020002000");
    expect_file("1", value, sizeof(value));
    expect_file("4", value, sizeof(value));
}

static void
test_stops_cleanly(void **state)
{
    (void)state;
    assert_int_equal(gateway_stop(&gateway, SIGTERM), 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files),         cmocka_unit_test(test_head),
        cmocka_unit_test(test_too_large),     cmocka_unit_test(test_reuses_connection),
        cmocka_unit_test(test_stops_cleanly),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
