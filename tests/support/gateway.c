/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gateway.c: starts and stops the program under test. The assertions report the line of the test,
 * not their own.
 */
#include "gateway.h"

#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *
gateway_program(void)
{
    const char *program = getenv("KVGATE");

    return program == NULL ? "build/sanitize/kvgate" : program;
}

static bool
write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");

    if (f == NULL) {
        return false;
    }
    fputs(text, f);
    return fclose(f) == 0;
}

bool
gateway_prepare(struct gateway *g, const char *text)
{
    char path[128];

    *g = (struct gateway){ .process = { .pid_fd = -1, .out = -1, .err = -1 } };
    strcpy(g->directory, "/tmp/kvgate-test-XXXXXX");
    if (mkdtemp(g->directory) == NULL) {
        g->directory[0] = '\0';
        return false;
    }
    snprintf(path, sizeof(path), "%s/kvgate.conf", g->directory);
    return text == NULL || write_file(path, text);
}

bool
gateway_launch(struct gateway *g, const char *const argv[])
{
    const char *address = NULL;
    unsigned port = 0;

    if (!process_start(&g->process, g->directory, argv)) {
        return false;
    }
    if (process_read_line(&g->process, g->ready, sizeof(g->ready), GATEWAY_TIMEOUT_MS)) {
        address = strstr(g->ready, "http://127.0.0.1:");
    }
    if (address == NULL || sscanf(address, "http://127.0.0.1:%u", &port) != 1) {
        fprintf(stderr, "%s is not ready; it printed: %s\n", argv[0], g->ready);
        process_show_err(&g->process);
        gateway_deinit(g);
        return false;
    }
    g->port = (uint16_t)port;
    return true;
}

bool
gateway_start_embedded(struct gateway *g)
{
    const char *const argv[] = {
        gateway_program(), "-l", "127.0.0.1:0", "-s", "embedded:data", NULL
    };

    return gateway_prepare(g, NULL) && gateway_launch(g, argv);
}

bool
gateway_start_config(struct gateway *g, const char *format, ...)
{
    const char *const argv[] = {
        gateway_program(), "-l", "127.0.0.1:0", "-c", "kvgate.conf", NULL
    };
    va_list args;
    char *text;
    bool ok;

    va_start(args, format);
    if (vasprintf(&text, format, args) == -1) {
        abort();
    }
    va_end(args);
    ok = gateway_prepare(g, text) && gateway_launch(g, argv);
    free(text);
    return ok;
}

static int
remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

void
gateway_deinit(struct gateway *g)
{
    process_deinit(&g->process);
    if (g->directory[0] != '\0') {
        nftw(g->directory, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
        g->directory[0] = '\0';
    }
    g->port = 0;
}

int
gateway_stop(struct gateway *g, int signal)
{
    int status = process_stop(&g->process, signal, GATEWAY_TIMEOUT_MS);

    if (status != 0) {
        fprintf(stderr, "the gateway ended with %d\n", status);
        process_show_err(&g->process);
    }
    gateway_deinit(g);
    return status;
}

int
gateway_receive(struct http_client *c, bool head)
{
    enum http_result result = http_client_receive(c, head);

    return result == HTTP_RESPONSE ? c->status : -(int)result;
}

void
gateway_assert_status(struct http_client *c, int got, int wanted, const char *method,
                      const char *target, const char *file, int line)
{
    if (got == wanted || (wanted == GATEWAY_STORED && (got == 201 || got == 204))) {
        return;
    }
    print_error("%s %.300s: wanted %d, got ", method, target,
                wanted == GATEWAY_STORED ? 204 : wanted);
    if (got > 0) {
        print_error("%d %.*s\n", got, c->body_len < 300 ? (int)c->body_len : 300,
                    c->body == NULL ? "" : c->body);
    } else {
        print_error("no response: %s\n", http_result_name((enum http_result) - got));
    }
    _fail(file, line);
}

void
gateway_assert_closed(struct http_client *c, const char *file, int line)
{
    enum http_result result = http_client_await_close(c);

    if (result != HTTP_CLOSED && result != HTTP_RESET) {
        print_error("the connection is not closed: %s %.300s\n", http_result_name(result),
                    c->len > 0 ? c->input : "");
        _fail(file, line);
    }
}

void
gateway_assert_value(uint16_t port, const char *target, const void *body, size_t body_len,
                     const char *file, int line)
{
    struct http_client c;
    int status = http_client_once(&c, port, "GET", target, NULL, NULL, 0);
    bool same;

    gateway_assert_status(&c, status, body == NULL ? 404 : 200, "GET", target, file, line);
    same = body == NULL || (c.body_len == body_len && memcmp(c.body, body, body_len) == 0);
    if (!same) {
        print_error("GET %.300s: wanted %zu other bytes, got %zu\n", target, body_len, c.body_len);
    }
    http_client_close(&c);
    if (!same) {
        _fail(file, line);
    }
}

void
gateway_fill(char *value, size_t len, unsigned seed)
{
    uint32_t x = (uint32_t)len * 2654435761u + seed * 40503u + 1;

    for (size_t i = 0; i < len; i++) {
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        value[i] = (char)(x >> 8);
    }
}
