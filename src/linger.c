/* SPDX-License-Identifier: BSD-2-Clause */
/* linger.c: reads and drops, and closes in time. */
#include "linger.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"

/* What one event reads at the most: other clients wait meanwhile. */
#define LINGER_READS 8

struct linger_socket {
    struct watch watch;      /* the socket (owned) */
    struct lingers *lingers; /* (ref) the list that it is on */
    TAILQ_ENTRY(linger_socket) link;
    int64_t deadline_ms; /* closed then at the latest */
    size_t left;         /* bytes that are still read */
};

void
linger_init(struct lingers *lingers, struct loop *loop)
{
    lingers->loop = loop;
    TAILQ_INIT(&lingers->sockets);
}

static void
finish(struct linger_socket *linger)
{
    struct lingers *lingers = linger->lingers;

    TAILQ_REMOVE(&lingers->sockets, linger, link);
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
    TAILQ_INSERT_TAIL(&lingers->sockets, linger, link);
}

int64_t
linger_next_deadline(const struct lingers *lingers)
{
    const struct linger_socket *oldest = TAILQ_FIRST(&lingers->sockets);

    return oldest == NULL ? CLOCK_NEVER : oldest->deadline_ms;
}

void
linger_expire(struct lingers *lingers)
{
    struct linger_socket *oldest;

    /* the analyzer does not see that TAILQ_REMOVE moves the head on */
    while ((oldest = TAILQ_FIRST(&lingers->sockets)) != NULL &&
           /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
           oldest->deadline_ms <= lingers->loop->now_ms) {
        finish(oldest);
    }
}

bool
linger_is_empty(const struct lingers *lingers)
{
    return TAILQ_EMPTY(&lingers->sockets);
}

void
linger_stop(struct lingers *lingers)
{
    struct linger_socket *oldest;

    while ((oldest = TAILQ_FIRST(&lingers->sockets)) != NULL) {
        finish(oldest); /* NOLINT(clang-analyzer-unix.Malloc): as above */
    }
}
