/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * config.c: creates a configuration and loads a file into it.
 *
 *   file --> read_line --> libinih --> take_directive --> the kind's `set` --> struct config
 *                |
 *                +-- "[...]" --> begin_section
 *
 * libinih splits the lines; everything it would do in silence is done before it sees the line:
 * it cuts long lines in two, cuts section names at 50 bytes, does not tell of a section without a
 * directive, joins lines that begin with a blank to the line above, and does not tell the line's
 * number. read_line feeds it one line at a time, so what the handler is told belongs to the line
 * that was read last.
 *
 * What only the whole file can tell is in config_finish.c.
 */
#include "config_priv.h"

#include <errno.h>
#include <ini.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "slice.h"

struct loader {
    struct config *config;                 /* (ref) what is filled */
    FILE *file;                            /* owned by config_load */
    const char *name;                      /* (ref) the file, for messages */
    char *error;                           /* (ref) of CONFIG_ERROR_MAX bytes */
    bool failed;                           /* ERROR holds the first error; read no more */
    bool expected;                         /* the last line must come back as a directive */
    unsigned line;                         /* number of the last line, from 1 */
    enum config_section section;           /* where we are */
    void *target;                          /* (ref) the struct that this section fills */
    unsigned seen[CONFIG_DIRECTIVE_MAX];   /* lines of this section's directives; 0: none */
    unsigned server_line;                  /* lines where the sections began; 0: not yet */
    unsigned store_line[CONFIG_STORE_MAX]; /* by index in config.stores */
    unsigned route_line[CONFIG_ROUTE_MAX]; /* by index in config.routes */
};

struct config *
config_create(void)
{
    struct config *config = calloc(1, sizeof(*config));

    if (config != NULL) {
        config_directive_defaults(CONFIG_SECTION_SERVER, config);
    }
    return config;
}

void
config_destroy(struct config *config)
{
    free(config);
}

void
config_store_defaults(struct config_store *store, const char *name)
{
    memset(store, 0, sizeof(*store));
    config_text_copy(store->name, name);
    config_directive_defaults(CONFIG_SECTION_STORE, store);
}

void
config_route_defaults(struct config_route *route, const char *prefix)
{
    memset(route, 0, sizeof(*route));
    config_text_copy(route->prefix, prefix);
    config_directive_defaults(CONFIG_SECTION_ROUTE, route);
}

/* Keeps the message, with the place in front. Nothing is read after it. Returns false. */
static bool __attribute__((format(printf, 3, 4)))
fail_at(struct loader *loader, unsigned line, const char *format, ...)
{
    va_list args;
    int len;

    loader->failed = true;
    len = snprintf(loader->error, CONFIG_ERROR_MAX, "%s:%u: ", loader->name, line);
    if (len > 0 && len < CONFIG_ERROR_MAX) {
        va_start(args, format);
        vsnprintf(loader->error + len, (size_t)(CONFIG_ERROR_MAX - len), format, args);
        va_end(args);
    }
    return false;
}

/* ---- sections -------------------------------------------------------------------------------- */

/* A store's directives may come before its `type`, so they are compared with it at the end. */
static bool
end_section(struct loader *loader)
{
    const struct config_store *store = loader->target;
    const struct config_directive *rows;
    size_t count;

    if (loader->section != CONFIG_SECTION_STORE) {
        return true;
    }
    rows = config_directives(&count);
    for (size_t i = 0; i < count; i++) {
        if (loader->seen[i] != 0 && rows[i].types != 0 &&
            (rows[i].types & CONFIG_ONLY(store->type)) == 0) {
            const char *type = store->type == CONFIG_STORE_EMBEDDED ? "embedded" : "memcached";
            const char *other = store->type == CONFIG_STORE_EMBEDDED ? "memcached" : "embedded";
            return fail_at(loader, loader->seen[i],
                           "%s: only a store of `type = %s` has this, and [store %s] is %s",
                           rows[i].name, other, store->name, type);
        }
    }
    return true;
}

