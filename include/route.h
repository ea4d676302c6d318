/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * route.h: from the raw request target to a route and a key. Pure: no memory, no I/O.
 *
 * The target comes as it stood on the request line (RFC 9112, section 3.2). The path is
 * percent-decoded once, byte for byte (RFC 3986, section 2.1): "+" is a plus, "%2F" is a slash,
 * "//" and
 * "." stay as they are. The query is no part of the key.
 */
#ifndef KVGATE_ROUTE_H
#define KVGATE_ROUTE_H

#include <stdbool.h>
#include <stddef.h>

#include "config.h"
#include "slice.h"
#include "store.h"

enum route_result {
    ROUTE_KEY,         /* route and key are set */
    ROUTE_HEALTH,      /* /-/health */
    ROUTE_READY,       /* /-/ready */
    ROUTE_MGET,        /* /-/mget */
    ROUTE_ASTERISK,    /* "*": the gateway itself, for OPTIONS */
    ROUTE_NO_PAGE,     /* under /-/ there is nothing of this name */
    ROUTE_NO_ROUTE,    /* no [route] section has a prefix of this path */
    ROUTE_BAD_TARGET,  /* not a path, not http://host/path, not "*" */
    ROUTE_BAD_ESCAPE,  /* "%" without two hexadecimal digits */
    ROUTE_EMPTY_KEY,   /* nothing after the prefix */
    ROUTE_BAD_KEY,     /* a byte up to 0x20, or 0x7f: memcached's protocol cannot carry it */
    ROUTE_KEY_TOO_LONG /* over STORE_KEY_MAX bytes, the route's key prefix included */
};

struct route_match {
    const struct config_route *route; /* (ref); NULL unless ROUTE_KEY, or a bad key of a route */
    struct slice query;               /* (ref) of the target: after "?"; empty without one */
    size_t key_len;                   /* bytes of key[] */
    char key[STORE_KEY_MAX];          /* key prefix and decoded path; ROUTE_KEY only */
};

/* Finds what TARGET means. The longest prefix wins. `query` is set whatever the result is. */
enum route_result route_find(const struct config *config, struct slice target,
                             struct route_match *match);

/* The same for a path alone, which may lack its first slash; "?" is a byte like any other. */
enum route_result route_find_path(const struct config *config, struct slice path,
                                  struct route_match *match);

/*
 * The value of parameter NAME in QUERY ("a=1&b=2"), as it stands there; the first wins. False: it
 * is not there. A name without "=" has an empty value.
 */
bool route_parameter(struct slice query, struct slice name, struct slice *value);

/* The config_method bit of METHOD, 0 if it is none that a route can allow. Case counts (RFC 9110).
 */
unsigned route_method(struct slice method);

#endif
