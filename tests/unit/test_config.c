/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_config.c: defaults, what a file means, and that conf/kvgate.conf and the man page tell of
 * every directive. Runs with the root of the repository as its directory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "../../src/config_priv.h"
#include "config.h"
#include "config_file.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- defaults ---- */

static void
check_server_defaults(const struct config *c)
{
    assert_int_equal(c->workers, 0);
    assert_int_equal(c->scheduling, CONFIG_SCHEDULING_BATCH);
    assert_int_equal(c->connections, 10000);
    assert_int_equal(c->connections_per_address, 0);
    assert_int_equal(c->connection_buffer, 16384);
    assert_int_equal(c->bytes_in_flight, 268435456);
    assert_int_equal(c->idle_timeout_ms, 75000);
    assert_int_equal(c->request_timeout_ms, 30000);
    assert_int_equal(c->drain_timeout_ms, 10000);
    assert_int_equal(c->log_level, LOG_INFO);
}

static void
check_embedded_defaults(const struct config_store *s)
{
    assert_int_equal(s->type, CONFIG_STORE_EMBEDDED);
    assert_string_equal(s->directory, "kvgate-data");
    assert_int_equal(s->map_size, 1073741824);
    assert_int_equal(s->sync, CONFIG_SYNC_FULL);
}

static void
check_memcached_defaults(const struct config_store *s)
{
    assert_int_equal(s->distribution, CONFIG_KETAMA);
    assert_int_equal(s->hash, CONFIG_HASH_AUTO);
    assert_int_equal(s->dialect, CONFIG_DIALECT_AUTO);
    assert_int_equal(s->lanes, 8);
    assert_int_equal(s->ops_max, 10000);
    assert_int_equal(s->bytes_max, 134217728);
    assert_int_equal(s->item_max, 1048576);
    assert_int_equal(s->on_failure, CONFIG_FAIL);
    assert_string_equal(s->username, "");
    assert_string_equal(s->password_file, "");
    assert_int_equal(s->connect_timeout_ms, 250);
    assert_int_equal(s->op_timeout_ms, 500);
}

static void
check_route_defaults(const struct config_route *r)
{
    assert_string_equal(r->key_prefix, "");
    assert_int_equal(r->methods, CONFIG_METHODS_ALL);
    assert_int_equal(r->ttl_s, 0);
    assert_int_equal(r->ttl_max_s, 0);
    assert_string_equal(r->cache_control, "");
    assert_int_equal(r->body_max, 0);
    assert_string_equal(r->content_type, "application/octet-stream");
}

static void
nothing_gives_the_defaults(void **state)
{
    struct config *c = *state;

    check_server_defaults(c);
    assert_int_equal(c->listen_count + c->store_count + c->route_count, 0);
    config_file_must_finish(c);
    check_server_defaults(c);
    assert_int_equal(c->listen_count, 1);
    assert_string_equal(c->listen[0], "127.0.0.1:8085");
    assert_int_equal(c->store_count, 1);
    assert_string_equal(c->stores[0].name, "default");
    check_embedded_defaults(&c->stores[0]);
    check_memcached_defaults(&c->stores[0]);
    assert_int_equal(c->stores[0].server_count, 0);
    assert_int_equal(c->route_count, 1);
    assert_string_equal(c->routes[0].prefix, "/");
    assert_string_equal(c->routes[0].store_name, "default");
    assert_int_equal(c->routes[0].store, 0);
    check_route_defaults(&c->routes[0]);
}

static void
empty_file_is_like_nothing(void **state)
{
    struct config *c = *state;

    config_file_must_load(c, "");
    config_file_must_load(c, "\n\n  # nothing\n; nothing\n   \n");
    check_server_defaults(c);
    assert_int_equal(c->listen_count + c->store_count + c->route_count, 0);
}

static void
shipped_file_has_the_defaults(void **state)
{
    struct config *c = *state;
    char error[CONFIG_ERROR_MAX];

    if (!config_load(c, "conf/kvgate.conf", error)) {
        fail_msg("%s", error);
    }
    config_file_must_finish(c);
    check_server_defaults(c);
    assert_int_equal(c->listen_count, 1);
    assert_string_equal(c->listen[0], "127.0.0.1:8085");
    assert_int_equal(c->store_count, 2);
    assert_string_equal(c->stores[0].name, "local");
    check_embedded_defaults(&c->stores[0]);
    assert_string_equal(c->stores[1].name, "fleet");
    assert_int_equal(c->stores[1].type, CONFIG_STORE_MEMCACHED);
    check_memcached_defaults(&c->stores[1]);
    assert_int_equal(c->stores[1].server_count, 1);
    assert_string_equal(c->stores[1].servers[0].host, "127.0.0.1");
    assert_int_equal(c->stores[1].servers[0].port, 11211);
    assert_int_equal(c->stores[1].servers[0].weight, 1);
    assert_int_equal(c->route_count, 1);
    assert_string_equal(c->routes[0].prefix, "/");
    assert_int_equal(c->routes[0].store, 0);
    check_route_defaults(&c->routes[0]);
}

