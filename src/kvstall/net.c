/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * net.c: connect, listen, read and write with deadlines. Knows nothing of HTTP.
 */
#include "net.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "interrupt.h"
#include "slice.h"
#include "timing.h"

static bool
copy_text(char *to, size_t size, const char *from, size_t len)
{
    if (len == 0 || len >= size || memchr(from, '\0', len) != NULL) {
        return false;
    }
    memcpy(to, from, len);
    to[len] = '\0';
    return true;
}

bool
net_split(const char *text, size_t len, const char *default_port, struct net_name *name)
{
    const char *end = text + len, *host = text, *host_end, *port;
    uint64_t number;

    if (len > 0 && text[0] == '[') {
        host = text + 1;
        host_end = memchr(text, ']', len);
        port = host_end == NULL ? NULL : host_end + 1;
    } else {
        host_end = memchr(text, ':', len);
        host_end = host_end == NULL ? end : host_end;
        port = host_end;
    }
    if (port == NULL ||
        !copy_text(name->host, sizeof(name->host), host, (size_t)(host_end - host))) {
        return false;
    }
    if (port == end) {
        return default_port != NULL &&
               copy_text(name->port, sizeof(name->port), default_port, strlen(default_port));
    }
    port++;
    return port[-1] == ':' && slice_to_u64(slice_of(port, (size_t)(end - port)), &number) &&
           number <= 65535 && copy_text(name->port, sizeof(name->port), port, (size_t)(end - port));
}

/* Waits for EVENTS on FD. NET_OK: *SEEN holds what has come. */
static enum net_result
wait_for(int fd, short events, int64_t deadline_ns, short *seen)
{
    for (;;) {
        struct pollfd pfd = { .fd = fd, .events = events };
        int64_t left = deadline_ns == TIMING_NEVER ? 0 : deadline_ns - timing_now_ns();
        struct timespec timeout = timing_to_timespec(left > 0 ? left : 0);
        int n =
            ppoll(&pfd, 1, deadline_ns == TIMING_NEVER ? NULL : &timeout, interrupt_wait_mask());

        if (n > 0) {
            *seen = pfd.revents;
            return NET_OK;
        }
        if (n == 0) {
            return NET_TIMEOUT;
        }
        if (errno != EINTR) {
            return NET_FAILED;
        }
        if (interrupt_pending()) {
            return NET_INTERRUPTED;
        }
    }
}

