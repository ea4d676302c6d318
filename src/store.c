/* SPDX-License-Identifier: BSD-2-Clause */
/* store.c: what all stores share: names, an empty operation, and the list of types. */
#include "store.h"

#include <assert.h>

#include "clock.h"

static const char *const verb_names[STORE_VERB_COUNT] = {
    [STORE_GET] = "get",       [STORE_HEAD] = "head",       [STORE_SET] = "set",
    [STORE_ADD] = "add",       [STORE_REPLACE] = "replace", [STORE_CAS] = "cas",
    [STORE_APPEND] = "append", [STORE_PREPEND] = "prepend", [STORE_DELETE] = "delete",
    [STORE_INCR] = "incr",     [STORE_DECR] = "decr",       [STORE_TOUCH] = "touch",
};

static const char *const status_names[STORE_STATUS_COUNT] = {
    [STORE_OK] = "ok",
    [STORE_MISS] = "miss",
    [STORE_EXISTS] = "exists",
    [STORE_NOT_STORED] = "not stored",
    [STORE_TOO_LARGE] = "too large",
    [STORE_BAD_VALUE] = "bad value",
    [STORE_NO_MEMORY] = "no memory",
    [STORE_UNAVAILABLE] = "unavailable",
    [STORE_TIMEOUT] = "timeout",
    [STORE_BAD_REPLY] = "bad reply",
    [STORE_OVERLOADED] = "overloaded",
    [STORE_CANCELLED] = "cancelled",
    [STORE_UNSUPPORTED] = "unsupported",
};

/* A new store is one file and one line here (and one in config.c, which names its directives). */
static const struct store_type *const types[] = {
    [CONFIG_STORE_EMBEDDED] = &store_embedded,
    [CONFIG_STORE_MEMCACHED] = &store_memcached,
};

const struct store_type *
store_type_of(const struct config_store *config)
{
    assert((size_t)config->type < sizeof(types) / sizeof(types[0]));
    if (config->type == CONFIG_STORE_MEMCACHED && config->dialect == CONFIG_DIALECT_BINARY) {
        return &store_binary;
    }
    return types[config->type];
}

void
store_op_init(struct store_op *op, enum store_verb verb, struct slice key)
{
    *op = (struct store_op){
        .verb = verb,
        .key = key,
        .deadline_ms = CLOCK_NEVER,
        .ttl_left_s = STORE_TTL_UNKNOWN,
    };
}

const char *
store_verb_name(enum store_verb verb)
{
    return (unsigned)verb < STORE_VERB_COUNT ? verb_names[verb] : "?";
}

const char *
store_status_name(enum store_status status)
{
    return (unsigned)status < STORE_STATUS_COUNT ? status_names[status] : "?";
}
