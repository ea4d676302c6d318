/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * interrupt.c: notes the signals that ask the program to end. Decides nothing: the commands ask.
 */
#include "interrupt.h"

#include <pthread.h>
#include <stddef.h>

static const int signals[] = { SIGINT, SIGTERM, SIGHUP };

#define SIGNAL_COUNT (sizeof(signals) / sizeof(signals[0]))

/* Signals belong to the process, so what is known of them does, too. */
static volatile sig_atomic_t caught;   /* the number of the signal; 0: none has come */
static volatile sig_atomic_t disarmed; /* 1: waits go on although CAUGHT is set */
static sigset_t wait_mask;             /* the mask from before the install */
static pthread_t first_thread;         /* the one that takes the signals */

static void
note(int number)
{
    caught = number;
}

void
interrupt_install(void)
{
    struct sigaction action = { .sa_handler = note };
    struct sigaction ignore = { .sa_handler = SIG_IGN };
    sigset_t block;

    first_thread = pthread_self();
    sigemptyset(&block);
    for (size_t i = 0; i < SIGNAL_COUNT; i++) {
        sigaddset(&block, signals[i]);
        sigaction(signals[i], &action, NULL);
    }
    sigaction(SIGPIPE, &ignore, NULL);
    pthread_sigmask(SIG_BLOCK, &block, &wait_mask);
    for (size_t i = 0; i < SIGNAL_COUNT; i++) {
        sigdelset(&wait_mask, signals[i]);
    }
}

/* The signal that has come, taken by the handler or still waiting to be; 0: none. */
static int
signal_number(void)
{
    sigset_t waiting;

    if (caught != 0) {
        return caught;
    }
    sigemptyset(&waiting);
    sigpending(&waiting);
    for (size_t i = 0; i < SIGNAL_COUNT; i++) {
        if (sigismember(&waiting, signals[i]) == 1) {
            return signals[i];
        }
    }
    return 0;
}

bool
interrupt_pending(void)
{
    return !disarmed && signal_number() != 0;
}

const sigset_t *
interrupt_wait_mask(void)
{
    return !disarmed && pthread_equal(pthread_self(), first_thread) ? &wait_mask : NULL;
}

void
interrupt_disarm(void)
{
    disarmed = 1;
}

void
interrupt_finish(void)
{
    int number = signal_number();

    if (number != 0) {
        signal(number, SIG_DFL);
        raise(number);
        pthread_sigmask(SIG_SETMASK, &wait_mask, NULL);
    }
}
