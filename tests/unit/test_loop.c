/* SPDX-License-Identifier: BSD-2-Clause */
/* test_loop.c: waiting in absolute time, and forgetting what has already been fetched. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "clock.h"
#include "loop.h"

/* One that counts how often it was told, and does what the test wants then. */
struct counter {
    struct watch watch;                /* an eventfd (owned) */
    struct loop *loop;                 /* (ref) */
    struct counter *other;             /* (ref) for `act` */
    unsigned *calls;                   /* (ref) outlives the counter */
    uint32_t events;                   /* of the last call */
    void (*act)(struct counter *self); /* may be NULL */
};

static void
told(struct watch *watch, uint32_t events)
{
    struct counter *self = (struct counter *)watch; /* its first member */

    ++*self->calls;
    self->events = events;
    if (self->act != NULL) {
        self->act(self);
    }
}

/* A counter whose eventfd is readable from the start. */
static struct counter *
create(struct loop *loop, unsigned *calls)
{
    struct counter *c = calloc(1, sizeof(*c));

    assert_non_null(c);
    c->watch = (struct watch){ eventfd(1, EFD_NONBLOCK | EFD_CLOEXEC), told };
    assert_true(c->watch.fd >= 0);
    c->loop = loop;
    c->calls = calls;
    assert_int_equal(loop_watch(loop, &c->watch, EPOLLIN), 0);
    return c;
}

static void
destroy(struct counter *c)
{
    loop_unwatch(c->loop, &c->watch);
    close(c->watch.fd);
    free(c);
}

static void
destroy_other(struct counter *self)
{
    if (self->other != NULL) {
        destroy(self->other);
        self->other = NULL;
    }
}

static void
drain(struct counter *self)
{
    uint64_t n;

    assert_int_equal(read(self->watch.fd, &n, sizeof(n)), sizeof(n));
}

static int
setup(void **state)
{
    struct loop *loop = malloc(sizeof(*loop));

    assert_non_null(loop);
    *state = loop;
    return loop_init(loop);
}

static int
teardown(void **state)
{
    loop_deinit(*state);
    free(*state);
    return 0;
}

/* ---- time ---- */

/* One wait is enough: a loop that woke up early would spin until the deadline has come. */
static void
deadlines_have_come(void **state)
{
    struct loop *loop = *state;

    for (int i = 0; i < 60; i++) {
        int64_t deadline = clock_monotonic_ms() + i % 6;

        loop_wait(loop, deadline);
        assert_true(loop->now_ms >= deadline);
        assert_true(clock_monotonic_ms() >= loop->now_ms);
        assert_int_equal(loop->ready_count, 0);
    }
}

static void
deadlines_of_the_past(void **state)
{
    static const int64_t past[] = { 0, -1, INT64_MIN / 2, 1 };
    struct loop *loop = *state;
    int64_t before = clock_monotonic_ms();

    for (int i = 0; i < 1000; i++) {
        loop_wait(loop, i < 4 ? past[i] : before);
    }
    assert_true(loop->now_ms >= before);
    assert_true(loop->now_ms - before < 5000);
}

/* Something is ready, or the test would not end. */
static void
deadlines_far_away(void **state)
{
    static const int64_t far[] = { CLOCK_NEVER, CLOCK_NEVER - 1, (int64_t)INT_MAX * 3,
                                   (int64_t)UINT32_MAX + 1 };
    struct loop *loop = *state;
    unsigned calls = 0;
    struct counter *c = create(loop, &calls);

    for (size_t i = 0; i < 4; i++) {
        loop_wait(loop, far[i]);
        assert_int_equal(loop->ready_count, 1);
        loop_dispatch(loop);
    }
    assert_int_equal(calls, 4);
    destroy(c);
}

/* 2^32 ms and a few are not a few: something that comes first is waited for. */
static void
deadlines_do_not_wrap(void **state)
{
    struct itimerspec soon = { .it_value.tv_nsec = 50 * 1000 * 1000 };
    struct loop *loop = *state;
    unsigned calls = 0;
    struct counter *c = create(loop, &calls);
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);

    drain(c);
    assert_true(timer >= 0);
    assert_int_equal(dup2(timer, c->watch.fd), c->watch.fd);
    close(timer);
    assert_int_equal(loop_watch(loop, &c->watch, EPOLLIN), 0);
    assert_int_equal(timerfd_settime(c->watch.fd, 0, &soon, NULL), 0);
    loop_wait(loop, clock_monotonic_ms() + (INT64_C(1) << 32) + 5);
    assert_int_equal(loop->ready_count, 1);
    loop_dispatch(loop);
    assert_int_equal(calls, 1);
    destroy(c);
}

static void
progress_does_not_wait(void **state)
{
    struct loop *loop = *state;

    loop->progress = true;
    loop_wait(loop, CLOCK_NEVER);
    assert_int_equal(loop->ready_count, 0);
    assert_true(loop->progress);
}

static void
on_alarm(int signal)
{
    (void)signal;
}

static void
a_signal_ends_a_wait(void **state)
{
    struct itimerval every = { { 0, 10000 }, { 0, 10000 } }, never = { { 0, 0 }, { 0, 0 } };
    struct sigaction action = { .sa_handler = on_alarm }, before;
    struct loop *loop = *state;

    sigaction(SIGALRM, &action, &before);
    setitimer(ITIMER_REAL, &every, NULL);
    loop_wait(loop, CLOCK_NEVER);
    setitimer(ITIMER_REAL, &never, NULL);
    sigaction(SIGALRM, &before, NULL);
    assert_int_equal(loop->ready_count, 0);
    loop_dispatch(loop);
}

