/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_config_errors.c: what is wrong with a file, where, and what the message says: all of it,
 * because it is all that an operator has.
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

/* ---- what is wrong, and where ---- */

struct complaint {
    const char *text; /* the file */
    unsigned line;    /* where it is wrong */
    const char *message;
};

#define KNOWN          "known are [server], [store NAME] and [route PREFIX]"
#define SIZE(from, to) "allowed is a size from " from " to " to ": a number of bytes, KB, MB or GB"
#define TIME(from, to) "allowed is a time from " from " to " to ": a number with ms, s, m, h or d"
#define WHOLE(from, to)                                                                            \
    "allowed is a time from " from " to " to " in whole seconds: a number with s, m, h or d"
#define LISTEN                                                                                     \
    "allowed is an address in figures with a port, 127.0.0.1:8085, 0.0.0.0:8085 or [::1]:8085, "   \
    "or unix:/path of up to 107 bytes without blanks"
#define PREFIX                                                                                     \
    "allowed is a path that begins with \"/\", without blanks, \"%\", \"?\" and \"#\", of up to "  \
    "180 bytes; \"/-/\" is the gateway's own"
#define NAME    "allowed is a name of letters, digits, \".\", \"_\" and \"-\""
#define METHODS "allowed is one or more of GET HEAD PUT POST DELETE, each once"
#define MEDIA                                                                                      \
    "allowed is a media type such as text/html; charset=utf-8, of up to 180 bytes, or stored"
#define MEMCACHED "[store a]\ntype = memcached\n"

