/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * http_client.h: an HTTP/1.1 client that does exactly what a test says, byte for byte.
 *
 * It sends what it is given, in the pieces that it is given, and reads one response at a time: the
 * head, then the body by its Content-Length, none after HEAD, 1xx, 204 and 304, else until the
 * connection closes. It is strict: a malformed head is HTTP_NONSENSE. Nothing waits for ever.
 */
#ifndef KVGATE_TESTS_HTTP_CLIENT_H
#define KVGATE_TESTS_HTTP_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How long any one step may take: generous, for sanitizers on a busy machine. */
#define HTTP_CLIENT_TIMEOUT_MS 10000

enum http_result {
    HTTP_RESPONSE, /* a whole response is here */
    HTTP_CLOSED,   /* the server closed, and nothing of a response had come */
    HTTP_RESET,    /* the connection was reset */
    HTTP_CUT,      /* the server closed in the middle of a response */
    HTTP_SILENT,   /* the time is over */
    HTTP_NONSENSE  /* what came is no HTTP response */
};

struct http_client {
    int fd;          /* the connection; -1: none (owned) */
    int timeout_ms;  /* for each step; set by open, the test may change it */
    char *input;     /* bytes received (owned) */
    size_t len;      /* bytes in INPUT */
    size_t cap;      /* bytes that INPUT can take */
    size_t used;     /* bytes of INPUT that the last response took */
    int status;      /* of the last response: 200 ... */
    int minor;       /* its version: HTTP/1.MINOR */
    size_t head_len; /* bytes of its head, with the empty line */
    char *body;      /* its body (ref into INPUT), until the next receive; no NUL ends it */
    size_t body_len; /* bytes of BODY */
    char value[512]; /* what http_client_header found last */
};

/* Connects to 127.0.0.1:PORT, with TCP_NODELAY: what is sent apart travels apart. */
bool http_client_open(struct http_client *c, uint16_t port);

/* May be called twice. */
void http_client_close(struct http_client *c);

/* Closes with a RST instead of a FIN, as a client that crashed. */
void http_client_abort(struct http_client *c);

/* Sends all of DATA. False: the connection is broken, or the server did not take it in time. */
bool http_client_send(struct http_client *c, const void *data, size_t len);

/* The same for a string. */
bool http_client_send_text(struct http_client *c, const char *text);

/* Says that nothing more will be sent, and stays to read. */
void http_client_half_close(struct http_client *c);

/* Reads one response (or one 1xx). HEAD: it answers a HEAD, so no body follows. */
enum http_result http_client_receive(struct http_client *c, bool head);

/* Waits until the server closes: HTTP_CLOSED, HTTP_RESET, HTTP_SILENT, or RESPONSE: more came. */
enum http_result http_client_await_close(struct http_client *c);

/* Whether anything was received that no response has used, or can be read within WAIT_MS. */
bool http_client_has_input(struct http_client *c, int wait_ms);

/* The value of the last response's header NAME (case ignored); NULL: absent. */
const char *http_client_header(struct http_client *c, const char *name);

/*
 * Sends `METHOD TARGET HTTP/1.1`, Host, HEADERS (each line with its CRLF; NULL: none), a
 * Content-Length when BODY is not NULL, and BODY, all in one write; then reads the response.
 * Returns its status, or minus the enum http_result.
 */
int http_client_request(struct http_client *c, const char *method, const char *target,
                        const char *headers, const void *body, size_t body_len);

/* The same on a connection of its own. The response stays in C until it is closed or used again. */
int http_client_once(struct http_client *c, uint16_t port, const char *method, const char *target,
                     const char *headers, const void *body, size_t body_len);

const char *http_result_name(enum http_result result);

#endif
