/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * log.c: builds one line in a buffer on the stack and gives it to stderr in one write. Takes no
 * lock and no memory; does not rotate, send or store anything.
 */
#include "log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Bytes of text in a line; a longer one is cut. */
#define LOG_TEXT_MAX 1000

/* Room for what goes before the text: "2026-01-31T12:00:00.000Z error: " and some more. */
#define LOG_HEAD_MAX 64

struct level {
    const char *name; /* in the configuration and on a terminal */
    const char *mark; /* the journal's priority, see sd-daemon(3) */
};

static const struct level levels[] = {
    [LOG_ERROR] = { "error", "<3>" },
    [LOG_WARN] = { "warn", "<4>" },
    [LOG_INFO] = { "info", "<6>" },
    [LOG_DEBUG] = { "debug", "<7>" },
};

static enum log_level threshold = LOG_INFO;

void
log_set_level(enum log_level level)
{
    threshold = level;
}

bool
log_level_parse(const char *text, enum log_level *level)
{
    for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
        if (strcmp(text, levels[i].name) == 0) {
            *level = (enum log_level)i;
            return true;
        }
    }
    return false;
}

const char *
log_level_name(enum log_level level)
{
    return levels[level].name;
}

/*
 * Whether stderr is the journal: JOURNAL_STREAM holds its device and inode. A child whose stderr
 * was redirected inherits the variable but not the journal, so the numbers must agree.
 */
static bool
stderr_is_journal(void)
{
    const char *text = getenv("JOURNAL_STREAM");
    uintmax_t device, inode;
    struct stat st;

    return text != NULL && sscanf(text, "%" SCNuMAX ":%" SCNuMAX, &device, &inode) == 2 &&
           fstat(STDERR_FILENO, &st) == 0 && (uintmax_t)st.st_dev == device &&
           (uintmax_t)st.st_ino == inode;
}

/* Writes what goes before the text into HEAD and returns its length. */
static size_t
head_format(enum log_level level, char head[LOG_HEAD_MAX])
{
    struct timespec now;
    struct tm tm;
    size_t len;

    if (stderr_is_journal()) {
        len = strlen(levels[level].mark);
        memcpy(head, levels[level].mark, len);
        return len;
    }
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &tm);
    len = strftime(head, LOG_HEAD_MAX, "%Y-%m-%dT%H:%M:%S", &tm);
    return len + (size_t)snprintf(head + len, LOG_HEAD_MAX - len,
                                  ".%03dZ %s: ", (int)(now.tv_nsec / 1000000), levels[level].name);
}

/*
 * A line may quote what a peer sent. A control character in it could forge a second line or speak
 * to a terminal, so each becomes a question mark.
 */
static void
text_disarm(char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c < 0x20 || c == 0x7f) {
            text[i] = '?';
        }
    }
}

static void __attribute__((format(printf, 2, 0)))
line_write(enum log_level level, const char *format, va_list args)
{
    char line[LOG_HEAD_MAX + LOG_TEXT_MAX + 1];
    int saved_errno = errno;
    size_t head, len;
    ssize_t written;
    int wanted;

    if (level > threshold) {
        return;
    }
    head = head_format(level, line);
    /* %m in FORMAT must tell the caller's error, not that of the calls above. */
    errno = saved_errno;
    wanted = vsnprintf(line + head, LOG_TEXT_MAX + 1, format, args);
    len = wanted < 0 ? 0 : (size_t)wanted;
    if (len > LOG_TEXT_MAX) {
        len = LOG_TEXT_MAX;
    }
    text_disarm(line + head, len);
    line[head + len] = '\n';
    /* Where should a failure be reported? Once more, when a signal came between, and no more. */
    do {
        written = write(STDERR_FILENO, line, head + len + 1);
    } while (written < 0 && errno == EINTR);
    errno = saved_errno;
}

void
log_error(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    line_write(LOG_ERROR, format, args);
    va_end(args);
}

void
log_warn(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    line_write(LOG_WARN, format, args);
    va_end(args);
}

void
log_info(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    line_write(LOG_INFO, format, args);
    va_end(args);
}

void
log_debug(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    line_write(LOG_DEBUG, format, args);
    va_end(args);
}
