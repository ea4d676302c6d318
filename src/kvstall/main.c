/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * main.c: picks the command. Each command reads its own options.
 */
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include "commands.h"
#include "interrupt.h"
#include "report.h"
#include "server.h"

static const char usage[] =
    "usage: kvstall COMMAND [OPTION]... [URL]\n"
    "\n"
    "Shows the stall that Nagle's algorithm and delayed ACKs make together (40 ms on Linux, 200 "
    "ms\n"
    "elsewhere), and finds it in any HTTP service.\n"
    "\n"
    "  kvstall matrix      the classic experiment: one write or two, Nagle on or off\n"
    "  kvstall stream      one small message per millisecond: how late do they come?\n"
    "  kvstall sweep URL   put and get values of growing size: at which sizes does it stall?\n"
    "  kvstall probe URL   play clients of many manners: does it stall, and whose fault is it?\n"
    "\n"
    "  -V, --version       print the version\n"
    "  -h, --help          print this text; kvstall COMMAND --help tells of the command\n"
    "\n"
    "URL is http://HOST[:PORT][/PREFIX]. Keys are made under it with random names, and removed at\n"
    "the end. Exit code: 0 no stall, 1 a stall was found, 64 usage, 69 cannot connect, 76 no "
    "HTTP.\n";

struct command {
    const char *name;             /* as it is typed */
    int (*run)(int, char **argv); /* returns the exit code */
};

static const struct command commands[] = {
    { "matrix", matrix_main },
    { "stream", stream_main },
    { "sweep", sweep_main },
    { "probe", probe_main },
};

#define COMMAND_COUNT (sizeof(commands) / sizeof(commands[0]))

int
main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";

    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
        fputs(usage, stdout);
        return EX_OK;
    }
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) {
        puts("kvstall " SERVER_VERSION);
        return EX_OK;
    }
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        if (strcmp(name, commands[i].name) == 0) {
            int code;

            interrupt_install();
            code = commands[i].run(argc - 1, argv + 1);
            report_progress_end();
            if (fflush(stdout) != 0 || ferror(stdout) != 0) {
                report_error("cannot write the result");
                code = EX_IOERR;
            }
            interrupt_finish();
            return code;
        }
    }
    return argc > 1 ? report_usage("there is no command %s", name)
                    : report_usage("which command? matrix, stream, sweep or probe");
}
