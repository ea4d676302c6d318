/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_store_memcached_fake.c: what the memcached store puts on the wire: which ops share a
 * command, what leaves together,.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "clock.h"
#include "scene.h"
#include "store_contract.h"

static char *
pattern(size_t len, unsigned seed)
{
    char *bytes = malloc(len + 1);

    assert_non_null(bytes);
    for (size_t i = 0; i < len; i++) {
        bytes[i] = (char)('a' + (i * 7 + i / 251 + seed) % 26);
    }
    bytes[len] = '\0';
    return bytes;
}

/* Gathered writes of this process; only the store makes any. */
static size_t gathered_writes;

ssize_t
sendmsg(int fd, const struct msghdr *message, int flags)
{
    gathered_writes++;
    return syscall(SYS_sendmsg, fd, message, flags);
}

/* A first op, so that the connection stands and the next ones leave at the flush. */
static void
warm_up(struct scene *scene)
{
    struct call call;

    rig_prepare(&scene->rig, &call, STORE_DELETE, "warm");
    assert_int_equal(rig_do(&call), STORE_MISS);
}

/* ---- the contract, on the fake in several dialects ---- */

struct setting {
    enum config_dialect dialect;
    unsigned lacks;
    struct fake *fake;          /* owned, from setup to teardown */
    struct config_store config; /* outlives the store */
};

static struct store_shared *
setup_store(void *arg)
{
    struct setting *setting = arg;
    char error[CONFIG_ERROR_MAX] = "";
    struct rig rig;

    setting->fake = fake_create(setting->lacks);
    rig_config(&rig, setting->dialect, fake_port(setting->fake));
    setting->config = rig.config;
    return store_memcached.setup(&setting->config, error);
}

static void
teardown_store(struct store_shared *shared, void *arg)
{
    struct setting *setting = arg;

    store_memcached.teardown(shared);
    fake_destroy(setting->fake);
}

/* Servers that memcached itself is not: test_store_memcached.c has the others. */
static int
run_contracts(void)
{
    static struct setting old = { .dialect = CONFIG_DIALECT_AUTO,
                                  .lacks = FAKE_LACKS_META | FAKE_LACKS_GETS };
    static struct setting without_touch = { .dialect = CONFIG_DIALECT_TEXT,
                                            .lacks = FAKE_LACKS_TOUCH };
    struct contract contract = {
        .name = "a server without meta and gets",
        .setup = setup_store,
        .teardown = teardown_store,
        .arg = &old,
        .incr_wraps = true,
        .has_touch = true,
        .pads_counters = true,
        .value_max = 1024 * 1024 - 59 - 64,
        .append_over = STORE_NOT_STORED,
    };
    int failed = contract_run(&contract);

    contract.name = "a server without touch";
    contract.arg = &without_touch;
    contract.has_cas = true;
    contract.has_touch = false;
    return failed + contract_run(&contract);
}

/* ---- coalescing ---- */

static void
test_gets_of_one_turn_share_a_command_and_a_buffer(void **state)
{
    struct scene *scene = *state;
    struct call a, b, c;

    fake_put(scene->fake, SLICE("k"), SLICE("value"), 9);
    scene_open(scene);
    rig_get(&scene->rig, &a, "k");
    rig_get(&scene->rig, &b, "k");
    rig_get(&scene->rig, &c, "k");
    rig_wait(&a);
    rig_wait(&b);
    rig_wait(&c);
    assert_int_equal(fake_count(scene->fake, scene_get_line(scene, "k")), 1);
    assert_ptr_equal(a.op.data, b.op.data);
    assert_ptr_equal(a.op.data, c.op.data);
    assert_int_equal(a.op.data->refs, 3);
    assert_int_equal(b.op.out_flags, 9);
    assert_int_equal(b.op.out_cas, a.op.out_cas);
    assert_int_not_equal(b.op.out_cas, 0);
    assert_int_equal(b.op.ttl_left_s, a.op.ttl_left_s);
    assert_true(rig_has_value(&a, SLICE("value")));
    assert_true(rig_has_value(&b, SLICE("value")));
    assert_true(rig_has_value(&c, SLICE("value")));
}

static void
test_shared_misses(void **state)
{
    struct scene *scene = *state;
    struct call a, b;

    scene_open(scene);
    rig_get(&scene->rig, &a, "k");
    rig_get(&scene->rig, &b, "k");
    rig_wait(&a);
    rig_wait(&b);
    assert_int_equal(a.op.status, STORE_MISS);
    assert_int_equal(b.op.status, STORE_MISS);
    assert_int_equal(fake_count(scene->fake, scene_get_line(scene, "k")), 1);
}

