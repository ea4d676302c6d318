/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_chaos.c: three memcached servers, 64 clients that never stop, and somebody who kills, stops
 * and starts servers at random, and breaks off requests. At the end: no wrong value, no false miss,
 * no hang, all well within 2 s of each trouble; and a table of what the clients got, by trouble.
 *
 * What is right is in fault_load.h: each client reads what it wrote, the last value that was
 * acknowledged or one that was in doubt; a miss only after a kill since its last write.
 *
 * KVGATE_CHAOS_SECONDS says how long, 3 by default; `make chaos` runs for a minute. KVGATE_SEED
 * repeats a run as far as the machine does.
 */
#include "gateway.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "fault_load.h"
#include "memcached_process.h"

#define SERVERS    3
#define CLIENTS    64
#define RECOVER_MS 2000
#define ANSWER_MS  3000        /* no answer may take longer; time-outs and a retry are 1.5 s */
#define MEMORY_KB  (64 * 1024) /* that the gateway may grow by */

enum trouble { KILL, STOP_SHORT, STOP_LONG, KILL_ALL, BREAK_OFF, TROUBLES };

static const char *const names[TROUBLES] = {
    [KILL] = "one killed, started again", [STOP_SHORT] = "one stopped, shorter than time-outs",
    [STOP_LONG] = "one stopped, longer",  [KILL_ALL] = "all killed, started again",
    [BREAK_OFF] = "clients break off",
};

static struct gateway gateway;
static struct memcached_process servers[SERVERS];
static struct fault_load load;
static struct fault_load totals[TROUBLES];
static unsigned times[TROUBLES];
static int64_t slowest[TROUBLES]; /* ms to recover */
static uint64_t random_state;

static unsigned
random_below(unsigned limit)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (unsigned)(random_state % limit);
}

static long
memory_kb(void)
{
    char path[64], line[256];
    long kb = 0;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/status", (int)gateway.process.pid);
    file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof(line), file) != NULL) {
        sscanf(line, "VmRSS: %ld", &kb);
    }
    fclose(file);
    return kb;
}

static atomic_bool stop;

static void *
load_main(void *arg)
{
    (void)arg;
    while (!stop && load.hangs == 0) {
        fault_load_round(&load);
    }
    return NULL;
}

static void
pause_ms(unsigned ms)
{
    usleep((useconds_t)ms * 1000);
}

static void
kill_and_restart(size_t first, size_t count)
{
    for (size_t i = first; i < first + count; i++) {
        load.kills++;
        memcached_process_kill(&servers[i]);
    }
    pause_ms(random_below(400));
    for (size_t i = first; i < first + count; i++) {
        assert_true(memcached_process_restart(&servers[i]));
    }
}

static void
make(enum trouble trouble)
{
    size_t one = random_below(SERVERS);

    switch (trouble) {
    case KILL:
        kill_and_restart(one, 1);
        break;
    case KILL_ALL:
        kill_and_restart(0, SERVERS);
        break;
    case STOP_SHORT:
    case STOP_LONG:
        memcached_process_pause(&servers[one]);
        pause_ms(trouble == STOP_SHORT ? 20 + random_below(150) : 700 + random_below(500));
        memcached_process_resume(&servers[one]);
        break;
    default:
        for (unsigned i = 0; i < 20; i++) {
            fault_load_break_off(gateway.port);
        }
        break;
    }
}

/* One trouble under load, and the time until all is well. */
static void
run(enum trouble trouble)
{
    pthread_t thread;
    int64_t recovered;

    fault_load_reset(&load);
    stop = false;
    assert_int_equal(pthread_create(&thread, NULL, load_main, NULL), 0);
    pause_ms(20 + random_below(60));
    make(trouble);
    stop = true;
    pthread_join(thread, NULL);
    recovered = fault_load_recover(&load, RECOVER_MS);
    fault_load_add(&totals[trouble], &load);
    times[trouble]++;
    slowest[trouble] = recovered > slowest[trouble] ? recovered : slowest[trouble];
    if (recovered < 0 || load.hangs + load.wrong + load.unretried > 0 ||
        load.longest_ms > ANSWER_MS) {
        fail_msg("%s: %u hangs, %u wrong, %u without Retry-After, longest %lld ms, well %s",
                 names[trouble], load.hangs, load.wrong, load.unretried, (long long)load.longest_ms,
                 recovered < 0 ? "never" : "again");
    }
}

static void
start_all(void)
{
    unsigned ports[SERVERS];

    for (size_t i = 0; i < SERVERS; i++) {
        assert_true(memcached_process_start(&servers[i], NULL));
        ports[i] = servers[i].port;
    }
    assert_true(gateway_start_config(
        &gateway,
        "[server]\nworkers = 2\nlog_level = error\n[store main]\ntype = memcached\n"
        "connect_timeout = 200ms\nop_timeout = 300ms\n"
        "servers = 127.0.0.1:%u 127.0.0.1:%u 127.0.0.1:%u\n",
        ports[0], ports[1], ports[2]));
    assert_true(fault_load_open(&load, gateway.port, CLIENTS, 0));
}

static void
test_chaos(void **state)
{
    const char *seconds = getenv("KVGATE_CHAOS_SECONDS"), *seed = getenv("KVGATE_SEED");
    int64_t end_ms = clock_monotonic_ms() + (seconds == NULL ? 3 : atoi(seconds)) * 1000;
    long before;

    (void)state;
    random_state = seed == NULL ? (uint64_t)clock_wall_ms() | 1 : strtoull(seed, NULL, 10) | 1;
    printf("KVGATE_SEED=%llu\n", (unsigned long long)random_state);
    start_all();
    load.value_len = 100;
    assert_true(fault_load_recover(&load, RECOVER_MS) >= 0);
    before = memory_kb();
    for (unsigned i = 0; i < TROUBLES || clock_monotonic_ms() < end_ms; i++) {
        /* mostly small values, and some that take several packets or lanes of their own */
        static const size_t lens[] = { 100, 100, 1000, 10000, 100000 };
        load.value_len = lens[random_below(5)];
        run(i < TROUBLES ? (enum trouble)i : (enum trouble)random_below(TROUBLES));
    }
    printf("%-34s %7s  %-38s %9s  %9s\n", "trouble", "asked", " answers by status", "longest",
           "well after");
    for (unsigned i = 0; i < TROUBLES; i++) {
        char name[80];
        snprintf(name, sizeof(name), "%u x %s", times[i], names[i]);
        fault_load_print(&totals[i], name, slowest[i]);
    }
    if (memory_kb() > before + MEMORY_KB) {
        fail_msg("memory: %ld KB, then %ld", before, memory_kb());
    }
    fault_load_close(&load);
    assert_int_equal(gateway_stop(&gateway, SIGTERM), 0);
    for (size_t i = 0; i < SERVERS; i++) {
        memcached_process_stop(&servers[i]);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_chaos) };

    /* What is freed is to be free: the sanitizer keeps 256 MB of it otherwise. */
    setenv("ASAN_OPTIONS", "quarantine_size_mb=1", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
