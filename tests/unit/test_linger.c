/* SPDX-License-Identifier: BSD-2-Clause */
/* test_linger.c: sockets that are closed when the client has heard, or in time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "linger.h"
#include "loop.h"

struct scene {
    struct loop loop;
    struct lingers lingers;
};

static int
setup(void **state)
{
    struct scene *scene = calloc(1, sizeof(*scene));

    assert_non_null(scene);
    linger_init(&scene->lingers, &scene->loop);
    *state = scene;
    return loop_init(&scene->loop);
}

static int
teardown(void **state)
{
    struct scene *scene = *state;

    linger_stop(&scene->lingers);
    assert_true(linger_is_empty(&scene->lingers));
    loop_deinit(&scene->loop);
    free(scene);
    return 0;
}

/* A connection: OURS is what lingers, the result is the client's end. */
static int
connect_pair(int *ours)
{
    int fds[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    *ours = fds[0];
    return fds[1];
}

static bool
is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

/* One turn, in which something is ready already. */
static void
turn(struct scene *scene)
{
    int64_t now = scene->loop.now_ms;

    loop_wait(&scene->loop, clock_monotonic_ms() + 5000);
    loop_dispatch(&scene->loop);
    scene->loop.now_ms = now; /* time is the test's to move */
}

static void
the_answer_comes_then_the_end(void **state)
{
    struct scene *scene = *state;
    char answer[16];
    int ours, client = connect_pair(&ours);

    assert_int_equal(write(ours, "answer", 6), 6);
    linger_start(&scene->lingers, ours);
    assert_int_equal(read(client, answer, sizeof(answer)), 6);
    assert_int_equal(read(client, answer, sizeof(answer)), 0);
    /* and the client may still write */
    assert_int_equal(send(client, "rest", 4, MSG_NOSIGNAL), 4);
    turn(scene);
    assert_true(is_open(ours));
    assert_false(linger_is_empty(&scene->lingers));
    close(client);
    turn(scene);
    assert_false(is_open(ours));
    assert_true(linger_is_empty(&scene->lingers));
    assert_true(linger_next_deadline(&scene->lingers) == CLOCK_NEVER);
}

static void
the_client_shuts_its_side(void **state)
{
    struct scene *scene = *state;
    int ours, client = connect_pair(&ours);

    linger_start(&scene->lingers, ours);
    assert_int_equal(send(client, "rest", 4, MSG_NOSIGNAL), 4);
    shutdown(client, SHUT_WR);
    turn(scene);
    assert_false(is_open(ours));
    close(client);
}

static void
gone_before_it_starts(void **state)
{
    struct scene *scene = *state;
    int ours, client = connect_pair(&ours);

    close(client);
    linger_start(&scene->lingers, ours);
    turn(scene);
    assert_false(is_open(ours));
}

static void
no_longer_than_its_time(void **state)
{
    struct scene *scene = *state;
    int ours, client = connect_pair(&ours);
    int64_t start = scene->loop.now_ms;

    linger_expire(&scene->lingers);
    assert_true(linger_next_deadline(&scene->lingers) == CLOCK_NEVER);
    linger_start(&scene->lingers, ours);
    assert_true(linger_next_deadline(&scene->lingers) == start + LINGER_MS);
    /* a client that writes gains no time */
    scene->loop.now_ms = start + LINGER_MS - 1;
    assert_int_equal(send(client, "rest", 4, MSG_NOSIGNAL), 4);
    turn(scene);
    linger_expire(&scene->lingers);
    assert_true(is_open(ours));
    assert_true(linger_next_deadline(&scene->lingers) == start + LINGER_MS);
    scene->loop.now_ms = start + LINGER_MS;
    linger_expire(&scene->lingers);
    assert_false(is_open(ours));
    assert_true(linger_next_deadline(&scene->lingers) == CLOCK_NEVER);
    close(client);
}

/* The client writes as long as it can, and the gateway reads when it is told. */
static size_t
write_until_cut(struct scene *scene, int client, size_t limit)
{
    static char block[64 * 1024];
    size_t sent = 0;

    while (sent < limit && !linger_is_empty(&scene->lingers)) {
        size_t want = limit - sent < sizeof(block) ? limit - sent : sizeof(block);
        ssize_t n = send(client, block, want, MSG_NOSIGNAL);

        if (n < 0) {
            assert_true(errno == EAGAIN || errno == EPIPE || errno == ECONNRESET);
        } else {
            sent += (size_t)n;
        }
        turn(scene);
    }
    return sent;
}

static void
no_more_than_its_bytes(void **state)
{
    struct scene *scene = *state;
    int ours, client = connect_pair(&ours);
    size_t sent;

    linger_start(&scene->lingers, ours);
    sent = write_until_cut(scene, client, 2 * LINGER_BYTES);
    assert_false(is_open(ours));
    /* what the socket holds is sent and not read */
    assert_in_range(sent, LINGER_BYTES, LINGER_BYTES + 1024 * 1024);
    close(client);
    client = connect_pair(&ours);
    linger_start(&scene->lingers, ours);
    assert_int_equal(write_until_cut(scene, client, LINGER_BYTES - 1), LINGER_BYTES - 1);
    assert_true(is_open(ours));
    close(client);
}

/* Each leaves the list from each place in it, and the others keep their order and their time. */
static void
several(void **state)
{
    struct scene *scene = *state;
    int64_t start = scene->loop.now_ms;

    for (int first = 0; first < 3; first++) {
        for (int second = 0; second < 3; second++) {
            int ours[3], clients[3], last = 3 - first - second;

            if (first == second) {
                continue;
            }
            for (int i = 0; i < 3; i++) {
                scene->loop.now_ms = start + i * 10;
                clients[i] = connect_pair(&ours[i]);
                linger_start(&scene->lingers, ours[i]);
            }
            assert_true(linger_next_deadline(&scene->lingers) == start + LINGER_MS);
            close(clients[first]);
            turn(scene);
            assert_false(is_open(ours[first]));
            close(clients[second]);
            turn(scene);
            assert_false(is_open(ours[second]));
            assert_true(is_open(ours[last]));
            assert_true(linger_next_deadline(&scene->lingers) == start + last * 10 + LINGER_MS);
            scene->loop.now_ms = start + last * 10 + LINGER_MS;
            linger_expire(&scene->lingers);
            assert_false(is_open(ours[last]));
            close(clients[last]);
        }
    }
}

static void
only_those_whose_time_has_come(void **state)
{
    struct scene *scene = *state;
    int64_t start = scene->loop.now_ms;
    int ours[4], clients[4];

    for (int i = 0; i < 4; i++) {
        scene->loop.now_ms = start + i * 10;
        clients[i] = connect_pair(&ours[i]);
        linger_start(&scene->lingers, ours[i]);
    }
    scene->loop.now_ms = start + 10 + LINGER_MS;
    linger_expire(&scene->lingers);
    assert_false(is_open(ours[0]));
    assert_false(is_open(ours[1]));
    assert_true(is_open(ours[2]));
    assert_true(is_open(ours[3]));
    linger_stop(&scene->lingers);
    assert_false(is_open(ours[2]));
    assert_false(is_open(ours[3]));
    linger_stop(&scene->lingers);
    for (int i = 0; i < 4; i++) {
        close(clients[i]);
    }
}

/* What the loop cannot watch is closed, not lost. */
static void
not_a_socket(void **state)
{
    struct scene *scene = *state;
    int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

    assert_true(file >= 0);
    linger_start(&scene->lingers, file);
    assert_false(is_open(file));
    assert_true(linger_is_empty(&scene->lingers));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_answer_comes_then_the_end),  TEST(the_client_shuts_its_side),
        TEST(gone_before_it_starts),          TEST(no_longer_than_its_time),
        TEST(no_more_than_its_bytes),         TEST(several),
        TEST(only_those_whose_time_has_come), TEST(not_a_socket),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
