/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * address_book.c: getaddrinfo(3) in a thread of its own, since it blocks for as long as a name
 * server likes. Does not connect to anything.
 */
#include "address_book.h"

#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"

struct address_book {
    struct config_server_address server; /* what was asked for (own copy) */
    char name[CONFIG_TEXT_MAX + 16];     /* for logs */
    bool has_thread;                     /* SERVER is a name that may change */
    pthread_t thread;                    /* sleeps on `wake` */
    pthread_mutex_t mutex;               /* guards everything below */
    pthread_cond_t wake;                 /* wanted or stop has become true */
    bool wanted;                         /* somebody dialled: look again */
    bool stop;                           /* the book is being destroyed */
    bool failed;                         /* the last look-up did; logged once */
    size_t count;                        /* addresses known */
    struct address addresses[ADDRESS_MAX];
};

/* Looks SERVER up into ADDRESSES; with numeric_only it does not ask anybody. */
static size_t
look_up(const struct config_server_address *server, bool numeric_only,
        struct address addresses[ADDRESS_MAX], const char **why)
{
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_family = AF_UNSPEC };
    struct addrinfo *list = NULL;
    char port[8];
    size_t count = 0;
    int status;

    hints.ai_flags = AI_NUMERICSERV | (numeric_only ? AI_NUMERICHOST : 0);
    snprintf(port, sizeof(port), "%u", (unsigned)server->port);
    status = getaddrinfo(server->host, port, &hints, &list);
    if (status != 0) {
        *why = gai_strerror(status);
        return 0;
    }
    for (struct addrinfo *a = list; a != NULL && count < ADDRESS_MAX; a = a->ai_next) {
        if (a->ai_addrlen <= sizeof(addresses[count].socket)) {
            memcpy(&addresses[count].socket, a->ai_addr, a->ai_addrlen);
            addresses[count].len = a->ai_addrlen;
            count++;
        }
    }
    freeaddrinfo(list);
    return count;
}

/* A name that stops resolving keeps its last addresses: they are the best guess there is. */
static void
refresh(struct address_book *book)
{
    struct address found[ADDRESS_MAX];
    const char *why = "no address";
    size_t count = look_up(&book->server, false, found, &why);

    pthread_mutex_lock(&book->mutex);
    if (count > 0) {
        memcpy(book->addresses, found, count * sizeof(found[0]));
        book->count = count;
    }
    if ((count == 0) != book->failed) {
        book->failed = count == 0;
        if (book->failed) {
            log_warn("server %s: the name does not resolve: %s", book->name, why);
        } else {
            log_info("server %s: the name resolves again", book->name);
        }
    }
    pthread_mutex_unlock(&book->mutex);
}

static void *
resolver_main(void *arg)
{
    struct address_book *book = arg;

    pthread_mutex_lock(&book->mutex);
    while (!book->stop) {
        if (!book->wanted) {
            pthread_cond_wait(&book->wake, &book->mutex);
            continue;
        }
        book->wanted = false;
        pthread_mutex_unlock(&book->mutex);
        refresh(book);
        pthread_mutex_lock(&book->mutex);
    }
    pthread_mutex_unlock(&book->mutex);
    return NULL;
}

/* The resolver takes no signals: they are the main thread's. */
static bool
start_resolver(struct address_book *book)
{
    sigset_t all, before;
    int status;

    refresh(book);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    status = pthread_create(&book->thread, NULL, resolver_main, book);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    book->has_thread = status == 0;
    return book->has_thread;
}

static bool
set_unix(struct address_book *book)
{
    struct address *a = &book->addresses[0];
    size_t len = strlen(book->server.host);

    if (len >= sizeof(a->socket.unix_path.sun_path)) {
        return false;
    }
    snprintf(book->name, sizeof(book->name), "unix:%s", book->server.host);
    a->socket.unix_path.sun_family = AF_UNIX;
    memcpy(a->socket.unix_path.sun_path, book->server.host, len + 1);
    a->len = (socklen_t)sizeof(a->socket.unix_path);
    book->count = 1;
    return true;
}

static bool
set_host(struct address_book *book)
{
    const char *why = NULL;
    bool brackets = strchr(book->server.host, ':') != NULL;

    snprintf(book->name, sizeof(book->name), brackets ? "[%s]:%u" : "%s:%u", book->server.host,
             (unsigned)book->server.port);
    book->count = look_up(&book->server, true, book->addresses, &why);
    return book->count > 0 || start_resolver(book);
}

struct address_book *
address_book_create(const struct config_server_address *server)
{
    struct address_book *book = calloc(1, sizeof(*book));

    if (book == NULL) {
        return NULL;
    }
    book->server = *server;
    pthread_mutex_init(&book->mutex, NULL);
    pthread_cond_init(&book->wake, NULL);
    if (!(server->port == 0 ? set_unix(book) : set_host(book))) {
        address_book_destroy(book);
        return NULL;
    }
    return book;
}

void
address_book_destroy(struct address_book *book)
{
    if (book == NULL) {
        return;
    }
    if (book->has_thread) {
        pthread_mutex_lock(&book->mutex);
        book->stop = true;
        pthread_cond_signal(&book->wake);
        pthread_mutex_unlock(&book->mutex);
        pthread_join(book->thread, NULL);
    }
    pthread_cond_destroy(&book->wake);
    pthread_mutex_destroy(&book->mutex);
    free(book);
}

size_t
address_book_read(struct address_book *book, struct address addresses[ADDRESS_MAX])
{
    size_t count;

    pthread_mutex_lock(&book->mutex);
    count = book->count;
    memcpy(addresses, book->addresses, count * sizeof(addresses[0]));
    if (book->has_thread && !book->wanted) {
        book->wanted = true;
        pthread_cond_signal(&book->wake);
    }
    pthread_mutex_unlock(&book->mutex);
    return count;
}

const char *
address_book_name(const struct address_book *book)
{
    return book->name;
}
