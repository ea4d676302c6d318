/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * http_connection.c: which phase each connection is in, and since when; and the acknowledgement of those
 * that have sent a part of a request.
 */
#include "http_connection.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "linger.h"
#include "loop.h"

/* ---- lists ----------------------------------------------------------------------------------- */

void
connection_list_init(struct connection_list *list)
{
    TAILQ_INIT(&list->connections);
    list->count = 0;
}

static void
list_remove(struct connection *c)
{
    TAILQ_REMOVE(&c->list->connections, c, link);
    c->list->count--;
    c->list = NULL;
}

void
connection_move(struct connection *c, struct connection_list *list)
{
    if (c->list != NULL) {
        list_remove(c);
    }
    c->since_ms = c->http->context->loop->now_ms;
    c->list = list;
    TAILQ_INSERT_TAIL(&list->connections, c, link);
    list->count++;
}

void
connection_touch(struct connection *c)
{
    c->http->context->loop->progress = true;
    if (!c->is_touched && c->is_tcp) {
        c->is_touched = true;
        c->touched_next = c->http->touched;
        c->http->touched = c;
    }
}

/* Whether the kernel holds something that C has sent. */
static bool
has_unread(const struct connection *c)
{
    int bytes = 0;

    return ioctl(c->fd, FIONREAD, &bytes) == 0 && bytes > 0;
}

void
connection_acknowledge_touched(struct http *http)
{
    struct connection *unread = NULL;
    int on = 1;

    while (http->touched != NULL) {
        struct connection *c = http->touched;
        http->touched = c->touched_next;
        c->is_touched = false;
        if (c->list != &http->receiving) {
            continue;
        }
        setsockopt(c->fd, IPPROTO_TCP, TCP_QUICKACK, &on, sizeof(on));
        if (!c->answered && !c->linger && has_unread(c)) {
            c->is_touched = true;
            c->touched_next = unread;
            unread = c;
            http->context->loop->progress = true;
        }
    }
    http->touched = unread;
}

static void
untouch(struct connection *c)
{
    struct connection **link = &c->http->touched;

    if (!c->is_touched) {
        return;
    }
    while (*link != c) {
        link = &(*link)->touched_next;
    }
    *link = c->touched_next;
    c->is_touched = false;
}

/*
 * libmicrohttpd loses a FIN that comes together with data: its epoll is edge-triggered, and it
 * takes a short read for an empty socket. A shutdown makes another edge; it reads what is left, then the end.
 * Who waits for an answer gets it first (on_completed): until then the shutdown would only wake us.
 */
static void
on_hangup(struct watch *watch, uint32_t events)
{
    struct connection *c = (struct connection *)watch; /* its first member */

    (void)events;
    c->hung_up = true;
    if (c->list != &c->http->answering) {
        shutdown(c->fd, SHUT_RD);
    }
    c->http->context->loop->progress = true;
}

struct connection *
connection_create(struct http *http, struct MHD_Connection *mhd)
{
    struct connection *c = calloc(1, sizeof(*c));
    const struct sockaddr *address =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS)->client_addr;

    if (c == NULL) {
        return NULL;
    }
    c->http = http;
    c->mhd = mhd;
    c->fd = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    c->is_tcp = address != NULL && address->sa_family != AF_UNIX;
    c->quota = quota_connect(http->context->quota, address);
    connection_move(c, c->quota == QUOTA_OK ? &http->idle : &http->refused);
    c->hangup = (struct watch){ c->fd, on_hangup };
    loop_watch(http->context->loop, &c->hangup, EPOLLRDHUP | EPOLLET);
    return c;
}

void
connection_destroy(struct connection *c)
{
    struct http *http = c->http;

    loop_unwatch(http->context->loop, &c->hangup);
    quota_disconnect(
        http->context->quota,
        MHD_get_connection_info(c->mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS)->client_addr);
    if (c->linger) {
        int fd = dup(c->fd); /* libmicrohttpd closes its own in a moment */
        if (fd >= 0) {
            linger_start(http->lingers, fd);
        }
    }
    untouch(c);
    list_remove(c);
    free(c->target);
    free(c);
}

void
connection_resume(struct connection *c)
{
    if (!c->is_suspended) {
        return;
    }
    c->is_suspended = false;
    c->http->context->suspended--;
    request_notify(c->request, NULL, NULL);
    MHD_resume_connection(c->mhd);
}

static void
on_request_done(void *arg)
{
    connection_resume(arg);
}

void
connection_suspend(struct connection *c)
{
    c->is_suspended = true;
    c->http->context->suspended++;
    request_notify(c->request, on_request_done, c);
    MHD_suspend_connection(c->mhd);
}

bool
connection_keep_target(struct connection *c, const char *uri)
{
    size_t len = uri == NULL ? 0 : strlen(uri);

    if (len > c->target_cap) {
        char *grown = realloc(c->target, len);
        if (grown == NULL) {
            return false;
        }
        c->target = grown;
        c->target_cap = len;
    }
    if (len > 0) {
        memcpy(c->target, uri, len);
    }
    c->target_len = len;
    c->target_end = uri == NULL ? NULL : uri + len;
    return true;
}
