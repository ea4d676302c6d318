/* SPDX-License-Identifier: BSD-2-Clause */
/* test_listener.c: addresses that are taken, taken over, and left alone. All on loopback. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "listener.h"

struct scene {
    struct listener a, b;         /* closed by the teardown */
    char error[CONFIG_ERROR_MAX]; /* of the last listener_open */
    char directory[32];           /* of the test's own (owned) */
    char path[64];                /* "socket" in it */
    char address[80];             /* "unix:" and the path */
};

static int
setup(void **state)
{
    struct scene *scene = calloc(1, sizeof(*scene));

    assert_non_null(scene);
    snprintf(scene->directory, sizeof(scene->directory), "/tmp/kvgate-listen-XXXXXX");
    assert_non_null(mkdtemp(scene->directory));
    snprintf(scene->path, sizeof(scene->path), "%s/socket", scene->directory);
    snprintf(scene->address, sizeof(scene->address), "unix:%s", scene->path);
    *state = scene;
    return 0;
}

static int
teardown(void **state)
{
    struct scene *scene = *state;

    listener_close(&scene->a);
    listener_close(&scene->b);
    unlink(scene->path);
    assert_int_equal(rmdir(scene->directory), 0);
    free(scene);
    return 0;
}

static void
must_open(struct scene *scene, struct listener *listener, const char *address, size_t workers)
{
    if (listener_open(listener, address, workers, scene->error) != 0) {
        fail_msg("%s", scene->error);
    }
}

/* Is refused, says why, and has nothing open then. */
static void
must_fail(struct scene *scene, const char *address)
{
    struct listener listener;

    scene->error[0] = '\0';
    memset(&listener, 0x5a, sizeof(listener));
    assert_int_equal(listener_open(&listener, address, 2, scene->error), -1);
    assert_non_null(strstr(scene->error, address));
    assert_int_equal(listener.count, 0);
    assert_string_equal(listener.path, "");
}

static uint16_t
port_of(int fd)
{
    struct sockaddr_storage address;
    socklen_t len = sizeof(address);

    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    return ntohs(address.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&address)->sin6_port
                                               : ((struct sockaddr_in *)&address)->sin_port);
}

