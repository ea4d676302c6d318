/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * http_client.c: the byte-exact HTTP client of the tests. It does not follow, decode or retry
 * anything, and it does not understand chunked responses: kvgate sends none.
 */
#include "http_client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "clock.h"

#define HEAD_MAX 65536 /* a longer head is a fault of the server */

bool
http_client_open(struct http_client *c, uint16_t port)
{
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(port) };
    int one = 1;

    *c = (struct http_client){ .fd = -1, .timeout_ms = HTTP_CLIENT_TIMEOUT_MS };
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c->fd == -1) {
        return false;
    }
    if (connect(c->fd, (struct sockaddr *)&to, sizeof(to)) == -1) {
        http_client_close(c);
        return false;
    }
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    fcntl(c->fd, F_SETFL, fcntl(c->fd, F_GETFL) | O_NONBLOCK);
    return true;
}

void
http_client_close(struct http_client *c)
{
    if (c->fd > 2) {
        close(c->fd);
    }
    c->fd = -1;
    free(c->input);
    c->input = c->body = NULL;
    c->len = c->cap = c->used = c->body_len = c->head_len = 0;
}

void
http_client_abort(struct http_client *c)
{
    struct linger now = { .l_onoff = 1, .l_linger = 0 };

    setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    http_client_close(c);
}

void
http_client_half_close(struct http_client *c)
{
    shutdown(c->fd, SHUT_WR);
}

/* True: FD has one of EVENTS, or an error, before DEADLINE_MS. */
static bool
wait_for(int fd, short events, int64_t deadline_ms)
{
    for (;;) {
        struct pollfd pfd = { .fd = fd, .events = events };
        int64_t left = deadline_ms - clock_monotonic_ms();
        int n = poll(&pfd, 1, left > 0 ? (int)left : 0);

        if (n != -1 || errno != EINTR) {
            return n == 1;
        }
    }
}

/* Sends the two parts as one stream, with as few writes as the socket allows. */
static bool
send_parts(struct http_client *c, const void *a, size_t a_len, const void *b, size_t b_len)
{
    int64_t deadline = clock_monotonic_ms() + c->timeout_ms;
    struct iovec parts[2] = { { (void *)(uintptr_t)a, a_len }, { (void *)(uintptr_t)b, b_len } };
    struct msghdr message = { .msg_iov = parts, .msg_iovlen = 2 };

    while (parts[0].iov_len + parts[1].iov_len > 0) {
        ssize_t n = sendmsg(c->fd, &message, MSG_NOSIGNAL);

        if (n == -1 && errno != EAGAIN && errno != EINTR) {
            return false;
        }
        if (n == -1 && !wait_for(c->fd, POLLOUT, deadline)) {
            return false;
        }
        for (int i = 0; i < 2 && n > 0; i++) {
            size_t step = (size_t)n < parts[i].iov_len ? (size_t)n : parts[i].iov_len;

            parts[i].iov_base = (char *)parts[i].iov_base + step;
            parts[i].iov_len -= step;
            n -= (ssize_t)step;
        }
    }
    return true;
}

bool
http_client_send(struct http_client *c, const void *data, size_t len)
{
    return send_parts(c, data, len, "", 0);
}

bool
http_client_send_text(struct http_client *c, const char *text)
{
    return send_parts(c, text, strlen(text), "", 0);
}

/* Receives more into INPUT, which stays NUL-terminated. HTTP_RESPONSE: something came. */
static enum http_result
fill(struct http_client *c, int64_t deadline_ms)
{
    ssize_t n;

    if (c->cap - c->len < 65537) {
        size_t cap = c->cap * 2 + 131072;
        char *input = realloc(c->input, cap);

        if (input == NULL) {
            abort();
        }
        c->input = input;
        c->cap = cap;
    }
    do {
        if (!wait_for(c->fd, POLLIN, deadline_ms)) {
            return HTTP_SILENT;
        }
        n = recv(c->fd, c->input + c->len, c->cap - c->len - 1, 0);
    } while (n == -1 && (errno == EAGAIN || errno == EINTR));
    if (n <= 0) {
        return n == 0 ? HTTP_CLOSED : HTTP_RESET;
    }
    c->len += (size_t)n;
    c->input[c->len] = '\0';
    return HTTP_RESPONSE;
}

/* Drops what the last response used. */
static void
forget_response(struct http_client *c)
{
    if (c->used > 0) {
        memmove(c->input, c->input + c->used, c->len - c->used);
        c->len -= c->used;
        c->input[c->len] = '\0';
    }
    c->used = c->head_len = c->body_len = 0;
    c->body = NULL;
    c->status = 0;
}

/* The number of headers NAME in the head; *VALUE and *VALUE_LEN are those of the first. */
static unsigned
find_header(const struct http_client *c, const char *name, const char **value, size_t *value_len)
{
    const char *line = memchr(c->input, '\n', c->head_len);
    const char *end = c->input + c->head_len - 2;
    size_t name_len = strlen(name);
    unsigned count = 0;

    for (line = line + 1; line < end;) {
        const char *eol = memchr(line, '\r', (size_t)(end - line + 1));
        const char *at = line + name_len + 1;

        if (eol == NULL) {
            break;
        }
        if (strncasecmp(line, name, name_len) == 0 && line[name_len] == ':' && count++ == 0) {
            while (at < eol && *at == ' ') {
                at++;
            }
            *value = at;
            *value_len = (size_t)(eol - at);
        }
        line = eol + 2;
    }
    return count;
}

