/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_fake_memcached.c: the fake answers as memcached itself does, byte for byte, and its scripts
 * do what they say. What the other tests find out with the fake is worth as much as this.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "memcached_process.h"
#include "clock.h"
#include "fake_memcached.h"

/* Each is one command; the answer ends before that to the `version` sent behind it. */
static const char *const transcript[] = {
    "get a\r\n",
    "gets a\r\n",
    "set a 5 0 3\r\nabc\r\n",
    "get a\r\n",
    "gets a\r\n",
    "add a 0 0 1\r\nx\r\n",
    "add new 0 0 0\r\n\r\n",
    "gets new\r\n",
    "replace zz 0 0 1\r\nx\r\n",
    "replace a 4294967295 0 3\r\nxyz\r\n",
    "gets a\r\n",
    "append a 9 9 1\r\nd\r\n",
    "prepend a 0 0 1\r\n_\r\n",
    "append zz 0 0 1\r\nx\r\n",
    "gets a\r\n",
    "cas a 0 0 1 999\r\nx\r\n",
    "cas zz 0 0 1 999\r\nx\r\n",
    "cas a 7 0 2 5\r\n10\r\n",
    "gets a\r\n",
    "incr a 5\r\n",
    "decr a 6\r\n",
    "gets a\r\n",
    "decr a 600\r\n",
    "incr a 18446744073709551615\r\n",
    "incr a 2\r\n",
    "gets a\r\n",
    "incr a 18446744073709551616\r\n",
    "incr a x\r\n",
    "incr zz 1\r\n",
    "set text 0 0 2\r\nhi\r\n",
    "incr text 1\r\n",
    "set text 0 0 0\r\n\r\n",
    "incr text 1\r\n",
    "set text 0 0 20\r\n18446744073709551616\r\n",
    "incr text 1\r\n",
    "set text 0 0 3\r\n12a\r\n",
    "decr text 1\r\n",
    "set text 0 0 2\r\n-1\r\n",
    "incr text 1\r\n",
    "touch a 100\r\n",
    "mg a t s\r\n",
    "touch zz 100\r\n",
    "delete zz\r\n",
    "delete a\r\n",
    "get a\r\n",
    "bogus\r\n",
    "get\r\n",
    "set gone 0 -1 1\r\nx\r\n",
    "get gone\r\n",
    "mn\r\n",
    "mg a s v t f c O7\r\n",
    "ms a 3 T0 F5 c O8\r\nabc\r\n",
    "mg a s t f c O9\r\n",
    "mg a v s t f c O9\r\n",
    "mg a v O9 c f s t\r\n",
    "mg a\r\n",
    "ms a 3 T100 ME c O8\r\nabc\r\n",
    "ms zz 3 MR c O8\r\nabc\r\n",
    "ms zz 3 MA c O8\r\nabc\r\n",
    "ms a 1 MA c O8\r\nd\r\n",
    "ms a 1 MP c O8\r\n_\r\n",
    "ms a 1 C99 c O8\r\nx\r\n",
    "ms zz 1 C99 c O8\r\nx\r\n",
    "ms e 2 ME T50 c O8\r\nxy\r\n",
    "mg e t v\r\n",
    "ms e 0 MR T0 O8\r\n\r\n",
    "mg e v t s O8\r\n",
    "md a C99 O1\r\n",
    "md zz C99 O1\r\n",
    "md zz O1\r\n",
    "md a O1\r\n",
    "ma c MI D5 v c t O2\r\n",
    "ma c MI D5 N0 J7 T100 v c t O2\r\n",
    "ma c MI D5 v c O2\r\n",
    "ma c MD D50 v c O2 t\r\n",
    "ma c D1\r\n",
    "ma d MI N60 J18446744073709551615 D1 v t O2\r\n",
    "ma d MI D1 v O2\r\n",
    "ms c 1 O2\r\nx\r\n",
    "ma c D1 v O3\r\n",
    "mg c T50 O3\r\n",
    "mg c t O3\r\n",
    "mg zz T50 t O3\r\n",
    "mg\r\n",
    "flush_all\r\n",
};

struct peer {
    int fd;
    char answer[8192];
};

