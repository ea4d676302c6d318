/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * syscall_trace.h: a program under strace, and the trace while it grows. What it means is for the
 * test to say.
 */
#ifndef KVGATE_TESTS_SYSCALL_TRACE_H
#define KVGATE_TESTS_SYSCALL_TRACE_H

#include <stdbool.h>

/* The trace, in the directory in which the program was started. */
#define SYSCALL_TRACE_FILE "trace"

/*
 * The first arguments of a traced program; WHAT is strace's own filter. With -D the program stays
 * the test's child, not strace's. LeakSanitizer cannot work under ptrace.
 */
#define SYSCALL_TRACE_ARGS(what)                                                                   \
    "strace", "-D", "-f", "-s300", "-o" SYSCALL_TRACE_FILE, "-EASAN_OPTIONS=detect_leaks=0",       \
        "-e" what

/* Whether strace is there and may trace. Says why not. */
bool syscall_trace_possible(void);

/* The trace in DIRECTORY as it is now, as a string that the caller frees. */
char *syscall_trace_read(const char *directory);

/* How often it has WHAT. */
unsigned syscall_trace_count(const char *directory, const char *what);

/* Waits until it has WHAT more than BEFORE times. False: that does not come. */
bool syscall_trace_await(const char *directory, const char *what, unsigned before);

#endif
