/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * matrix_server.c: answers the requests of the matrix, one connection at a time.
 */
#include "matrix_server.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "interrupt.h"
#include "net.h"
#include "slice.h"
#include "timing.h"

/* A client that is silent for this long is gone: the next one waits. */
#define CLIENT_TIMEOUT_NS (5 * NS_PER_S)

static const char head_start[] = "kvstall 1 body ";

void
matrix_make_head(char head[MATRIX_HEAD], size_t body_len)
{
    char text[MATRIX_HEAD];
    int n = snprintf(text, sizeof(text), "%s%zu", head_start, body_len);

    memset(head, ' ', MATRIX_HEAD);
    memcpy(head, text, (size_t)n);
}

/* The length of the body that HEAD announces. False: this is no client of ours. */
static bool
read_head(const char head[MATRIX_HEAD], size_t *body_len)
{
    const size_t start = sizeof(head_start) - 1;
    const char *space = memchr(head + start, ' ', MATRIX_HEAD - start);
    uint64_t n;

    if (space == NULL || memcmp(head, head_start, start) != 0 ||
        !slice_to_u64(slice_of(head + start, (size_t)(space - head) - start), &n) ||
        n > MATRIX_BODY_MAX) {
        return false;
    }
    *body_len = (size_t)n;
    return true;
}

/* Reads LEN bytes into TO; NULL: drops them. MORE: they do not end the request. */
static bool
read_all(const struct matrix_server *s, int fd, char *to, size_t len, bool more)
{
    char dropped[4096];
    size_t have = 0;

    while (have < len) {
        size_t got = 0, want = len - have;
        char *at = to != NULL ? to + have : dropped;

        if (to == NULL && want > sizeof(dropped)) {
            want = sizeof(dropped);
        }
        if (net_read(fd, at, want, &got, timing_now_ns() + CLIENT_TIMEOUT_NS) != NET_OK) {
            return false;
        }
        have += got;
        if (s->quickack && (more || have < len)) {
            net_set_quickack(fd, true);
        }
    }
    return true;
}

static void
serve_client(const struct matrix_server *s, int fd)
{
    char head[MATRIX_HEAD], answer[MATRIX_ANSWER];
    size_t body_len;

    memset(answer, '.', sizeof(answer));
    net_set_nodelay(fd, true);
    while (read_all(s, fd, head, sizeof(head), true) && read_head(head, &body_len) &&
           read_all(s, fd, NULL, body_len, false)) {
        if (net_write(fd, answer, sizeof(answer), timing_now_ns() + CLIENT_TIMEOUT_NS) != NET_OK) {
            return;
        }
    }
}

void *
matrix_serve(void *server)
{
    const struct matrix_server *s = server;

    while (!interrupt_pending()) {
        int fd = net_accept(s->listener, TIMING_NEVER);

        if (fd == -1) {
            break;
        }
        serve_client(s, fd);
        close(fd);
    }
    return NULL;
}
