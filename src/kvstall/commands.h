/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * commands.h: the commands of the program. Each takes the argument vector from its own name on,
 * prints its result to stdout, and returns the exit code of the program.
 */
#ifndef KVSTALL_COMMANDS_H
#define KVSTALL_COMMANDS_H

/* What a command that judges a server returns when it found a stall. Errors are as sysexits. */
#define COMMAND_STALL 1

int matrix_main(int argc, char **argv);
int stream_main(int argc, char **argv);
int sweep_main(int argc, char **argv);
int probe_main(int argc, char **argv);

#endif
