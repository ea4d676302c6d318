/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_store_memcached_fleet.c: several servers, one of which is down: whose keys suffer, what
 * becomes of them (on_failure), that probes find it again at nobody's expense; and what bounds a
 * server that hangs. And authentication, with real memcached.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "clock.h"
#include "log.h"
#include "memcached_process.h"
#include "ring.h"
#include "scene.h"

#define SERVERS 3
#define KEYS    60

/* ---- probes ---- */

/* Submits a GET, flushes, and says whether it was refused by then. */
static bool
is_refused_at_once(struct scene *scene)
{
    struct call call;

    rig_get(&scene->rig, &call, "k");
    rig_flush(&scene->rig);
    if (call.completions == 1) {
        assert_int_equal(call.op.status, STORE_UNAVAILABLE);
        return true;
    }
    rig_wait(&call);
    buffer_unref(call.op.data);
    return false;
}

/*
 * A server that takes connections and says nothing is the worst to ask: each question takes a
 * time-out. Once it is DOWN no op waits for that, and still it is asked.
 */
static void
test_probes_are_at_nobodys_expense(void **state)
{
    struct scene *scene = *state;
    static const struct fake_step steps[] = { FAKE_SILENT };
    int64_t begin_ms;
    size_t accepted;

    scene->rig.config.connect_timeout_ms = 40;
    scene->rig.config.op_timeout_ms = 60;
    FAKE_SCRIPT_EVERY(scene->fake, steps);
    scene_open(scene);
    while (!is_refused_at_once(scene)) {
        rig_turn(&scene->rig, 1);
    }
    accepted = fake_accepted(scene->fake);
    begin_ms = clock_monotonic_ms();
    while (fake_accepted(scene->fake) < accepted + 3) {
        assert_true(is_refused_at_once(scene));
        assert_true(clock_monotonic_ms() < begin_ms + RIG_PATIENCE_MS);
        rig_turn(&scene->rig, 1);
    }
    fake_script_every(scene->fake, NULL, 0);
    begin_ms = clock_monotonic_ms();
    while (is_refused_at_once(scene)) {
        assert_true(clock_monotonic_ms() < begin_ms + 2000);
        rig_turn(&scene->rig, 1);
    }
    rig_expect_value(&scene->rig, "k", SLICE("v"));
}

static void
probes_setup(struct scene *scene)
{
    fake_put(scene->fake, SLICE("k"), SLICE("v"), 0);
}

static void
test_probes(void **state)
{
    probes_setup(*state);
    test_probes_are_at_nobodys_expense(state);
}

/* The operator learns of a server that is not there before anybody asks for a key. */
static void
test_servers_are_dialled_at_the_start(void **state)
{
    struct scene *scene = *state;

    scene_open(scene);
    RIG_UNTIL(&scene->rig, fake_accepted(scene->fake) == 1);
}

/* ---- a fleet ---- */

struct fleet {
    struct scene *scene;
    struct fake *fakes[SERVERS]; /* the first is the scene's; the others owned */
    struct ring *ring;           /* owned */
    char keys[KEYS][16];
};

static void
fleet_open(struct fleet *fleet, struct scene *scene, enum config_on_failure on_failure)
{
    char error[CONFIG_ERROR_MAX];

    *fleet = (struct fleet){ .scene = scene };
    for (size_t i = 0; i < SERVERS; i++) {
        fleet->fakes[i] = i == 0 ? scene->fake : fake_create(0);
        assert_non_null(fleet->fakes[i]);
        scene->rig.config.servers[i] = scene->rig.config.servers[0];
        scene->rig.config.servers[i].port = fake_port(fleet->fakes[i]);
    }
    scene->rig.config.server_count = SERVERS;
    scene->rig.config.on_failure = on_failure;
    fleet->ring = ring_create(&scene->rig.config, error);
    assert_non_null(fleet->ring);
    for (size_t i = 0; i < KEYS; i++) {
        snprintf(fleet->keys[i], sizeof(fleet->keys[i]), "key%zu", i);
    }
    scene_open(scene);
}

static void
fleet_close(struct fleet *fleet)
{
    for (size_t i = 1; i < SERVERS; i++) {
        fake_destroy(fleet->fakes[i]);
    }
    ring_destroy(fleet->ring);
}

static size_t
home_of(const struct fleet *fleet, size_t key)
{
    return ring_lookup(fleet->ring, slice_from_string(fleet->keys[key]));
}

static enum store_status
set_key(struct fleet *fleet, size_t key)
{
    struct call call;

    rig_prepare(&fleet->scene->rig, &call, STORE_SET, fleet->keys[key]);
    call.op.value = slice_from_string(fleet->keys[key]);
    return rig_do(&call);
}

/* Whether server INDEX was sent a `set` of KEY, since it was started. */
static bool
has_seen(struct fleet *fleet, size_t index, size_t key)
{
    return fake_count(fleet->fakes[index], scene_set_line(fleet->scene, fleet->keys[key])) > 0;
}

