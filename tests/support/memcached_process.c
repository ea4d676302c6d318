/* SPDX-License-Identifier: BSD-2-Clause */
/* memcached_process.c: runs a real memcached for tests. Knows nothing of its protocol. */
#include "memcached_process.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"

#define ARGS_MAX      32
#define START_TRIES   5     /* another process may take the port that was just free */
#define START_WAIT_MS 10000 /* until it accepts; the machine may be busy */
#define STOP_WAIT_MS  5000  /* from SIGTERM to SIGKILL */

static void
wait_a_moment(void)
{
    nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
}

static struct sockaddr_in
loopback(uint16_t port)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port) };

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

/* 0: none to be had. */
static uint16_t
free_port(void)
{
    struct sockaddr_in address = loopback(0);
    socklen_t len = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    uint16_t port = 0;

    if (fd >= 0 && bind(fd, (struct sockaddr *)&address, len) == 0 &&
        getsockname(fd, (struct sockaddr *)&address, &len) == 0) {
        port = ntohs(address.sin_port);
    }
    if (fd >= 0) {
        close(fd);
    }
    return port;
}

int
memcached_process_connect(const struct memcached_process *s)
{
    struct sockaddr_in address = loopback(s->port);
    struct timeval limit = { .tv_sec = 5 };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0) {
        return -1;
    }
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
        close(fd);
        return -1;
    }
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
    return fd;
}

/*
 * The child's part. Root stays root: a change of user would clear the parent-death signal, and
 * memcached refuses to run as root without being told to.
 */
static _Noreturn void
run(const struct memcached_process *s, pid_t parent)
{
    char port[8];
    char *args[ARGS_MAX] = { "memcached", "-l", "127.0.0.1", "-U", "0", "-t", "2", "-p", port };
    size_t n = 9;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
        _exit(1);
    }
    snprintf(port, sizeof(port), "%u", (unsigned)s->port);
    if (geteuid() == 0) {
        args[n++] = "-u";
        args[n++] = "root";
    }
    for (const char *const *arg = s->extra_args; arg != NULL && *arg != NULL; arg++) {
        if (n == ARGS_MAX - 1) {
            _exit(1);
        }
        args[n++] = (char *)(uintptr_t)*arg;
    }
    execvp(args[0], args);
    perror("memcached");
    _exit(127);
}

/* One attempt on s->port. A child that ended at once is reaped. */
static bool
spawn(struct memcached_process *s)
{
    int64_t deadline = clock_monotonic_ms() + START_WAIT_MS;
    pid_t parent = getpid();

    fflush(NULL);
    s->pid = fork();
    if (s->pid < 0) {
        s->pid = 0;
        return false;
    }
    if (s->pid == 0) {
        run(s, parent);
    }
    while (clock_monotonic_ms() < deadline) {
        int fd;

        if (waitpid(s->pid, NULL, WNOHANG) == s->pid) {
            s->pid = 0;
            return false;
        }
        fd = memcached_process_connect(s);
        if (fd >= 0) {
            close(fd);
            return true;
        }
        wait_a_moment();
    }
    memcached_process_kill(s);
    return false;
}

bool
memcached_process_start(struct memcached_process *s, const char *const *extra_args)
{
    *s = (struct memcached_process){ .extra_args = extra_args };
    for (int i = 0; i < START_TRIES; i++) {
        s->port = free_port();
        if (s->port != 0 && spawn(s)) {
            return true;
        }
    }
    fprintf(stderr, "memcached could not be started\n");
    return false;
}

bool
memcached_process_restart(struct memcached_process *s)
{
    memcached_process_kill(s);
    for (int i = 0; i < START_TRIES; i++) {
        if (spawn(s)) {
            return true;
        }
        wait_a_moment();
    }
    fprintf(stderr, "memcached could not be started again\n");
    return false;
}

void
memcached_process_kill(struct memcached_process *s)
{
    if (s->pid == 0) {
        return;
    }
    kill(s->pid, SIGKILL);
    while (waitpid(s->pid, NULL, 0) < 0 && errno == EINTR) {
    }
    s->pid = 0;
}

void
memcached_process_stop(struct memcached_process *s)
{
    int64_t deadline = clock_monotonic_ms() + STOP_WAIT_MS;

    if (s->pid == 0) {
        return;
    }
    kill(s->pid, SIGTERM);
    kill(s->pid, SIGCONT);
    while (clock_monotonic_ms() < deadline) {
        if (waitpid(s->pid, NULL, WNOHANG) == s->pid) {
            s->pid = 0;
            return;
        }
        wait_a_moment();
    }
    memcached_process_kill(s);
}

void
memcached_process_pause(struct memcached_process *s)
{
    kill(s->pid, SIGSTOP);
    while (waitpid(s->pid, NULL, WUNTRACED) < 0 && errno == EINTR) {
    }
}

void
memcached_process_resume(struct memcached_process *s)
{
    kill(s->pid, SIGCONT);
    while (waitpid(s->pid, NULL, WCONTINUED) < 0 && errno == EINTR) {
    }
}