static const struct complaint complaints[] = {
    /* lines */
    { "\nworkers = 1\n", 2, "workers: stands before any section; " KNOWN },
    { "[server]\n\nworkers\nconnections = 0\n", 3,
      "neither `name = value` nor [section] nor # comment" },
    { "[server]\nworkers", 2, "neither `name = value` nor [section] nor # comment" },
    { "[server\n", 1, "a section is written [NAME]; found [server" },
    { "[server] x\n", 1, "a section is written [NAME]; found [server] x" },
    { "[server]x\n", 1, "a section is written [NAME]; found [server]x" },
    { "[]\n", 1, "[]: unknown section; " KNOWN },
    { "[Server]\n", 1, "[Server]: unknown section; " KNOWN },
    { "#\n[servers]\n", 2, "[servers]: unknown section; " KNOWN },
    { "[server x]\n", 1, "[server x]: unknown section; " KNOWN },
    /* twice */
    { "[server]\n[store a]\n[server]\n", 3, "[server]: line 1 has it already" },
    { "[store a]\n[store b]\n\n[store a]\n", 4, "[store a]: line 1 has it already" },
    { "[route /a]\n[route /b]\n[route  /b]\n", 3, "[route /b]: line 2 has it already" },
    { "[server]\nworkers = 1\n#\nworkers = 1\n", 4, "workers: line 2 has it already" },
    { "[server]\nlisten = 1.2.3.4:5\nlisten = 1.2.3.4:5\n", 3,
      "listen: found \"1.2.3.4:5\"; allowed is each address once" },
    /* names */
    { "[server]\nworker = 1\n", 2,
      "worker: unknown directive; this section has listen workers scheduling connections "
      "connections_per_address connection_buffer bytes_in_flight idle_timeout request_timeout "
      "drain_timeout log_level" },
    { "[route /]\nservers = a\n", 2,
      "servers: unknown directive; this section has store key_prefix methods ttl ttl_max "
      "body_max content_type cache_control" },
    { "[server]\n= 1\n", 2,
      ": unknown directive; this section has listen workers scheduling connections "
      "connections_per_address "
      "connection_buffer bytes_in_flight idle_timeout request_timeout drain_timeout log_level" },
    { "[store]\n", 1, "[store NAME]: found \"\"; " NAME },
    { "[store a/b]\n", 1, "[store NAME]: found \"a/b\"; " NAME },
    { "[store a b]\n", 1, "[store NAME]: found \"a b\"; " NAME },
    { "[route]\n", 1, "[route PREFIX]: found \"\"; " PREFIX },
    { "[route a]\n", 1, "[route PREFIX]: found \"a\"; " PREFIX },
    { "[route /-/]\n", 1, "[route PREFIX]: found \"/-/\"; " PREFIX },
    { "[route /-/x]\n", 1, "[route PREFIX]: found \"/-/x\"; " PREFIX },
    { "[route /-]\n", 1, "[route PREFIX]: found \"/-\"; " PREFIX },
    { "[route /a b]\n", 1, "[route PREFIX]: found \"/a b\"; " PREFIX },
    { "[route /a%20]\n", 1, "[route PREFIX]: found \"/a%20\"; " PREFIX },
    { "[route /a?]\n", 1, "[route PREFIX]: found \"/a?\"; " PREFIX },
    { "[route /\xc3\xa4]\n", 1, "[route PREFIX]: found \"/\xc3\xa4\"; " PREFIX },
    /* numbers */
    { "[server]\nworkers = -1\n", 2, "workers: found \"-1\"; allowed is a number from 0 to 256" },
    { "[server]\nworkers = 257\n", 2, "workers: found \"257\"; allowed is a number from 0 to 256" },
    { "[server]\nworkers =\n", 2, "workers: found \"\"; allowed is a number from 0 to 256" },
    { "[server]\nworkers = 1 # one\n", 2,
      "workers: found \"1 # one\"; allowed is a number from 0 to 256" },
    { "[server]\nconnections = 0\n", 2,
      "connections: found \"0\"; allowed is a number from 1 to 1000000" },
    { "[server]\nconnections = 4294967297\n", 2,
      "connections: found \"4294967297\"; allowed is a number from 1 to 1000000" },
    { MEMCACHED "lanes = 65\n", 3, "lanes: found \"65\"; allowed is a number from 1 to 64" },
    /* sizes */
    { "[server]\nconnection_buffer = 4095\n", 2,
      "connection_buffer: found \"4095\"; " SIZE("4KB", "1MB") },
    { "[server]\nconnection_buffer = 1025KB\n", 2,
      "connection_buffer: found \"1025KB\"; " SIZE("4KB", "1MB") },
    { "[server]\nconnection_buffer = 16K\n", 2,
      "connection_buffer: found \"16K\"; " SIZE("4KB", "1MB") },
    { "[server]\nconnection_buffer = 16 KB\n", 2,
      "connection_buffer: found \"16 KB\"; " SIZE("4KB", "1MB") },
    { "[store a]\nmap_size = 17179869185GB\n", 2,
      "map_size: found \"17179869185GB\"; " SIZE("1MB", "16384GB") },
    { MEMCACHED "item_max = 1.5MB\n", 3, "item_max: found \"1.5MB\"; " SIZE("1KB", "1GB") },
    /* times */
    { "[server]\nrequest_timeout = 30\n", 2, "request_timeout: found \"30\"; " TIME("1ms", "1d") },
    { "[server]\nrequest_timeout = 0\n", 2, "request_timeout: found \"0\"; " TIME("1ms", "1d") },
    { "[server]\nrequest_timeout = 25h\n", 2,
      "request_timeout: found \"25h\"; " TIME("1ms", "1d") },
    { "[server]\nrequest_timeout = 5M\n", 2, "request_timeout: found \"5M\"; " TIME("1ms", "1d") },
    { "[server]\nidle_timeout = 1500ms\n", 2,
      "idle_timeout: found \"1500ms\"; " WHOLE("1s", "1d") },
    { "[route /]\nttl = 300\n", 2, "ttl: found \"300\"; " WHOLE("0", "36525d") },
    { "[route /]\nttl = 36526d\n", 2, "ttl: found \"36526d\"; " WHOLE("0", "36525d") },
    { "[route /]\nttl = 213503982335d\n", 2,
      "ttl: found \"213503982335d\"; " WHOLE("0", "36525d") },
    /* words */
    { "[server]\nlog_level = loud\n", 2,
      "log_level: found \"loud\"; allowed is error, warn, info or debug" },
    { "[store a]\ntype = redis\n", 2, "type: found \"redis\"; allowed is embedded or memcached" },
    { "[store a]\nsync = FULL\n", 2, "sync: found \"FULL\"; allowed is full or none" },
    { MEMCACHED "hash = crc\n", 3,
      "hash: found \"crc\"; allowed is auto, md5, one_at_a_time or fnv1a_64" },
    { MEMCACHED "distribution = random\n", 3,
      "distribution: found \"random\"; allowed is ketama or modula" },
    { "[route /]\nmethods =\n", 2, "methods: found \"\"; " METHODS },
    { "[route /]\nmethods = GET PATCH\n", 2, "methods: found \"GET PATCH\"; " METHODS },
    { "[route /]\nmethods = get\n", 2, "methods: found \"get\"; " METHODS },
    { "[route /]\nmethods = GET,GET\n", 2, "methods: found \"GET,GET\"; " METHODS },
    /* texts */
    { "[store a]\ndirectory =\n", 2,
      "directory: found \"\"; allowed is a path of 1 to 180 bytes without control characters" },
    { "[route /]\nstore = a b\n", 2,
      "store: found \"a b\"; allowed is the name of a store: letters, digits, \".\", \"_\" and "
      "\"-\"" },
    { "[route /]\nkey_prefix = a b\n", 2,
      "key_prefix: found \"a b\"; allowed is up to 180 bytes without blanks and control "
      "characters" },
    { "[route /]\nkey_prefix = a\x7f\n", 2,
      "key_prefix: found \"a\x7f\"; allowed is up to 180 bytes without blanks and control "
      "characters" },
    { "[route /]\ncontent_type =\n", 2, "content_type: found \"\"; " MEDIA },
    { "[route /]\ncontent_type = text\n", 2, "content_type: found \"text\"; " MEDIA },
    { "[route /]\ncontent_type = text/\n", 2, "content_type: found \"text/\"; " MEDIA },
    { "[route /]\ncontent_type = /html\n", 2, "content_type: found \"/html\"; " MEDIA },
    { "[route /]\ncontent_type = text/html # x\n", 2,
      "content_type: found \"text/html # x\"; " MEDIA },
    { "[route /]\ncontent_type = a/b;\xc3\xa4\n", 2,
      "content_type: found \"a/b;\xc3\xa4\"; " MEDIA },
    /* the other type's directives, wherever `type` stands */
    { "[store a]\nsync = full\nservers = b\n[server]\nworkers = x\n", 3,
      "servers: only a store of `type = memcached` has this, and [store a] is embedded" },
    { "[store a]\nmap_size = 1GB\ntype = memcached\n", 2,
      "map_size: only a store of `type = embedded` has this, and [store a] is memcached" },
    /* the first error wins */
    { "[server]\nworkers = x\n[nonsense]\nconnections = 0\n", 2,
      "workers: found \"x\"; allowed is a number from 0 to 256" },
    { "[server]\nnonsense\nworkers = x\n", 2,
      "neither `name = value` nor [section] nor # comment" },
    { "[nonsense]\nworkers = 1\n", 1, "[nonsense]: unknown section; " KNOWN },
};

