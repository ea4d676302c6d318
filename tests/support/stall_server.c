/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stall_server.c: a thread that accepts, and a thread for each connection.
 */
#include "stall_server.h"

#include <setjmp.h>
#include <stdarg.h>
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

/* One request as far as the server cares. */
struct request {
    char head[4096];
    size_t len;      /* bytes read, of header and body */
    size_t head_len; /* 0: not whole */
    size_t body_len; /* announced */
    bool expect;
};

/* What a client's thread is given. */
struct client {
    struct stall_server *server; /* (ref) */
    int fd;                      /* closed by stall_server_stop */
};

static void
pause_ms(int ms)
{
    struct timespec ts = { .tv_nsec = ms * 1000000L };

    nanosleep(&ts, NULL);
}

static void
set_tcp(int fd, int option, int value)
{
    setsockopt(fd, IPPROTO_TCP, option, &value, sizeof(value));
}

static void
send_text(int fd, const char *text)
{
    ssize_t n = send(fd, text, strlen(text), MSG_NOSIGNAL);

    (void)n; /* a client that has gone is no failure */
}

static void
parse_head(struct request *r)
{
    char *end = memmem(r->head, r->len, "\r\n\r\n", 4), *length;

    if (end == NULL) {
        return;
    }
    r->head_len = (size_t)(end - r->head) + 4;
    *end = '\0';
    length = strcasestr(r->head, "Content-Length:");
    r->body_len = length == NULL ? 0 : (size_t)strtoul(length + 15, NULL, 10);
    r->expect = strcasestr(r->head, "Expect: 100-continue") != NULL;
}

static void
on_head(const struct stall_server *s, int fd, const struct request *r)
{
    if (r->expect && (s->mode & STALL_SERVER_NO_CONTINUE) == 0 &&
        r->len < r->head_len + r->body_len) {
        if ((s->mode & STALL_SERVER_LATE_CONTINUE) != 0) {
            pause_ms(STALL_SERVER_PAUSE_MS);
        }
        send_text(fd, (s->mode & STALL_SERVER_EXPECT_REFUSED) != 0
                          ? "HTTP/1.1 417 No\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
                          : "HTTP/1.1 100 Continue\r\n\r\n");
    }
}

/* Reads one request; the body is dropped. False: there is none. */
static bool
read_request(const struct stall_server *s, int fd, struct request *r)
{
    memset(r, 0, sizeof(*r));
    while (r->head_len == 0 || r->len < r->head_len + r->body_len) {
        char block[4096];
        ssize_t n = recv(fd, block, sizeof(block), 0);

        if (n <= 0) {
            return false;
        }
        if (r->head_len == 0) {
            if (r->len + (size_t)n >= sizeof(r->head)) {
                return false;
            }
            memcpy(r->head + r->len, block, (size_t)n);
        }
        r->len += (size_t)n;
        if (r->head_len == 0) {
            parse_head(r);
            if (r->head_len > 0) {
                on_head(s, fd, r);
            }
        }
        if (r->head_len > 0 && r->len >= r->head_len + r->body_len) {
            break;
        }
        if ((s->mode & STALL_SERVER_DELAYED_ACK) == 0) {
            set_tcp(fd, TCP_QUICKACK, 1);
        }
        if ((s->mode & STALL_SERVER_SLOW_PIECES) != 0) {
            pause_ms(STALL_SERVER_PAUSE_MS);
        }
    }
    return (s->mode & STALL_SERVER_EXPECT_REFUSED) == 0 || !r->expect;
}

/* Notes writes and deletes; returns whether R is one. */
static bool
note_change(struct stall_server *s, const struct request *r)
{
    bool get = strncmp(r->head, "GET ", 4) == 0, delete = strncmp(r->head, "DELETE ", 7) == 0;
    const char *target = strchr(r->head, ' ');
    size_t len = target == NULL ? 0 : strcspn(target + 1, " ");

    if (get || target == NULL) {
        return false;
    }
    pthread_mutex_lock(&s->lock);
    if (s->key[0] == '\0') {
        snprintf(s->key, sizeof(s->key), "%.*s", (int)len, target + 1);
    } else if (strlen(s->key) != len || memcmp(s->key, target + 1, len) != 0) {
        s->foreign = true;
    }
    pthread_mutex_unlock(&s->lock);
    atomic_fetch_add(delete ? &s->deletes : &s->writes, 1);
    return true;
}

