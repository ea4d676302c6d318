/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * exchange_request.c: makes requests, and cuts them into the writes of a kind of client.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exchange.h"

/* Lines enough to make a client that writes line by line plain, and all that servers ask for. */
static int
print_head(char *to, size_t size, const char *method, const char *path, const char *key,
           const char *host, int64_t body_len, bool expect)
{
    int n = snprintf(to, size,
                     "%s %s%s HTTP/1.1\r\n"
                     "Host: %s\r\n"
                     "User-Agent: kvstall\r\n"
                     "Accept: */*\r\n",
                     method, path, key, host);
    size_t used = (size_t)n < size ? (size_t)n : size;

    if (body_len >= 0) {
        n += snprintf(to + used, size - used,
                      "Content-Type: application/octet-stream\r\n"
                      "Content-Length: %" PRId64 "\r\n%s",
                      body_len, expect ? "Expect: 100-continue\r\n" : "");
        used = (size_t)n < size ? (size_t)n : size;
    }
    return n + snprintf(to + used, size - used, "\r\n");
}

static void
cut_at(struct exchange_request *r, size_t at)
{
    if (at > (r->cut_count == 0 ? 0 : r->cuts[r->cut_count - 1]) &&
        r->cut_count < EXCHANGE_CUTS_MAX) {
        r->cuts[r->cut_count++] = at;
    }
}

static void
cut(struct exchange_request *r)
{
    switch (r->style) {
    case EXCHANGE_ONE_WRITE:
    case EXCHANGE_STYLES:
        break;
    case EXCHANGE_APART:
    case EXCHANGE_EXPECT:
        cut_at(r, r->head_len);
        break;
    case EXCHANGE_LINES:
        for (size_t i = 0; i < r->head_len; i++) {
            if (r->bytes[i] == '\n') {
                cut_at(r, i + 1);
            }
        }
        break;
    case EXCHANGE_PIECES:
        for (size_t i = 1; i < EXCHANGE_PIECE_COUNT; i++) {
            cut_at(r, r->len * i / EXCHANGE_PIECE_COUNT);
        }
        break;
    }
    cut_at(r, r->len);
}

bool
exchange_request_init(struct exchange_request *r, const char *method, const char *path,
                      const char *key, const char *host, int64_t body_len,
                      enum exchange_style style)
{
    size_t body = body_len > 0 ? (size_t)body_len : 0;
    bool expect = style == EXCHANGE_EXPECT;
    int head = print_head(NULL, 0, method, path, key, host, body_len, expect);

    *r = (struct exchange_request){ .style = style, .head_len = (size_t)head };
    r->len = r->head_len + body;
    r->bytes = malloc(r->len + 1); /* one more for the NUL of the header */
    if (r->bytes == NULL) {
        return false;
    }
    print_head(r->bytes, r->head_len + 1, method, path, key, host, body_len, expect);
    for (size_t i = 0; i < body; i++) {
        r->bytes[r->head_len + i] = (char)('a' + i % 26);
    }
    cut(r);
    return true;
}

void
exchange_request_deinit(struct exchange_request *r)
{
    free(r->bytes);
    *r = (struct exchange_request){ 0 };
}
