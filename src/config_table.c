/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * config_table.c: every directive that there is, with its range and default. Whoever adds a field
 * to struct config adds its row here, and a paragraph to conf/kvgate.conf and kvgate.conf.5.
 */
#include "config_priv.h"

#include <assert.h>
#include <string.h>

#define KB UINT64_C(1024)
#define MB (1024 * KB)
#define GB (1024 * MB)

#define SECOND UINT64_C(1000) /* in milliseconds */
#define MINUTE (60 * SECOND)
#define HOUR   (60 * MINUTE)
#define DAY    (24 * HOUR)

/* Some 100 years: the longest time to live that every store can keep. Seconds. */
#define TTL_MAX (UINT64_C(36525) * 86400)

#define EMBEDDED  CONFIG_ONLY(CONFIG_STORE_EMBEDDED)
#define MEMCACHED CONFIG_ONLY(CONFIG_STORE_MEMCACHED)
#define SERVER    CONFIG_SECTION_SERVER
#define STORE     CONFIG_SECTION_STORE
#define ROUTE     CONFIG_SECTION_ROUTE

static const char *const type_words[] = {
    [CONFIG_STORE_EMBEDDED] = "embedded",
    [CONFIG_STORE_MEMCACHED] = "memcached",
    NULL,
};
static const char *const scheduling_words[] = {
    [CONFIG_SCHEDULING_BATCH] = "batch",
    [CONFIG_SCHEDULING_INHERIT] = "inherit",
    NULL,
};
static const char *const sync_words[] = {
    [CONFIG_SYNC_FULL] = "full",
    [CONFIG_SYNC_NONE] = "none",
    NULL,
};
static const char *const distribution_words[] = {
    [CONFIG_KETAMA] = "ketama",
    [CONFIG_MODULA] = "modula",
    NULL,
};
static const char *const hash_words[] = {
    [CONFIG_HASH_AUTO] = "auto",
    [CONFIG_HASH_MD5] = "md5",
    [CONFIG_HASH_ONE_AT_A_TIME] = "one_at_a_time",
    [CONFIG_HASH_FNV1A_64] = "fnv1a_64",
    NULL,
};
static const char *const dialect_words[] = {
    [CONFIG_DIALECT_AUTO] = "auto",
    [CONFIG_DIALECT_TEXT] = "text",
    [CONFIG_DIALECT_META] = "meta",
    [CONFIG_DIALECT_BINARY] = "binary",
    NULL,
};
static const char *const on_failure_words[] = {
    [CONFIG_FAIL] = "fail",
    [CONFIG_REHASH] = "rehash",
    [CONFIG_MISS] = "miss",
    NULL,
};

/* A row of a number: name, section, kind, struct, field, min, max, store types, default. */
#define NUMBER(name, section, kind, type, field, min, max, only, value)                            \
    {                                                                                              \
        name, section, &config_kind_##kind, offsetof(struct type, field), min, max, NULL, only,    \
            value                                                                                  \
    }
/* A row of a text, or of a word when WORDS is given. */
#define TEXT(name, section, kind, type, field, words, only, value)                                 \
    {                                                                                              \
        name, section, &config_kind_##kind, offsetof(struct type, field), 0, 0, words, only, value \
    }
/* A row whose kind fills several fields of the section's struct. */
#define WHOLE(name, section, kind, only)                                                           \
    {                                                                                              \
        name, section, &config_kind_##kind, 0, 0, 0, NULL, only, NULL                              \
    }

