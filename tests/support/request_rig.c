/* SPDX-License-Identifier: BSD-2-Clause */
/* request_rig.c: a worker's request context, made by hand. */
#include "request_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct config_route *
add_route(struct config *config, const char *prefix)
{
    struct config_route *route = &config->routes[config->route_count++];

    config_route_defaults(route, prefix);
    snprintf(route->content_type, sizeof(route->content_type), "type/of%s", prefix);
    return route;
}

static void
add_routes(struct config *config)
{
    struct config_route *two;

    add_route(config, "/");
    two = add_route(config, "/two/");
    two->store = 1;
    snprintf(two->key_prefix, sizeof(two->key_prefix), "2:");
    add_route(config, "/ro/")->methods = CONFIG_GET | CONFIG_HEAD;
    add_route(config, "/ttl/")->ttl_s = 77;
    add_route(config, "/small/")->body_max = 10;
    add_route(config, "/big/")->body_max = UINT64_MAX;
}

int
request_rig_setup(void **state)
{
    struct request_rig *rig = calloc(1, sizeof(*rig));

    assert_non_null(rig);
    rig->config = config_create();
    assert_non_null(rig->config);
    rig->config->bytes_in_flight = 1024 * 1024;
    rig->config->store_count = REQUEST_RIG_STORES;
    add_routes(rig->config);
    assert_int_equal(quota_init(&rig->quota, rig->config), 0);
    rig->context.config = rig->config;
    rig->context.quota = &rig->quota;
    rig->context.loop = &rig->loop;
    for (size_t i = 0; i < REQUEST_RIG_STORES; i++) {
        fake_store_init(&rig->stores[i]);
        rig->context.stores[i] = &rig->stores[i].store;
        rig->context.shared[i] = &rig->stores[i].shared;
    }
    *state = rig;
    return 0;
}

int
request_rig_teardown(void **state)
{
    struct request_rig *rig = *state;

    for (size_t i = 0; i < REQUEST_RIG_STORES; i++) {
        fake_store_deinit(&rig->stores[i]);
    }
    assert_int_equal(rig->context.waiting, 0);
    assert_int_equal(request_rig_bytes(rig), 0);
    request_context_deinit(&rig->context);
    assert_null(rig->context.spare);
    quota_deinit(&rig->quota);
    config_destroy(rig->config);
    free(rig);
    return 0;
}

struct request_head
request_rig_head(const char *method, const char *target)
{
    return (struct request_head){
        .method = slice_from_string(method),
        .target = slice_from_string(target),
        .version_1_1 = true,
        .hosts = 1,
    };
}

struct request_head
request_rig_head_sized(const char *method, const char *target, size_t length)
{
    struct request_head head = request_rig_head(method, target);

    head.lengths = 1;
    head.content_length = length;
    return head;
}

struct request_head
request_rig_head_chunked(const char *method, const char *target)
{
    struct request_head head = request_rig_head(method, target);

    head.transfers = 1;
    head.chunked = true;
    return head;
}

struct request *
request_rig_begin(struct request_rig *rig, struct request_head head)
{
    struct request *request = request_begin(&rig->context, &head);

    assert_non_null(request);
    return request;
}

struct request *
request_rig_send(struct request_rig *rig, struct request_head head, const char *body)
{
    struct request *request = request_rig_begin(rig, head);

    assert_false(request_is_done(request));
    if (body[0] != '\0') {
        assert_true(request_body(request, body, strlen(body)));
    }
    request_end(request);
    return request;
}

enum reply_id
request_rig_finish(struct request *request)
{
    enum reply_id id;

    assert_true(request_is_done(request));
    id = request_reply(request)->id;
    request_release(request);
    return id;
}

enum reply_id
request_rig_refusal(struct request_rig *rig, struct request_head head)
{
    struct request *request = request_rig_begin(rig, head);
    enum reply_id id = REPLY_ID_COUNT;

    if (request_is_done(request)) {
        id = request_reply(request)->id;
    }
    request_release(request);
    return id;
}

size_t
request_rig_submitted(const struct request_rig *rig)
{
    size_t sum = 0;

    for (size_t i = 0; i < REQUEST_RIG_STORES; i++) {
        sum += rig->stores[i].submitted;
    }
    return sum;
}

size_t
request_rig_bytes(const struct request_rig *rig)
{
    return atomic_load(&rig->quota.bytes);
}
