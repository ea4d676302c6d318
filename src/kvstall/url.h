/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * url.h: the http URL of a command line, which is a prefix for keys, and random keys under it.
 */
#ifndef KVSTALL_URL_H
#define KVSTALL_URL_H

#include <stddef.h>

#include "net.h"

#define URL_PATH_MAX 1024 /* more than any server takes as a prefix for keys */
#define URL_HOST_MAX (NET_HOST_MAX + NET_PORT_MAX + 3)

struct url {
    struct net_name name;    /* whom to connect to */
    char host[URL_HOST_MAX]; /* for the Host header, as the URL has it */
    char path[URL_PATH_MAX]; /* begins with '/' */
};

/* Reads "http://host[:port][/path]". Returns NULL, or what is wrong with TEXT. */
const char *url_parse(const char *text, struct url *url);

/* Whether TEXT can be a path: begins with '/', and no space, control character, '?' or '#' in it. */
bool url_is_path(const char *text);

#define URL_KEY_MAX 32

/* "kvstall-" and 64 random bits: nobody else's key. */
void url_make_key(char key[URL_KEY_MAX]);

#endif
