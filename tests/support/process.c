/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * process.c: spawn, read, signal and reap the programs that a test needs. It knows nothing of what
 * they are.
 */
#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"

/* In the child: never returns. OUT and ERR become stdout and stderr. */
static _Noreturn void
run_child(pid_t parent, const char *directory, const char *const argv[], int out, int err)
{
    sigset_t none;
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
        _exit(127);
    }
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (dup2(null, 0) == -1 || dup2(out, 1) == -1 || dup2(err, 2) == -1 ||
        (directory != NULL && chdir(directory) == -1)) {
        _exit(127);
    }
    execvp(argv[0], (char *const *)(uintptr_t)argv);
    dprintf(2, "cannot run %s: %s\n", argv[0], strerror(errno));
    _exit(127);
}

static void
close_fd(int *fd)
{
    if (*fd > 2) {
        close(*fd);
    }
    *fd = -1;
}

bool
process_start(struct process *p, const char *directory, const char *const argv[])
{
    pid_t parent = getpid();
    int out[2];

    *p = (struct process){ .pid_fd = -1, .out = -1, .err = -1 };
    if (pipe2(out, O_CLOEXEC) == -1) {
        return false;
    }
    p->out = out[0];
    p->err = memfd_create("stderr", MFD_CLOEXEC);
    fflush(NULL);
    p->pid = p->err == -1 ? -1 : fork();
    if (p->pid == 0) {
        run_child(parent, directory, argv, out[1], p->err);
    }
    close(out[1]);
    if (p->pid == -1) {
        p->pid = 0;
        process_deinit(p);
        return false;
    }
    p->pid_fd = (int)syscall(SYS_pidfd_open, p->pid, 0);
    return p->pid_fd != -1;
}

/* True: FD is readable, or at its end, before DEADLINE_MS. */
static bool
wait_readable(int fd, int64_t deadline_ms)
{
    for (;;) {
        struct pollfd pfd = { .fd = fd, .events = POLLIN };
        int64_t left = deadline_ms - clock_monotonic_ms();
        int n = poll(&pfd, 1, left > 0 ? (int)left : 0);

        if (n == 1) {
            return true;
        }
        if (n == 0 || errno != EINTR) {
            return false;
        }
    }
}

bool
process_read_line(struct process *p, char *line, size_t size, int timeout_ms)
{
    int64_t deadline = clock_monotonic_ms() + timeout_ms;
    size_t len = 0;

    /* One byte at a time, so that what follows the line stays in the pipe. */
    while (wait_readable(p->out, deadline)) {
        char c;

        if (read(p->out, &c, 1) != 1) {
            break;
        }
        if (c == '\n') {
            line[len] = '\0';
            return true;
        }
        if (len + 1 < size) {
            line[len++] = c;
        }
    }
    line[len] = '\0';
    return false;
}

int
process_wait(struct process *p, int timeout_ms)
{
    int status = 0;
    bool ended;

    if (p->pid <= 0) {
        return -1;
    }
    ended = wait_readable(p->pid_fd, clock_monotonic_ms() + timeout_ms);
    if (!ended) {
        kill(p->pid, SIGKILL);
    }
    while (waitpid(p->pid, &status, 0) == -1 && errno == EINTR) {
    }
    p->pid = 0;
    close_fd(&p->pid_fd);
    if (!ended) {
        return -1;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int
process_stop(struct process *p, int signal, int timeout_ms)
{
    if (p->pid <= 0) {
        return -1;
    }
    kill(p->pid, signal);
    return process_wait(p, timeout_ms);
}

bool
process_runs(const struct process *p)
{
    return p->pid > 0 && !wait_readable(p->pid_fd, 0);
}

void
process_read_err(const struct process *p, char *text, size_t size)
{
    ssize_t n = pread(p->err, text, size - 1, 0);

    text[n > 0 ? n : 0] = '\0';
}

void
process_read_out(const struct process *p, char *text, size_t size)
{
    size_t len = 0;
    ssize_t n;

    while (len + 1 < size && (n = read(p->out, text + len, size - 1 - len)) > 0) {
        len += (size_t)n;
    }
    text[len] = '\0';
}

void
process_show_err(const struct process *p)
{
    char block[4096];
    off_t at = 0;
    ssize_t n;

    while ((n = pread(p->err, block, sizeof(block), at)) > 0) {
        fwrite(block, 1, (size_t)n, stderr);
        at += n;
    }
}

void
process_deinit(struct process *p)
{
    if (p->pid > 0) {
        process_stop(p, SIGKILL, 10000);
    }
    close_fd(&p->pid_fd);
    close_fd(&p->out);
    close_fd(&p->err);
}
