/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * route_scene.h: a few routes that overlap, and targets that end where readable memory ends.
 */
#ifndef KVGATE_TESTS_ROUTE_SCENE_H
#define KVGATE_TESTS_ROUTE_SCENE_H

#include "config.h"
#include "guard.h"
#include "route.h"

/* Bytes of the longest target that can be asked for. */
#define ROUTE_SCENE_TARGET_MAX (64 * 1024)

/* Routes "/", "/a/", "/api/" (key prefix "a:"), "/api/deep/" ("d/") and "/api/deep/er/". */
struct route_scene {
    struct config *config; /* (owned) */
    struct guard guard;    /* where the targets lie */
};

/* For cmocka: *STATE is a scene. */
int route_scene_setup(void **state);
int route_scene_teardown(void **state);

/* One more route; it stays the scene's. */
struct config_route *route_scene_add_route(struct config *config, const char *prefix,
                                           const char *key_prefix);

/* Asks for TARGET, and checks what holds for every answer. */
enum route_result route_scene_find(struct route_scene *scene, struct slice target,
                                   struct route_match *match);

/* The same, and fails the test unless the key, or the result, is this one. */
void route_scene_expect_key(struct route_scene *scene, struct slice target, struct slice key);
void route_scene_expect_result(struct route_scene *scene, struct slice target,
                               enum route_result wanted);

#endif
