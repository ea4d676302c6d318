/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * config_address.c: the directives that hold addresses: `listen` and `servers`. Takes them apart
 * and checks their form; resolves no name and opens nothing.
 */
#include "config_priv.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <string.h>

#include "slice.h"

/* memcached's port. */
#define SERVER_PORT_DEFAULT 11211

/* More weight than this makes a ring too large to be of use. */
#define SERVER_WEIGHT_MAX 1000

/* Bytes of a unix socket's path: sockaddr_un.sun_path without its NUL. */
#define UNIX_PATH_MAX_LEN 107

static const struct slice unix_scheme = SLICE_LITERAL("unix:");

static bool
port_parse(const char *text, uint16_t *port)
{
    uint64_t number;

    if (!slice_to_u64(slice_from_string(text), &number) || number > UINT16_MAX) {
        return false;
    }
    *port = (uint16_t)number;
    return true;
}

/*
 * The length of the host that TEXT begins with: "[...]" whole, or all up to the first colon. 0 for
 * an empty host and an open bracket.
 */
static size_t
host_length(const char *text)
{
    size_t len = strcspn(text, ":");

    if (text[0] == '[') {
        len = strcspn(text, "]");
        return text[len] == ']' && len > 1 ? len + 1 : 0;
    }
    return len;
}

bool
config_split_host_port(const char *text, size_t *host_len, uint16_t *port)
{
    size_t len = host_length(text);
    uint16_t number;

    if (len == 0 || text[len] != ':' || !port_parse(text + len + 1, &number)) {
        return false;
    }
    *host_len = len;
    *port = number;
    return true;
}

/* Whether HOST is an address of FAMILY, in figures. */
static bool
address_valid(int family, struct slice host)
{
    unsigned char address[sizeof(struct in6_addr)];
    char text[INET6_ADDRSTRLEN];

    if (host.len >= sizeof(text)) {
        return false;
    }
    memcpy(text, host.ptr, host.len);
    text[host.len] = '\0';
    return inet_pton(family, text, address) == 1;
}

/* "[v6]": the address without its brackets is valid. */
static bool
bracketed_valid(struct slice host)
{
    return host.len > 2 && address_valid(AF_INET6, slice_of(host.ptr + 1, host.len - 2));
}

static bool
unix_path_valid(const char *path)
{
    size_t len = strlen(path);

    for (size_t i = 0; i < len; i++) {
        if ((unsigned char)path[i] <= 0x20 || path[i] == 0x7f) {
            return false;
        }
    }
    return len > 1 && len <= UNIX_PATH_MAX_LEN && path[0] == '/';
}

/* ---- listen ---------------------------------------------------------------------------------- */

static bool
listen_valid(const char *text)
{
    size_t host_len;
    uint16_t port;

    if (slice_starts_with(slice_from_string(text), unix_scheme)) {
        return unix_path_valid(text + unix_scheme.len);
    }
    if (!config_split_host_port(text, &host_len, &port)) {
        return false;
    }
    return text[0] == '[' ? bracketed_valid(slice_of(text, host_len))
                          : address_valid(AF_INET, slice_of(text, host_len));
}

/* Two sockets on one address cannot be meant; two on port 0 are two ports. */
static bool
listen_twice(const struct config *config, const char *text)
{
    size_t host_len;
    uint16_t port;

    if (config_split_host_port(text, &host_len, &port) && port == 0) {
        return false;
    }
    for (size_t i = 0; i < config->listen_count; i++) {
        if (strcmp(config->listen[i], text) == 0) {
            return true;
        }
    }
    return false;
}

static bool
listen_set(const struct config_directive *d, void *field, const char *text,
           char why[CONFIG_WHY_MAX])
{
    struct config *config = field;

    (void)d;
    if (!listen_valid(text)) {
        return config_fail(why, CONFIG_WHY_MAX,
                           "an address in figures with a port, 127.0.0.1:8085, 0.0.0.0:8085 or "
                           "[::1]:8085, or unix:/path of up to %d bytes without blanks",
                           UNIX_PATH_MAX_LEN);
    }
    if (listen_twice(config, text)) {
        return config_fail(why, CONFIG_WHY_MAX, "each address once");
    }
    if (config->listen_count == CONFIG_LISTEN_MAX) {
        return config_fail(why, CONFIG_WHY_MAX, "up to %d addresses", CONFIG_LISTEN_MAX);
    }
    config_text_copy(config->listen[config->listen_count], text);
    config->listen_count++;
    return true;
}

static void
listen_print(const struct config_directive *d, const void *field, FILE *out)
{
    const struct config *config = field;

    for (size_t i = 0; i < config->listen_count; i++) {
        fprintf(out, "%s = %s\n", d->name, config->listen[i]);
    }
}

/* ---- servers --------------------------------------------------------------------------------- */

