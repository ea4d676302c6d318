/* SPDX-License-Identifier: BSD-2-Clause */
/* syscall_trace.c: strace's output file, read again and again. Knows no system call by name. */
#include "syscall_trace.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "clock.h"
#include "process.h"

bool
syscall_trace_possible(void)
{
    static const char *const argv[] = { "strace", "-qq", "-o", "/dev/null", "true", NULL };
    struct process p;
    char why[512];
    int status;

    if (!process_start(&p, NULL, argv)) {
        return false;
    }
    status = process_wait(&p, 10000);
    process_read_err(&p, why, sizeof(why));
    process_deinit(&p);
    if (status != 0) {
        printf("SKIP: strace is missing or may not trace here: %s\n", why);
    }
    return status == 0;
}

char *
syscall_trace_read(const char *directory)
{
    char path[128], *text = NULL;
    size_t cap = 0;
    FILE *f;

    snprintf(path, sizeof(path), "%s/" SYSCALL_TRACE_FILE, directory);
    f = fopen(path, "r");
    if (f == NULL) {
        return strdup("");
    }
    if (getdelim(&text, &cap, '\0', f) == -1) {
        free(text);
        text = strdup("");
    }
    fclose(f);
    return text;
}

unsigned
syscall_trace_count(const char *directory, const char *what)
{
    char *text = syscall_trace_read(directory);
    unsigned n = 0;

    for (const char *at = text; (at = strstr(at, what)) != NULL; at++) {
        n++;
    }
    free(text);
    return n;
}

bool
syscall_trace_await(const char *directory, const char *what, unsigned before)
{
    int64_t deadline = clock_monotonic_ms() + 5000;

    while (syscall_trace_count(directory, what) <= before) {
        if (clock_monotonic_ms() > deadline) {
            return false;
        }
        nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
    }
    return true;
}