/* A client of a unix socket; -1: nobody listens. It does not wait. */
static int
connect_unix(const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    assert_true(fd >= 0);
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static int
connect_tcp(uint16_t port)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons(port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

/* A socket of TYPE bound to PATH, by somebody else. */
static int
bind_unix(const char *path, int type)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

/* The connection that comes on one of the sockets of LISTENER. */
static int
accept_one(const struct listener *listener)
{
    struct pollfd fds[LISTENER_SOCKETS_MAX];

    for (size_t i = 0; i < listener->count; i++) {
        fds[i] = (struct pollfd){ .fd = listener->sockets[i], .events = POLLIN };
    }
    assert_int_equal(poll(fds, listener->count, 10000), 1);
    for (size_t i = 0; i < listener->count; i++) {
        if (fds[i].revents != 0) {
            return accept4(fds[i].fd, NULL, NULL, SOCK_CLOEXEC);
        }
    }
    return -1;
}

/* ---- TCP ---- */

static void
port_zero_is_one_for_all(void **state)
{
    struct scene *scene = *state;
    char name[64];
    uint16_t port;

    must_open(scene, &scene->a, "127.0.0.1:0", 4);
    assert_int_equal(scene->a.count, 4);
    port = port_of(scene->a.sockets[0]);
    assert_int_not_equal(port, 0);
    for (size_t i = 0; i < 4; i++) {
        int fd = scene->a.sockets[i], listens = 0;
        socklen_t len = sizeof(listens);

        assert_int_equal(listener_socket(&scene->a, i), fd);
        assert_int_equal(port_of(fd), port);
        assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len), 0);
        assert_int_equal(listens, 1);
        assert_true((fcntl(fd, F_GETFL) & O_NONBLOCK) != 0);
        assert_true((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
    }
    snprintf(name, sizeof(name), "http://127.0.0.1:%u/", (unsigned)port);
    assert_string_equal(scene->a.name, name);
    assert_string_equal(scene->a.path, "");
    /* each connection comes to one of them */
    for (int i = 0; i < 20; i++) {
        int client = connect_tcp(port), server = accept_one(&scene->a);

        assert_true(server >= 0);
        close(client);
        close(server);
    }
}

static void
served_already(void **state)
{
    struct scene *scene = *state;
    char address[64];

    for (size_t workers = 1; workers <= 2; workers++) {
        must_open(scene, &scene->a, "127.0.0.1:0", workers);
        snprintf(address, sizeof(address), "127.0.0.1:%u", (unsigned)port_of(scene->a.sockets[0]));
        must_fail(scene, address);
        assert_non_null(strstr(scene->error, strerror(EADDRINUSE)));
        close(connect_tcp(port_of(scene->a.sockets[0])));
        listener_close(&scene->a);
    }
    /* nobody does any more */
    must_open(scene, &scene->b, address, 2);
    assert_int_equal(scene->b.count, 2);
}

/* Connections that the last process closed are still in TIME_WAIT. */
static void
open_again_at_once(void **state)
{
    struct scene *scene = *state;
    int client, server;
    char address[64], byte;

    must_open(scene, &scene->a, "127.0.0.1:0", 2);
    snprintf(address, sizeof(address), "127.0.0.1:%u", (unsigned)port_of(scene->a.sockets[0]));
    client = connect_tcp(port_of(scene->a.sockets[0]));
    server = accept_one(&scene->a);
    close(server);
    assert_int_equal(read(client, &byte, 1), 0);
    close(client);
    listener_close(&scene->a);
    must_open(scene, &scene->b, address, 2);
}

static void
ipv6(void **state)
{
    struct scene *scene = *state;
    char name[64];

    if (listener_open(&scene->a, "[::1]:0", 2, scene->error) != 0) {
        print_message("SKIP: no IPv6 here: %s\n", scene->error);
        skip();
    }
    snprintf(name, sizeof(name), "http://[::1]:%u/", (unsigned)port_of(scene->a.sockets[0]));
    assert_string_equal(scene->a.name, name);
    assert_int_equal(port_of(scene->a.sockets[1]), port_of(scene->a.sockets[0]));
    snprintf(name, sizeof(name), "[::1]:%u", (unsigned)port_of(scene->a.sockets[0]));
    must_fail(scene, name);
    /* the same port of another address is free */
    snprintf(name, sizeof(name), "127.0.0.1:%u", (unsigned)port_of(scene->a.sockets[0]));
    must_open(scene, &scene->b, name, 1);
}

static void
a_name(void **state)
{
    struct scene *scene = *state;

    must_open(scene, &scene->a, "localhost:0", 1);
    assert_int_equal(strncmp(scene->a.name, "http://", 7), 0);
    assert_null(strstr(scene->a.name, "localhost"));
    assert_null(strstr(scene->a.name, ":0/"));
}

static void
more_workers_than_sockets(void **state)
{
    struct scene *scene = *state;

    must_open(scene, &scene->a, "127.0.0.1:0", LISTENER_SOCKETS_MAX + 5);
    assert_int_equal(scene->a.count, LISTENER_SOCKETS_MAX);
    assert_int_equal(listener_socket(&scene->a, LISTENER_SOCKETS_MAX), scene->a.sockets[0]);
}

static void
not_an_address(void **state)
{
    static const char *const bad[] = {
        "nonsense", "127.0.0.1",   "127.0.0.1:",  "127.0.0.1:99999",  "127.0.0.1:x", "[::1]",
        "[::1:80",  "192.0.2.1:0", "300.0.0.1:0", "host.invalid.:80", "127.0.0.1:-1"
    };

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        must_fail(*state, bad[i]);
    }
}

/* ---- unix sockets ---- */

static void
unix_socket(void **state)
{
    struct scene *scene = *state;
    struct stat status;
    int client, server;

    must_open(scene, &scene->a, scene->address, 4);
    assert_int_equal(scene->a.count, 1);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(listener_socket(&scene->a, i), scene->a.sockets[0]);
    }
    assert_string_equal(scene->a.name, scene->address);
    assert_string_equal(scene->a.path, scene->path);
    assert_true((fcntl(scene->a.sockets[0], F_GETFL) & O_NONBLOCK) != 0);
    client = connect_unix(scene->path);
    server = accept_one(&scene->a);
    assert_true(client >= 0 && server >= 0);
    close(client);
    close(server);
    listener_close(&scene->a);
    assert_int_equal(stat(scene->path, &status), -1);
}