static void
complains_clearly(void **state)
{
    for (size_t i = 0; i < COUNT(complaints); i++) {
        config_file_must_say(*state, complaints[i].text, complaints[i].line, complaints[i].message);
    }
}

/* Each directive of one type, alone in a store of the other. */
static void
types_keep_to_themselves(void **state)
{
    const struct config_directive *d;
    char text[CONFIG_TEXT_MAX], message[CONFIG_TEXT_MAX];
    unsigned embedded = 0, memcached = 0;
    size_t count;

    d = config_directives(&count);
    for (size_t i = 0; i < count; i++) {
        const char *value = d[i].default_value == NULL ? "a" : d[i].default_value;
        bool only_embedded = d[i].types == CONFIG_ONLY(CONFIG_STORE_EMBEDDED);

        if (d[i].section != CONFIG_SECTION_STORE || strcmp(d[i].name, "type") == 0) {
            assert_int_equal(d[i].types, 0);
            continue;
        }
        snprintf(text, sizeof(text), "[store a]\n%s = %s\ntype = %s\n", d[i].name, value,
                 only_embedded ? "memcached" : "embedded");
        snprintf(message, sizeof(message),
                 "%s: only a store of `type = %s` has this, and [store a] is %s", d[i].name,
                 only_embedded ? "embedded" : "memcached",
                 only_embedded ? "memcached" : "embedded");
        config_file_must_say(*state, text, 2, message);
        embedded += only_embedded;
        memcached += !only_embedded;
    }
    assert_int_equal(embedded, 3);
    assert_int_equal(memcached, 13);
}

