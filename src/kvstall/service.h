/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * service.h: the HTTP service that is looked at: where it is, how its keys are written, read and
 * removed, and the one key that belongs to this run. What is shared by the commands that take a
 * URL.
 */
#ifndef KVSTALL_SERVICE_H
#define KVSTALL_SERVICE_H

#include <getopt.h>
#include <stdbool.h>

#include "exchange.h"
#include "url.h"

struct service {
    struct url url;                /* as it was given */
    struct exchange_target target; /* as it was reached */
    const char *method;            /* that writes: "PUT" or "POST" */
    const char *read_path;         /* prefix of the key for GET; NULL: the URL's */
    const char *delete_path;       /* prefix of the key for its removal; NULL: the URL's */
    const char *delete_method;     /* that removes: "DELETE", or another that does it there */
    char key[URL_KEY_MAX];         /* made for this run */
    bool tried;                    /* a write was sent whose end is not known, or that stored */
    bool stored;                   /* a write was answered with success */
};

/* The options that every command with a URL takes; their letters, and rows for getopt_long. */
#define SERVICE_LETTERS "m:R:D:M:"
#define SERVICE_ROWS                                                                               \
    { "method", required_argument, NULL, 'm' }, { "read-path", required_argument, NULL, 'R' },     \
        { "delete-path", required_argument, NULL, 'D' },                                           \
    {                                                                                              \
        "delete-method", required_argument, NULL, 'M'                                              \
    }
#define SERVICE_USAGE                                                                              \
    "  -m, --method PUT|POST     the method that writes a key (PUT)\n"                             \
    "  -R, --read-path PATH      the prefix for GET, if it is not the URL's (webdis: /GET/)\n"     \
    "  -D, --delete-path PATH    the prefix for the removal, likewise (webdis: /DEL/)\n"           \
    "  -M, --delete-method NAME  the method that removes a key (DELETE; webdis: GET)\n"

/* The defaults. */
void service_init(struct service *s);

/* Takes in one of the options above. -1: go on; else the exit code, after a message. */
int service_option(struct service *s, int letter, const char *value);

/* Reads the URL, makes the key and connects once. Returns EX_OK, or the exit code after a message. */
int service_open(struct service *s, const char *url);

/* The prefix of the key for GET. */
const char *service_read_path(const struct service *s);

/* Takes note of the outcome of a write. */
void service_note_write(struct service *s, enum exchange_outcome outcome, int status);

/*
 * Removes the key if it may have been written, also after a signal, within seconds. If that is not
 * possible, says so. Nothing is measured after it.
 */
void service_remove(struct service *s);

#endif