static void
a_dead_path_is_taken_over(void **state)
{
    struct scene *scene = *state;
    int client;

    close(bind_unix(scene->path, SOCK_STREAM));
    assert_int_equal(access(scene->path, F_OK), 0);
    must_open(scene, &scene->a, scene->address, 1);
    client = connect_unix(scene->path);
    assert_true(client >= 0);
    close(client);
}

static void
a_served_path_is_not(void **state)
{
    struct scene *scene = *state;
    int client;

    must_open(scene, &scene->a, scene->address, 1);
    must_fail(scene, scene->address);
    assert_non_null(strstr(scene->error, strerror(EADDRINUSE)));
    client = connect_unix(scene->path);
    assert_true(client >= 0);
    close(client);
}

/* Somebody serves, and is so busy that its queue is full: neither dead nor worth waiting for. */
static void
a_busy_path_is_not(void **state)
{
    struct scene *scene = *state;
    int server = bind_unix(scene->path, SOCK_STREAM), clients[64], count = 0, status = -1;
    pid_t child;

    assert_int_equal(listen(server, 1), 0);
    while (count < 64 && (clients[count] = connect_unix(scene->path)) >= 0) {
        count++;
    }
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(5); /* ends a wait without end */
        _exit(listener_open(&scene->b, scene->address, 1, scene->error) == -1 ? 0 : 1);
    }
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    while (count > 0) {
        close(clients[--count]);
    }
    close(server);
    if (WIFSIGNALED(status)) {
        fail_msg("waited for a server that accepts nothing");
    }
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(access(scene->path, F_OK), 0);
}

/* A socket of another kind, /dev/log for example, is not ours to remove. */
static void
another_kind_of_socket(void **state)
{
    struct scene *scene = *state;
    int theirs = bind_unix(scene->path, SOCK_DGRAM);

    must_fail(scene, scene->address);
    assert_int_equal(access(scene->path, F_OK), 0);
    close(theirs);
}

static void
other_files_are_left_alone(void **state)
{
    struct scene *scene = *state;
    struct stat status;
    int fd = open(scene->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    char link[80];

    assert_int_equal(write(fd, "precious", 8), 8);
    close(fd);
    must_fail(scene, scene->address);
    assert_int_equal(stat(scene->path, &status), 0);
    assert_int_equal(status.st_size, 8);
    unlink(scene->path);
    /* a directory, and a link that leads nowhere */
    snprintf(link, sizeof(link), "unix:%s", scene->directory);
    must_fail(scene, link);
    assert_int_equal(symlink("/nowhere/at/all", scene->path), 0);
    must_fail(scene, scene->address);
    assert_int_equal(lstat(scene->path, &status), 0);
    assert_true(S_ISLNK(status.st_mode));
}

static void
paths_that_cannot_be(void **state)
{
    char address[200] = "unix:/tmp/";

    must_fail(*state, "unix:/nowhere/at/all/socket");
    memset(address + 10, 'x', 150);
    must_fail(*state, address);
}

/* ---- closing ---- */

static void
close_twice(void **state)
{
    static struct listener zeros;
    struct scene *scene = *state;

    listener_close(&zeros);
    must_open(scene, &scene->a, scene->address, 1);
    listener_close(&scene->a);
    /* the path may be another one's by now */
    must_open(scene, &scene->b, scene->address, 1);
    listener_close(&scene->a);
    assert_int_equal(access(scene->path, F_OK), 0);
}

/* A machine whose name server is silent must not hold up the tests. */
static int
be_brief(void **state)
{
    (void)state;
    return setenv("RES_OPTIONS", "timeout:1 attempts:1", 1);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(port_zero_is_one_for_all),
        TEST(served_already),
        TEST(open_again_at_once),
        TEST(ipv6),
        TEST(a_name),
        TEST(more_workers_than_sockets),
        TEST(not_an_address),
        TEST(unix_socket),
        TEST(a_dead_path_is_taken_over),
        TEST(a_served_path_is_not),
        TEST(a_busy_path_is_not),
        TEST(another_kind_of_socket),
        TEST(other_files_are_left_alone),
        TEST(paths_that_cannot_be),
        TEST(close_twice),
    };
    return cmocka_run_group_tests(tests, be_brief, NULL);
}
