/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * config_finish.c: what comes after the file: the command line's overrides, what is still open, and
 * the checks that need the whole configuration. Reads the passwords, and no other file.
 */
#include "config_priv.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define DEFAULT_LISTEN "127.0.0.1:8085"
#define DEFAULT_STORE  "default"

/* Of bytes; memcached itself takes less than 256 for name and password. */
#define PASSWORD_MAX 200

static const char embedded_scheme[] = "embedded:";
static const char memcached_scheme[] = "memcached://";

/* Sets directive NAME as the file would. WHERE and TEXT are for the message. */
static bool
set_directive(enum config_section section, const char *name, void *target, const char *text,
              const char *where, char error[CONFIG_ERROR_MAX])
{
    const struct config_directive *d = config_directive_find(section, name);
    char why[CONFIG_WHY_MAX];

    if (!d->kind->set(d, (char *)target + d->offset, text, why)) {
        return config_fail(error, CONFIG_ERROR_MAX, "%s: found \"%.180s\"; allowed is %s", where,
                           text, why);
    }
    return true;
}

bool
config_add_listen(struct config *config, const char *address, bool *first,
                  char error[CONFIG_ERROR_MAX])
{
    if (*first) {
        config->listen_count = 0;
        *first = false;
    }
    return set_directive(CONFIG_SECTION_SERVER, "listen", config, address, "listen address", error);
}

/* The first store and the first route, at their defaults, become the only ones. */
static struct config_store *
only_store(struct config *config)
{
    config_store_defaults(&config->stores[0], DEFAULT_STORE);
    config->store_count = 1;
    config->route_count = 0;
    return &config->stores[0];
}

bool
config_set_store(struct config *config, const char *url, char error[CONFIG_ERROR_MAX])
{
    struct config_store *store = only_store(config);
    size_t embedded = sizeof(embedded_scheme) - 1;
    size_t memcached = sizeof(memcached_scheme) - 1;

    if (strncmp(url, embedded_scheme, embedded) == 0) {
        return set_directive(CONFIG_SECTION_STORE, "directory", store, url + embedded,
                             "store embedded:DIR", error);
    }
    if (strncmp(url, memcached_scheme, memcached) == 0) {
        store->type = CONFIG_STORE_MEMCACHED;
        return set_directive(CONFIG_SECTION_STORE, "servers", store, url + memcached,
                             "store memcached://SERVERS", error);
    }
    return config_fail(error, CONFIG_ERROR_MAX,
                       "store: found \"%.180s\"; allowed is embedded:DIR or "
                       "memcached://host:port[,host:port...]",
                       url);
}

/* ---- passwords ------------------------------------------------------------------------------- */

/* The first line of the store's password_file. */
static bool
read_password(struct config_store *store, char error[CONFIG_ERROR_MAX])
{
    FILE *file = fopen(store->password_file, "re");
    char line[CONFIG_TEXT_MAX + 2] = "";
    size_t len;

    if (file == NULL) {
        return config_fail(error, CONFIG_ERROR_MAX, "[store %s]: password_file %.200s: %s",
                           store->name, store->password_file, strerror(errno));
    }
    if (fgets(line, sizeof(line), file) == NULL) {
        line[0] = '\0';
    }
    fclose(file);
    len = strcspn(line, "\r\n");
    line[len] = '\0';
    if (len == 0 || len > PASSWORD_MAX) {
        return config_fail(error, CONFIG_ERROR_MAX,
                           "[store %s]: password_file %.200s: its first line has to be a password "
                           "of 1 to %d bytes",
                           store->name, store->password_file, PASSWORD_MAX);
    }
    memcpy(store->password, line, len + 1);
    return true;
}

/* The pool of threads leaves the choice of servers to libmemcached. */
static bool
check_binary(const struct config_store *store, char error[CONFIG_ERROR_MAX])
{
    return store->dialect != CONFIG_DIALECT_BINARY || store->on_failure != CONFIG_REHASH ||
           config_fail(error, CONFIG_ERROR_MAX,
                       "[store %s]: on_failure = rehash does not go with dialect = binary",
                       store->name);
}

