/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * scene.h: one fake memcached and one memcached store that talks to it, per test; each test runs
 * in the text dialect and in the meta dialect.
 */
#ifndef KVGATE_TESTS_SCENE_H
#define KVGATE_TESTS_SCENE_H

#include <stdbool.h>
#include <stddef.h>

#include "config.h"
#include "fake_memcached.h"
#include "store_rig.h"

struct scene {
    struct fake *fake; /* owned */
    struct rig rig;
    bool is_open;                /* rig_open was called */
    enum config_dialect dialect; /* of the store */
};

/* cmocka's setup and teardown. The state before is the dialect to speak, see SCENE_BOTH. */
int scene_setup(void **state);
int scene_teardown(void **state);

/* Another fake in place of the one that scene_setup made; before scene_open. */
void scene_fake_without(struct scene *scene, unsigned lacks);

/* Opens the store with the configuration as it is in scene->rig.config now. */
void scene_open(struct scene *scene);

/* What the line of a GET of KEY begins with, and that of a SET. */
const char *scene_get_line(const struct scene *scene, const char *key);
const char *scene_set_line(const struct scene *scene, const char *key);

extern const enum config_dialect scene_text;
extern const enum config_dialect scene_meta;
extern const enum config_dialect scene_auto;

/* The entries of one test in a cmocka table. */
#define SCENE_ONE(function, dialect)                                                               \
    {                                                                                              \
#function "_" #dialect, function, scene_setup, scene_teardown,                             \
            (void *)(uintptr_t)&scene_##dialect                                                    \
    }
#define SCENE_BOTH(function) SCENE_ONE(function, text), SCENE_ONE(function, meta)

/* Turns until one op gets through: the pause after failed dials is over. Only UNAVAILABLE before.
 */
void scene_recover(struct scene *scene, const char *key);

#endif
