/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_config_finish.c: what the command line overrides, and what only the whole configuration
 * can tell.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "config.h"
#include "config_file.h"

/* A file of which nothing must be left when -s overrides it. */
static const char crowded[] = "[store disk]\n"
                              "map_size = 3GB\n"
                              "[store fleet]\n"
                              "type = memcached\n"
                              "servers = old\n"
                              "lanes = 3\n"
                              "[route /a/]\n"
                              "store = fleet\n"
                              "key_prefix = a:\n"
                              "ttl = 30d\n"
                              "[route /]\n"
                              "store = disk\n";

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- command line ---- */

static void
listen_option_replaces_then_adds(void **state)
{
    struct config *c = *state;
    char error[CONFIG_ERROR_MAX];
    bool first = true;

    config_file_must_load(c, "[server]\nlisten = 1.1.1.1:1\nlisten = 2.2.2.2:2\n");
    assert_true(config_add_listen(c, "3.3.3.3:3", &first, error));
    assert_false(first);
    assert_int_equal(c->listen_count, 1);
    assert_string_equal(c->listen[0], "3.3.3.3:3");
    assert_true(config_add_listen(c, "[::1]:0", &first, error));
    assert_int_equal(c->listen_count, 2);
    assert_string_equal(c->listen[1], "[::1]:0");
    assert_false(config_add_listen(c, "8085", &first, error));
    assert_string_equal(
        error, "listen address: found \"8085\"; allowed is an address in figures with a port, "
               "127.0.0.1:8085, 0.0.0.0:8085 or [::1]:8085, or unix:/path of up to "
               "107 bytes without blanks");
}

static void
store_option_replaces_all(void **state)
{
    struct config *c = *state;
    char error[CONFIG_ERROR_MAX];

    config_file_must_load(c, crowded);
    assert_true(config_set_store(c, "embedded:/tmp/x y", error));
    config_file_must_finish(c);
    assert_int_equal(c->store_count, 1);
    assert_int_equal(c->stores[0].type, CONFIG_STORE_EMBEDDED);
    assert_string_equal(c->stores[0].directory, "/tmp/x y");
    assert_int_equal(c->stores[0].map_size, 1073741824);
    assert_int_equal(c->route_count, 1);
    assert_string_equal(c->routes[0].prefix, "/");
    assert_int_equal(c->routes[0].ttl_s, 0);
    assert_string_equal(c->routes[0].key_prefix, "");

    config_file_must_load(c, crowded);
    assert_true(config_set_store(c, "memcached://a,b:1*3,[::1]:2,/tmp/s", error));
    config_file_must_finish(c);
    assert_int_equal(c->store_count, 1);
    assert_int_equal(c->route_count, 1);
    assert_int_equal(c->stores[0].type, CONFIG_STORE_MEMCACHED);
    assert_int_equal(c->stores[0].server_count, 4);
    assert_int_equal(c->stores[0].servers[0].port, 11211);
    assert_int_equal(c->stores[0].servers[1].weight, 3);
    assert_string_equal(c->stores[0].servers[2].host, "::1");
    assert_string_equal(c->stores[0].servers[3].host, "/tmp/s");
    assert_int_equal(c->stores[0].servers[3].port, 0);
    assert_int_equal(c->stores[0].lanes, 8);
}

static void
store_option_is_checked(void **state)
{
    static const char *const bad[] = { "",
                                       "embedded",
                                       "embedded:",
                                       "memcached:",
                                       "memcached://",
                                       "memcached://a:0",
                                       "memcached:/tmp/s",
                                       "redis://a",
                                       "/tmp/x",
                                       "embedded:a\nb",
                                       "embedded:a ;b",
                                       "embedded:a " };
    char error[CONFIG_ERROR_MAX];

    for (size_t i = 0; i < COUNT(bad); i++) {
        if (config_set_store(*state, bad[i], error)) {
            fail_msg("was taken: %s", bad[i]);
        }
        assert_memory_equal(error, "store", 5);
        assert_non_null(strstr(error, "; allowed is "));
    }
}

/* ---- finish ---- */

static void
finish_completes(void **state)
{
    struct config *c = *state;

    config_file_must_load(c, "[store only]\n");
    config_file_must_finish(c);
    assert_int_equal(c->route_count, 1);
    assert_string_equal(c->routes[0].prefix, "/");
    assert_string_equal(c->routes[0].store_name, "only");

    config_file_must_load(c, "[store only]\n[route /a]\n[route /b]\nstore = only\n");
    config_file_must_finish(c);
    assert_int_equal(c->route_count, 2);
    assert_string_equal(c->routes[0].store_name, "only");

    /* A route alone leads to the store that is there without a word. */
    config_file_must_load(c, "[route /a]\nttl = 1s\n");
    config_file_must_finish(c);
    assert_string_equal(c->stores[0].name, "default");
    assert_string_equal(c->routes[0].store_name, "default");
}

