/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * interrupt.h: SIGINT, SIGTERM and SIGHUP end a measurement early and in order, so that a command
 * can remove what it made. The signals are blocked but for the waits, so none is lost between a
 * check and a wait.
 */
#ifndef KVSTALL_INTERRUPT_H
#define KVSTALL_INTERRUPT_H

#include <signal.h>
#include <stdbool.h>

/* Call once, before any thread starts. SIGPIPE is ignored from then on. */
void interrupt_install(void);

/* Whether one of the signals has come. */
bool interrupt_pending(void);

/* The mask for ppoll. NULL in threads other than the first: their waits are not interrupted. */
const sigset_t *interrupt_wait_mask(void);

/* From here on the waits are not cut short any more: for the removal of what was made. */
void interrupt_disarm(void);

/* If a signal has come, ends the program by it, as the shell expects. Else returns. */
void interrupt_finish(void);

#endif
