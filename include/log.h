/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * log.h: one line per event, to stderr.
 *
 * Levels, and what belongs there:
 *   LOG_ERROR  the gateway cannot do what it was asked to do (no port, no memory, disk full)
 *   LOG_WARN   somebody else is in trouble and we carry on (a server is down, nonsense came)
 *   LOG_INFO   start, stop, a server is back: a handful of lines a day. The default.
 *   LOG_DEBUG  connections opened and closed, with reasons. Never anything per request.
 *
 * Under systemd (JOURNAL_STREAM names our stderr) each line starts with the journal's "<N>"
 * priority, see sd-daemon(3); otherwise with the time and the level's name. Each line is one
 * write(2), so lines of several threads do not mix. errno is kept. The only state is the level,
 * which is set before threads start and never again.
 */
#ifndef KVGATE_LOG_H
#define KVGATE_LOG_H

#include <stdbool.h>

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

/* Everything above LEVEL is dropped. Call it before the first thread starts. */
void log_set_level(enum log_level level);

/* "error", "warn", "info", "debug" -> *LEVEL; false for any other text. */
bool log_level_parse(const char *text, enum log_level *level);

const char *log_level_name(enum log_level level);

/* The text, without a newline, in printf's format; longer than 1000 bytes is cut. */
void log_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_info(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
