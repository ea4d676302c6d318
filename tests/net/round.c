/* SPDX-License-Identifier: BSD-2-Clause */
/* round.c: writes a request in pieces, and takes the time. Judges nothing. */
#include "round.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define HEAD_SIZE 512

/*
 * The pause after the request line. A delayed ACK would take at least seven times as long after
 * it.
 */
#define PAUSE_NS 5000000

static int64_t
now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* The head of a request; FRAMING is a header line with its end. */
static void
write_head(char head[HEAD_SIZE], const struct round_style *style, const char *target,
           const char *framing)
{
    snprintf(
        head, HEAD_SIZE,
        "%s %s HTTP/1.1\r\nHost: kvgate.example\r\nUser-Agent: round/1.0\r\nAccept: */*\r\n%s\r\n",
        style->method, target, framing);
}

static void
write_plain_head(char head[HEAD_SIZE], const struct round_style *style, const char *target,
                 const char *more, size_t len)
{
    char framing[128] = "";

    if (style->method[0] == 'P') {
        snprintf(framing, sizeof(framing), "%sContent-Length: %zu\r\n", more, len);
    }
    write_head(head, style, target, framing);
}

/* The body of a request that has one, in writes of PIECE bytes. */
static bool
send_body(struct http_client *c, const struct round_style *style, const char *body, size_t len)
{
    size_t piece = style->piece == 0 ? len : style->piece;

    for (size_t at = 0; style->method[0] == 'P' && at < len; at += piece) {
        if (!http_client_send(c, body + at, len - at < piece ? len - at : piece)) {
            return false;
        }
    }
    return true;
}

/* Everything in one write. */
static bool
send_whole(struct http_client *c, const struct round_style *style, const char *target,
           const char *body, size_t len, int64_t *paused_ns)
{
    static char whole[HEAD_SIZE + 1024 * 1024];
    size_t head_len;

    (void)paused_ns;
    write_plain_head(whole, style, target, "", len);
    head_len = strlen(whole);
    if (style->method[0] != 'P' || len > sizeof(whole) - head_len) {
        return http_client_send(c, whole, head_len) && send_body(c, style, body, len);
    }
    memcpy(whole + head_len, body, len);
    return http_client_send(c, whole, head_len + len);
}

/* The head in one write, then the body in pieces. */
static bool
send_apart(struct http_client *c, const struct round_style *style, const char *target,
           const char *body, size_t len, int64_t *paused_ns)
{
    char head[HEAD_SIZE];

    (void)paused_ns;
    write_plain_head(head, style, target, "", len);
    return http_client_send_text(c, head) && send_body(c, style, body, len);
}

/* Each line of the head in a write of its own. */
static bool
send_lines(struct http_client *c, const struct round_style *style, const char *target,
           const char *body, size_t len, int64_t *paused_ns)
{
    char head[HEAD_SIZE];
    const char *line = head, *end;

    (void)paused_ns;
    write_plain_head(head, style, target, "", len);
    for (; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        if (!http_client_send(c, line, (size_t)(end + 1 - line))) {
            return false;
        }
    }
    return send_body(c, style, body, len);
}

/* The request line, nothing for a while, the rest of the head, the body. */
static bool
send_after_pause(struct http_client *c, const struct round_style *style, const char *target,
                 const char *body, size_t len, int64_t *paused_ns)
{
    char head[HEAD_SIZE];
    const char *rest;
    int64_t begin;

    write_plain_head(head, style, target, "", len);
    rest = strchr(head, '\n') + 1;
    if (!http_client_send(c, head, (size_t)(rest - head))) {
        return false;
    }
    begin = now_ns();
    nanosleep(&(struct timespec){ .tv_nsec = PAUSE_NS }, NULL);
    *paused_ns = now_ns() - begin;
    return http_client_send_text(c, rest) && send_body(c, style, body, len);
}

/* Chunks of PIECE bytes; size line, data and end of each in writes of their own. */
static bool
send_chunked(struct http_client *c, const struct round_style *style, const char *target,
             const char *body, size_t len, int64_t *paused_ns)
{
    char text[HEAD_SIZE];

    (void)paused_ns;
    write_head(text, style, target, "Transfer-Encoding: chunked\r\n");
    if (!http_client_send_text(c, text)) {
        return false;
    }
    for (size_t at = 0; at < len; at += style->piece) {
        size_t piece = len - at < style->piece ? len - at : style->piece;
        snprintf(text, sizeof(text), "%zx\r\n", piece);
        if (!http_client_send_text(c, text) || !http_client_send(c, body + at, piece) ||
            !http_client_send_text(c, "\r\n")) {
            return false;
        }
    }
    return http_client_send_text(c, "0\r\n\r\n");
}

/* Asks for 100 Continue and waits for it. */
static bool
send_expecting(struct http_client *c, const struct round_style *style, const char *target,
               const char *body, size_t len, int64_t *paused_ns)
{
    char head[HEAD_SIZE];

    (void)paused_ns;
    write_plain_head(head, style, target, "Expect: 100-continue\r\n", len);
    return http_client_send_text(c, head) && http_client_receive(c, false) == HTTP_RESPONSE &&
           c->status == 100 && send_body(c, style, body, len);
}

/* Asks for it, and does not wait. */
static bool
send_not_waiting(struct http_client *c, const struct round_style *style, const char *target,
                 const char *body, size_t len, int64_t *paused_ns)
{
    char head[HEAD_SIZE];

    (void)paused_ns;
    write_plain_head(head, style, target, "Expect: 100-continue\r\n", len);
    return http_client_send_text(c, head) && send_body(c, style, body, len);
}

const struct round_style round_styles[] = {
    { .name = "one write", .method = "PUT", .send = send_whole },
    { .name = "header, body", .method = "PUT", .send = send_apart },
    { .name = "each header line", .method = "PUT", .send = send_lines },
    { .name = "request line, 5 ms", .method = "PUT", .send = send_after_pause },
    { .name = "pieces of 1", .method = "PUT", .send = send_apart, .piece = 1, .len_max = 1000 },
    { .name = "pieces of 536", .method = "PUT", .send = send_apart, .piece = 536 },
    { .name = "pieces of 1448", .method = "PUT", .send = send_apart, .piece = 1448 },
    { .name = "pieces of 8192", .method = "PUT", .send = send_apart, .piece = 8192 },
    { .name = "chunked, by 8192", .method = "PUT", .send = send_chunked, .piece = 8192 },
    { .name = "100-continue", .method = "PUT", .send = send_expecting },
    { .name = "100, not waiting", .method = "PUT", .send = send_not_waiting },
    { .name = "one write", .method = "GET", .send = send_whole },
    { .name = "each header line", .method = "GET", .send = send_lines },
    { .name = "request line, 5 ms", .method = "GET", .send = send_after_pause },
    { .name = NULL },
};

int64_t
round_run(struct http_client *c, const struct round_style *style, const char *target,
          const char *body, size_t len)
{
    int64_t begin = now_ns(), paused = 0, end;
    enum http_result result;

    if (!style->send(c, style, target, body, len, &paused)) {
        return -1;
    }
    do {
        result = http_client_receive(c, false);
    } while (result == HTTP_RESPONSE && c->status == 100);
    end = now_ns();
    if (result != HTTP_RESPONSE || c->status / 100 != 2 ||
        (style->method[0] == 'G' && (c->body_len != len || memcmp(c->body, body, len) != 0))) {
        return -1;
    }
    return end - begin - paused;
}
