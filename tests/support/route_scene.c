/* SPDX-License-Identifier: BSD-2-Clause */
/* route_scene.c: asks route_find, and looks at what no answer may violate. */
#include "route_scene.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

struct config_route *
route_scene_add_route(struct config *config, const char *prefix, const char *key_prefix)
{
    struct config_route *route = &config->routes[config->route_count++];

    config_route_defaults(route, prefix);
    snprintf(route->key_prefix, sizeof(route->key_prefix), "%s", key_prefix);
    return route;
}

/* The order is not the order of their lengths, so that neither the first nor the last one wins. */
int
route_scene_setup(void **state)
{
    struct route_scene *scene = calloc(1, sizeof(*scene));

    assert_non_null(scene);
    scene->config = config_create();
    assert_non_null(scene->config);
    guard_init(&scene->guard, ROUTE_SCENE_TARGET_MAX);
    route_scene_add_route(scene->config, "/api/", "a:");
    route_scene_add_route(scene->config, "/api/deep/er/", "");
    route_scene_add_route(scene->config, "/", "");
    route_scene_add_route(scene->config, "/api/deep/", "d/");
    route_scene_add_route(scene->config, "/a/", "");
    *state = scene;
    return 0;
}

int
route_scene_teardown(void **state)
{
    struct route_scene *scene = *state;

    guard_deinit(&scene->guard);
    config_destroy(scene->config);
    free(scene);
    return 0;
}

enum route_result
route_scene_find(struct route_scene *scene, struct slice target, struct route_match *match)
{
    struct slice placed = slice_of(guard_place(&scene->guard, target.ptr, target.len), target.len);
    enum route_result result;

    memset(match, 0x5a, sizeof(*match));
    result = route_find(scene->config, placed, match);
    assert_true(match->query.len <= placed.len);
    if (match->query.len > 0) {
        assert_ptr_equal(match->query.ptr + match->query.len, placed.ptr + placed.len);
    }
    if (result == ROUTE_KEY) {
        assert_non_null(match->route);
        assert_in_range(match->key_len, 1, STORE_KEY_MAX);
        assert_true(match->key_len <= target.len + strlen(match->route->key_prefix));
        for (size_t i = 0; i < match->key_len; i++) {
            unsigned char c = (unsigned char)match->key[i];
            assert_true(c > 0x20 && c != 0x7f);
        }
    }
    return result;
}

void
route_scene_expect_key(struct route_scene *scene, struct slice target, struct slice key)
{
    struct route_match match;
    enum route_result result = route_scene_find(scene, target, &match);

    if (result != ROUTE_KEY || !slice_equal(slice_of(match.key, match.key_len), key)) {
        fail_msg("%.*s: result %d, key %.*s", (int)target.len, target.ptr, (int)result,
                 result == ROUTE_KEY ? (int)match.key_len : 0, match.key);
    }
}

void
route_scene_expect_result(struct route_scene *scene, struct slice target, enum route_result wanted)
{
    struct route_match match;
    enum route_result result = route_scene_find(scene, target, &match);

    if (result != wanted) {
        fail_msg("%.*s: result %d, not %d", (int)target.len, target.ptr, (int)result, (int)wanted);
    }
}
