/* SPDX-License-Identifier: BSD-2-Clause */
/* http_head.h: a request's header as libmicrohttpd has it, to struct request_head. Private to http.c. */
#ifndef KVGATE_HTTP_HEAD_H
#define KVGATE_HTTP_HEAD_H

#include <microhttpd.h>

#include "request.h"

/* Fills in what HEAD says about header fields; the rest is the caller's. Valid during the handler call. */
void http_head_read(struct MHD_Connection *mhd, struct request_head *head);

#endif
