/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * matrix_server.h: the server half of the matrix, and the form of its messages.
 *
 * A request is a header of MATRIX_HEAD bytes, "kvstall 1 body N" filled up with spaces, and N bytes
 * of body. The answer is MATRIX_ANSWER bytes, in one write, once the whole request is there: as a
 * server that does nothing wrong.
 */
#ifndef KVSTALL_MATRIX_SERVER_H
#define KVSTALL_MATRIX_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MATRIX_HEAD     64
#define MATRIX_ANSWER   64
#define MATRIX_BODY_MAX 1048576

struct matrix_server {
    int listener;  /* (ref) until the server has ended */
    bool quickack; /* acknowledges half a request at once */
};

/*
 * Serves one connection after the other until the listener is shut down or a signal asks the
 * program to end. The argument and the result are for pthread_create: a struct matrix_server, NULL.
 */
void *matrix_serve(void *server);

/* Writes the header of a request with BODY_LEN bytes of body. */
void matrix_make_head(char head[MATRIX_HEAD], size_t body_len);

#endif
