/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gateway.h: the program under test, and the assertions that most HTTP tests share.
 *
 * The program is the one that the environment variable KVGATE names. It runs in a new directory of
 * its own, so a relative store directory lies there, and listens on a port that it picks itself.
 * The end is part of each test: exit status 0 after SIGTERM, which a leak would spoil.
 */
#ifndef KVGATE_TESTS_GATEWAY_H
#define KVGATE_TESTS_GATEWAY_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdbool.h>

#include <cmocka.h>
#include <string.h>

#include "http_client.h"
#include "process.h"

/* How long start and stop may take at the most. */
#define GATEWAY_TIMEOUT_MS 20000

struct gateway {
    struct process process;
    uint16_t port;      /* where it listens, on 127.0.0.1; 0: it has not said so */
    char directory[64]; /* its working directory, removed at the end */
    char ready[1024];   /* the line that it printed */
};

/*
 * Makes the directory; with TEXT, writes it there as kvgate.conf. Starts nothing: for the tests
 * that start the program themselves.
 */
bool gateway_prepare(struct gateway *g, const char *text);

/* Starts ARGV in the directory of a prepared G and waits for the line. False: it did not come. */
bool gateway_launch(struct gateway *g, const char *const argv[]);

/* `kvgate -l 127.0.0.1:0 -s embedded:data`. */
bool gateway_start_embedded(struct gateway *g);

/*
 * `kvgate -l 127.0.0.1:0 -c kvgate.conf`; the file is made of FORMAT and what follows, as printf
 * does it.
 */
bool gateway_start_config(struct gateway *g, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The text of a configuration with one memcached on PORT; its arguments are dialect and port. */
#define GATEWAY_MEMCACHED "[store main]\ntype = memcached\ndialect = %s\nservers = 127.0.0.1:%u\n"

/*
 * Stops with SIGNAL, removes the directory and returns the exit status, see process_wait. What the
 * program wrote to stderr is shown when that is not 0.
 */
int gateway_stop(struct gateway *g, int signal);

/* Removes the directory of a G whose program has ended or was never started. */
void gateway_deinit(struct gateway *g);

/* The path of the program: KVGATE. */
const char *gateway_program(void);

/*
 * One exchange on the open client C that must be answered with STATUS. On a failure it says what
 * came instead.
 */
#define assert_request(c, method, target, headers, body, body_len, status)                         \
    gateway_assert_status(c, http_client_request(c, method, target, headers, body, body_len),      \
                          status, method, target, __FILE__, __LINE__)

/* The same on a connection of its own, which stays open in C. */
#define assert_once(c, port, method, target, headers, body, body_len, status)                      \
    gateway_assert_status(c, http_client_once(c, port, method, target, headers, body, body_len),   \
                          status, method, target, __FILE__, __LINE__)

/* Success of a write: 204, or 201 when the key is known to be new. */
#define GATEWAY_STORED (-1000)

/* The next response on C must come, with STATUS. HEAD: as http_client_receive has it. */
#define assert_response(c, head, status)                                                           \
    gateway_assert_status(c, gateway_receive(c, head), status, "response", "", __FILE__, __LINE__)

/* The server must close C, by FIN or RST, without another byte. */
#define assert_closed(c) gateway_assert_closed(c, __FILE__, __LINE__)

/* The last response on C has exactly the string TEXT for its body. */
#define assert_body(c, text)                                                                       \
    do {                                                                                           \
        assert_int_equal((c)->body_len, strlen(text));                                             \
        assert_memory_equal((c)->body, text, strlen(text));                                        \
    } while (0)

/* GET TARGET on a connection of its own: 200 with exactly this body; NULL: 404. */
#define assert_value(port, target, body, body_len)                                                 \
    gateway_assert_value(port, target, body, body_len, __FILE__, __LINE__)

/* What the macros above call. */
int gateway_receive(struct http_client *c, bool head);
void gateway_assert_status(struct http_client *c, int got, int wanted, const char *method,
                           const char *target, const char *file, int line);
void gateway_assert_closed(struct http_client *c, const char *file, int line);
void gateway_assert_value(uint16_t port, const char *target, const void *body, size_t body_len,
                          const char *file, int line);

/* Fills VALUE with bytes of every kind, which depend on LEN and SEED only. */
void gateway_fill(char *value, size_t len, unsigned seed);

#endif
