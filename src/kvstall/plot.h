/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * plot.h: draws latency by size with gnuplot.
 */
#ifndef KVSTALL_PLOT_H
#define KVSTALL_PLOT_H

#include <stddef.h>

#include "sweep_mark.h"

/*
 * Whether PATH has an ending that can be drawn (.svg, .png) and gnuplot is there: asked before
 * minutes are spent on measuring. EX_OK, or the exit code after a message.
 */
int plot_check(const char *path);

/* A line of the picture. */
struct plot_line {
    const char *title;                /* "PUT" (ref) */
    const struct sweep_point *points; /* (ref) */
    size_t count;                     /* of POINTS */
};

/* Draws LINES into PATH. EX_OK, or the exit code after a message. */
int plot_write(const char *path, const char *title, const struct plot_line *lines, size_t count);

#endif