static void
listen_addresses_are_checked(void **state)
{
    static const char *const good[] = { "127.0.0.1:8085",     "0.0.0.0:0",
                                        "[::]:65535",         "[::1]:80",
                                        "[::ffff:1.2.3.4]:1", "unix:/run/kvgate.sock" };
    static const char *const bad[] = { "",
                                       "8085",
                                       ":8085",
                                       "127.0.0.1",
                                       "127.0.0.1:",
                                       "127.0.0.1:65536",
                                       "127.0.0.1:-1",
                                       "127.0.0.1:8085x",
                                       "127.0.0:8085",
                                       "300.0.0.1:8085",
                                       "localhost:8085",
                                       "*:8085",
                                       "::1:8085",
                                       "[::1]",
                                       "[::1]8085",
                                       "[::1",
                                       "[]:8085",
                                       "[127.0.0.1]:8085",
                                       "[::1]:",
                                       "1.2.3.4:5:6",
                                       "unix:",
                                       "unix:/",
                                       "unix:relative",
                                       "unix:/a b",
                                       "tcp:127.0.0.1:8085" };
    struct config *c = *state;
    char text[CONFIG_TEXT_MAX * 2], message[CONFIG_TEXT_MAX * 2];

    for (size_t i = 0; i < COUNT(good); i++) {
        snprintf(text, sizeof(text), "[server]\nlisten = %s\n", good[i]);
        config_file_must_load(c, text);
        assert_int_equal(c->listen_count, 1);
        assert_string_equal(c->listen[0], good[i]);
    }
    for (size_t i = 0; i < COUNT(bad); i++) {
        snprintf(text, sizeof(text), "[server]\nlisten = %s\n", bad[i]);
        snprintf(message, sizeof(message), "listen: found \"%s\"; %s", bad[i], LISTEN);
        config_file_must_say(c, text, 2, message);
    }
    config_file_must_load(c, "[server]\nlisten = 127.0.0.1:0\nlisten = 127.0.0.1:0\n");
    assert_int_equal(c->listen_count, 2);
}

static void
server_addresses_are_checked(void **state)
{
    static const char *const bad[] = { "a:",    "a:0",    "a:65536",  "a:x",    ":1",     "*2",
                                       "a*0",   "a*1001", "a*",       "a*x",    "a:1*-1", "::1",
                                       "a:1:2", "[::1",   "[::1]x",   "[a]:1",  "[]",     "a/b",
                                       "a=b",   "unix:",  "unix:rel", "unix:*2" };
    struct config *c = *state;
    char text[CONFIG_TEXT_MAX], error[CONFIG_ERROR_MAX];

    for (size_t i = 0; i < COUNT(bad); i++) {
        snprintf(text, sizeof(text), MEMCACHED "servers = good, %s\n", bad[i]);
        if (config_file_load(c, text, error)) {
            fail_msg("was taken: %s", bad[i]);
        }
        assert_non_null(strstr(error, ":3: servers: found \"good, "));
        assert_non_null(strstr(error, "allowed is a list of host, host:port, [v6]:port or unix:"));
        assert_non_null(strstr(error, "wrong is \""));
    }
    config_file_must_say(
        c, MEMCACHED "servers = ,\n", 3,
        "servers: found \",\"; allowed is at least one server, such as 127.0.0.1:11211");
    config_file_must_say(
        c, MEMCACHED "servers = a\nservers = b a:11211*2\n", 4,
        "servers: found \"b a:11211*2\"; allowed is each server once; twice is \"a:11211\"");
    config_file_must_load(c, MEMCACHED "servers = ,a,, b\t,\n");
    assert_int_equal(c->stores[0].server_count, 2);
}