/* Whoever adds a directive adds it to the file and to the man page. */
static void
every_directive_is_documented(void **state)
{
    char *conf = config_file_read("conf/kvgate.conf"), *man = config_file_read("src/kvgate.conf.5");
    char line[CONFIG_TEXT_MAX];
    const struct config_directive *d;
    size_t count;

    (void)state;
    d = config_directives(&count);
    assert_true(count > 20);
    for (size_t i = 0; i < count; i++) {
        snprintf(line, sizeof(line), "\n%s =", d[i].name);
        if (strstr(conf, line) == NULL) {
            fail_msg("conf/kvgate.conf lacks %s", d[i].name);
        }
        snprintf(line, sizeof(line), "\n.It Ic %s ", d[i].name);
        if (strstr(man, line) == NULL) {
            fail_msg("src/kvgate.conf.5 lacks %s", d[i].name);
        }
    }
    free(conf);
    free(man);
}

/* The default that the man page tells is the one of the table. */
static void
man_page_tells_the_defaults(void **state)
{
    char *man = config_file_read("src/kvgate.conf.5");
    char start[CONFIG_TEXT_MAX];
    const struct config_directive *d;
    size_t count;

    (void)state;
    d = config_directives(&count);
    for (size_t i = 0; i < count; i++) {
        char *from, *to;

        if (d[i].default_value == NULL || d[i].kind == &config_kind_methods ||
            d[i].kind == &config_kind_key_prefix) {
            continue; /* these are told in words */
        }
        snprintf(start, sizeof(start), "\n.It Ic %s ", d[i].name);
        from = strstr(man, start);
        assert_non_null(from);
        from = strstr(from, "default");
        assert_non_null(from);
        /* "The default is X", "the default, X," and "X, the default" stand close together. */
        from -= 20;
        to = strstr(from, "\n.It");
        to = to == NULL || to > from + 90 ? from + 90 : to;
        if (memmem(from, (size_t)(to - from), d[i].default_value, strlen(d[i].default_value)) ==
            NULL) {
            fail_msg("%s: kvgate.conf.5 does not say that %s is the default", d[i].name,
                     d[i].default_value);
        }
    }
    free(man);
}

/* ---- what a file means ---- */

static const char every_value[] = "[server]\n"
                                  "listen = [::1]:0\n"
                                  "listen = unix:/run/kvgate.sock\n"
                                  "workers = 3\n"
                                  "scheduling = inherit\n"
                                  "connections = 77\n"
                                  "connections_per_address = 7\n"
                                  "connection_buffer = 8KB\n"
                                  "bytes_in_flight = 1048577\n"
                                  "idle_timeout = 2m\n"
                                  "request_timeout = 1500ms\n"
                                  "drain_timeout = 0\n"
                                  "log_level = debug\n"
                                  "[store disk]\n"
                                  "type = embedded\n"
                                  "directory = /var/lib/a b\n"
                                  "map_size = 3GB\n"
                                  "sync = none\n"
                                  "[store m.1_x-Y]\n"
                                  "servers = a, b:1*3 [::1]\n"
                                  "servers = unix:/tmp/s*2,[fe80::2]:99\n"
                                  "type = memcached\n"
                                  "distribution = modula\n"
                                  "hash = fnv1a_64\n"
                                  "dialect = text\n"
                                  "lanes = 64\n"
                                  "ops_max = 1\n"
                                  "item_max = 1GB\n"
                                  "connect_timeout = 1m\n"
                                  "op_timeout = 1h\n"
                                  "[route /a/]\n"
                                  "store = m.1_x-Y\n"
                                  "key_prefix = a:\xc3\xa4\n"
                                  "methods = GET, HEAD\n"
                                  "ttl = 30d\n"
                                  "body_max = 64KB\n"
                                  "content_type = text/html; charset=utf-8\n"
                                  "[route /]\n"
                                  "store = disk\n";

