/* SPDX-License-Identifier: BSD-2-Clause */
/* listener.c: from "host:port" to listening sockets. Accepts nothing. */
#include "listener.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "slice.h"

/* Connections that the kernel completes before they are accepted; it caps this at somaxconn. */
#define BACKLOG 4096

/* Where a unix socket's address has its path: this prefix is not part of it. */
static const struct slice unix_prefix = SLICE_LITERAL("unix:");

static int
fail(struct listener *listener, const char *address, const char *why, char error[CONFIG_ERROR_MAX])
{
    snprintf(error, CONFIG_ERROR_MAX, "cannot listen on %s: %s", address, why);
    listener_close(listener);
    return -1;
}

/* A socket bound to ADDRESS; a shared one lets others in that share, too. -1 with errno. */
static int
bind_socket(const struct sockaddr *address, socklen_t len, bool shared)
{
    int on = 1, reason;
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0) {
        return -1;
    }
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (address->sa_family == AF_INET6) {
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
    }
    if ((!shared || setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) == 0) &&
        bind(fd, address, len) == 0) {
        return fd;
    }
    reason = errno;
    close(fd);
    errno = reason;
    return -1;
}

/*
 * SO_REUSEPORT would let a second process in, which then took a part of the connections: a socket
 * without it finds out whether the address is free.
 */
static int
check_free(const struct sockaddr *address, socklen_t len)
{
    int fd = bind_socket(address, len, false);

    if (fd < 0) {
        return -1;
    }
    close(fd);
    return 0;
}

static int
open_sockets(struct listener *listener, struct sockaddr *address, socklen_t len, size_t workers)
{
    if (check_free(address, len) < 0) {
        return -1;
    }
    for (size_t i = 0; i < workers && i < LISTENER_SOCKETS_MAX; i++) {
        int fd = bind_socket(address, len, true);
        if (fd < 0) {
            return -1;
        }
        listener->sockets[listener->count++] = fd;
        /* the first one's port, where 0 was asked for, is that of all */
        if (listen(fd, BACKLOG) < 0 || getsockname(fd, address, &len) < 0) {
            return -1;
        }
    }
    return 0;
}

static void
set_name(struct listener *listener, const struct sockaddr *address, socklen_t len)
{
    char host[NI_MAXHOST] = "?", port[NI_MAXSERV] = "?";
    bool v6 = address->sa_family == AF_INET6;

    getnameinfo(address, len, host, sizeof(host), port, sizeof(port),
                NI_NUMERICHOST | NI_NUMERICSERV);
    snprintf(listener->name, sizeof(listener->name),
             v6 ? "http://[%.200s]:%s/" : "http://%.200s:%s/", host, port);
}

static int
open_tcp(struct listener *listener, const char *address, size_t workers,
         char error[CONFIG_ERROR_MAX])
{
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE };
    struct addrinfo *list = NULL;
    struct sockaddr_storage bound;
    char host[CONFIG_TEXT_MAX], number[8];
    size_t host_len = 0, skip;
    uint16_t port = 0;
    int status;

    if (!config_split_host_port(address, &host_len, &port)) {
        return fail(listener, address, "not host:port or [address]:port", error);
    }
    skip = address[0] == '[' ? 1 : 0;
    snprintf(host, sizeof(host), "%.*s", (int)(host_len - 2 * skip), address + skip);
    snprintf(number, sizeof(number), "%u", (unsigned)port);
    status = getaddrinfo(host, number, &hints, &list);
    if (status != 0) {
        return fail(listener, address, gai_strerror(status), error);
    }
    memcpy(&bound, list->ai_addr, list->ai_addrlen);
    hints.ai_addrlen = list->ai_addrlen;
    freeaddrinfo(list);
    if (open_sockets(listener, (struct sockaddr *)&bound, hints.ai_addrlen, workers) < 0) {
        return fail(listener, address, strerror(errno), error);
    }
    set_name(listener, (struct sockaddr *)&bound, hints.ai_addrlen);
    return 0;
}

/*
 * A path that a dead process left is taken over (connect says ECONNREFUSED); one that somebody serves, even
 * if too busy to answer, is not, and neither is what is no stream socket.
 */
static int
clear_path(const struct sockaddr_un *address)
{
    struct stat status;
    int fd, reason;

    if (lstat(address->sun_path, &status) < 0) {
        return errno == ENOENT ? 0 : -1;
    }
    if (!S_ISSOCK(status.st_mode)) {
        errno = EEXIST;
        return -1;
    }
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return -1;
    }
    reason = connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0 ? 0 : errno;
    close(fd);
    if (reason == ECONNREFUSED) {
        return unlink(address->sun_path);
    }
    errno = reason == 0 || reason == EAGAIN ? EADDRINUSE : reason;
    return -1;
}

static int
open_unix(struct listener *listener, const char *address, char error[CONFIG_ERROR_MAX])
{
    struct sockaddr_un bound = { .sun_family = AF_UNIX };
    const char *path = address + unix_prefix.len;
    int fd;

    if (strlen(path) >= sizeof(bound.sun_path)) {
        return fail(listener, address, "the path is too long for a unix socket", error);
    }
    memcpy(bound.sun_path, path, strlen(path) + 1);
    if (clear_path(&bound) < 0) {
        return fail(listener, address, strerror(errno), error);
    }
    fd = bind_socket((const struct sockaddr *)&bound, sizeof(bound), false);
    if (fd < 0) {
        return fail(listener, address, strerror(errno), error);
    }
    listener->sockets[listener->count++] = fd;
    snprintf(listener->path, sizeof(listener->path), "%s", path);
    /* anybody may connect, as to a port; whom to keep out, the directory's mode says */
    if (chmod(path, 0666) < 0 || listen(fd, BACKLOG) < 0) {
        return fail(listener, address, strerror(errno), error);
    }
    snprintf(listener->name, sizeof(listener->name), "%s", address);
    return 0;
}

int
listener_open(struct listener *listener, const char *address, size_t workers,
              char error[CONFIG_ERROR_MAX])
{
    *listener = (struct listener){ .count = 0 };
    if (slice_starts_with(slice_from_string(address), unix_prefix)) {
        return open_unix(listener, address, error);
    }
    return open_tcp(listener, address, workers, error);
}

int
listener_socket(const struct listener *listener, size_t index)
{
    return listener->sockets[index % listener->count];
}

void
listener_close(struct listener *listener)
{
    for (size_t i = 0; i < listener->count; i++) {
        close(listener->sockets[i]);
    }
    if (listener->path[0] != '\0') {
        unlink(listener->path);
    }
    listener->count = 0;
    listener->path[0] = '\0';
}