/* Once the first has left, the next has a command of its own: it may see a newer value. */
static void
test_a_get_does_not_join_one_that_has_left(void **state)
{
    struct scene *scene = *state;
    struct call a, b, set;

    fake_put(scene->fake, SLICE("k"), SLICE("old"), 0);
    scene_open(scene);
    warm_up(scene);
    rig_get(&scene->rig, &a, "k");
    rig_flush(&scene->rig);
    rig_write(&scene->rig, &set, STORE_SET, "k", SLICE("new"));
    rig_flush(&scene->rig);
    rig_get(&scene->rig, &b, "k");
    rig_wait(&b);
    rig_wait(&a);
    assert_int_equal(set.op.status, STORE_OK);
    assert_true(rig_has_value(&a, SLICE("old")));
    assert_true(rig_has_value(&b, SLICE("new")));
    assert_int_equal(fake_count(scene->fake, scene_get_line(scene, "k")), 2);
}

static void
test_different_keys_and_verbs_share_nothing(void **state)
{
    struct scene *scene = *state;
    struct call a, b, head;

    fake_put(scene->fake, SLICE("k"), SLICE("v1"), 0);
    fake_put(scene->fake, SLICE("kk"), SLICE("v2"), 0);
    scene_open(scene);
    rig_get(&scene->rig, &a, "k");
    rig_get(&scene->rig, &b, "kk");
    rig_prepare(&scene->rig, &head, STORE_HEAD, "k");
    rig_submit(&head);
    rig_wait(&a);
    rig_wait(&b);
    rig_wait(&head);
    assert_true(rig_has_value(&a, SLICE("v1")));
    assert_true(rig_has_value(&b, SLICE("v2")));
    assert_int_equal(head.op.status, STORE_OK);
    assert_int_equal(head.op.value_len, 2);
}

/* Many keys: more than any table of the turn has places, each asked for twice. */
static void
test_many_keys_in_one_turn(void **state)
{
    enum { KEYS = 1500 };
    struct scene *scene = *state;
    struct call *calls = calloc(2 * KEYS, sizeof(*calls));
    char(*keys)[16] = calloc(KEYS, sizeof(*keys));

    assert_non_null(calls);
    assert_non_null(keys);
    scene->rig.config.ops_max = 2 * KEYS;
    scene_open(scene);
    for (size_t i = 0; i < KEYS; i++) {
        snprintf(keys[i], sizeof(keys[i]), "key%zu", i);
        fake_put(scene->fake, slice_from_string(keys[i]), slice_from_string(keys[i]), 0);
    }
    for (size_t i = 0; i < 2 * KEYS; i++) {
        rig_get(&scene->rig, &calls[i], keys[i % KEYS]);
    }
    for (size_t i = 0; i < 2 * KEYS; i++) {
        rig_wait(&calls[i]);
        assert_true(rig_has_value(&calls[i], slice_from_string(keys[i % KEYS])));
    }
    free(calls);
    free(keys);
}

struct follow_up {
    struct scene *scene;
    const char *key;
    struct call get;
};

static void
submit_follow_up(struct call *call)
{
    struct follow_up *next = call->arg;

    rig_get(&next->scene->rig, &next->get, next->key);
}

/*
 * A completion from inside the flush submits a GET; whether that leaves in the same flush or
 * the next, a later GET of its key must not hang on to it once it has left.
 */
static void
check_get_from_inside_a_flush(struct scene *scene, struct call *trigger, const char *key)
{
    struct follow_up *next = calloc(1, sizeof(*next));
    struct call late;

    assert_non_null(next);
    next->scene = scene;
    next->key = key;
    trigger->then = submit_follow_up;
    trigger->arg = next;
    fake_put(scene->fake, slice_from_string(key), SLICE("old"), 0);
    rig_submit(trigger);
    rig_flush(&scene->rig);
    assert_int_equal(trigger->completions, 1);
    /* No flush from here on: only the answer to what has left can come. */
    for (int i = 0; i < 50 && next->get.completions == 0; i++) {
        loop_wait(&scene->rig.loop, clock_monotonic_ms() + 1);
        loop_dispatch(&scene->rig.loop);
    }
    if (next->get.completions == 0) {
        rig_wait(&next->get);
    }
    assert_true(rig_has_value(&next->get, SLICE("old")));
    free(next);
    fake_put(scene->fake, slice_from_string(key), SLICE("new"), 0);
    rig_get(&scene->rig, &late, key);
    rig_wait(&late);
    assert_true(rig_has_value(&late, SLICE("new")));
}

static void
test_a_get_from_inside_a_flush_two_servers(void **state)
{
    struct scene *scene = *state;
    struct fake *dead = fake_create(0);
    struct call trigger;
    char dead_key[16], alive[16];
    int i = 0;

    /* The fake is the second server: its flush comes after that of the dead one. */
    fake_stop(dead);
    scene->rig.config.servers[1] = scene->rig.config.servers[0];
    scene->rig.config.servers[0].port = fake_port(dead);
    scene->rig.config.server_count = 2;
    scene_open(scene);
    do {
        snprintf(alive, sizeof(alive), "k%d", i++);
        rig_prepare(&scene->rig, &trigger, STORE_DELETE, alive);
    } while (rig_do(&trigger) != STORE_MISS);
    do {
        snprintf(dead_key, sizeof(dead_key), "k%d", i++);
        rig_prepare(&scene->rig, &trigger, STORE_DELETE, dead_key);
    } while (rig_do(&trigger) == STORE_MISS);
    assert_int_equal(trigger.op.status, STORE_UNAVAILABLE);
    rig_prepare(&scene->rig, &trigger, STORE_DELETE, dead_key);
    check_get_from_inside_a_flush(scene, &trigger, alive);
    fake_destroy(dead);
}

