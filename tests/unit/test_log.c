/* SPDX-License-Identifier: BSD-2-Clause */
/* test_log.c: what a line looks like, where it is cut, and which lines are dropped. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "log.h"

/* More than four threads of fifty long lines. */
#define CAPTURE_MAX (512 * 1024)

/* While a capture runs, stderr is a file without a name. */
struct capture {
    int file;       /* that file */
    int old_stderr; /* the real stderr, kept for the end */
    char *text;     /* what was captured; CAPTURE_MAX bytes, from the heap */
};

static int
setup(void **state)
{
    struct capture *c = calloc(1, sizeof(*c));
    FILE *file = tmpfile();

    if (c == NULL || file == NULL) {
        return -1;
    }
    c->text = malloc(CAPTURE_MAX);
    c->file = dup(fileno(file));
    fclose(file);
    c->old_stderr = dup(STDERR_FILENO);
    if (c->text == NULL || c->file < 0 || c->old_stderr < 0 || dup2(c->file, STDERR_FILENO) < 0) {
        return -1;
    }
    unsetenv("JOURNAL_STREAM");
    log_set_level(LOG_INFO);
    *state = c;
    return 0;
}

static int
teardown(void **state)
{
    struct capture *c = *state;

    dup2(c->old_stderr, STDERR_FILENO);
    close(c->old_stderr);
    close(c->file);
    free(c->text);
    free(c);
    return 0;
}

/* What was written since the last call. */
static const char *
captured(struct capture *c)
{
    ssize_t len = pread(c->file, c->text, CAPTURE_MAX - 1, 0);

    assert_true(len >= 0);
    c->text[len] = '\0';
    assert_int_equal(ftruncate(c->file, 0), 0);
    assert_int_equal(lseek(c->file, 0, SEEK_SET), 0);
    return c->text;
}

/* Makes JOURNAL_STREAM name stderr, or a file close to it when OFFSET is not 0. */
static void
pretend_journal(unsigned offset)
{
    struct stat st;
    char text[64];

    assert_int_equal(fstat(STDERR_FILENO, &st), 0);
    snprintf(text, sizeof(text), "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino + offset);
    assert_int_equal(setenv("JOURNAL_STREAM", text, 1), 0);
}

static void
levels_by_name(void **state)
{
    static const char *const bad[] = { "", "Info", "info ", "warning", "4" };
    enum log_level level;

    (void)state;
    assert_true(log_level_parse("error", &level) && level == LOG_ERROR);
    assert_true(log_level_parse("warn", &level) && level == LOG_WARN);
    assert_true(log_level_parse("info", &level) && level == LOG_INFO);
    assert_true(log_level_parse("debug", &level) && level == LOG_DEBUG);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_false(log_level_parse(bad[i], &level));
    }
    for (int i = LOG_ERROR; i <= LOG_DEBUG; i++) {
        assert_true(log_level_parse(log_level_name((enum log_level)i), &level));
        assert_int_equal(level, i);
    }
}

static void
has_time_and_level(void **state)
{
    const char *line;
    int year, month, day, hour, minute, second, ms, used = 0;

    log_warn("server %s is down, %d left", "a:1", 2);
    line = captured(*state);
    assert_int_equal(sscanf(line, "%4d-%2d-%2dT%2d:%2d:%2d.%3dZ %n", &year, &month, &day, &hour,
                            &minute, &second, &ms, &used),
                     7);
    assert_true(year >= 2024 && month >= 1 && month <= 12);
    assert_string_equal(line + used, "warn: server a:1 is down, 2 left\n");
}

static void
has_priority_in_the_journal(void **state)
{
    pretend_journal(0);
    log_set_level(LOG_DEBUG);
    log_error("a");
    log_warn("b");
    log_info("c");
    log_debug("d");
    assert_string_equal(captured(*state), "<3>a\n<4>b\n<6>c\n<7>d\n");
}

/* The variable is inherited by children whose stderr is elsewhere. */
static void
other_journal_is_none(void **state)
{
    pretend_journal(1);
    log_error("x");
    assert_non_null(strstr(captured(*state), "Z error: x\n"));
    assert_int_equal(setenv("JOURNAL_STREAM", "nonsense", 1), 0);
    log_error("x");
    assert_non_null(strstr(captured(*state), "Z error: x\n"));
}

static void
drops_what_is_above(void **state)
{
    pretend_journal(0);
    log_debug("dropped");
    log_info("kept");
    assert_string_equal(captured(*state), "<6>kept\n");
    log_set_level(LOG_ERROR);
    log_warn("dropped");
    log_error("kept");
    assert_string_equal(captured(*state), "<3>kept\n");
}

static void
is_cut(void **state)
{
    char *text = malloc(2001);
    const char *line;

    assert_non_null(text);
    memset(text, 'x', 2000);
    pretend_journal(0);
    for (size_t len = 999; len <= 1001; len++) {
        text[len] = '\0';
        log_info("%s", text);
        text[len] = 'x';
        line = captured(*state);
        assert_int_equal(strlen(line), 3 + (len < 1000 ? len : 1000) + 1);
        assert_int_equal(line[strlen(line) - 1], '\n');
    }
    text[2000] = '\0';
    log_info("%s", text);
    assert_int_equal(strlen(captured(*state)), 3 + 1000 + 1);
    free(text);
}

/* What a peer sent cannot begin a line of its own. */
static void
control_characters_do_no_harm(void **state)
{
    pretend_journal(0);
    log_warn("got \"%s\"", "a\r\n<0>b\x1b[2J\x7f\xc3\xa4");
    assert_string_equal(captured(*state), "<4>got \"a?"
                                          "?<0>b?[2J?\xc3\xa4\"\n");
}

static void
keeps_errno(void **state)
{
    pretend_journal(0);
    errno = EADDRINUSE;
    log_error("%m");
    assert_int_equal(errno, EADDRINUSE);
    assert_non_null(strstr(captured(*state), strerror(EADDRINUSE)));

    /* Also when the line cannot be written, or is dropped. */
    close(STDERR_FILENO);
    errno = EPIPE;
    log_error("lost");
    assert_int_equal(errno, EPIPE);
    log_debug("dropped");
    assert_int_equal(errno, EPIPE);
}

static void *
write_lines(void *arg)
{
    char text[501];

    memset(text, *(const char *)arg, 500);
    text[500] = '\0';
    for (int i = 0; i < 50; i++) {
        log_info("%s", text);
    }
    return NULL;
}

static void
lines_do_not_mix(void **state)
{
    static char letters[4] = { 'a', 'b', 'c', 'd' };
    pthread_t threads[4];
    char *save = NULL;
    unsigned count = 0;

    pretend_journal(0);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, write_lines, &letters[i]), 0);
    }
    for (size_t i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
    captured(*state);
    for (char *line = strtok_r(((struct capture *)*state)->text, "\n", &save); line != NULL;
         line = strtok_r(NULL, "\n", &save)) {
        char same[2] = { line[3], '\0' };
        assert_int_equal(strlen(line), 503);
        assert_int_equal(strspn(line + 3, same), 500);
        count++;
    }
    assert_int_equal(count, 200);
}

#define LOG_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        LOG_TEST(levels_by_name),
        LOG_TEST(has_time_and_level),
        LOG_TEST(has_priority_in_the_journal),
        LOG_TEST(other_journal_is_none),
        LOG_TEST(drops_what_is_above),
        LOG_TEST(is_cut),
        LOG_TEST(control_characters_do_no_harm),
        LOG_TEST(keeps_errno),
        LOG_TEST(lines_do_not_mix),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
