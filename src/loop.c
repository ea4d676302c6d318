/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * loop.c: epoll with the two things that it lacks: a deadline in absolute time, and a way to forget
 * a descriptor whose event has already been fetched.
 */
#include "loop.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <unistd.h>

#include "clock.h"

int
loop_init(struct loop *loop)
{
    *loop = (struct loop){ .epoll_fd = -1, .now_ms = clock_monotonic_ms() };
    loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    return loop->epoll_fd < 0 ? -1 : 0;
}

void
loop_deinit(struct loop *loop)
{
    if (loop->epoll_fd > 0) {
        close(loop->epoll_fd);
    }
    loop->epoll_fd = -1;
}

static int
control(struct loop *loop, int how, struct watch *watch, uint32_t events)
{
    struct epoll_event event = { .events = events, .data.ptr = watch };

    assert(watch->fd >= 0);
    return epoll_ctl(loop->epoll_fd, how, watch->fd, &event);
}

int
loop_watch(struct loop *loop, struct watch *watch, uint32_t events)
{
    return control(loop, EPOLL_CTL_ADD, watch, events);
}

void
loop_rewatch(struct loop *loop, struct watch *watch, uint32_t events)
{
    int status = control(loop, EPOLL_CTL_MOD, watch, events);

    assert(status == 0);
    (void)status;
}

void
loop_unwatch(struct loop *loop, struct watch *watch)
{
    control(loop, EPOLL_CTL_DEL, watch, 0);
    for (int i = 0; i < loop->ready_count; i++) {
        if (loop->ready[i].data.ptr == watch) {
            loop->ready[i].data.ptr = NULL;
        }
    }
}

/* Milliseconds that epoll_wait may sleep, rounded up so that the deadline has really come. */
static int
timeout_until(const struct loop *loop, int64_t deadline_ms)
{
    int64_t left;

    if (loop->progress) {
        return 0;
    }
    if (deadline_ms == CLOCK_NEVER) {
        return -1;
    }
    left = deadline_ms - clock_monotonic_ms();
    if (left <= 0) {
        return 0;
    }
    return left > INT_MAX ? INT_MAX : (int)left;
}

void
loop_wait(struct loop *loop, int64_t deadline_ms)
{
    int count =
        epoll_wait(loop->epoll_fd, loop->ready, LOOP_BATCH, timeout_until(loop, deadline_ms));

    assert(count >= 0 || errno == EINTR);
    loop->ready_count = count < 0 ? 0 : count;
    loop->now_ms = clock_monotonic_ms();
}

void
loop_dispatch(struct loop *loop)
{
    for (int i = 0; i < loop->ready_count; i++) {
        struct watch *watch = loop->ready[i].data.ptr;
        if (watch != NULL) {
            watch->ready(watch, loop->ready[i].events);
        }
    }
    loop->ready_count = 0;
}
