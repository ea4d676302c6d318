/* SPDX-License-Identifier: BSD-2-Clause */
/* route.c: targets to routes and keys. Decides nothing about answers: reply.c does. */
#include "route.h"

#include <string.h>

/* The gateway's own pages; a key under "/" cannot begin with "-/". */
static const struct slice own_pages = SLICE_LITERAL("/-/");

/* The longest path that can matter: a route's prefix and a key. */
#define PATH_MAX_LEN (CONFIG_TEXT_MAX + STORE_KEY_MAX)

static int
hex_digit(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    if (c >= 'A' && c <= 'F') {
        return c - 'A' + 10;
    }
    return -1;
}

/*
 * Cuts "http://host" off an absolute-form target (RFC 9112, section 3.2.2). False: the host is empty,
 * or no path follows it.
 */
static bool
cut_authority(struct slice *target)
{
    static const struct slice scheme = SLICE_LITERAL("http://");
    size_t end = scheme.len;

    if (target->len <= scheme.len ||
        !slice_equal_nocase(slice_of(target->ptr, scheme.len), scheme)) {
        return true;
    }
    while (end < target->len && memchr("/?#", target->ptr[end], 3) == NULL) {
        end++;
    }
    if (end == scheme.len) {
        return false;
    }
    *target = slice_of(target->ptr + end, target->len - end);
    return true;
}

/* "http://host/path?query" and "/path?query" -> path and query. False: neither. */
static bool
split_target(struct slice target, struct slice *path, struct slice *query)
{
    const char *mark;

    *query = slice_of(NULL, 0);
    if (!cut_authority(&target) || target.len == 0 || target.ptr[0] != '/') {
        return false;
    }
    mark = memchr(target.ptr, '?', target.len);
    *path = target;
    if (mark != NULL) {
        path->len = (size_t)(mark - target.ptr);
        *query = slice_of(mark + 1, target.len - path->len - 1);
    }
    return true;
}

/* PATH decoded into OUT. ROUTE_KEY means that it is well formed and fits. */
static enum route_result
decode(struct slice path, char out[PATH_MAX_LEN], size_t *out_len)
{
    size_t n = 0;

    for (size_t i = 0; i < path.len; i++) {
        char c = path.ptr[i];
        if (c == '%') {
            int high = path.len - i > 2 ? hex_digit(path.ptr[i + 1]) : -1;
            int low = path.len - i > 2 ? hex_digit(path.ptr[i + 2]) : -1;
            if (high < 0 || low < 0) {
                return ROUTE_BAD_ESCAPE;
            }
            c = (char)(high * 16 + low);
            i += 2;
        }
        if (n == PATH_MAX_LEN) {
            return ROUTE_KEY_TOO_LONG;
        }
        out[n++] = c;
    }
    *out_len = n;
    return ROUTE_KEY;
}

static const struct config_route *
longest_prefix(const struct config *config, struct slice path)
{
    const struct config_route *best = NULL;
    size_t best_len = 0;

    for (size_t i = 0; i < config->route_count; i++) {
        struct slice prefix = slice_from_string(config->routes[i].prefix);
        if (prefix.len > best_len && slice_starts_with(path, prefix)) {
            best = &config->routes[i];
            best_len = prefix.len;
        }
    }
    return best;
}

static bool
is_key_byte(char c)
{
    unsigned char u = (unsigned char)c;

    return u > 0x20 && u != 0x7f;
}

/* The key prefix of the route, and REST. */
static enum route_result
build_key(struct route_match *match, struct slice rest)
{
    struct slice prefix = slice_from_string(match->route->key_prefix);

    if (rest.len == 0) {
        return ROUTE_EMPTY_KEY;
    }
    for (size_t i = 0; i < rest.len; i++) {
        if (!is_key_byte(rest.ptr[i])) {
            return ROUTE_BAD_KEY;
        }
    }
    if (prefix.len + rest.len > STORE_KEY_MAX) {
        return ROUTE_KEY_TOO_LONG;
    }
    memcpy(match->key, prefix.ptr, prefix.len);
    memcpy(match->key + prefix.len, rest.ptr, rest.len);
    match->key_len = prefix.len + rest.len;
    return ROUTE_KEY;
}

