/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * http.h: the HTTP front of one worker on one listening socket: bytes to requests, replies to
 * bytes. Behind it is libmicrohttpd; nobody else knows that.
 *
 * The worker watches http_epoll_fd and calls http_run for as long as passes make progress.
 * Requests that wait for a store are looked at again in every pass; those that wait long, where many do, are not.
 */
#ifndef KVGATE_HTTP_H
#define KVGATE_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "linger.h"
#include "request.h"

struct http;

/*
 * A front on LISTEN_FD, a listening non-blocking socket that stays the caller's. CONTEXT and
 * LINGERS outlive it. NULL: no memory or no descriptors; errno.
 */
struct http *http_create(struct request_context *context, struct lingers *lingers, int listen_fd);

/* Becomes readable when there is something to run for. */
int http_epoll_fd(const struct http *http);

/* One pass. Sets loop->progress if a request moved on: then there should be another. */
void http_run(struct http *http);

/*
 * After the passes of a turn: acknowledges the requests that have begun and not ended, and received something.
 * Their clients may hold back the rest until then (Nagle), and the kernel would wait up to 40 ms for
 * something to send along. A request that came in one piece costs nothing here. Sets loop->progress if more of one
 * has come, and is not read yet.
 */
void http_acknowledge(struct http *http);

/*
 * Whether there is work left that no descriptor tells of. Only means something while no request
 * waits for a store; loop->progress tells the rest.
 */
bool http_has_backlog(struct http *http);

/* When http_expire has something to do, or CLOCK_NEVER. */
int64_t http_next_deadline(const struct http *http);

/* Answers 408 to, or closes, whoever takes too long to send a request. */
void http_expire(struct http *http);

/* Connections that are open, and those of them with a request under way. */
size_t http_connections(const struct http *http);
size_t http_busy(const struct http *http);

/* No new connections; those that are idle are closed, the others after their answer. */
void http_quiesce(struct http *http);

/* Closes what is open. NULL is allowed. */
void http_destroy(struct http *http);

#endif
