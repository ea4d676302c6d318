/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz_route.c: any bytes as a request target. Whatever comes, no key leaves route_find that a store
 * must not see, and nothing points outside the target.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "route.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Ends the process, which the fuzzer takes for a finding. */
#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

static struct config config;

static void
add_route(const char *prefix, size_t key_prefix_len)
{
    struct config_route *route = &config.routes[config.route_count++];

    snprintf(route->prefix, sizeof(route->prefix), "%s", prefix);
    memset(route->key_prefix, 'p', key_prefix_len);
}

static void
set_up(void)
{
    add_route("/a/", 0);
    add_route("/a/b/", 10);
    add_route("/a/b/c/", STORE_KEY_MAX - 1);
    add_route("/full/", CONFIG_TEXT_MAX - 1); /* no key fits */
    add_route("/", 0);
}

static bool
is_within(struct slice inner, struct slice outer)
{
    return inner.len == 0 || (inner.ptr >= outer.ptr && inner.len <= outer.len &&
                              inner.ptr + inner.len <= outer.ptr + outer.len);
}

/* What route.h says of a key that was found in TARGET. */
static void
check_key(const struct route_match *match, struct slice target)
{
    size_t prefix_len;

    MUST(match->route >= config.routes && match->route < config.routes + config.route_count);
    prefix_len = strlen(match->route->key_prefix);
    MUST(match->key_len > prefix_len);
    MUST(match->key_len <= STORE_KEY_MAX);
    MUST(match->key_len - prefix_len < target.len); /* the path has a "/" more */
    MUST(memcmp(match->key, match->route->key_prefix, prefix_len) == 0);
    for (size_t i = 0; i < match->key_len; i++) {
        unsigned char c = (unsigned char)match->key[i];
        MUST(c > 0x20 && c != 0x7f);
    }
}

/* A key whose every byte is escaped is the same key. */
static void
check_escaped(const struct route_match *match)
{
    char target[CONFIG_TEXT_MAX + 3 * STORE_KEY_MAX + 1];
    size_t prefix_len = strlen(match->route->key_prefix);
    size_t len = (size_t)snprintf(target, sizeof(target), "%s", match->route->prefix);
    struct route_match again;

    for (size_t i = prefix_len; i < match->key_len; i++) {
        len += (size_t)snprintf(target + len, sizeof(target) - len, "%%%02X",
                                (unsigned)(unsigned char)match->key[i]);
    }
    MUST(route_find(&config, slice_of(target, len), &again) == ROUTE_KEY);
    MUST(again.route == match->route && again.key_len == match->key_len);
    MUST(memcmp(again.key, match->key, again.key_len) == 0);
    MUST(again.query.len == 0);
}

static void
check_parameters(struct slice query)
{
    static const struct slice names[] = { SLICE_LITERAL("ttl"), SLICE_LITERAL("op"),
                                          SLICE_LITERAL("") };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct slice value = { NULL, 0 };

        if (route_parameter(query, names[i], &value)) {
            MUST(is_within(value, query));
            MUST(value.len == 0 || memchr(value.ptr, '&', value.len) == NULL);
        }
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice target = slice_of((const char *)data, size);
    struct route_match match;
    enum route_result result;

    if (config.route_count == 0) {
        set_up();
    }
    result = route_find(&config, target, &match);
    MUST(result <= ROUTE_KEY_TOO_LONG);
    MUST(is_within(match.query, target));
    if (result == ROUTE_KEY) {
        check_key(&match, target);
        check_escaped(&match);
    } else {
        MUST(match.route == NULL || result == ROUTE_EMPTY_KEY || result == ROUTE_BAD_KEY ||
             result == ROUTE_KEY_TOO_LONG);
    }
    check_parameters(match.query);
    check_parameters(target);
    route_method(target);
    return 0;
}
