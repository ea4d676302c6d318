/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * memcached_process.h: a real memcached for a test, on a free port of 127.0.0.1.
 *
 * It dies with the thread that started it. All calls wait until what they ask for is so; none
 * sleeps for luck.
 */
#ifndef KVGATE_TESTS_MEMCACHED_PROCESS_H
#define KVGATE_TESTS_MEMCACHED_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct memcached_process {
    pid_t pid;                     /* 0: not running */
    uint16_t port;                 /* kept over a stop, for the restart */
    const char *const *extra_args; /* (ref) NULL-terminated, or NULL; stays valid to the end */
};

/*
 * Starts memcached with EXTRA_ARGS after the usual ones (a later option wins) and returns when it
 * accepts connections. False: it could not be started; stderr says why.
 */
bool memcached_process_start(struct memcached_process *s, const char *const *extra_args);

/* Starts it again on the same port, empty, after stop or kill; a running one is killed first. */
bool memcached_process_restart(struct memcached_process *s);

/* Asks it to end, and reaps it. Nothing is done for one that is not running. */
void memcached_process_stop(struct memcached_process *s);

/* The same without asking: its connections are cut as they are. */
void memcached_process_kill(struct memcached_process *s);

/* Halts the whole process (the kernel still accepts connections for it), and lets it go on. */
void memcached_process_pause(struct memcached_process *s);
void memcached_process_resume(struct memcached_process *s);

/* A blocking connection with a receive time-out of 5 s, TCP_NODELAY on; the caller's. -1: none. */
int memcached_process_connect(const struct memcached_process *s);

#endif