static enum route_result
own_page(struct slice path)
{
    static const struct {
        struct slice path;
        enum route_result result;
    } pages[] = {
        { SLICE_LITERAL("/-/health"), ROUTE_HEALTH },
        { SLICE_LITERAL("/-/ready"), ROUTE_READY },
        { SLICE_LITERAL("/-/mget"), ROUTE_MGET },
    };

    for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++) {
        if (slice_equal(path, pages[i].path)) {
            return pages[i].result;
        }
    }
    return ROUTE_NO_PAGE;
}

/* What the still encoded PATH means. */
static enum route_result
find_path(const struct config *config, struct slice path, struct route_match *match)
{
    char decoded[PATH_MAX_LEN];
    size_t len = 0, prefix_len;
    enum route_result result = decode(path, decoded, &len);

    if (result != ROUTE_KEY) {
        return result;
    }
    path = slice_of(decoded, len);
    if (slice_starts_with(path, own_pages)) {
        return own_page(path);
    }
    match->route = longest_prefix(config, path);
    if (match->route == NULL) {
        return ROUTE_NO_ROUTE;
    }
    prefix_len = strlen(match->route->prefix);
    return build_key(match, slice_of(path.ptr + prefix_len, path.len - prefix_len));
}

enum route_result
route_find(const struct config *config, struct slice target, struct route_match *match)
{
    struct slice path;

    match->route = NULL;
    match->key_len = 0;
    if (slice_equal(target, SLICE("*"))) {
        match->query = slice_of(NULL, 0);
        return ROUTE_ASTERISK;
    }
    if (!split_target(target, &path, &match->query)) {
        return ROUTE_BAD_TARGET;
    }
    return find_path(config, path, match);
}

enum route_result
route_find_path(const struct config *config, struct slice path, struct route_match *match)
{
    char text[3 * PATH_MAX_LEN + 1] = "/";

    match->route = NULL;
    match->key_len = 0;
    match->query = slice_of(NULL, 0);
    if (path.len > 0 && path.ptr[0] == '/') {
        return find_path(config, path, match);
    }
    if (path.len >= sizeof(text)) {
        return ROUTE_KEY_TOO_LONG;
    }
    if (path.len > 0) {
        memcpy(text + 1, path.ptr, path.len);
    }
    return find_path(config, slice_of(text, path.len + 1), match);
}

bool
route_parameter(struct slice query, struct slice name, struct slice *value)
{
    while (query.len > 0) {
        const char *end = memchr(query.ptr, '&', query.len);
        size_t len = end == NULL ? query.len : (size_t)(end - query.ptr);
        const char *equals = memchr(query.ptr, '=', len);
        size_t name_len = equals == NULL ? len : (size_t)(equals - query.ptr);
        if (slice_equal(slice_of(query.ptr, name_len), name)) {
            *value = equals == NULL ? slice_of(query.ptr + len, 0)
                                    : slice_of(equals + 1, len - name_len - 1);
            return true;
        }
        if (end == NULL) {
            return false;
        }
        query = slice_of(end + 1, query.len - len - 1);
    }
    return false;
}

unsigned
route_method(struct slice method)
{
    static const struct {
        struct slice name;
        unsigned bit;
    } methods[] = {
        { SLICE_LITERAL("GET"), CONFIG_GET },       { SLICE_LITERAL("HEAD"), CONFIG_HEAD },
        { SLICE_LITERAL("PUT"), CONFIG_PUT },       { SLICE_LITERAL("POST"), CONFIG_POST },
        { SLICE_LITERAL("DELETE"), CONFIG_DELETE },
    };

    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
        if (slice_equal(methods[i].name, method)) {
            return methods[i].bit;
        }
    }
    return 0;
}