static void
limits_of_lists(void **state)
{
    struct config *c = *state;
    char *text = calloc(1, CONFIG_FILE_MAX), *at = text;
    char error[CONFIG_ERROR_MAX];

    assert_non_null(text);
    for (unsigned i = 0; i <= CONFIG_STORE_MAX; i++) {
        at += sprintf(at, "[store s%u]\n", i);
    }
    config_file_must_say(c, text, 17, "[store s16]: one too many; allowed are 16");
    at = text;
    for (unsigned i = 0; i <= CONFIG_ROUTE_MAX; i++) {
        at += sprintf(at, "[route /%u]\n", i);
    }
    config_file_must_say(c, text, 65, "[route /64]: one too many; allowed are 64");
    at = text + sprintf(text, "[server]\n");
    for (unsigned i = 0; i <= CONFIG_LISTEN_MAX; i++) {
        at += sprintf(at, "listen = 127.0.0.1:%u\n", 1000 + i);
    }
    assert_false(config_file_load(c, text, error));
    assert_non_null(strstr(error, ":18: listen: found \"127.0.0.1:1016\"; allowed is up to 16"));
    free(text);
}

/* libinih would take the rest of a long line for a line of its own. */
static void
long_lines_are_refused(void **state)
{
    struct config *c = *state;
    char text[600];

    /* 199 bytes: the longest line, here a comment, and then one byte more. */
    memset(text, '#', sizeof(text));
    strcpy(text + 199, "\n[server]\nworkers = 7\n");
    config_file_must_load(c, text);
    assert_int_equal(c->workers, 7);
    strcpy(text + 199, "#\n[server]\nworkers = 7\n");
    config_file_must_say(
        c, text, 1,
        "a line of more than 199 bytes (`listen` and `servers` may be given on several "
        "lines)");
    /* Without the check, "7" would be the value, and "workers = 8" would follow. */
    snprintf(text, sizeof(text), "[server]\nlog_level =%180sinfo workers = 8\n", "");
    config_file_must_say(
        c, text, 2,
        "a line of more than 199 bytes (`listen` and `servers` may be given on several "
        "lines)");
}

/* The longest text can be printed and read back; a byte more is refused. */
static void
long_texts_are_refused(void **state)
{
    struct config *c = *state;
    char value[CONFIG_VALUE_MAX + 2], text[CONFIG_TEXT_MAX];
    char error[CONFIG_ERROR_MAX];
    char *again;

    memset(value, 'x', sizeof(value));
    value[CONFIG_VALUE_MAX] = '\0';
    snprintf(text, sizeof(text), "[route /]\nkey_prefix=%s\n", value);
    config_file_must_load(c, text);
    config_file_must_finish(c);
    again = config_file_printed(c);
    config_file_must_load(c, again);
    assert_string_equal(c->routes[0].key_prefix, value);
    free(again);
    value[CONFIG_VALUE_MAX] = 'x';
    value[CONFIG_VALUE_MAX + 1] = '\0';
    snprintf(text, sizeof(text), "[route /]\nkey_prefix=%s\n", value);
    assert_false(config_file_load(c, text, error));
    assert_non_null(strstr(error, ":2: key_prefix: found \"x"));
}

static void
files_that_are_none(void **state)
{
    static const char nul[] = "[server]\nworkers = 1\0\n";
    struct config *c = *state;
    char error[CONFIG_ERROR_MAX];

    assert_false(config_load(c, "/nonexistent/kvgate.conf", error));
    assert_string_equal(error, "/nonexistent/kvgate.conf: cannot open: No such file or directory");
    assert_false(config_load(c, "/", error));
    assert_string_equal(error, "/:1: cannot read: Is a directory");
    assert_false(config_file_load_bytes(c, nul, sizeof(nul) - 1, error));
    assert_non_null(strstr(error, ":2: a NUL byte: this is not a text file"));
}

#define CONFIG_TEST(f) cmocka_unit_test_setup_teardown(f, config_file_setup, config_file_teardown)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        CONFIG_TEST(complains_clearly),
        CONFIG_TEST(types_keep_to_themselves),
        CONFIG_TEST(listen_addresses_are_checked),
        CONFIG_TEST(server_addresses_are_checked),
        CONFIG_TEST(limits_of_lists),
        CONFIG_TEST(long_lines_are_refused),
        CONFIG_TEST(long_texts_are_refused),
        CONFIG_TEST(files_that_are_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