static void
finish_checks_the_whole(void **state)
{
    static const struct {
        const char *text;    /* the file */
        const char *message; /* of config_finish */
    } wrong[] = {
        { "[store a]\n[store b]\ndirectory = b\n",
          "there are 2 stores and no [route PREFIX] that leads to them" },
        { "[store a]\n[store b]\ndirectory = b\n[route /x]\n",
          "[route /x]: there are 2 stores, so it needs `store`" },
        { "[store a]\n[route /x]\nstore = b\n", "[route /x]: store: there is no [store b]" },
        { "[route /x]\nstore = local\n", "[route /x]: store: there is no [store local]" },
        { "[store a]\ntype = memcached\n",
          "[store a]: a memcached store needs `servers`, such as 127.0.0.1:11211" },
        { "[store a]\n[store b]\ndirectory = kvgate-data\n[route /]\nstore = a\n",
          "[store a] and [store b] have the same `directory`: kvgate-data" },
        { "[server]\nbytes_in_flight = 1MB\n[route /x]\nbody_max = 2MB\n",
          "[route /x]: body_max is more than bytes_in_flight allows for all requests together" },
    };
    struct config *c = *state;
    char error[CONFIG_ERROR_MAX];

    for (size_t i = 0; i < COUNT(wrong); i++) {
        config_file_must_load(c, wrong[i].text);
        assert_false(config_finish(c, error));
        assert_string_equal(error, wrong[i].message);
    }
}

/* ---- config_split_host_port ---- */

static void
splits_host_and_port(void **state)
{
    static const char *const bad[] = {
        "",      ":",    ":1",    "a",      "a:",     "a:b",  "a:65536",
        "a:1:2", "[]:1", "[::1]", "[::1:1", "[::1]1", "a: 1", "a:99999999999999999999"
    };
    size_t len;
    uint16_t port;

    (void)state;
    assert_true(config_split_host_port("127.0.0.1:8085", &len, &port));
    assert_true(len == 9 && port == 8085);
    assert_true(config_split_host_port("[::1]:65535", &len, &port));
    assert_true(len == 5 && port == 65535);
    assert_true(config_split_host_port("name:0", &len, &port));
    assert_true(len == 4 && port == 0);
    for (size_t i = 0; i < COUNT(bad); i++) {
        if (config_split_host_port(bad[i], &len, &port)) {
            fail_msg("was taken: %s", bad[i]);
        }
    }
}

/* ---- passwords ---- */

/* Loads and finishes a store whose password_file holds TEXT; NULL: there is no such file. */
static bool
finish_with_password(struct config *c, const char *text, char error[CONFIG_ERROR_MAX])
{
    char path[] = "/tmp/kvgate-password-XXXXXX", config[512];
    int fd = mkstemp(path);
    bool ok;

    assert_true(fd >= 0);
    if (text != NULL) {
        assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    }
    close(fd);
    snprintf(config, sizeof(config),
             "[store fleet]\ntype = memcached\nservers = a\nusername = alice\n"
             "password_file = %s\n",
             path);
    config_file_must_load(c, config);
    if (text == NULL) {
        unlink(path);
    }
    ok = config_finish(c, error);
    unlink(path);
    return ok;
}

static void
passwords_are_read(void **state)
{
    static const char *const bad[] = { "", "\n", "\nsecret\n", NULL };
    struct config *c = *state;
    char error[CONFIG_ERROR_MAX], *printed;

    assert_true(finish_with_password(c, "two words\r\nsecond line\n", error));
    assert_string_equal(c->stores[0].password, "two words");
    printed = config_file_printed(c);
    assert_null(strstr(printed, "two words"));
    free(printed);
    for (size_t i = 0; i < COUNT(bad); i++) {
        assert_false(finish_with_password(c, bad[i], error));
        assert_non_null(strstr(error, "[store fleet]: password_file /tmp/"));
    }
}

static void
name_and_password_go_together(void **state)
{
    struct config *c = *state;
    char error[CONFIG_ERROR_MAX];

    config_file_must_load(c, "[store f]\ntype = memcached\nservers = a\nusername = alice\n");
    assert_false(config_finish(c, error));
    assert_string_equal(error, "[store f]: username and password_file go together");
    config_file_must_load(c, "[store f]\ntype = memcached\nservers = a\npassword_file = /x\n");
    assert_false(config_finish(c, error));
    assert_string_equal(error, "[store f]: username and password_file go together");
}

#define CONFIG_TEST(f) cmocka_unit_test_setup_teardown(f, config_file_setup, config_file_teardown)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        CONFIG_TEST(listen_option_replaces_then_adds),
        CONFIG_TEST(store_option_replaces_all),
        CONFIG_TEST(store_option_is_checked),
        CONFIG_TEST(finish_completes),
        CONFIG_TEST(finish_checks_the_whole),
        CONFIG_TEST(splits_host_and_port),
        CONFIG_TEST(passwords_are_read),
        CONFIG_TEST(name_and_password_go_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