const char *
http_client_header(struct http_client *c, const char *name)
{
    const char *value;
    size_t len;

    if (c->head_len == 0 || find_header(c, name, &value, &len) == 0) {
        return NULL;
    }
    snprintf(c->value, sizeof(c->value), "%.*s", (int)len, value);
    return c->value;
}

/* Every line of the head is `name: value` with CRLF; the status line is HTTP/1.x. */
static bool
head_is_sound(struct http_client *c)
{
    const char *end = c->input + c->head_len - 2;
    char *line = c->input;

    if (sscanf(line, "HTTP/1.%1d %3d ", &c->minor, &c->status) != 2 || c->status < 100 ||
        line[8] != ' ' || line[12] != ' ' || memchr(line, '\0', c->head_len) != NULL) {
        return false;
    }
    for (line = strchr(line, '\n') + 1; line < end; line = strchr(line, '\n') + 1) {
        size_t name = strcspn(line, ": \t\r\n");
        size_t text = strcspn(line, "\r\n");

        if (name == 0 || line[name] != ':' || line[text] != '\r' || line[text + 1] != '\n') {
            return false;
        }
    }
    return line == end;
}

/* The body's length as the head tells it; -1: until the connection closes; -2: nonsense. */
static int64_t
expected_body(const struct http_client *c, bool head)
{
    const char *value = "";
    size_t len = 0;
    unsigned lengths = find_header(c, "Content-Length", &value, &len);
    const char *unused;
    size_t unused_len;

    if (lengths > 1 || find_header(c, "Transfer-Encoding", &unused, &unused_len) > 0) {
        return -2;
    }
    if (lengths == 1 && (len == 0 || len > 18 || strspn(value, "0123456789") != len)) {
        return -2;
    }
    if (head || c->status < 200 || c->status == 204 || c->status == 304) {
        return 0;
    }
    return lengths == 0 ? -1 : strtoll(value, NULL, 10);
}

/* Reads until the head is complete. */
static enum http_result
receive_head(struct http_client *c, int64_t deadline)
{
    char *end;

    while (c->len == 0 || (end = strstr(c->input, "\r\n\r\n")) == NULL) {
        enum http_result result = c->len > HEAD_MAX ? HTTP_NONSENSE : fill(c, deadline);

        if (result == HTTP_CLOSED && c->len > 0) {
            return HTTP_CUT;
        }
        if (result != HTTP_RESPONSE) {
            return result;
        }
    }
    c->head_len = (size_t)(end + 4 - c->input);
    return head_is_sound(c) ? HTTP_RESPONSE : HTTP_NONSENSE;
}

enum http_result
http_client_receive(struct http_client *c, bool head)
{
    int64_t deadline = clock_monotonic_ms() + c->timeout_ms;
    enum http_result result;
    int64_t length;

    forget_response(c);
    result = receive_head(c, deadline);
    if (result != HTTP_RESPONSE) {
        return result;
    }
    length = expected_body(c, head);
    if (length == -2) {
        return HTTP_NONSENSE;
    }
    while (length == -1 || c->len - c->head_len < (size_t)length) {
        result = fill(c, deadline);
        if (result == HTTP_CLOSED && length == -1) {
            length = (int64_t)(c->len - c->head_len);
        } else if (result != HTTP_RESPONSE) {
            return result == HTTP_CLOSED ? HTTP_CUT : result;
        }
    }
    c->body = c->input + c->head_len;
    c->body_len = (size_t)length;
    c->used = c->head_len + c->body_len;
    return HTTP_RESPONSE;
}

enum http_result
http_client_await_close(struct http_client *c)
{
    forget_response(c);
    if (c->len > 0) {
        return HTTP_RESPONSE;
    }
    return fill(c, clock_monotonic_ms() + c->timeout_ms);
}

bool
http_client_has_input(struct http_client *c, int wait_ms)
{
    return c->len > c->used || wait_for(c->fd, POLLIN, clock_monotonic_ms() + wait_ms);
}

int
http_client_request(struct http_client *c, const char *method, const char *target,
                    const char *headers, const void *body, size_t body_len)
{
    char length[64] = "";
    char *head;
    int head_len;
    enum http_result result;

    if (body != NULL) {
        snprintf(length, sizeof(length), "Content-Length: %zu\r\n", body_len);
    }
    head_len = asprintf(&head, "%s %s HTTP/1.1\r\nHost: test\r\n%s%s\r\n", method, target,
                        headers == NULL ? "" : headers, length);
    if (head_len == -1) {
        abort();
    }
    /* A server may refuse before it has read everything: its answer counts, not the write. */
    send_parts(c, head, (size_t)head_len, body == NULL ? "" : body, body_len);
    free(head);
    result = http_client_receive(c, strcmp(method, "HEAD") == 0);
    return result == HTTP_RESPONSE ? c->status : -(int)result;
}

int
http_client_once(struct http_client *c, uint16_t port, const char *method, const char *target,
                 const char *headers, const void *body, size_t body_len)
{
    if (!http_client_open(c, port)) {
        return -(int)HTTP_CLOSED;
    }
    return http_client_request(c, method, target, headers, body, body_len);
}

const char *
http_result_name(enum http_result result)
{
    static const char *const names[] = {
        "response", "closed", "reset", "cut", "silent", "nonsense"
    };

    return names[result];
}
