/* SPDX-License-Identifier: BSD-2-Clause */
/* test_address_book.c: numbers, paths and names; look-ups that fail, or are cut short. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>

#include "address_book.h"
#include "clock.h"
#include "log.h"

/* A name that no name server may know (RFC 6761, section 6.4). */
#define NO_NAME "kvgate.invalid."

static struct config_server_address
server(const char *host, uint16_t port)
{
    struct config_server_address s = { .port = port, .weight = 1 };

    snprintf(s.host, sizeof(s.host), "%s", host);
    return s;
}

static struct address_book *
create(const char *host, uint16_t port)
{
    struct config_server_address s = server(host, port);
    struct address_book *book = address_book_create(&s);

    assert_non_null(book);
    memset(&s, 0x5a, sizeof(s)); /* it is not kept */
    return book;
}

/* Is A this address, of either family? */
static bool
is_inet(const struct address *a, const char *host, uint16_t port)
{
    struct in6_addr bytes;

    if (inet_pton(AF_INET, host, &bytes) == 1) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)&a->socket;

        return a->len == sizeof(*v4) && v4->sin_family == AF_INET && ntohs(v4->sin_port) == port &&
               memcmp(&v4->sin_addr, &bytes, sizeof(v4->sin_addr)) == 0;
    }
    assert_int_equal(inet_pton(AF_INET6, host, &bytes), 1);
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)&a->socket;
    return a->len == sizeof(*v6) && v6->sin6_family == AF_INET6 && ntohs(v6->sin6_port) == port &&
           memcmp(&v6->sin6_addr, &bytes, sizeof(v6->sin6_addr)) == 0;
}

static void
numbers(void **state)
{
    static const struct {
        const char *host;
        uint16_t port;
        const char *name;
    } rows[] = {
        { "127.0.0.1", 11211, "127.0.0.1:11211" }, { "192.0.2.1", 1, "192.0.2.1:1" },
        { "0.0.0.0", 65535, "0.0.0.0:65535" },     { "::1", 11211, "[::1]:11211" },
        { "2001:db8::1", 80, "[2001:db8::1]:80" },
    };
    struct address addresses[ADDRESS_MAX];

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct address_book *book = create(rows[i].host, rows[i].port);

        for (int k = 0; k < 3; k++) {
            assert_int_equal(address_book_read(book, addresses), 1);
            assert_true(is_inet(&addresses[0], rows[i].host, rows[i].port));
        }
        assert_string_equal(address_book_name(book), rows[i].name);
        address_book_destroy(book);
    }
}

static void
paths(void **state)
{
    struct address addresses[ADDRESS_MAX];
    struct address_book *book = create("/run/memcached/socket", 0);
    char longest[sizeof(addresses[0].socket.unix_path.sun_path) + 1];
    struct config_server_address s;

    (void)state;
    assert_int_equal(address_book_read(book, addresses), 1);
    assert_int_equal(addresses[0].socket.any.sa_family, AF_UNIX);
    assert_string_equal(addresses[0].socket.unix_path.sun_path, "/run/memcached/socket");
    assert_in_range(addresses[0].len, 2 + strlen("/run/memcached/socket"),
                    sizeof(addresses[0].socket.unix_path));
    assert_string_equal(address_book_name(book), "unix:/run/memcached/socket");
    address_book_destroy(book);

    memset(longest, 'x', sizeof(longest));
    longest[0] = '/';
    longest[sizeof(longest) - 1] = '\0';
    s = server(longest, 0);
    assert_null(address_book_create(&s));
    longest[sizeof(longest) - 2] = '\0';
    book = create(longest, 0);
    assert_int_equal(address_book_read(book, addresses), 1);
    assert_string_equal(addresses[0].socket.unix_path.sun_path, longest);
    address_book_destroy(book);
}

static void
a_name(void **state)
{
    struct address addresses[ADDRESS_MAX];
    struct address_book *book = create("localhost", 11211);

    (void)state;
    for (int i = 0; i < 100; i++) {
        size_t count = address_book_read(book, addresses);

        assert_in_range(count, 1, ADDRESS_MAX);
        for (size_t k = 0; k < count; k++) {
            assert_true(is_inet(&addresses[k], "127.0.0.1", 11211) ||
                        is_inet(&addresses[k], "::1", 11211));
        }
    }
    assert_string_equal(address_book_name(book), "localhost:11211");
    address_book_destroy(book);
}

static void
a_name_that_does_not_resolve(void **state)
{
    struct address addresses[ADDRESS_MAX];
    int64_t start = clock_monotonic_ms();
    struct address_book *book = create(NO_NAME, 11211);

    (void)state;
    /* a read never waits for a look-up, so many of them take no time */
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(address_book_read(book, addresses), 0);
    }
    assert_string_equal(address_book_name(book), NO_NAME ":11211");
    address_book_destroy(book);
    assert_true(clock_monotonic_ms() - start < 20000);
}

/* The look-up that the read asked for may have begun, be over, or be ahead. */
static void
destroyed_while_it_looks(void **state)
{
    struct address addresses[ADDRESS_MAX];

    (void)state;
    for (int i = 0; i < 40; i++) {
        struct address_book *book = create(i % 20 == 0 ? NO_NAME : "localhost", 11211);

        if (i % 4 < 3) {
            address_book_read(book, addresses);
        }
        address_book_destroy(book);
    }
    address_book_destroy(NULL);
}

static void *
reader(void *arg)
{
    struct address addresses[ADDRESS_MAX];

    for (int i = 0; i < 500; i++) {
        if (address_book_read(arg, addresses) < 1) {
            return arg;
        }
    }
    return NULL;
}

static void
read_by_several_threads(void **state)
{
    struct address_book *book = create("localhost", 11211);
    pthread_t threads[3];
    void *failed = NULL;

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, reader, book), 0);
    }
    for (size_t i = 0; i < 3; i++) {
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    address_book_destroy(book);
}

/* A machine whose name server is silent must not hold up the tests; names that fail are meant to. */
static int
be_brief(void **state)
{
    (void)state;
    log_set_level(LOG_ERROR);
    return setenv("RES_OPTIONS", "timeout:1 attempts:1", 1);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers),
        cmocka_unit_test(paths),
        cmocka_unit_test(a_name),
        cmocka_unit_test(a_name_that_does_not_resolve),
        cmocka_unit_test(destroyed_while_it_looks),
        cmocka_unit_test(read_by_several_threads),
    };
    return cmocka_run_group_tests(tests, be_brief, NULL);
}