static bool
begin_store(struct loader *loader, const char *name)
{
    struct config *config = loader->config;
    struct config_store *store;

    if (!config_store_name_valid(name)) {
        return fail_at(loader, loader->line,
                       "[store NAME]: found \"%s\"; allowed is a name of letters, digits, \".\", "
                       "\"_\" and \"-\"",
                       name);
    }
    for (size_t i = 0; i < config->store_count; i++) {
        if (strcmp(config->stores[i].name, name) == 0) {
            return fail_at(loader, loader->line, "[store %s]: line %u has it already", name,
                           loader->store_line[i]);
        }
    }
    if (config->store_count == CONFIG_STORE_MAX) {
        return fail_at(loader, loader->line, "[store %s]: one too many; allowed are %d", name,
                       CONFIG_STORE_MAX);
    }
    store = &config->stores[config->store_count];
    loader->store_line[config->store_count] = loader->line;
    config->store_count++;
    config_store_defaults(store, name);
    loader->target = store;
    return true;
}

/* A path prefix as it stands in a URL; "/-" and what is below it is the gateway's own. */
static bool
route_prefix_valid(const char *prefix)
{
    for (const char *at = prefix; *at != '\0'; at++) {
        unsigned char c = (unsigned char)*at;
        if (c <= 0x20 || c >= 0x7f || c == '%' || c == '?' || c == '#') {
            return false;
        }
    }
    return prefix[0] == '/' && strcmp(prefix, "/-") != 0 && strncmp(prefix, "/-/", 3) != 0 &&
           strlen(prefix) <= CONFIG_VALUE_MAX;
}

static bool
begin_route(struct loader *loader, const char *prefix)
{
    struct config *config = loader->config;
    struct config_route *route;

    if (!route_prefix_valid(prefix)) {
        return fail_at(loader, loader->line,
                       "[route PREFIX]: found \"%s\"; allowed is a path that begins with \"/\", "
                       "without blanks, \"%%\", \"?\" and \"#\", of up to %d bytes; \"/-/\" is the "
                       "gateway's own",
                       prefix, CONFIG_VALUE_MAX);
    }
    for (size_t i = 0; i < config->route_count; i++) {
        if (strcmp(config->routes[i].prefix, prefix) == 0) {
            return fail_at(loader, loader->line, "[route %s]: line %u has it already", prefix,
                           loader->route_line[i]);
        }
    }
    if (config->route_count == CONFIG_ROUTE_MAX) {
        return fail_at(loader, loader->line, "[route %s]: one too many; allowed are %d", prefix,
                       CONFIG_ROUTE_MAX);
    }
    route = &config->routes[config->route_count];
    loader->route_line[config->route_count] = loader->line;
    config->route_count++;
    config_route_defaults(route, prefix);
    loader->target = route;
    return true;
}

static bool
begin_server(struct loader *loader)
{
    if (loader->server_line != 0) {
        return fail_at(loader, loader->line, "[server]: line %u has it already",
                       loader->server_line);
    }
    loader->server_line = loader->line;
    loader->target = loader->config;
    return true;
}

/* What may follow a section's "]": nothing, or a comment. */
static bool
rest_is_comment(const char *text)
{
    size_t blanks = strspn(text, " \t");

    return text[blanks] == '\0' || (blanks > 0 && (text[blanks] == '#' || text[blanks] == ';'));
}

/* LINE begins with "[". It is ours to change. */
static bool
begin_section(struct loader *loader, char *line)
{
    char *name = line + 1 + strspn(line + 1, " \t");
    char *end = strchr(name, ']');
    char *argument;

    if (!end_section(loader)) {
        return false;
    }
    if (end == NULL || !rest_is_comment(end + 1)) {
        return fail_at(loader, loader->line, "a section is written [NAME]; found %s", line);
    }
    while (end > name && (end[-1] == ' ' || end[-1] == '\t')) {
        end--;
    }
    *end = '\0';
    argument = name + strcspn(name, " \t");
    if (*argument != '\0') {
        *argument = '\0';
        argument++;
        argument += strspn(argument, " \t");
    }
    memset(loader->seen, 0, sizeof(loader->seen));
    if (strcmp(name, "server") == 0 && *argument == '\0') {
        loader->section = CONFIG_SECTION_SERVER;
        return begin_server(loader);
    }
    if (strcmp(name, "store") == 0) {
        loader->section = CONFIG_SECTION_STORE;
        return begin_store(loader, argument);
    }
    if (strcmp(name, "route") == 0) {
        loader->section = CONFIG_SECTION_ROUTE;
        return begin_route(loader, argument);
    }
    return fail_at(loader, loader->line,
                   "[%s%s%s]: unknown section; known are [server], [store NAME] and [route PREFIX]",
                   name, *argument == '\0' ? "" : " ", argument);
}

/* ---- directives ------------------------------------------------------------------------------ */

