/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * address_book.h: the socket addresses of one server, looked up without blocking a worker.
 *
 * Addresses in numbers and unix sockets are known at once. Names are resolved by one thread per
 * book, which sleeps until somebody asks; a worker that dials takes what is known now and asks for
 * a fresh look-up for the next time. Any thread may use a book.
 */
#ifndef KVGATE_ADDRESS_BOOK_H
#define KVGATE_ADDRESS_BOOK_H

#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "config.h"

/* Addresses of one name that are tried, at the most. */
#define ADDRESS_MAX 8

struct address {
    socklen_t len; /* bytes of it that are used */
    union {
        struct sockaddr any;
        struct sockaddr_un unix_path;
        struct sockaddr_storage storage;
    } socket; /* what connect(2) takes */
};

struct address_book;

/*
 * The book of SERVER (not kept). A name is looked up once before this returns, so that the first
 * request finds it; that it does not resolve is no error. NULL: no memory, or a unix socket's path
 * is too long for one. The caller owns the book.
 */
struct address_book *address_book_create(const struct config_server_address *server);

/* Waits for a look-up under way. NULL is allowed. */
void address_book_destroy(struct address_book *book);

/* Copies what is known to ADDRESSES and returns how many; asks for a fresh look-up of a name. */
size_t address_book_read(struct address_book *book, struct address addresses[ADDRESS_MAX]);

/* "host:port", "[v6]:port" or "unix:/path", for logs. Lives as long as the book. */
const char *address_book_name(const struct address_book *book);

#endif