static int
dial(uint16_t port)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons(port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    struct timeval patience = { .tv_sec = 5 };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

static void
put(int fd, const char *bytes, size_t len)
{
    assert_int_equal(send(fd, bytes, len, MSG_NOSIGNAL), len);
}

/* The answer to COMMAND, which is what comes before that to `version`. */
static const char *
ask(struct peer *peer, const char *command)
{
    size_t len = 0;
    char *end = NULL;

    put(peer->fd, command, strlen(command));
    put(peer->fd, "version\r\n", 9);
    while (end == NULL) {
        ssize_t n = recv(peer->fd, peer->answer + len, sizeof(peer->answer) - len - 1, 0);
        assert_true(n > 0);
        len += (size_t)n;
        peer->answer[len] = '\0';
        end = strstr(peer->answer, "VERSION ");
        if (end != NULL && strstr(end, "\r\n") == NULL) {
            end = NULL;
        }
    }
    *end = '\0';
    return peer->answer;
}

static void
test_it_answers_as_memcached_does(void **state)
{
    struct memcached_process real = { 0 };
    struct fake *fake = fake_create(0);
    struct peer ours, theirs;

    (void)state;
    assert_true(memcached_process_start(&real, NULL));
    ours.fd = dial(fake_port(fake));
    theirs.fd = dial(real.port);
    for (size_t i = 0; i < sizeof(transcript) / sizeof(transcript[0]); i++) {
        const char *expected = ask(&theirs, transcript[i]);
        const char *answer = ask(&ours, transcript[i]);
        if (strcmp(expected, answer) != 0) {
            fail_msg("%s: \"%s\" and not \"%s\"", transcript[i], answer, expected);
        }
    }
    close(ours.fd);
    close(theirs.fd);
    memcached_process_stop(&real);
    fake_destroy(fake);
}

static void
test_a_dialect_lacks_what_it_should(void **state)
{
    struct fake *fake = fake_create(FAKE_LACKS_META | FAKE_LACKS_GETS | FAKE_LACKS_TOUCH);
    struct peer peer = { .fd = dial(fake_port(fake)) };

    (void)state;
    assert_string_equal(ask(&peer, "mg a v\r\n"), "ERROR\r\n");
    assert_string_equal(ask(&peer, "mn\r\n"), "ERROR\r\n");
    assert_string_equal(ask(&peer, "gets a\r\n"), "ERROR\r\n");
    assert_string_equal(ask(&peer, "touch a 1\r\n"), "ERROR\r\n");
    assert_string_equal(ask(&peer, "get a\r\n"), "END\r\n");
    close(peer.fd);
    fake_destroy(fake);
}

static void
expect(int fd, const char *bytes)
{
    char got[256];
    size_t len = strlen(bytes);

    assert_int_equal(recv(fd, got, len, MSG_WAITALL), len);
    assert_memory_equal(got, bytes, len);
}

static void
wait_for_hold(struct fake *fake)
{
    int64_t give_up_ms = clock_monotonic_ms() + 5000;

    while (fake_holding(fake) == 0) {
        assert_true(clock_monotonic_ms() < give_up_ms);
        usleep(500);
    }
}

static void
test_a_script_is_played(void **state)
{
    static const struct fake_step steps[] = {
        FAKE_SEND("hello\r\n"),
        FAKE_EXPECT("mg k O77\r\n"),
        FAKE_SEND("EN %O\r\n"),
        FAKE_LINE,
        FAKE_TAKE(3),
        FAKE_HOLD,
        FAKE_PIECES("abcdef", 4),
        FAKE_DRIP("x%Oy", 2),
        FAKE_BEHAVE,
    };
    struct fake *fake = fake_create(0);
    int fd;
    char byte;
    size_t len;
    char *bytes;

    (void)state;
    FAKE_SCRIPT(fake, steps);
    fake_put(fake, SLICE("k"), SLICE("v"), 3);
    fd = dial(fake_port(fake));
    expect(fd, "hello\r\n");
    put(fd, "version\r\nmg k", 13);
    expect(fd, "VERSION 1.6.18\r\n");
    put(fd, " O77\r\n", 6);
    expect(fd, "EN O77\r\n");
    put(fd, "set a 0 0 1\r\nx\r\n", 16);
    wait_for_hold(fake);
    assert_int_equal(recv(fd, &byte, 1, MSG_DONTWAIT), -1);
    fake_release(fake);
    expect(fd, "abcdefxO77y");
    put(fd, "get k\r\n", 7);
    expect(fd, "VALUE k 3 1\r\nv\r\nEND\r\n");
    assert_int_equal(fake_count(fake, "set "), 1);
    assert_int_equal(fake_count(fake, "x"), 0); /* a data block is no command */
    assert_int_equal(fake_count(fake, ""), 4);
    assert_int_equal(fake_count_on(fake, 0, "get k"), 1);
    assert_int_equal(fake_played(fake), 1);
    bytes = fake_received(fake, 0, &len);
    assert_string_equal(bytes, "version\r\nmg k O77\r\nset a 0 0 1\r\nx\r\nget k\r\n");
    free(bytes);
    assert_null(fake_surprise(fake));
    fake_stop(fake);
    assert_int_equal(recv(fd, &byte, 1, 0), 0);
    assert_int_equal(fake_open(fake), 0);
    close(fd);
    fake_destroy(fake);
}

static void
test_a_script_is_surprised(void **state)
{
    static const struct fake_step steps[] = { FAKE_EXPECT("get k\r\n"), FAKE_SEND("END\r\n") };
    struct fake *fake = fake_create(0);
    char byte;
    int fd;

    (void)state;
    FAKE_SCRIPT(fake, steps);
    fd = dial(fake_port(fake));
    put(fd, "get q", 5);
    assert_true(recv(fd, &byte, 1, 0) <= 0);
    assert_non_null(fake_surprise(fake));
    assert_non_null(strstr(fake_surprise(fake), "got \"get q\""));
    close(fd);
    fake_destroy(fake);
}

/* Nobody listens, and the port comes back. */
static void
test_stop_and_start(void **state)
{
    struct fake *fake = fake_create(0);
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons(fake_port(fake)),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct peer peer;

    (void)state;
    fake_put(fake, SLICE("k"), SLICE("v"), 0);
    fake_stop(fake);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), -1);
    close(fd);
    fake_start(fake);
    peer.fd = dial(fake_port(fake));
    assert_string_equal(ask(&peer, "get k\r\n"), "VALUE k 0 1\r\nv\r\nEND\r\n");
    close(peer.fd);
    fake_destroy(fake);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_answers_as_memcached_does),
        cmocka_unit_test(test_a_dialect_lacks_what_it_should),
        cmocka_unit_test(test_a_script_is_played),
        cmocka_unit_test(test_a_script_is_surprised),
        cmocka_unit_test(test_stop_and_start),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
