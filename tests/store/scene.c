/* SPDX-License-Identifier: BSD-2-Clause */
/* scene.c: sets up and clears away what every test of the memcached store on the fake needs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "clock.h"
#include "log.h"
#include "scene.h"

const enum config_dialect scene_text = CONFIG_DIALECT_TEXT;
const enum config_dialect scene_meta = CONFIG_DIALECT_META;
const enum config_dialect scene_auto = CONFIG_DIALECT_AUTO;

int
scene_setup(void **state)
{
    struct scene *scene = calloc(1, sizeof(*scene));

    if (scene == NULL) {
        return -1;
    }
    scene->dialect = *(const enum config_dialect *)*state;
    scene->fake = fake_create(0);
    log_set_level(LOG_ERROR); /* servers in trouble are what these tests are about */
    rig_config(&scene->rig, scene->dialect, fake_port(scene->fake));
    *state = scene;
    return 0;
}

int
scene_teardown(void **state)
{
    struct scene *scene = *state;

    if (scene->is_open && scene->rig.completed == scene->rig.submitted) {
        rig_close(&scene->rig);
    } else if (scene->is_open) {
        /* A test that failed half-way: the ops were on its stack, so the store is left alone. */
        print_error("%zu ops are left behind\n", scene->rig.submitted - scene->rig.completed);
        return -1;
    }
    if (fake_surprise(scene->fake) != NULL) {
        print_error("the fake was surprised: %s\n", fake_surprise(scene->fake));
        fake_destroy(scene->fake);
        free(scene);
        return -1;
    }
    fake_destroy(scene->fake);
    free(scene);
    return 0;
}

void
scene_fake_without(struct scene *scene, unsigned lacks)
{
    fake_destroy(scene->fake);
    scene->fake = fake_create(lacks);
    scene->rig.config.servers[0].port = fake_port(scene->fake);
}

void
scene_open(struct scene *scene)
{
    rig_open(&scene->rig);
    scene->is_open = true;
}

static const char *
line_of(const struct scene *scene, const char *text, const char *meta, const char *key)
{
    static char line[300];

    snprintf(line, sizeof(line), "%s %s%s", scene->dialect == CONFIG_DIALECT_TEXT ? text : meta,
             key, scene->dialect == CONFIG_DIALECT_TEXT && text[0] == 'g' ? "" : " ");
    return line;
}

const char *
scene_get_line(const struct scene *scene, const char *key)
{
    return line_of(scene, "gets", "mg", key);
}

const char *
scene_set_line(const struct scene *scene, const char *key)
{
    return line_of(scene, "set", "ms", key);
}

void
scene_recover(struct scene *scene, const char *key)
{
    int64_t give_up_ms = clock_monotonic_ms() + 2000;
    enum store_status status;
    struct call call;

    do {
        rig_prepare(&scene->rig, &call, STORE_SET, key);
        call.op.value = SLICE("recovered");
        status = rig_do(&call);
        if (status != STORE_OK) {
            assert_int_equal(status, STORE_UNAVAILABLE);
            assert_true(clock_monotonic_ms() < give_up_ms);
            rig_turn(&scene->rig, 5);
        }
    } while (status != STORE_OK);
    rig_expect_value(&scene->rig, key, SLICE("recovered"));
}