static bool
unknown_directive(struct loader *loader, const char *name)
{
    const struct config_directive *rows;
    char known[CONFIG_WHY_MAX];
    size_t count, len = 0;

    if (loader->section == CONFIG_SECTION_NONE) {
        return fail_at(loader, loader->line,
                       "%s: stands before any section; known are [server], [store NAME] and "
                       "[route PREFIX]",
                       name);
    }
    rows = config_directives(&count);
    for (size_t i = 0; i < count && len < sizeof(known); i++) {
        if (rows[i].section == loader->section) {
            len += (size_t)snprintf(known + len, sizeof(known) - len, " %s", rows[i].name);
        }
    }
    return fail_at(loader, loader->line, "%s: unknown directive; this section has%s", name, known);
}

/* libinih's handler: nonzero is good. Its idea of the section is not used, see above. */
static int
take_directive(void *user, const char *section, const char *name, const char *value)
{
    struct loader *loader = user;
    const struct config_directive *d, *rows;
    char why[CONFIG_WHY_MAX];
    size_t count, row;

    (void)section;
    loader->expected = false;
    d = config_directive_find(loader->section, name);
    if (d == NULL) {
        return unknown_directive(loader, name);
    }
    rows = config_directives(&count);
    row = (size_t)(d - rows);
    if (loader->seen[row] != 0 && !d->kind->repeats) {
        return fail_at(loader, loader->line, "%s: line %u has it already", name, loader->seen[row]);
    }
    loader->seen[row] = loader->line;
    if (!d->kind->set(d, (char *)loader->target + d->offset, value, why)) {
        return fail_at(loader, loader->line, "%s: found \"%s\"; allowed is %s", name, value, why);
    }
    return 1;
}

/* ---- lines ----------------------------------------------------------------------------------- */

/*
 * Reads one line into TO without its end and without the blanks that it begins with. False at
 * the end of the file and after an error.
 */
static bool
read_raw(struct loader *loader, char *to, size_t size)
{
    size_t len = 0;
    int c = getc(loader->file);

    if (c == EOF) {
        return ferror(loader->file) == 0
                   ? false
                   : fail_at(loader, loader->line + 1, "cannot read: %s", strerror(errno));
    }
    loader->line++;
    for (; c != EOF && c != '\n'; c = getc(loader->file)) {
        if (c == '\0') {
            return fail_at(loader, loader->line, "a NUL byte: this is not a text file");
        }
        if (len == 0 && (c == ' ' || c == '\t')) {
            continue;
        }
        if (len + 1 == size) {
            return fail_at(loader, loader->line,
                           "a line of more than %zu bytes (`listen` and `servers` may be given "
                           "on several lines)",
                           size - 1);
        }
        to[len] = (char)c;
        len++;
    }
    while (len > 0 && strchr(" \t\r", to[len - 1]) != NULL) {
        len--;
    }
    to[len] = '\0';
    /* Some editors begin a file with the byte order mark of UTF-8. */
    if (loader->line == 1 && strncmp(to, "\xef\xbb\xbf", 3) == 0) {
        memmove(to, to + 3, len - 3 + 1);
    }
    return true;
}

/* libinih's reader. NULL ends the file for it, also after an error. */
static char *
read_line(char *to, int size, void *stream)
{
    struct loader *loader = stream;
    char section[CONFIG_TEXT_MAX];

    if (loader->expected) {
        fail_at(loader, loader->line, "neither `name = value` nor [section] nor # comment");
    }
    if (loader->failed || !read_raw(loader, to, (size_t)size)) {
        return NULL;
    }
    loader->expected = to[0] != '\0' && strchr("#;[", to[0]) == NULL;
    if (to[0] == '[') {
        snprintf(section, sizeof(section), "%s", to);
        if (!begin_section(loader, section)) {
            return NULL;
        }
    }
    return to;
}

bool
config_load(struct config *config, const char *file, char error[CONFIG_ERROR_MAX])
{
    struct loader loader = { .config = config, .name = file, .error = error };

    loader.file = fopen(file, "re");
    if (loader.file == NULL) {
        return config_fail(error, CONFIG_ERROR_MAX, "%s: cannot open: %s", file, strerror(errno));
    }
    if (ini_parse_stream(read_line, &loader, take_directive, &loader) == -2) {
        fail_at(&loader, loader.line, "no memory");
    }
    fclose(loader.file);
    return !loader.failed && end_section(&loader);
}