/* A name and a password go together. */
static bool
finish_authentication(struct config_store *store, char error[CONFIG_ERROR_MAX])
{
    bool has_name = store->username[0] != '\0', has_file = store->password_file[0] != '\0';

    if (has_name != has_file) {
        return config_fail(error, CONFIG_ERROR_MAX,
                           "[store %s]: username and password_file go together", store->name);
    }
    return !has_file || read_password(store, error);
}

/* ---- finish ---------------------------------------------------------------------------------- */

static bool
finish_store(struct config *config, size_t index, char error[CONFIG_ERROR_MAX])
{
    struct config_store *store = &config->stores[index];

    if (store->type == CONFIG_STORE_MEMCACHED) {
        return store->server_count > 0
                   ? finish_authentication(store, error) && check_binary(store, error)
                   : config_fail(error, CONFIG_ERROR_MAX,
                                 "[store %s]: a memcached store needs `servers`, such as "
                                 "127.0.0.1:11211",
                                 store->name);
    }
    /* A process must not open a database twice. */
    for (size_t i = 0; i < index; i++) {
        if (config->stores[i].type == CONFIG_STORE_EMBEDDED &&
            strcmp(config->stores[i].directory, store->directory) == 0) {
            return config_fail(error, CONFIG_ERROR_MAX,
                               "[store %s] and [store %s] have the same `directory`: %s",
                               config->stores[i].name, store->name, store->directory);
        }
    }
    return true;
}

/* The store that ROUTE names, or the only one when it names none. */
static bool
finish_route(const struct config *config, struct config_route *route, char error[CONFIG_ERROR_MAX])
{
    if (route->store_name[0] == '\0' && config->store_count == 1) {
        config_text_copy(route->store_name, config->stores[0].name);
    }
    if (route->store_name[0] == '\0') {
        return config_fail(error, CONFIG_ERROR_MAX,
                           "[route %s]: there are %zu stores, so it needs `store`", route->prefix,
                           config->store_count);
    }
    for (size_t i = 0; i < config->store_count; i++) {
        if (strcmp(config->stores[i].name, route->store_name) == 0) {
            route->store = i;
            return true;
        }
    }
    return config_fail(error, CONFIG_ERROR_MAX, "[route %s]: store: there is no [store %s]",
                       route->prefix, route->store_name);
}

static bool
finish_routes(struct config *config, char error[CONFIG_ERROR_MAX])
{
    if (config->route_count == 0 && config->store_count > 1) {
        return config_fail(error, CONFIG_ERROR_MAX,
                           "there are %zu stores and no [route PREFIX] that leads to them",
                           config->store_count);
    }
    if (config->route_count == 0) {
        config_route_defaults(&config->routes[0], "/");
        config->route_count = 1;
    }
    for (size_t i = 0; i < config->route_count; i++) {
        struct config_route *route = &config->routes[i];
        if (!finish_route(config, route, error)) {
            return false;
        }
        route->keeps_types = strcmp(route->content_type, "stored") == 0;
        route->caches_ttl = strcmp(route->cache_control, "ttl") == 0;
        if (config->routes[i].body_max > config->bytes_in_flight) {
            return config_fail(error, CONFIG_ERROR_MAX,
                               "[route %s]: body_max is more than bytes_in_flight allows for all "
                               "requests together",
                               config->routes[i].prefix);
        }
    }
    return true;
}

bool
config_finish(struct config *config, char error[CONFIG_ERROR_MAX])
{
    if (config->listen_count == 0) {
        config_text_copy(config->listen[0], DEFAULT_LISTEN);
        config->listen_count = 1;
    }
    if (config->store_count == 0) {
        config_store_defaults(&config->stores[0], DEFAULT_STORE);
        config->store_count = 1;
    }
    for (size_t i = 0; i < config->store_count; i++) {
        if (!finish_store(config, i, error)) {
            return false;
        }
    }
    return finish_routes(config, error);
}