static void
test_a_get_from_inside_a_flush_one_server(void **state)
{
    struct scene *scene = *state;
    struct call trigger;
    char large[3000] = "";

    scene->rig.config.item_max = 2000;
    scene_open(scene);
    warm_up(scene);
    rig_prepare(&scene->rig, &trigger, STORE_SET, "trigger");
    trigger.op.value = slice_of(large, sizeof(large)); /* refused in the flush: too large */
    check_get_from_inside_a_flush(scene, &trigger, "k");
    assert_int_equal(trigger.op.status, STORE_TOO_LARGE);
}

/* ---- one write ---- */

static void
test_a_turn_leaves_in_one_piece_and_in_order(void **state)
{
    struct scene *scene = *state;
    struct call calls[5];
    size_t before, after;
    const char *at;
    char *bytes;

    scene_open(scene);
    warm_up(scene);
    free(fake_received(scene->fake, 0, &before));
    gathered_writes = 0;
    rig_write(&scene->rig, &calls[0], STORE_SET, "a", SLICE("value of a"));
    rig_get(&scene->rig, &calls[1], "b");
    rig_write(&scene->rig, &calls[2], STORE_ADD, "c", SLICE("value of c"));
    rig_write(&scene->rig, &calls[3], STORE_SET, "empty", SLICE(""));
    rig_get(&scene->rig, &calls[4], "a");
    for (size_t i = 0; i < 5; i++) {
        rig_wait(&calls[i]);
    }
    assert_int_equal(calls[0].op.status, STORE_OK);
    assert_int_equal(calls[1].op.status, STORE_MISS);
    assert_int_equal(calls[2].op.status, STORE_OK);
    assert_int_equal(calls[3].op.status, STORE_OK);
    assert_true(rig_has_value(&calls[4], SLICE("value of a")));
    assert_int_equal(gathered_writes, 1);
    assert_int_equal(fake_reads_since(scene->fake, 0, before), 1);
    assert_int_equal(fake_accepted(scene->fake), 1);
    bytes = fake_received(scene->fake, 0, &after);
    at = strstr(bytes + before, "\r\nvalue of a\r\n");
    assert_non_null(at);
    at = strstr(at, scene_get_line(scene, "b"));
    assert_non_null(at);
    at = strstr(at, "\r\nvalue of c\r\n");
    assert_non_null(at);
    at = strstr(at, "\r\n\r\n");
    assert_non_null(at);
    assert_non_null(strstr(at, scene_get_line(scene, "a")));
    free(bytes);
}

/* More ops than one system call takes, some with values: nothing is lost, nothing out of order. */
static void
test_a_large_turn(void **state)
{
    enum { OPS = 3000 };
    struct scene *scene = *state;
    struct call *calls = calloc(OPS, sizeof(*calls));
    char(*keys)[16] = calloc(OPS, sizeof(*keys));
    char *value = pattern(2000, 1);

    assert_non_null(calls);
    assert_non_null(keys);
    scene->rig.config.ops_max = OPS;
    scene->rig.config.op_timeout_ms = RIG_PATIENCE_MS;
    scene_open(scene);
    for (size_t i = 0; i < OPS; i++) {
        snprintf(keys[i], sizeof(keys[i]), "key%zu", i / 2);
        if (i % 2 == 0) {
            rig_write(&scene->rig, &calls[i], STORE_SET, keys[i], slice_of(value, i % 2001));
        } else {
            rig_get(&scene->rig, &calls[i], keys[i]);
        }
    }
    for (size_t i = 0; i < OPS; i++) {
        rig_wait(&calls[i]);
        assert_int_equal(calls[i].op.status, STORE_OK);
        assert_true(i % 2 == 0 || rig_has_value(&calls[i], slice_of(value, (i - 1) % 2001)));
    }
    free(value);
    free(calls);
    free(keys);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        SCENE_BOTH(test_gets_of_one_turn_share_a_command_and_a_buffer),
        SCENE_BOTH(test_shared_misses),
        SCENE_BOTH(test_a_get_does_not_join_one_that_has_left),
        SCENE_BOTH(test_different_keys_and_verbs_share_nothing),
        SCENE_BOTH(test_many_keys_in_one_turn),
        SCENE_BOTH(test_a_turn_leaves_in_one_piece_and_in_order),
        SCENE_BOTH(test_a_large_turn),
        SCENE_BOTH(test_a_get_from_inside_a_flush_two_servers),
        SCENE_BOTH(test_a_get_from_inside_a_flush_one_server),
    };

    return run_contracts() + cmocka_run_group_tests(tests, NULL, NULL);
}
