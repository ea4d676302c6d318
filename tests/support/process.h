/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * process.h: programs that a test starts: spawn, read what they print, signal, reap.
 *
 * A child dies with the test (PR_SET_PDEATHSIG), so a test that crashes leaves nothing running.
 * Start from the main thread: the kernel ties the child to the thread that forked it.
 */
#ifndef KVGATE_TESTS_PROCESS_H
#define KVGATE_TESTS_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct process {
    pid_t pid;  /* 0: none runs */
    int pid_fd; /* readable when the child has ended (owned) */
    int out;    /* the reading end of its stdout, a pipe (owned) */
    int err;    /* its stderr, a file in memory (owned) */
};

/*
 * Starts ARGV (ARGV[0] is looked up in PATH; NULL-terminated) in DIRECTORY; NULL: where the test
 * runs. Its stdin is empty. False: it could not be started, and P is as after process_deinit.
 */
bool process_start(struct process *p, const char *directory, const char *const argv[]);

/*
 * Reads one line of stdout into LINE, without its newline. False: none came within TIMEOUT_MS, or
 * stdout was closed first.
 */
bool process_read_line(struct process *p, char *line, size_t size, int timeout_ms);

/*
 * Waits for the end and reaps: the exit status, or 128 and the signal's number as a shell has it.
 * A child that is still there after TIMEOUT_MS is killed, and the answer is -1.
 */
int process_wait(struct process *p, int timeout_ms);

/* Sends SIGNAL, then waits as process_wait does. */
int process_stop(struct process *p, int signal, int timeout_ms);

/* Whether it still runs. A child that has ended is not reaped by asking. */
bool process_runs(const struct process *p);

/* What was written to stderr so far, as a string cut at SIZE - 1 bytes. */
void process_read_err(const struct process *p, char *text, size_t size);

/* What is left on stdout until it is closed, cut likewise. Call it after the end. */
void process_read_out(const struct process *p, char *text, size_t size);

/* Copies stderr to the test's own, for a failure that needs an explanation. */
void process_show_err(const struct process *p);

/* Kills what still runs, reaps it and closes. May be called twice. */
void process_deinit(struct process *p);

#endif