int
net_connect(const struct net_address *address, int64_t deadline_ns)
{
    int fd = socket(address->addr.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int error = 0;
    socklen_t len = sizeof(error);
    short seen;

    if (fd == -1) {
        return -1;
    }
    if (connect(fd, (const struct sockaddr *)&address->addr, address->len) == 0) {
        return fd;
    }
    if (errno == EINPROGRESS) {
        switch (wait_for(fd, POLLOUT, deadline_ns, &seen)) {
        case NET_OK:
            getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len);
            break;
        case NET_INTERRUPTED:
            error = EINTR;
            break;
        default:
            error = ETIMEDOUT;
            break;
        }
    } else {
        error = errno;
    }
    if (error != 0) {
        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

/* The addresses of NAME; NULL: *REASON says why. */
static struct addrinfo *
resolve(const struct net_name *name, int flags, const char **reason)
{
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = flags | AI_NUMERICSERV };
    struct addrinfo *list = NULL;
    int error = getaddrinfo(name->host, name->port, &hints, &list);

    if (error != 0) {
        *reason = error == EAI_SYSTEM ? strerror(errno) : gai_strerror(error);
        return NULL;
    }
    return list;
}

static void
address_set(struct net_address *address, const struct addrinfo *info)
{
    memcpy(&address->addr, info->ai_addr, info->ai_addrlen);
    address->len = info->ai_addrlen;
}

int
net_dial(const struct net_name *name, int64_t deadline_ns, struct net_address *address,
         const char **reason)
{
    struct addrinfo *list = resolve(name, 0, reason);
    int fd = -1;

    for (struct addrinfo *info = list; info != NULL && fd == -1; info = info->ai_next) {
        address_set(address, info);
        fd = net_connect(address, deadline_ns);
        if (fd == -1) {
            *reason = strerror(errno);
        }
    }
    if (list != NULL) {
        freeaddrinfo(list);
    }
    return fd;
}

/* A socket that listens on INFO; -1: see errno. */
static int
listen_on(const struct addrinfo *info)
{
    int fd = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int on = 1, error;

    if (fd == -1) {
        return -1;
    }
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(fd, info->ai_addr, info->ai_addrlen) == -1 || listen(fd, 16) == -1) {
        error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

int
net_listen(const struct net_name *name, struct net_address *address, const char **reason)
{
    struct addrinfo *list = resolve(name, AI_PASSIVE, reason);
    int fd = -1;

    for (struct addrinfo *info = list; info != NULL && fd == -1; info = info->ai_next) {
        fd = listen_on(info);
        if (fd == -1) {
            *reason = strerror(errno);
        }
    }
    if (list != NULL) {
        freeaddrinfo(list);
    }
    if (fd != -1) {
        address->len = sizeof(address->addr);
        getsockname(fd, (struct sockaddr *)&address->addr, &address->len);
    }
    return fd;
}

int
net_accept(int listener, int64_t deadline_ns)
{
    for (;;) {
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        short seen;

        if (fd != -1) {
            return fd;
        }
        if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
            return -1;
        }
        if (wait_for(listener, POLLIN, deadline_ns, &seen) != NET_OK) {
            return -1;
        }
    }
}

void
net_print_address(const struct net_address *address, char *text, size_t size)
{
    char host[NET_HOST_MAX], port[NET_PORT_MAX];

    if (getnameinfo((const struct sockaddr *)&address->addr, address->len, host, sizeof(host), port,
                    sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
        snprintf(text, size, "?");
        return;
    }
    snprintf(text, size, strchr(host, ':') != NULL ? "[%s]:%s" : "%s:%s", host, port);
}

void
net_set_nodelay(int fd, bool nodelay)
{
    int on = nodelay;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

void
net_set_quickack(int fd, bool quick)
{
    int on = quick;

    setsockopt(fd, IPPROTO_TCP, TCP_QUICKACK, &on, sizeof(on));
}

/* What a failed read or write means. */
static enum net_result
result_of_errno(void)
{
    return errno == EPIPE || errno == ECONNRESET ? NET_CLOSED : NET_FAILED;
}

enum net_result
net_write(int fd, const void *data, size_t len, int64_t deadline_ns)
{
    const char *at = data;

    while (len > 0) {
        ssize_t n = send(fd, at, len, MSG_NOSIGNAL);
        enum net_result result;
        short seen;

        if (n >= 0) {
            at += n;
            len -= (size_t)n;
            continue;
        }
        if (errno != EAGAIN && errno != EINTR) {
            return result_of_errno();
        }
        result = wait_for(fd, POLLIN | POLLOUT, deadline_ns, &seen);
        if (result != NET_OK) {
            return result;
        }
        if ((seen & (POLLIN | POLLOUT)) == POLLIN) {
            return NET_INPUT;
        }
    }
    return interrupt_pending() ? NET_INTERRUPTED : NET_OK;
}

enum net_result
net_read(int fd, void *data, size_t cap, size_t *got, int64_t deadline_ns)
{
    for (;;) {
        ssize_t n = recv(fd, data, cap, 0);
        enum net_result result;
        short seen;

        if (n > 0) {
            *got = (size_t)n;
            return NET_OK;
        }
        if (n == 0) {
            return NET_CLOSED;
        }
        if (errno != EAGAIN && errno != EINTR) {
            return result_of_errno();
        }
        result = wait_for(fd, POLLIN, deadline_ns, &seen);
        if (result != NET_OK) {
            return result;
        }
    }
}
