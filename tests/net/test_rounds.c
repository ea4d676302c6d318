/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_rounds.c: that no request waits for a delayed ACK, by the clock: one connection, round after
 * round, for every way of writing a request, every store and many sizes, over loopback and over a
 * pair of network namespaces with MTU 1500.
 *
 * By default some sizes and few rounds. KVGATE_ROUNDS=60 is the full form, which prints a table.
 * KVGATE_SWITCH_OFF names rules to take away from the gateway, see preload/switch_off.c: then it
 * has to fail.
 *
 *     test_rounds --beside HOST:PORT PATH-GET PATH-PUT
 *
 * measures another server, whose GETs give what was last put, and prints the same table without
 * judging.
 */
#include "net_scene.h"

#include <stdio.h>
#include <stdlib.h>

#include "round.h"

/*
 * A stall takes 40 ms in nearly every round. A busy machine is slow in some rounds, by the 4 to 16
 * ms that another program has a core. Hence a cell is bad when half of its rounds take more than a
 * quarter of a stall, or a third of them more than half of one.
 */
#define MEDIAN_LIMIT_NS (10 * 1000000LL)
#define ROUND_LIMIT_NS  NET_STALL_NS
#define SLOW_SHARE      3

/*
 * Twice the limit of the median: in the light form, which runs on any machine in any state; and
 * for a megabyte, which in 1900 writes and 700 packets is 10 ms of work by itself.
 */
#define MEDIAN_LIMIT_WIDE_NS (20 * 1000000LL)
#define LONG_LEN             500000

/* A bad cell is measured again, so many times in all: what is no stall goes away. */
#define TRIES 10

#define ROUNDS_LIGHT 6
#define ROUNDS_MAX   1000
#define VALUE_MAX    1000000

/*
 * Around what one segment carries (1448; 65483 on loopback), and around what the socket buffers
 * take.
 */
static const size_t sizes_full[] = { 10,     1000,   1448,   1449,    2500,  2896,
                                     16000,  60000,  65482,  65483,   66000, 99900,
                                     100000, 153600, 307200, 1000000, 0 };
static const size_t sizes_light[] = { 10, 1449, 2500, 66000, 307200, 0 };

/* The rounds of one style, size, store and network. */
struct cell {
    const struct round_style *style; /* (ref) */
    size_t len;                      /* bytes of the value */
    int64_t times[ROUNDS_MAX];       /* ns, sorted after the measurement */
    size_t count;                    /* of TIMES */
    size_t slow;                     /* rounds of more than ROUND_LIMIT_NS */
};

/* The worst of all cells of a style, for the table. */
struct summary {
    int64_t median;  /* ns */
    int64_t longest; /* ns */
    size_t slow;     /* rounds of more than ROUND_LIMIT_NS */
    size_t cells;    /* cells with such rounds */
    size_t bad;      /* cells that are judged to stall */
};

/* Where to send requests; for the gateway both are the same. */
struct targets {
    const char *get; /* (ref) */
    const char *put; /* (ref) */
};

static struct net_scene scene;
static bool has_pair; /* whether there are namespaces; otherwise loopback is all there is */
static char value[VALUE_MAX];

static size_t
rounds_wanted(void)
{
    const char *text = getenv("KVGATE_ROUNDS");
    size_t n = text == NULL ? ROUNDS_LIGHT : (size_t)strtoul(text, NULL, 10);

    return n < 1 ? 1 : n > ROUNDS_MAX ? ROUNDS_MAX : n;
}

static bool
is_full(void)
{
    return getenv("KVGATE_ROUNDS") != NULL;
}

static int64_t
median_of(const struct cell *cell)
{
    return cell->times[cell->count / 2];
}

static bool
is_bad(const struct cell *cell)
{
    bool wide = !is_full() || cell->len >= LONG_LEN;
    int64_t limit = wide ? MEDIAN_LIMIT_WIDE_NS : MEDIAN_LIMIT_NS;

    return median_of(cell) > limit || cell->slow * SLOW_SHARE > cell->count;
}

/* Runs the rounds of CELL. False: one was not answered as it should be. */
static bool
measure(struct cell *cell, struct http_client *c, const char *target)
{
    cell->count = rounds_wanted();
    cell->slow = 0;
    for (size_t i = 0; i < cell->count; i++) {
        cell->times[i] = round_run(c, cell->style, target, value, cell->len);
        if (cell->times[i] < 0) {
            fprintf(stderr, "%s %s, %s, %zu bytes: status %d\n", cell->style->method, target,
                    cell->style->name, cell->len, c->status);
            return false;
        }
        cell->slow += cell->times[i] > ROUND_LIMIT_NS;
    }
    net_median(cell->times, cell->count); /* sorts */
    return true;
}

static void
print_cell(const char *where, const struct cell *cell)
{
    printf("%-18s %s  %-18s %8zu  %9.3f  %9.3f  %9.3f  %4zu of %zu%s\n", where, cell->style->method,
           cell->style->name, cell->len, (double)median_of(cell) / 1e6,
           (double)cell->times[cell->count * 99 / 100] / 1e6,
           (double)cell->times[cell->count - 1] / 1e6, cell->slow, cell->count,
           is_bad(cell) ? "  STALLS" : "");
}