static void
answer_request(struct stall_server *s, int fd, const struct request *r)
{
    bool changes = note_change(s, r);
    const char *close_line = (s->mode & STALL_SERVER_CLOSES) != 0 ? "Connection: close\r\n" : "";
    char head[256], all[512];
    const char *body = "the body of the answer";

    if ((s->mode & STALL_SERVER_SLOW) != 0 ||
        ((s->mode & STALL_SERVER_SLOW_AT_1000) != 0 && r->body_len == 1000)) {
        pause_ms(STALL_SERVER_PAUSE_MS);
    }
    if (r->expect && (s->mode & STALL_SERVER_NO_CONTINUE) != 0 &&
        atomic_fetch_add(&s->expects, 1) % 2 == 0) {
        send_text(fd, "HTTP/1.1 100 Continue\r\n\r\n"); /* too late: the body is here */
    }
    if ((s->mode & STALL_SERVER_GARBAGE) != 0) {
        send_text(fd, "220 mail ready\r\n");
        return;
    }
    snprintf(head, sizeof(head), "HTTP/1.1 %s\r\n%sContent-Length: %zu\r\n\r\n",
             changes && (s->mode & STALL_SERVER_NO_WRITES) != 0 ? "405 No" : "200 OK", close_line,
             strlen(body));
    if ((s->mode & STALL_SERVER_SPLIT) != 0) {
        send_text(fd, head);
        send_text(fd, body);
    } else {
        snprintf(all, sizeof(all), "%s%s", head, body);
        send_text(fd, all);
    }
}

static void *
serve_client(void *arg)
{
    struct client c = *(struct client *)arg;
    struct request r;

    free(arg);
    set_tcp(c.fd, TCP_NODELAY, (c.server->mode & STALL_SERVER_SPLIT) == 0);
    while (read_request(c.server, c.fd, &r)) {
        answer_request(c.server, c.fd, &r);
        if ((c.server->mode & (STALL_SERVER_CLOSES | STALL_SERVER_GARBAGE)) != 0) {
            break;
        }
    }
    shutdown(c.fd, SHUT_RDWR);
    return NULL;
}

static void *
serve(void *arg)
{
    struct stall_server *s = arg;
    int fd;

    while (s->count < STALL_SERVER_CLIENTS && (fd = accept(s->listener, NULL, NULL)) != -1) {
        struct client *c = malloc(sizeof(*c));

        *c = (struct client){ .server = s, .fd = fd };
        s->clients[s->count] = fd;
        assert_int_equal(pthread_create(&s->threads[s->count], NULL, serve_client, c), 0);
        s->count++;
    }
    return NULL;
}

void
stall_server_start(struct stall_server *s, int mode)
{
    struct sockaddr_in addr = { .sin_family = AF_INET };
    socklen_t len = sizeof(addr);

    memset(s, 0, sizeof(*s));
    s->mode = mode;
    pthread_mutex_init(&s->lock, NULL);
    addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    s->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(s->listener, (struct sockaddr *)&addr, len), 0);
    assert_int_equal(listen(s->listener, 16), 0);
    assert_int_equal(getsockname(s->listener, (struct sockaddr *)&addr, &len), 0);
    s->port = ntohs(addr.sin_port);
    assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
}

void
stall_server_stop(struct stall_server *s)
{
    if (s->listener <= 0) {
        return;
    }
    shutdown(s->listener, SHUT_RDWR);
    pthread_join(s->thread, NULL);
    close(s->listener);
    s->listener = -1;
    for (size_t i = 0; i < s->count; i++) {
        shutdown(s->clients[i], SHUT_RDWR);
        pthread_join(s->threads[i], NULL);
        close(s->clients[i]);
    }
}
