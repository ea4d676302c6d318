/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_scheduling.c: the policy under which the system runs the workers is the one that was asked for, and never one
 * that takes away what an operator has chosen.
 */
#include "gateway.h"

#include <dirent.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

/* Threads of the gateway that run under POLICY. */
static int
count_threads(const struct gateway *g, int policy)
{
    char path[64];
    struct dirent *entry;
    int count = 0;
    DIR *dir;

    snprintf(path, sizeof(path), "/proc/%d/task", (int)g->process.pid);
    dir = opendir(path);
    assert_non_null(dir);
    while ((entry = readdir(dir)) != NULL) {
        pid_t thread = (pid_t)atoi(entry->d_name);
        count += thread > 0 && sched_getscheduler(thread) == policy;
    }
    closedir(dir);
    return count;
}

/* How many threads run as SCHED_BATCH, when kvgate is started under POLICY with this configuration. */
static int
count_batch(int policy, const char *scheduling)
{
    struct sched_param param = { .sched_priority = 0 };
    struct gateway g;
    int count;

    assert_int_equal(sched_setscheduler(0, policy, &param), 0);
    assert_true(gateway_start_config(&g,
                                     "[server]\nworkers = 3\n%s[store here]\ntype = embedded\n"
                                     "[route /]\nstore = here\n",
                                     scheduling));
    count = count_threads(&g, SCHED_BATCH);
    assert_int_equal(gateway_stop(&g, SIGTERM), 0);
    return count;
}

static void
test_workers_are_batch(void **state)
{
    (void)state;
    assert_int_equal(count_batch(SCHED_OTHER, ""), 3);
    assert_int_equal(count_batch(SCHED_OTHER, "scheduling = batch\n"), 3);
}

static void
test_inherit(void **state)
{
    (void)state;
    assert_int_equal(count_batch(SCHED_OTHER, "scheduling = inherit\n"), 0);
}

/* Last: who is SCHED_IDLE may not always go back. */
static void
test_what_was_chosen_stays(void **state)
{
    (void)state;
    assert_int_equal(count_batch(SCHED_IDLE, ""), 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_workers_are_batch),
        cmocka_unit_test(test_inherit),
        cmocka_unit_test(test_what_was_chosen_stays),
    };

    return cmocka_run_group_tests_name("scheduling", tests, NULL, NULL);
}
