/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * report.h: what goes to stderr: errors, and the progress line of a long run. Progress is shown on
 * a terminal only, so that output to a file or a pipe stays plain.
 */
#ifndef KVSTALL_REPORT_H
#define KVSTALL_REPORT_H

/* Prints "kvstall: " and the text, on a line of its own. */
void report_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same, with a hint at --help. Returns EX_USAGE. */
int report_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Only the hint, where getopt has said what is wrong. Returns EX_USAGE. */
int report_hint(void);

/* Replaces the progress line. */
void report_progress(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Removes the progress line. */
void report_progress_end(void);

#endif