/* ---- watches ---- */

static void
told_until_it_is_read(void **state)
{
    struct loop *loop = *state;
    unsigned calls = 0;
    struct counter *c = create(loop, &calls);

    for (unsigned i = 1; i <= 3; i++) {
        loop_wait(loop, CLOCK_NEVER);
        loop_dispatch(loop);
        assert_int_equal(calls, i);
        assert_int_equal(c->events, EPOLLIN);
        /* what was dispatched is not dispatched again */
        loop_dispatch(loop);
        assert_int_equal(calls, i);
    }
    drain(c);
    loop_wait(loop, 0);
    loop_dispatch(loop);
    assert_int_equal(calls, 3);
    destroy(c);
}

static void
rewatch(void **state)
{
    struct loop *loop = *state;
    unsigned calls = 0;
    struct counter *c = create(loop, &calls);

    loop_rewatch(loop, &c->watch, 0);
    loop_wait(loop, 0);
    loop_dispatch(loop);
    assert_int_equal(calls, 0);
    loop_rewatch(loop, &c->watch, EPOLLIN | EPOLLOUT);
    loop_wait(loop, CLOCK_NEVER);
    loop_dispatch(loop);
    assert_int_equal(calls, 1);
    assert_int_equal(c->events, EPOLLIN | EPOLLOUT);
    loop_rewatch(loop, &c->watch, EPOLLOUT);
    loop_wait(loop, CLOCK_NEVER);
    loop_dispatch(loop);
    assert_int_equal(c->events, EPOLLOUT);
    destroy(c);
}

static void
unwatched_is_not_told(void **state)
{
    struct loop *loop = *state;
    unsigned calls = 0;
    struct counter *c = create(loop, &calls);

    loop_unwatch(loop, &c->watch);
    loop_wait(loop, 0);
    loop_dispatch(loop);
    /* between wait and dispatch: the event has been fetched */
    assert_int_equal(loop_watch(loop, &c->watch, EPOLLIN), 0);
    loop_wait(loop, CLOCK_NEVER);
    assert_int_equal(loop->ready_count, 1);
    destroy(c);
    loop_dispatch(loop);
    assert_int_equal(calls, 0);
}

/* Two are ready in one batch; whichever comes first destroys the other one. */
static void
destroyed_by_another(void **state)
{
    struct loop *loop = *state;
    unsigned calls[2] = { 0, 0 };
    struct counter *a = create(loop, &calls[0]), *b = create(loop, &calls[1]);

    a->act = b->act = destroy_other;
    a->other = b;
    b->other = a;
    loop_wait(loop, CLOCK_NEVER);
    assert_int_equal(loop->ready_count, 2);
    loop_dispatch(loop);
    assert_int_equal(calls[0] + calls[1], 1);
    destroy(calls[0] == 1 ? a : b);
}

static void
destroyed_by_itself(void **state)
{
    struct loop *loop = *state;
    unsigned calls = 0;

    for (int i = 0; i < 3; i++) {
        create(loop, &calls)->act = destroy;
    }
    loop_wait(loop, CLOCK_NEVER);
    loop_dispatch(loop);
    assert_int_equal(calls, 3);
    loop_wait(loop, 0);
    assert_int_equal(loop->ready_count, 0);
}

static void
more_than_a_batch(void **state)
{
    enum { COUNT = LOOP_BATCH + 50 };
    static struct counter *counters[COUNT];
    struct loop *loop = *state;
    unsigned calls = 0;

    for (size_t i = 0; i < COUNT; i++) {
        counters[i] = create(loop, &calls);
        counters[i]->act = drain;
    }
    loop_wait(loop, CLOCK_NEVER);
    assert_int_equal(loop->ready_count, LOOP_BATCH);
    loop_dispatch(loop);
    loop_wait(loop, CLOCK_NEVER);
    loop_dispatch(loop);
    assert_int_equal(calls, COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        destroy(counters[i]);
    }
}

static void
what_cannot_be_watched(void **state)
{
    struct watch file = { open("/proc/self/exe", O_RDONLY | O_CLOEXEC), told };
    unsigned calls = 0;
    struct counter *c = create(*state, &calls);

    assert_int_equal(loop_watch(*state, &file, EPOLLIN), -1);
    assert_int_equal(loop_watch(*state, &c->watch, EPOLLIN), -1); /* twice */
    close(file.fd);
    destroy(c);
}

/* Descriptor 0 is not the loop's, although a loop of zeros seems to say so. */
static void
deinit_of_nothing(void **state)
{
    static struct loop zeros;
    int fd = dup(0), mine = fd >= 0 ? fd : open("/dev/null", O_RDONLY);
    struct loop twice;

    (void)state;
    dup2(mine, 0);
    loop_deinit(&zeros);
    loop_deinit(&zeros);
    assert_true(fcntl(0, F_GETFD) >= 0);
    close(mine);
    assert_int_equal(loop_init(&twice), 0);
    assert_true((fcntl(twice.epoll_fd, F_GETFD) & FD_CLOEXEC) != 0);
    loop_deinit(&twice);
    loop_deinit(&twice);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(deadlines_have_come),    TEST(deadlines_of_the_past),
        TEST(deadlines_far_away),     TEST(deadlines_do_not_wrap),
        TEST(progress_does_not_wait), TEST(a_signal_ends_a_wait),
        TEST(told_until_it_is_read),  TEST(rewatch),
        TEST(unwatched_is_not_told),  TEST(destroyed_by_another),
        TEST(destroyed_by_itself),    TEST(more_than_a_batch),
        TEST(what_cannot_be_watched), cmocka_unit_test(deinit_of_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