/* Whether a server other than INDEX was sent a `set` of KEY. */
static bool
is_elsewhere(struct fleet *fleet, size_t index, size_t key)
{
    return has_seen(fleet, (index + 1) % SERVERS, key) ||
           has_seen(fleet, (index + 2) % SERVERS, key);
}

/* Stops server INDEX, and writes one of its keys until the store has noticed. */
static void
stop_server(struct fleet *fleet, size_t index)
{
    int64_t give_up_ms = clock_monotonic_ms() + RIG_PATIENCE_MS;
    size_t key = 0;

    fake_stop(fleet->fakes[index]);
    while (home_of(fleet, key) != index) {
        key++;
    }
    while (fleet->scene->rig.config.on_failure == CONFIG_REHASH
               ? set_key(fleet, key) != STORE_OK || !is_elsewhere(fleet, index, key)
               : set_key(fleet, key) == STORE_OK) {
        assert_true(clock_monotonic_ms() < give_up_ms);
        rig_turn(&fleet->scene->rig, 1);
    }
}

static void
test_only_the_keys_of_that_server_fail(void **state)
{
    struct fleet fleet;

    fleet_open(&fleet, *state, CONFIG_FAIL);
    for (size_t i = 0; i < KEYS; i++) {
        assert_int_equal(set_key(&fleet, i), STORE_OK);
    }
    stop_server(&fleet, 1);
    for (size_t i = 0; i < KEYS; i++) {
        assert_int_equal(set_key(&fleet, i),
                         home_of(&fleet, i) == 1 ? STORE_UNAVAILABLE : STORE_OK);
    }
    fleet_close(&fleet);
}

static void
test_rehash(void **state)
{
    static const bool second[CONFIG_SERVER_MAX] = { false, true };
    char error[CONFIG_ERROR_MAX];
    struct fleet fleet;
    struct ring *rest;
    int64_t back_ms;
    size_t moved = 0;

    fleet_open(&fleet, *state, CONFIG_REHASH);
    assert_int_equal(set_key(&fleet, 0), STORE_OK);
    stop_server(&fleet, 1);
    rest = ring_create_without(&fleet.scene->rig.config, second, error);
    for (size_t i = 0; i < KEYS; i++) {
        size_t home = home_of(&fleet, i);
        moved += home == 1;
        if (home == 1) {
            home = ring_lookup(rest, slice_from_string(fleet.keys[i]));
            assert_int_not_equal(home, 1);
        }
        assert_int_equal(set_key(&fleet, i), STORE_OK);
        assert_true(has_seen(&fleet, home, i));
        assert_false(has_seen(&fleet, 2 - home, i));
    }
    assert_true(moved > 0);
    fake_start(fleet.fakes[1]);
    back_ms = clock_monotonic_ms();
    for (size_t i = 0; i < KEYS; i++) { /* they go home as soon as it is back */
        while (home_of(&fleet, i) == 1 && !has_seen(&fleet, 1, i)) {
            assert_true(clock_monotonic_ms() < back_ms + 2000);
            assert_int_equal(set_key(&fleet, i), STORE_OK);
            rig_turn(&fleet.scene->rig, 1);
        }
    }
    ring_destroy(rest);
    fleet_close(&fleet);
}

static void
test_rehash_with_nobody_left(void **state)
{
    struct fleet fleet;

    fleet_open(&fleet, *state, CONFIG_REHASH);
    for (size_t i = 0; i < SERVERS; i++) {
        fake_stop(fleet.fakes[i]);
    }
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < KEYS; i++) {
            assert_int_equal(set_key(&fleet, i), STORE_UNAVAILABLE);
        }
    }
    fleet_close(&fleet);
}

/* ---- on_failure = miss ---- */

static void
check_misses(struct scene *scene)
{
    struct call call;

    rig_prepare(&scene->rig, &call, STORE_GET, "k");
    assert_int_equal(rig_do(&call), STORE_MISS);
    rig_prepare(&scene->rig, &call, STORE_HEAD, "k");
    assert_int_equal(rig_do(&call), STORE_MISS);
    rig_prepare(&scene->rig, &call, STORE_DELETE, "k");
    assert_true(rig_do(&call) == STORE_UNAVAILABLE || call.op.status == STORE_TIMEOUT);
    rig_prepare(&scene->rig, &call, STORE_SET, "k");
    call.op.value = SLICE("v");
    assert_true(rig_do(&call) == STORE_UNAVAILABLE || call.op.status == STORE_TIMEOUT);
}

static void
test_a_cache_that_is_gone_is_empty(void **state)
{
    struct scene *scene = *state;

    scene->rig.config.on_failure = CONFIG_MISS;
    fake_stop(scene->fake);
    scene_open(scene);
    check_misses(scene);
    check_misses(scene);
}

static void
test_a_cache_that_is_silent_is_empty(void **state)
{
    struct scene *scene = *state;
    static const struct fake_step steps[] = { FAKE_SILENT };

    scene->rig.config.on_failure = CONFIG_MISS;
    scene->rig.config.connect_timeout_ms = 40;
    scene->rig.config.op_timeout_ms = 60;
    FAKE_SCRIPT_EVERY(scene->fake, steps);
    scene_open(scene);
    check_misses(scene);
}