static void
add_to_summary(struct summary *sum, const struct cell *cell)
{
    int64_t longest = cell->times[cell->count - 1];

    sum->median = median_of(cell) > sum->median ? median_of(cell) : sum->median;
    sum->longest = longest > sum->longest ? longest : sum->longest;
    sum->slow += cell->slow;
    sum->cells += cell->slow > 0;
    sum->bad += is_bad(cell);
}

/* All sizes of STYLE on C. False: a request failed. */
static bool
run_style(const struct round_style *style, struct http_client *c, const char *where,
          const struct targets *targets, int tries, struct summary *sum)
{
    static struct cell cell;
    const size_t *sizes = is_full() ? sizes_full : sizes_light;
    const char *target = style->method[0] == 'G' ? targets->get : targets->put;

    for (; *sizes != 0; sizes++) {
        int64_t ready;

        if (style->len_max != 0 && *sizes > style->len_max) {
            continue;
        }
        cell = (struct cell){ .style = style, .len = *sizes };
        ready =
            style->method[0] == 'G' ? round_run(c, round_styles, targets->put, value, *sizes) : 0;
        if (ready < 0) {
            return false;
        }
        for (int i = 0; i == 0 || (i < tries && is_bad(&cell)); i++) {
            if (!measure(&cell, c, target)) {
                return false;
            }
        }
        if (is_full() || is_bad(&cell)) {
            print_cell(where, &cell);
        }
        add_to_summary(sum, &cell);
    }
    return true;
}

static void
print_head(const char *title)
{
    printf("%-18s %s  %-18s %8s  %9s  %9s  %9s  %s\n", title, "   ", "", "bytes", "median ms",
           "p99 ms", "max ms", "rounds over 20 ms");
}

static void
print_summary(const char *where, const struct round_style *style, const struct summary *sum)
{
    printf(
        "SUM %-14s %s  %-18s worst median %9.3f ms  worst %9.3f ms  over 20 ms: %zu rounds in %zu "
        "cells  stalls: %zu cells\n",
        where, style->method, style->name, (double)sum->median / 1e6, (double)sum->longest / 1e6,
        sum->slow, sum->cells, sum->bad);
}

/* ---- the gateway ----------------------------------------------------------------------------- */

static int
setup(void **state)
{
    (void)state;
    gateway_fill(value, sizeof(value), 7);
    has_pair = net_pair_open(&scene.pair);
    return net_scene_start(&scene, NULL) ? 0 : -1;
}

static int
teardown(void **state)
{
    (void)state;
    return net_scene_stop(&scene) ? 0 : -1;
}

/* Every style on STORE, on one connection each. */
static void
run_store(const char *store, const char *network, const char *address, uint16_t port)
{
    char where[64], target[64];
    const struct targets targets = { target, target };
    size_t bad = 0;

    snprintf(where, sizeof(where), "%s, %s", store, network);
    snprintf(target, sizeof(target), "/%s/round", store);
    if (is_full()) {
        print_head(where);
    }
    /* The light form ends with the first style that stalls: it would take long otherwise. */
    for (const struct round_style *style = round_styles;
         style->name != NULL && (bad == 0 || is_full()); style++) {
        struct summary sum = { 0 };
        struct http_client c;

        assert_true(net_scene_connect(&c, address, port, true));
        assert_true(run_style(style, &c, where, &targets, is_full() ? 1 : TRIES, &sum));
        http_client_close(&c);
        if (is_full()) {
            print_summary(where, style, &sum);
        }
        bad += sum.bad;
    }
    fflush(stdout);
    assert_int_equal(bad, 0);
}

static void
test_no_stall_over_loopback(void **state)
{
    (void)state;
    assert_true(!has_pair || net_pair_enter(&scene.pair, NET_GATEWAY));
    for (const char *const *store = net_scene_stores; *store != NULL; store++) {
        run_store(*store, "loopback", "127.0.0.1", scene.gateway.port);
    }
    assert_true(!has_pair || net_pair_enter(&scene.pair, NET_CLIENT));
}

static void
test_no_stall_over_ethernet(void **state)
{
    (void)state;
    net_scene_require_pair(&scene);
    for (const char *const *store = net_scene_stores; *store != NULL; store++) {
        run_store(*store, "ethernet", NET_PAIR_GATEWAY_ADDRESS, NET_PAIR_PORT);
    }
}

/* ---- another server -------------------------------------------------------------------------- */

static int
run_beside(const char *server, const char *get, const char *put)
{
    const struct targets targets = { get, put };
    char host[64];
    unsigned port;

    gateway_fill(value, sizeof(value), 7);
    if (sscanf(server, "%63[^:]:%u", host, &port) != 2 || port > 65535) {
        fprintf(stderr, "%s: not HOST:PORT\n", server);
        return 64;
    }
    print_head(server);
    for (const struct round_style *style = round_styles; style->name != NULL; style++) {
        struct summary sum = { 0 };
        struct http_client c;
        bool ok = net_scene_connect(&c, host, (uint16_t)port, true) &&
                  run_style(style, &c, server, &targets, 1, &sum);

        http_client_close(&c);
        print_summary(server, style, &sum);
        if (!ok) {
            printf("    it broke off there\n");
        }
    }
    return 0;
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_stall_over_loopback),
        cmocka_unit_test(test_no_stall_over_ethernet),
    };

    if (argc == 5 && strcmp(argv[1], "--beside") == 0) {
        return run_beside(argv[2], argv[3], argv[4]);
    }
    return cmocka_run_group_tests(tests, setup, teardown);
}
