/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * report.c: errors and progress on stderr.
 */
#include "report.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <sysexits.h>
#include <unistd.h>

/* Whether a progress line stands on the terminal: stderr is one for the whole process. */
static bool progress_shown;

static void
print_error(const char *format, va_list args)
{
    report_progress_end();
    fputs("kvstall: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
}

void
report_error(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    print_error(format, args);
    va_end(args);
}

int
report_hint(void)
{
    fputs("Try kvstall --help.\n", stderr);
    return EX_USAGE;
}

int
report_usage(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    print_error(format, args);
    va_end(args);
    return report_hint();
}

void
report_progress(const char *format, ...)
{
    va_list args;

    if (isatty(STDERR_FILENO) == 0) {
        return;
    }
    fputs("\r\033[K", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fflush(stderr);
    progress_shown = true;
}

void
report_progress_end(void)
{
    if (progress_shown) {
        fputs("\r\033[K", stderr);
        progress_shown = false;
    }
}