/* Takes the "*weight" off the end of ITEM, if there is one. */
static bool
weight_cut(char *item, uint32_t *weight)
{
    char *star = strrchr(item, '*');
    uint64_t number;

    *weight = 1;
    if (star == NULL) {
        return true;
    }
    if (!slice_to_u64(slice_from_string(star + 1), &number) || number == 0 ||
        number > SERVER_WEIGHT_MAX) {
        return false;
    }
    *star = '\0';
    *weight = (uint32_t)number;
    return true;
}

static bool
name_valid(struct slice host)
{
    for (size_t i = 0; i < host.len; i++) {
        char c = host.ptr[i];
        bool ok = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '.' || c == '-' || c == '_';
        if (!ok) {
            return false;
        }
    }
    return host.len > 0;
}

/* ITEM, whose weight is off, into SERVER. */
static bool
server_parse(const char *item, struct config_server_address *server)
{
    size_t host_len = host_length(item);
    bool bracketed = item[0] == '[';
    struct slice host = slice_of(item, host_len);

    if (item[0] == '/' || slice_starts_with(slice_from_string(item), unix_scheme)) {
        const char *path = item[0] == '/' ? item : item + unix_scheme.len;
        config_text_copy(server->host, path);
        server->port = 0;
        return unix_path_valid(path);
    }
    if (bracketed ? !bracketed_valid(host) : !name_valid(host)) {
        return false;
    }
    server->port = SERVER_PORT_DEFAULT;
    if (item[host_len] != '\0' &&
        (item[host_len] != ':' || !port_parse(item + host_len + 1, &server->port))) {
        return false;
    }
    if (bracketed) {
        host = slice_of(host.ptr + 1, host.len - 2);
    }
    memset(server->host, 0, sizeof(server->host));
    memcpy(server->host, host.ptr, host.len);
    return server->port != 0;
}

static bool
server_listed(const struct config_store *store, const struct config_server_address *server)
{
    for (size_t i = 0; i < store->server_count; i++) {
        if (store->servers[i].port == server->port &&
            strcmp(store->servers[i].host, server->host) == 0) {
            return true;
        }
    }
    return false;
}

/* Adds the one server that ITEM (NUL-terminated, ours to change) describes. */
static bool
server_add(struct config_store *store, char *item, char why[CONFIG_WHY_MAX])
{
    struct config_server_address server = { .weight = 1 };

    if (!weight_cut(item, &server.weight) || !server_parse(item, &server)) {
        return config_fail(why, CONFIG_WHY_MAX,
                           "a list of host, host:port, [v6]:port or unix:/path, each with *weight "
                           "(1 to %d) if need be; wrong is \"%.60s\"",
                           SERVER_WEIGHT_MAX, item);
    }
    if (server_listed(store, &server)) {
        return config_fail(why, CONFIG_WHY_MAX, "each server once; twice is \"%.60s\"", item);
    }
    if (store->server_count == CONFIG_SERVER_MAX) {
        return config_fail(why, CONFIG_WHY_MAX, "up to %d servers", CONFIG_SERVER_MAX);
    }
    store->servers[store->server_count] = server;
    store->server_count++;
    return true;
}

static bool
servers_set(const struct config_directive *d, void *field, const char *text,
            char why[CONFIG_WHY_MAX])
{
    const char *at = text + strspn(text, ", \t");
    char item[CONFIG_VALUE_MAX + 1];

    (void)d;
    if (*at == '\0') {
        return config_fail(why, CONFIG_WHY_MAX, "at least one server, such as 127.0.0.1:%d",
                           SERVER_PORT_DEFAULT);
    }
    while (*at != '\0') {
        size_t len = strcspn(at, ", \t");

        if (len > CONFIG_VALUE_MAX) {
            return config_fail(why, CONFIG_WHY_MAX, "servers of up to %d bytes", CONFIG_VALUE_MAX);
        }
        memcpy(item, at, len);
        item[len] = '\0';
        if (!server_add(field, item, why)) {
            return false;
        }
        at += len;
        at += strspn(at, ", \t");
    }
    return true;
}

/* One server a line: however many there are, no line is too long to be read back. */
static void
servers_print(const struct config_directive *d, const void *field, FILE *out)
{
    const struct config_store *store = field;

    for (size_t i = 0; i < store->server_count; i++) {
        const struct config_server_address *s = &store->servers[i];

        fprintf(out, "%s = ", d->name);
        if (s->port == 0) {
            fprintf(out, "unix:%s", s->host);
        } else {
            bool v6 = strchr(s->host, ':') != NULL;
            fprintf(out, "%s%s%s:%" PRIu16, v6 ? "[" : "", s->host, v6 ? "]" : "", s->port);
        }
        if (s->weight != 1) {
            fprintf(out, "*%" PRIu32, s->weight);
        }
        fputc('\n', out);
    }
}

const struct config_kind config_kind_listen = { listen_set, listen_print, true };
const struct config_kind config_kind_servers = { servers_set, servers_print, true };
