/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * http_upload.c: a large body goes from the socket straight into the buffer that its store sends it from.
 *
 * libmicrohttpd would read it in pieces of half a connection_buffer into memory of its own, for us to copy: 38 recv for
 * 300 KB, and as many passes in which every other upload's piece pushes this one out of the processor's cache.
 *
 * It calls recv by that name, and the linker takes a program's own function before a library's. So it calls the recv
 * below, which asks the kernel for all that there is of a large body, puts it where it belongs, and lets
 * libmicrohttpd count it piece by piece, as if each had been put into the memory that came with the call:
 *
 *     to come  --recvfrom-->  ahead  --libmicrohttpd's recv-->  told  --its handler: upload_take-->  counted
 *
 * It needs to be the first only for speed: a libmicrohttpd that reads in another way has its pieces copied, as small
 * ones are.
 */
#include "http_connection.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* Less to come than what libmicrohttpd reads at once by default is not worth a system call more, at its end. */
#define UPLOAD_MIN (8 * 1024)

/* What one connection may take in one call, so that the others have their turn: some 50 us. */
#define UPLOAD_READ_MAX (512 * 1024)

/* Descriptors for which there is room at first. */
#define UPLOAD_FDS_MIN 64

/* Whose connections are being read: recv is not told, and a thread runs one front at a time. */
static _Thread_local struct http *running;

void
uploads_run(struct http *http)
{
    running = http;
    MHD_run(http->daemon);
    running = NULL;
}

void
uploads_deinit(struct uploads *uploads)
{
    free(uploads->by_fd);
}

/* Room for FD in the table. False: no memory. */
static bool
reserve(struct uploads *uploads, int fd)
{
    size_t need = (size_t)fd + 1, cap = uploads->cap == 0 ? UPLOAD_FDS_MIN : uploads->cap;
    struct connection **grown;

    if (need <= uploads->cap) {
        return true;
    }
    while (cap < need) {
        cap *= 2;
    }
    grown = realloc(uploads->by_fd, cap * sizeof(struct connection *));
    if (grown == NULL) {
        return false;
    }
    memset(grown + uploads->cap, 0, (cap - uploads->cap) * sizeof(struct connection *));
    uploads->by_fd = grown;
    uploads->cap = cap;
    return true;
}

void
upload_begin(struct connection *c)
{
    size_t to_come;

    if (request_body_space(c->request, &to_come) == NULL || to_come < UPLOAD_MIN ||
        !reserve(&c->http->uploads, c->fd)) {
        return;
    }
    c->http->uploads.by_fd[c->fd] = c;
    c->upload = (struct upload){ .is_direct = true };
}

void
upload_end(struct connection *c)
{
    if (c->upload.is_direct) {
        c->http->uploads.by_fd[c->fd] = NULL;
        c->upload = (struct upload){ .is_direct = false };
    }
}

size_t
upload_take(struct connection *c, size_t len)
{
    size_t taken = len < c->upload.told ? len : c->upload.told;

    c->upload.told -= taken;
    return taken;
}

/* ---- recv ------------------------------------------------------------------------------------ */

static ssize_t
receive(int fd, void *data, size_t len, int flags)
{
    return recvfrom(fd, data, len, flags, NULL, NULL);
}

/* Reads of C's body what there is. What recvfrom returned. */
static ssize_t
read_ahead(struct connection *c, int flags)
{
    size_t to_come;
    char *space = request_body_space(c->request, &to_come);
    ssize_t n = receive(c->fd, space, to_come < UPLOAD_READ_MAX ? to_come : UPLOAD_READ_MAX, flags);

    if (n > 0) {
        request_body_placed(c->request, (size_t)n);
        c->upload.ahead += (size_t)n;
    }
    return n;
}

/*
 * What recv returns for a piece of LEN bytes. Fewer than LEN tell libmicrohttpd that the socket is empty: so it must be,
 * behind the end of the body, too.
 */
static ssize_t
receive_direct(struct connection *c, char *data, size_t len, int flags)
{
    struct upload *upload = &c->upload;
    size_t to_come, tell;
    ssize_t n;

    request_body_space(c->request, &to_come);
    if (to_come > 0 && upload->ahead < len) {
        n = read_ahead(c, flags);
        if (n == 0 || (n < 0 && (errno != EAGAIN || upload->ahead == 0))) {
            return n; /* at the end of the stream: a body that is cut off is of no use */
        }
        request_body_space(c->request, &to_come);
    }
    tell = upload->ahead < len ? upload->ahead : len;
    upload->ahead -= tell;
    upload->told += tell;
    if (tell == len || to_come > 0) {
        return (ssize_t)tell;
    }
    n = receive(c->fd, data + tell, len - tell, flags);
    return (ssize_t)tell + (n > 0 ? n : 0);
}

/* POSIX, recv. */
ssize_t
recv(int fd, void *data, size_t len, int flags)
{
    struct connection *c = NULL;

    if (running != NULL && (size_t)fd < running->uploads.cap) {
        c = running->uploads.by_fd[fd];
    }
    return c == NULL ? receive(fd, data, len, flags) : receive_direct(c, data, len, flags);
}