/* ---- bounds ---- */

#define VALUE_LEN 400000

static void
test_bytes_are_bounded(void **state)
{
    struct scene *scene = *state;
    static const struct fake_step steps[] = { FAKE_HOLD };
    static char value[VALUE_LEN];
    struct call sets[3], get;

    scene->rig.config.bytes_max = 1024 * 1024;
    scene->rig.config.lanes = 1;
    fake_put(scene->fake, SLICE("k"), SLICE("v"), 0);
    FAKE_SCRIPT(scene->fake, steps);
    scene_open(scene);
    for (int i = 0; i < 3; i++) {
        rig_write(&scene->rig, &sets[i], STORE_SET, "big", slice_of(value, sizeof(value)));
    }
    rig_get(&scene->rig, &get, "k");
    rig_flush(&scene->rig);
    assert_int_equal(sets[2].completions, 1);
    assert_int_equal(sets[2].op.status, STORE_OVERLOADED);
    assert_int_equal(sets[0].completions, 0);
    assert_int_equal(sets[1].completions, 0);
    assert_int_equal(get.completions, 0);
    RIG_UNTIL(&scene->rig, fake_holding(scene->fake) == 1);
    fake_release(scene->fake);
    rig_wait(&sets[0]);
    rig_wait(&sets[1]);
    rig_wait(&get);
    assert_int_equal(sets[0].op.status, STORE_OK);
    assert_int_equal(sets[1].op.status, STORE_OK);
    assert_true(rig_has_value(&get, SLICE("v")));
    rig_write(&scene->rig, &sets[2], STORE_SET, "big", slice_of(value, sizeof(value)));
    rig_wait(&sets[2]);
    assert_int_equal(sets[2].op.status, STORE_OK); /* there is room again */
}

/* ---- authentication: real memcached -Y ---- */

struct auth {
    struct memcached_process server;
    char path[64];
    const char *args[3];
};

static int
auth_setup(void **state)
{
    struct auth *auth = calloc(1, sizeof(*auth));
    static const char users[] = "alice:secret\nbob:other\n";
    int fd;

    log_set_level(LOG_ERROR);
    strcpy(auth->path, "/tmp/kvgate-auth-XXXXXX");
    fd = mkstemp(auth->path);
    assert_true(fd >= 0 && write(fd, users, sizeof(users) - 1) == sizeof(users) - 1);
    close(fd);
    auth->args[0] = "-Y";
    auth->args[1] = auth->path;
    *state = auth;
    return memcached_process_start(&auth->server, auth->args) ? 0 : -1;
}

static int
auth_teardown(void **state)
{
    struct auth *auth = *state;

    memcached_process_stop(&auth->server);
    unlink(auth->path);
    free(auth);
    return 0;
}

/* What a SET ends with when NAME and PASSWORD are given; both empty: none. */
static enum store_status
set_as(const struct auth *auth, enum config_dialect dialect, const char *name, const char *password)
{
    struct rig rig;
    struct call call;
    enum store_status status;

    rig_config(&rig, dialect, auth->server.port);
    strcpy(rig.config.username, name);
    strcpy(rig.config.password, password);
    rig_open(&rig);
    rig_prepare(&rig, &call, STORE_SET, "k");
    call.op.value = SLICE("v");
    status = rig_do(&call);
    if (status == STORE_OK) {
        rig_expect_value(&rig, "k", SLICE("v"));
    }
    rig_close(&rig);
    return status;
}

static void
test_authentication(void **state)
{
    static const enum config_dialect dialects[] = { CONFIG_DIALECT_AUTO, CONFIG_DIALECT_TEXT,
                                                    CONFIG_DIALECT_META };
    const struct auth *auth = *state;

    for (size_t i = 0; i < sizeof(dialects) / sizeof(dialects[0]); i++) {
        assert_int_equal(set_as(auth, dialects[i], "alice", "secret"), STORE_OK);
        assert_int_equal(set_as(auth, dialects[i], "alice", "other"), STORE_UNAVAILABLE);
        assert_int_equal(set_as(auth, dialects[i], "nobody", "secret"), STORE_UNAVAILABLE);
        assert_true(set_as(auth, dialects[i], "", "") != STORE_OK);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        SCENE_BOTH(test_probes),
        SCENE_ONE(test_probes, auto),
        SCENE_BOTH(test_servers_are_dialled_at_the_start),
        SCENE_BOTH(test_only_the_keys_of_that_server_fail),
        SCENE_BOTH(test_rehash),
        SCENE_ONE(test_rehash_with_nobody_left, meta),
        SCENE_BOTH(test_a_cache_that_is_gone_is_empty),
        SCENE_BOTH(test_a_cache_that_is_silent_is_empty),
        SCENE_BOTH(test_bytes_are_bounded),
        cmocka_unit_test_setup_teardown(test_authentication, auth_setup, auth_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