static void
every_value_arrives(void **state)
{
    struct config *c = *state;
    const struct config_server_address *s = c->stores[1].servers;

    config_file_must_load(c, every_value);
    config_file_must_finish(c);
    assert_int_equal(c->listen_count, 2);
    assert_string_equal(c->listen[0], "[::1]:0");
    assert_string_equal(c->listen[1], "unix:/run/kvgate.sock");
    assert_int_equal(c->workers, 3);
    assert_int_equal(c->scheduling, CONFIG_SCHEDULING_INHERIT);
    assert_int_equal(c->connections, 77);
    assert_int_equal(c->connections_per_address, 7);
    assert_int_equal(c->connection_buffer, 8192);
    assert_int_equal(c->bytes_in_flight, 1048577);
    assert_int_equal(c->idle_timeout_ms, 120000);
    assert_int_equal(c->request_timeout_ms, 1500);
    assert_int_equal(c->drain_timeout_ms, 0);
    assert_int_equal(c->log_level, LOG_DEBUG);
    assert_int_equal(c->store_count, 2);
    assert_string_equal(c->stores[0].directory, "/var/lib/a b");
    assert_int_equal(c->stores[0].map_size, UINT64_C(3) << 30);
    assert_int_equal(c->stores[0].sync, CONFIG_SYNC_NONE);
    assert_string_equal(c->stores[1].name, "m.1_x-Y");
    assert_int_equal(c->stores[1].type, CONFIG_STORE_MEMCACHED);
    assert_int_equal(c->stores[1].server_count, 5);
    assert_true(strcmp(s[0].host, "a") == 0 && s[0].port == 11211 && s[0].weight == 1);
    assert_true(strcmp(s[1].host, "b") == 0 && s[1].port == 1 && s[1].weight == 3);
    assert_true(strcmp(s[2].host, "::1") == 0 && s[2].port == 11211 && s[2].weight == 1);
    assert_true(strcmp(s[3].host, "/tmp/s") == 0 && s[3].port == 0 && s[3].weight == 2);
    assert_true(strcmp(s[4].host, "fe80::2") == 0 && s[4].port == 99 && s[4].weight == 1);
    assert_int_equal(c->stores[1].distribution, CONFIG_MODULA);
    assert_int_equal(c->stores[1].hash, CONFIG_HASH_FNV1A_64);
    assert_int_equal(c->stores[1].dialect, CONFIG_DIALECT_TEXT);
    assert_int_equal(c->stores[1].lanes, 64);
    assert_int_equal(c->stores[1].ops_max, 1);
    assert_int_equal(c->stores[1].item_max, 1073741824);
    assert_int_equal(c->stores[1].connect_timeout_ms, 60000);
    assert_int_equal(c->stores[1].op_timeout_ms, 3600000);
    assert_int_equal(c->route_count, 2);
    assert_string_equal(c->routes[0].prefix, "/a/");
    assert_int_equal(c->routes[0].store, 1);
    assert_string_equal(c->routes[0].key_prefix, "a:\xc3\xa4");
    assert_int_equal(c->routes[0].methods, CONFIG_GET | CONFIG_HEAD);
    assert_int_equal(c->routes[0].ttl_s, 30 * 86400);
    assert_int_equal(c->routes[0].body_max, 65536);
    assert_string_equal(c->routes[0].content_type, "text/html; charset=utf-8");
    assert_int_equal(c->routes[1].store, 0);
}

/* Each word and each method means its own constant. */
static void
words_mean_what_they_say(void **state)
{
    static const char *const hashes[] = { "auto", "md5", "one_at_a_time", "fnv1a_64" };
    static const char *const dialects[] = { "auto", "text", "meta" };
    static const char *const methods[] = { "GET", "HEAD", "PUT", "POST", "DELETE" };
    struct config *c = *state;
    char text[128];

    for (unsigned i = 0; i < COUNT(hashes); i++) {
        snprintf(text, sizeof(text), "[store s]\ntype = memcached\nhash = %s\n", hashes[i]);
        config_file_must_load(c, text);
        assert_int_equal(c->stores[0].hash, CONFIG_HASH_AUTO + i);
    }
    for (unsigned i = 0; i < COUNT(dialects); i++) {
        snprintf(text, sizeof(text), "[store s]\ntype = memcached\ndialect = %s\n", dialects[i]);
        config_file_must_load(c, text);
        assert_int_equal(c->stores[0].dialect, CONFIG_DIALECT_AUTO + i);
    }
    for (unsigned i = 0; i < COUNT(methods); i++) {
        snprintf(text, sizeof(text), "[route /]\nmethods = %s\n", methods[i]);
        config_file_must_load(c, text);
        assert_int_equal(c->routes[0].methods, 1u << i);
    }
    assert_int_equal(CONFIG_DELETE, 1u << 4);
}

