/* SPDX-License-Identifier: BSD-2-Clause */
/* linger.c: reads and drops, and closes in time. */
#include "linger.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"

/* What one event reads at the most: other clients wait meanwhile. */
#define LINGER_READS 8

struct linger_socket {
    struct watch watch;             /* the socket (owned) */
    struct lingers *lingers;        /* (ref) the list that it is on */
    struct linger_socket *previous; /* older */
    struct linger_socket *next;     /* newer */
    int64_t deadline_ms;            /* closed then at the latest */
    size_t left;                    /* bytes that are still read */
};

static void
finish(struct linger_socket *linger)
{
    struct lingers *lingers = linger->lingers;

    *(linger->previous != NULL ? &linger->previous->next : &lingers->head) = linger->next;
    *(linger->next != NULL ? &linger->next->previous : &lingers->tail) = linger->previous;
    assert(lingers->head != linger);
    loop_unwatch(lingers->loop, &linger->watch);
    close(linger->watch.fd);
    free(linger);
}

static void
ready(struct watch *watch, uint32_t events)
{
    struct linger_socket *linger = (struct linger_socket *)watch; /* its first member */
    char sink[16 * 1024];

    (void)events;
    for (int i = 0; i < LINGER_READS; i++) {
        ssize_t n = recv(watch->fd, sink, sizeof(sink), 0);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
            return;
        }
        if (n <= 0 || (size_t)n >= linger->left) {
            finish(linger);
            return;
        }
        linger->left -= (size_t)n;
    }
}

void
linger_start(struct lingers *lingers, int fd)
{
    struct linger_socket *linger = calloc(1, sizeof(*linger));

    shutdown(fd, SHUT_WR);
    if (linger == NULL) {
        close(fd);
        return;
    }
    linger->watch = (struct watch){ fd, ready };
    linger->lingers = lingers;
    linger->deadline_ms = lingers->loop->now_ms + LINGER_MS;
    linger->left = LINGER_BYTES;
    if (loop_watch(lingers->loop, &linger->watch, EPOLLIN) < 0) {
        close(fd);
        free(linger);
        return;
    }
    linger->previous = lingers->tail;
    *(lingers->tail != NULL ? &lingers->tail->next : &lingers->head) = linger;
    lingers->tail = linger;
}

int64_t
linger_next_deadline(const struct lingers *lingers)
{
    return lingers->head == NULL ? CLOCK_NEVER : lingers->head->deadline_ms;
}

void
linger_expire(struct lingers *lingers)
{
    while (lingers->head != NULL && lingers->head->deadline_ms <= lingers->loop->now_ms) {
        finish(lingers->head);
    }
}

void
linger_stop(struct lingers *lingers)
{
    while (lingers->head != NULL) {
        finish(lingers->head);
    }
}
