/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * plot.c: feeds gnuplot. The picture comes out of its stdout, so the file's name never goes
 * through its language.
 */
#include "plot.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

#include "report.h"
#include "timing.h"

/* The terminal of gnuplot for PATH; NULL: no such. */
static const char *
terminal_of(const char *path)
{
    const char *dot = strrchr(path, '.');

    if (dot != NULL && strcasecmp(dot, ".svg") == 0) {
        return "svg size 960,540 background 'white'";
    }
    if (dot != NULL && strcasecmp(dot, ".png") == 0) {
        return "png size 960,540";
    }
    return NULL;
}

/* Starts gnuplot with IN and OUT as its stdin and stdout. Returns 0, or an error number. */
static int
start_gnuplot(const char *argument, int in, int out, pid_t *pid)
{
    const char *argv[] = { "gnuplot", argument, NULL };
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t set;
    int error;

    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    sigemptyset(&set);
    posix_spawnattr_setsigmask(&attributes, &set);
    sigaddset(&set, SIGPIPE);
    posix_spawnattr_setsigdefault(&attributes, &set);
    error =
        posix_spawnp(pid, argv[0], &actions, &attributes, (char *const *)(uintptr_t)argv, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

/* Reaps; true: it ended well. */
static bool
ended_well(pid_t pid)
{
    int status = 1;

    while (waitpid(pid, &status, 0) == -1 && errno == EINTR) {
    }
    return status == 0;
}

int
plot_check(const char *path)
{
    int null, error;
    pid_t pid;

    if (terminal_of(path) == NULL) {
        return report_usage("--plot: neither .svg nor .png: %s", path);
    }
    null = open("/dev/null", O_RDWR | O_CLOEXEC);
    error = start_gnuplot("--version", null, null, &pid);
    if (null != -1) {
        close(null);
    }
    if (error == ENOENT) {
        report_error("--plot needs gnuplot, which is not installed (Debian: apt install "
                     "gnuplot-nox)");
        return EX_UNAVAILABLE;
    }
    if (error != 0 || !ended_well(pid)) {
        report_error("--plot: gnuplot does not run%s%s", error != 0 ? ": " : "",
                     error != 0 ? strerror(error) : "");
        return EX_UNAVAILABLE;
    }
    return EX_OK;
}

static void
write_points(FILE *to, const struct plot_line *line, bool stalled_only)
{
    for (size_t i = 0; i < line->count; i++) {
        const struct sweep_point *p = &line->points[i];

        if (p->median_ns > 0 && (!stalled_only || p->stalled)) {
            fprintf(to, "%" PRIu64 " %.4f\n", p->bytes, timing_ms(p->median_ns));
        }
    }
}

static size_t
count_stalled(const struct plot_line *lines, size_t count)
{
    size_t n = 0;

    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < lines[i].count; k++) {
            n += lines[i].points[k].stalled;
        }
    }
    return n;
}

/* TITLE within single quotes of gnuplot's language. */
static void
write_quoted(FILE *to, const char *title)
{
    fputc('\'', to);
    for (; *title != '\0'; title++) {
        fputs(*title == '\'' ? "''" : "", to);
        fputc((unsigned char)*title < ' ' ? ' ' : *title, to);
    }
    fputc('\'', to);
}

static void
write_script(FILE *to, const char *path, const char *title, const struct plot_line *lines,
             size_t count)
{
    bool stalls = count_stalled(lines, count) > 0;

    fprintf(to, "set terminal %s\nset title ", terminal_of(path));
    write_quoted(to, title);
    fputs(" noenhanced\nset logscale xy\nset grid\nset key left top\n"
          "set xlabel 'bytes of the value'\nset ylabel 'median round trip, ms'\nplot ",
          to);
    for (size_t i = 0; i < count; i++) {
        fprintf(to, "%s'-' using 1:2 with linespoints title '%s'", i > 0 ? ", " : "",
                lines[i].title);
    }
    if (stalls) {
        fputs(", '-' using 1:2 with points pointtype 6 pointsize 2.5 linecolor rgb 'red' "
              "title 'stall'",
              to);
    }
    fputc('\n', to);
    for (size_t i = 0; i < count; i++) {
        write_points(to, &lines[i], false);
        fputs("e\n", to);
    }
    for (size_t i = 0; stalls && i < count; i++) {
        write_points(to, &lines[i], true);
    }
    fputs(stalls ? "e\n" : "", to);
}

int
plot_write(const char *path, const char *title, const struct plot_line *lines, size_t count)
{
    int out = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666), ends[2], error;
    FILE *to = NULL;
    pid_t pid;

    if (out == -1) {
        report_error("cannot write %s: %s", path, strerror(errno));
        return EX_CANTCREAT;
    }
    if (pipe2(ends, O_CLOEXEC) == -1) {
        report_error("cannot make a pipe: %s", strerror(errno));
        close(out);
        return EX_OSERR;
    }
    error = start_gnuplot("-", ends[0], out, &pid);
    close(ends[0]);
    close(out);
    if (error == 0) {
        to = fdopen(ends[1], "w");
    }
    if (to != NULL) {
        write_script(to, path, title, lines, count);
        fclose(to);
    } else {
        close(ends[1]);
    }
    if (error != 0 || !ended_well(pid) || to == NULL) {
        report_error("gnuplot could not draw %s", path);
        return EX_CANTCREAT;
    }
    return EX_OK;
}
