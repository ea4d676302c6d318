/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * request_rig.h: the requests of one worker on fake stores, without HTTP and without a loop that
 * waits. Its teardown checks that nothing is left: no op, no waiting request, no byte of the quota.
 */
#ifndef KVGATE_TESTS_REQUEST_RIG_H
#define KVGATE_TESTS_REQUEST_RIG_H

#include "config.h"
#include "fake_store.h"
#include "loop.h"
#include "quota.h"
#include "request.h"

#define REQUEST_RIG_STORES 3

/*
 * Routes: "/" on store 0, "/two/" on store 1 with key prefix "2:", "/ro/" for GET and HEAD alone,
 * "/ttl/" with 77 s, "/small/" with 10 bytes, "/big/" with more than its store takes. No route uses
 * store 2.
 */
struct request_rig {
    struct config *config; /* (owned) */
    struct quota quota;    /* 1 MB in flight */
    struct loop loop;      /* of zeros: requests only set `progress` */
    struct fake_store stores[REQUEST_RIG_STORES];
    struct request_context context;
};

/* For cmocka: *STATE is a rig. */
int request_rig_setup(void **state);
int request_rig_teardown(void **state);

/* An HTTP/1.1 header with one Host and no body. */
struct request_head request_rig_head(const char *method, const char *target);

/* The same with "Content-Length: LENGTH"; with "Transfer-Encoding: chunked". */
struct request_head request_rig_head_sized(const char *method, const char *target, size_t length);
struct request_head request_rig_head_chunked(const char *method, const char *target);

/* request_begin; fails the test without memory. */
struct request *request_rig_begin(struct request_rig *rig, struct request_head head);

/* Begins a request that is not refused on its header, and ends it with BODY. */
struct request *request_rig_send(struct request_rig *rig, struct request_head head,
                                 const char *body);

/* The reply of a request that is done; then the request is given back. */
enum reply_id request_rig_finish(struct request *request);

/* What a header is refused with; REPLY_ID_COUNT when it is not. */
enum reply_id request_rig_refusal(struct request_rig *rig, struct request_head head);

/* Ops that all stores together were given so far; bytes of the quota that are taken. */
size_t request_rig_submitted(const struct request_rig *rig);
size_t request_rig_bytes(const struct request_rig *rig);

#endif
