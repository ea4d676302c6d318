/* SPDX-License-Identifier: BSD-2-Clause */
/* server.h: the whole gateway as one call. */
#ifndef KVGATE_SERVER_H
#define KVGATE_SERVER_H

#include "config.h"

/* What -V prints, and the ready line. */
#define SERVER_VERSION "0.1.0"

/*
 * Serves as the finished CONFIG says, until SIGTERM or SIGINT, and returns an exit code of
 * sysexits.h: 0, or 69 (an address or a store cannot be had) with the reason in the log. Prints one
 * line to stdout when it is ready, with the addresses that it really listens on.
 */
int server_run(const struct config *config);

#endif