static void
lines_are_read_kindly(void **state)
{
    struct config *c = *state;

    /* Blanks, CRLF, a byte order mark, no end of the last line, comments. */
    config_file_must_load(
        c, "\xef\xbb\xbf[server] # here\r\n  workers=2 ; two\r\n\t# 9\r\n ;9\r\n"
           "[ store\t a ] ; there\n   directory =   x;y#z  \n\n[route  /b]\n  ttl=1s");
    assert_int_equal(c->workers, 2);
    assert_string_equal(c->stores[0].name, "a");
    assert_string_equal(c->stores[0].directory, "x;y#z");
    assert_string_equal(c->routes[0].prefix, "/b");
    assert_int_equal(c->routes[0].ttl_s, 1);
}

/* libinih alone would not tell of a section that has no directive. */
static void
empty_sections_count(void **state)
{
    struct config *c = *state;

    config_file_must_load(
        c, "[server]\n[store a]\n[store b]\n[route /x]\n[route /y]\nstore = b\n[route /z]");
    assert_int_equal(c->store_count, 2);
    assert_int_equal(c->route_count, 3);
    assert_string_equal(c->stores[1].name, "b");
    assert_string_equal(c->routes[0].store_name, "");
    assert_string_equal(c->routes[1].store_name, "b");
    assert_string_equal(c->routes[2].prefix, "/z");
}

/* ... and would cut its name at 50 bytes. */
static void
long_section_names_stay_whole(void **state)
{
    struct config *c = *state;
    char prefix[CONFIG_VALUE_MAX + 1], text[CONFIG_TEXT_MAX];

    memset(prefix, 'p', CONFIG_VALUE_MAX);
    prefix[0] = '/';
    prefix[CONFIG_VALUE_MAX] = '\0';
    snprintf(text, sizeof(text), "[route %s]\nttl = 5s\n", prefix);
    config_file_must_load(c, text);
    assert_string_equal(c->routes[0].prefix, prefix);
    assert_int_equal(c->routes[0].ttl_s, 5);
}

static void
many_servers_fit(void **state)
{
    struct config *c = *state;
    char *text = calloc(1, CONFIG_FILE_MAX), *at, *again;
    char error[CONFIG_ERROR_MAX];

    assert_non_null(text);
    at = text + sprintf(text, "[store s]\ntype = memcached\n");
    for (unsigned i = 0; i < CONFIG_SERVER_MAX; i++) {
        at += sprintf(at, "servers = 10.0.%u.%u\n", i / 200, i % 200);
    }
    config_file_must_load(c, text);
    config_file_must_finish(c);
    assert_int_equal(c->stores[0].server_count, CONFIG_SERVER_MAX);
    again = config_file_printed(c);
    config_file_must_load(c, again);
    assert_int_equal(c->stores[0].server_count, CONFIG_SERVER_MAX);
    sprintf(at, "servers = one.more\n");
    assert_false(config_file_load(c, text, error));
    assert_non_null(
        strstr(error, ":259: servers: found \"one.more\"; allowed is up to 256 servers"));
    free(again);
    free(text);
}

/* What -t prints is a file that means the same. */
static void
print_can_be_read_back(void **state)
{
    struct config *c = *state;
    char *first, *second;

    config_file_must_load(c, every_value);
    config_file_must_finish(c);
    first = config_file_printed(c);
    assert_non_null(strstr(first, "\nidle_timeout = 2m\nrequest_timeout = 1500ms\n"));
    assert_non_null(strstr(first, "\nservers = b:1*3\nservers = [::1]:11211\n"));
    assert_non_null(strstr(first, "\nservers = unix:/tmp/s*2\n"));
    assert_null(strstr(first, "kvgate-data"));
    config_file_must_load(c, first);
    config_file_must_finish(c);
    second = config_file_printed(c);
    assert_string_equal(first, second);
    every_value_arrives(state); /* loads anew, and so checks that `printed` changed nothing */
    config_file_must_load(c, second);
    assert_int_equal(c->routes[0].ttl_s, 30 * 86400);
    assert_int_equal(c->bytes_in_flight, 1048577);
    assert_int_equal(c->stores[1].servers[1].weight, 3);
    free(first);
    free(second);
}

#define CONFIG_TEST(f) cmocka_unit_test_setup_teardown(f, config_file_setup, config_file_teardown)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        CONFIG_TEST(nothing_gives_the_defaults),
        CONFIG_TEST(empty_file_is_like_nothing),
        CONFIG_TEST(shipped_file_has_the_defaults),
        CONFIG_TEST(every_directive_is_documented),
        CONFIG_TEST(man_page_tells_the_defaults),
        CONFIG_TEST(every_value_arrives),
        CONFIG_TEST(words_mean_what_they_say),
        CONFIG_TEST(lines_are_read_kindly),
        CONFIG_TEST(empty_sections_count),
        CONFIG_TEST(long_section_names_stay_whole),
        CONFIG_TEST(many_servers_fit),
        CONFIG_TEST(print_can_be_read_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
