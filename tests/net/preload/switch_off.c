/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * switch_off.c: a library to be loaded before the gateway (LD_PRELOAD) that takes one of its rules
 * against stalls away, so that the tests can show that they would notice. The gateway itself has
 * no such switch.
 *
 * SWITCH_OFF names rules, with a blank between them; -store is the same on connections to stores:
 *
 *   quickack  quickack-store   TCP_QUICKACK does nothing
 *   nodelay   nodelay-store    TCP_NODELAY does nothing
 *   gather    gather-store     what sendmsg was to send in one piece leaves in one write each
 */
#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define FD_MAX 4096

/*
 * Descriptors that were opened, not accepted: those of stores, and listening ones, which do not
 * matter.
 */
static atomic_bool is_store[FD_MAX];

/* Whether RULE is off for FD. */
static bool
is_off(const char *rule, int fd)
{
    const char *off = getenv("SWITCH_OFF");
    char name[32];
    size_t len;

    if (off == NULL || fd < 0 || fd >= FD_MAX) {
        return false;
    }
    len = (size_t)snprintf(name, sizeof(name), "%s%s", rule, is_store[fd] ? "-store" : "");
    for (; *off != '\0'; off += strspn(off, " ")) {
        size_t word = strcspn(off, " ");
        if (word == len && memcmp(off, name, len) == 0) {
            return true;
        }
        off += word;
    }
    return false;
}

/* The function that this library stands in front of. */
static void *
original(const char *name)
{
    void *function = dlsym(RTLD_NEXT, name);

    if (function == NULL) {
        abort();
    }
    return function;
}

int
socket(int domain, int type, int protocol)
{
    int (*next)(int, int, int);
    int fd;

    *(void **)&next = original("socket");
    fd = next(domain, type, protocol);
    if (fd >= 0 && fd < FD_MAX) {
        is_store[fd] = true;
    }
    return fd;
}

int
accept4(int fd, struct sockaddr *address, socklen_t *restrict len, int flags)
{
    int (*next)(int, struct sockaddr *, socklen_t *, int);
    int accepted;

    *(void **)&next = original("accept4");
    accepted = next(fd, address, len, flags);
    if (accepted >= 0 && accepted < FD_MAX) {
        is_store[accepted] = false;
    }
    return accepted;
}

int
setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
    int (*next)(int, int, int, const void *, socklen_t);

    if (level == IPPROTO_TCP && ((name == TCP_QUICKACK && is_off("quickack", fd)) ||
                                 (name == TCP_NODELAY && is_off("nodelay", fd)))) {
        return 0;
    }
    *(void **)&next = original("setsockopt");
    return next(fd, level, name, value, len);
}

ssize_t
sendmsg(int fd, const struct msghdr *message, int flags)
{
    ssize_t (*next)(int, const struct msghdr *, int);
    ssize_t sent = 0;

    *(void **)&next = original("sendmsg");
    if (message->msg_iovlen < 2 || !is_off("gather", fd)) {
        return next(fd, message, flags);
    }
    for (size_t i = 0; i < message->msg_iovlen; i++) {
        struct msghdr piece = { .msg_iov = &message->msg_iov[i], .msg_iovlen = 1 };
        ssize_t n = next(fd, &piece, flags & ~MSG_MORE);

        if (n < 0) {
            return sent > 0 ? sent : n;
        }
        sent += n;
        if ((size_t)n < message->msg_iov[i].iov_len) {
            return sent;
        }
    }
    return sent;
}