/* clang-format off */
static const struct config_directive directives[] = {
    WHOLE("listen", SERVER, listen, 0),
    NUMBER("workers", SERVER, count, config, workers, 0, CONFIG_WORKERS_MAX, 0, "0"),
    TEXT("scheduling", SERVER, word, config, scheduling, scheduling_words, 0, "batch"),
    NUMBER("connections", SERVER, count, config, connections, 1, 1000000, 0, "10000"),
    NUMBER("connections_per_address", SERVER, count, config, connections_per_address,
           0, 1000000, 0, "0"),
    NUMBER("connection_buffer", SERVER, size, config, connection_buffer, 4 * KB, MB, 0, "16KB"),
    NUMBER("bytes_in_flight", SERVER, size, config, bytes_in_flight, MB, 1024 * GB, 0, "256MB"),
    NUMBER("idle_timeout", SERVER, ms_whole, config, idle_timeout_ms, SECOND, DAY, 0, "75s"),
    NUMBER("request_timeout", SERVER, ms, config, request_timeout_ms, 1, DAY, 0, "30s"),
    NUMBER("drain_timeout", SERVER, ms, config, drain_timeout_ms, 0, DAY, 0, "10s"),
    TEXT("log_level", SERVER, level, config, log_level, NULL, 0, "info"),

    TEXT("type", STORE, word, config_store, type, type_words, 0, "embedded"),
    TEXT("directory", STORE, path, config_store, directory, NULL, EMBEDDED, "kvgate-data"),
    NUMBER("map_size", STORE, size, config_store, map_size, MB, 16384 * GB, EMBEDDED, "1GB"),
    TEXT("sync", STORE, word, config_store, sync, sync_words, EMBEDDED, "full"),
    WHOLE("servers", STORE, servers, MEMCACHED),
    TEXT("distribution", STORE, word, config_store, distribution, distribution_words, MEMCACHED,
         "ketama"),
    TEXT("hash", STORE, word, config_store, hash, hash_words, MEMCACHED, "auto"),
    TEXT("dialect", STORE, word, config_store, dialect, dialect_words, MEMCACHED, "auto"),
    NUMBER("lanes", STORE, count, config_store, lanes, 1, 64, MEMCACHED, "8"),
    NUMBER("ops_max", STORE, count, config_store, ops_max, 1, 1000000, MEMCACHED, "10000"),
    NUMBER("bytes_max", STORE, size, config_store, bytes_max, MB, 1024 * GB, MEMCACHED, "128MB"),
    NUMBER("item_max", STORE, size, config_store, item_max, KB, GB, MEMCACHED, "1MB"),
    NUMBER("connect_timeout", STORE, ms, config_store, connect_timeout_ms,
           1, MINUTE, MEMCACHED, "250ms"),
    NUMBER("op_timeout", STORE, ms, config_store, op_timeout_ms, 1, HOUR, MEMCACHED, "500ms"),
    TEXT("on_failure", STORE, word, config_store, on_failure, on_failure_words, MEMCACHED, "fail"),
    TEXT("username", STORE, user_name, config_store, username, NULL, MEMCACHED, ""),
    TEXT("password_file", STORE, optional_path, config_store, password_file, NULL, MEMCACHED, ""),

    TEXT("store", ROUTE, store_name, config_route, store_name, NULL, 0, NULL),
    TEXT("key_prefix", ROUTE, key_prefix, config_route, key_prefix, NULL, 0, ""),
    TEXT("methods", ROUTE, methods, config_route, methods, NULL, 0, "GET HEAD PUT POST DELETE"),
    NUMBER("ttl", ROUTE, seconds, config_route, ttl_s, 0, TTL_MAX, 0, "0"),
    NUMBER("ttl_max", ROUTE, seconds, config_route, ttl_max_s, 0, TTL_MAX, 0, "0"),
    NUMBER("body_max", ROUTE, size, config_route, body_max, 0, 1024 * GB, 0, "0"),
    TEXT("content_type", ROUTE, media_type, config_route, content_type, NULL, 0,
         "application/octet-stream"),
    TEXT("cache_control", ROUTE, header, config_route, cache_control, NULL, 0, ""),
};
/* clang-format on */

static const size_t directive_count = sizeof(directives) / sizeof(directives[0]);

_Static_assert(sizeof(directives) / sizeof(directives[0]) <= CONFIG_DIRECTIVE_MAX,
               "the loader keeps one number per row");

const struct config_directive *
config_directives(size_t *count)
{
    *count = directive_count;
    return directives;
}

const struct config_directive *
config_directive_find(enum config_section section, const char *name)
{
    for (size_t i = 0; i < directive_count; i++) {
        if (directives[i].section == section && strcmp(directives[i].name, name) == 0) {
            return &directives[i];
        }
    }
    return NULL;
}

void
config_directive_defaults(enum config_section section, void *target)
{
    char why[CONFIG_WHY_MAX];

    for (size_t i = 0; i < directive_count; i++) {
        const struct config_directive *d = &directives[i];
        bool ok;

        if (d->section != section || d->default_value == NULL) {
            continue;
        }
        ok = d->kind->set(d, (char *)target + d->offset, d->default_value, why);
        assert(ok);
        (void)ok;
    }
}
