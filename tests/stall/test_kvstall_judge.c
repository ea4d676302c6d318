/* SPDX-License-Identifier: BSD-2-Clause */
/* test_kvstall_judge.c: kvstall's quantiles, histograms, judgements and verdicts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "../../src/kvstall/histogram.h"
#include "../../src/kvstall/judge.h"
#include "../../src/kvstall/probe.h"
#include "../../src/kvstall/samples.h"
#include "../../src/kvstall/sweep_mark.h"

#define MS NS_PER_MS

/* ---- samples and histogram ----------------------------------------------------------------- */

static void
quantiles_are_nearest_rank(void **state)
{
    struct samples s;

    (void)state;
    assert_true(samples_init(&s, 10));
    assert_int_equal(samples_quantile(&s, 500), 0);
    samples_add(&s, 7);
    assert_int_equal(samples_quantile(&s, 0), 7);
    assert_int_equal(samples_quantile(&s, 1000), 7);
    s.count = 0;
    for (int i = 10; i > 0; i--) {
        samples_add(&s, i);
    }
    samples_add(&s, 999); /* there is no room for it */
    assert_int_equal(s.count, 10);
    assert_int_equal(samples_quantile(&s, 0), 1);
    assert_int_equal(samples_quantile(&s, 500), 5);
    assert_int_equal(samples_quantile(&s, 501), 6);
    assert_int_equal(samples_quantile(&s, 900), 9);
    assert_int_equal(samples_quantile(&s, 999), 10);
    assert_int_equal(samples_quantile(&s, 1000), 10);
    samples_deinit(&s);
    samples_deinit(&s);
}

static void
histogram_counts_at_its_bounds(void **state)
{
    struct histogram h = { 0 };

    (void)state;
    assert_int_equal(histogram_bound_ns(0), 10000);
    assert_int_equal(histogram_bound_ns(1), 20000);
    assert_int_equal(histogram_bound_ns(2), 50000);
    assert_int_equal(histogram_bound_ns(3), 100000);
    assert_int_equal(histogram_bound_ns(HISTOGRAM_STEPS - 2), 1000 * MS);
    assert_int_equal(histogram_bound_ns(HISTOGRAM_STEPS - 1), INT64_MAX);
    histogram_add(&h, 0);
    histogram_add(&h, 10000);
    histogram_add(&h, 10001);
    histogram_add(&h, 40 * MS);
    histogram_add(&h, 1000 * MS);
    histogram_add(&h, 1000 * MS + 1);
    assert_int_equal(h.count[0], 2);
    assert_int_equal(h.count[1], 1);
    assert_int_equal(h.count[11], 1); /* 20 to 50 ms */
    assert_int_equal(h.count[HISTOGRAM_STEPS - 2], 1);
    assert_int_equal(h.count[HISTOGRAM_STEPS - 1], 1);
    assert_int_equal(h.total, 6);
}

static void
histogram_draws_what_there_is(void **state)
{
    static const char *const titles[] = { "left", "right" };
    struct histogram h[2] = { 0 };
    char *text;
    size_t len;
    FILE *out = open_memstream(&text, &len);

    (void)state;
    histogram_add(&h[0], 40 * MS);
    histogram_add(&h[1], MS);
    histogram_print(out, h, titles, 2);
    fclose(out);
    assert_non_null(strstr(text, "left"));
    assert_non_null(strstr(text, "up to       50.00 ms"));
    assert_non_null(strstr(text, "up to        1.00 ms"));
    assert_null(strstr(text, "up to      100.00 ms"));
    assert_null(strstr(text, "up to        0.50 ms"));
    assert_non_null(strstr(text, "####################"));
    free(text);
}

/* ---- judgement ----------------------------------------------------------------------------- */

static struct judgement
judge_ms(const double *suspect, const double *good, size_t count, int64_t rtt_ms)
{
    struct samples a, b;
    struct judgement j;

    assert_true(samples_init(&a, count));
    assert_true(samples_init(&b, count));
    for (size_t i = 0; i < count; i++) {
        samples_add(&a, (int64_t)(suspect[i] * (double)MS));
        samples_add(&b, (int64_t)(good[i] * (double)MS));
    }
    j = judge(&a, &b, rtt_ms * MS);
    samples_deinit(&a);
    samples_deinit(&b);
    return j;
}

static void
a_stall_is_one(void **state)
{
    static const double stall[] = { 44, 44, 43, 48, 0.2, 44 }, fast[] = { 1, 1, 1, 1, 1, 1 };
    struct judgement j = judge_ms(stall, fast, 6, 0);

    (void)state;
    assert_int_equal(j.result, JUDGE_STALL);
    assert_int_equal(j.stalled, 5);
    assert_int_equal(j.rounds, 6);
    assert_int_equal(j.median_ns, 44 * MS);
    assert_int_equal(j.good_ns, MS);
    assert_int_equal(j.worst_ns, 48 * MS);
    assert_int_equal(judge_ms(fast, fast, 6, 0).result, JUDGE_QUIET);
}

static void
a_slow_server_is_none(void **state)
{
    static const double slow[] = { 50, 52, 49, 51, 50, 50 };
    static const double wide_a[] = { 1, 90, 40, 70, 20, 60 }, wide_b[] = { 80, 10, 60, 30, 95, 5 };
    static const double unlucky[] = { 20, 75, 75, 90, 94 }, lucky[] = { 5, 20, 22, 30, 80 };

    (void)state;
    assert_int_equal(judge_ms(slow, slow, 6, 0).result, JUDGE_QUIET);
    assert_int_not_equal(judge_ms(wide_a, wide_b, 6, 0).result, JUDGE_STALL);
    assert_int_not_equal(judge_ms(wide_b, wide_a, 6, 0).result, JUDGE_STALL);
    assert_int_equal(judge_ms(unlucky, lucky, 5, 0).result, JUDGE_UNSTEADY);
}

static void
a_spike_is_none(void **state)
{
    static const double fast[] = { 1, 1, 1, 1, 1, 1, 1, 1 }, spike[] = { 1, 1, 60, 1, 1, 1, 1, 1 };
    static const double often[] = { 1, 60, 60, 1, 1, 1, 60, 1 };
    static const double between[] = { 12, 12, 12, 12, 12, 12, 12, 12 };

    (void)state;
    assert_int_equal(judge_ms(spike, fast, 8, 0).result, JUDGE_QUIET);
    assert_int_equal(judge_ms(often, fast, 8, 0).result, JUDGE_UNSTEADY);
    assert_int_equal(judge_ms(between, fast, 8, 0).result, JUDGE_UNSTEADY);
    assert_int_equal(judge_ms(fast, fast, 0, 0).result, JUDGE_UNSTEADY);
}

static void
a_far_server_is_none(void **state)
{
    static const double good[] = { 80, 80, 80, 80 }, nagle[] = { 160, 160, 160, 160 };
    static const double stall[] = { 200, 200, 200, 200 };

    (void)state;
    assert_int_equal(judge_ms(nagle, good, 4, 80).result, JUDGE_QUIET);
    assert_int_equal(judge_ms(stall, good, 4, 80).result, JUDGE_STALL);
}

static void
sweep_marks_what_size_does_not_explain(void **state)
{
    struct sweep_point middle[] = { { 100, MS, 0, 200, false },
                                    { 1000, 44 * MS, 0, 200, false },
                                    { 1001, 44 * MS, 0, 200, false },
                                    { 5000, 0, 0, 413, false },
                                    { 10000, 2 * MS, 0, 200, false } };
    struct sweep_point end[] = { { 100, MS, 0, 200, false }, { 150, 44 * MS, 0, 200, false } };
    struct sweep_point ends[] = { { 100, MS / 10, 0, 200, false },
                                  { 1000, 44 * MS, 0, 200, false },
                                  { 2000, 44 * MS, 0, 200, false } };
    struct sweep_point begin[] = { { 100, 44 * MS, 0, 200, false }, { 150, MS, 0, 200, false } };
    struct sweep_point slow[] = { { 100000, 30 * MS, 0, 200, false },
                                  { 300000, 90 * MS, 0, 200, false } };

    (void)state;
    assert_int_equal(sweep_mark(middle, 5), 2);
    assert_false(middle[0].stalled);
    assert_true(middle[1].stalled);
    assert_true(middle[2].stalled);
    assert_false(middle[3].stalled);
    assert_false(middle[4].stalled);
    assert_false(sweep_all_slow(middle, 5));
    assert_int_equal(sweep_mark(end, 2), 1);
    assert_true(end[1].stalled);
    assert_int_equal(sweep_mark(ends, 3), 2); /* a stall explains no other */
    assert_int_equal(sweep_mark(begin, 2), 1);
    assert_true(begin[0].stalled);
    assert_int_equal(sweep_mark(slow, 2), 0);
    assert_true(sweep_all_slow(slow, 2));
    assert_int_equal(sweep_mark(slow, 0), 0);
    assert_false(sweep_all_slow(slow, 0));
}

/* ---- verdict ------------------------------------------------------------------------------- */

static const struct probe_kind apart_nagle = { "a", "a", true, EXCHANGE_APART, false, PROBE_FIRST };
static const struct probe_kind apart_nodelay = {
    "b", "b", true, EXCHANGE_APART, true, PROBE_FIRST
};
static const struct probe_kind answer = { "c", "c", false, EXCHANGE_ONE_WRITE, true, PROBE_ANSWER };
static const struct probe_kind expect = { "d", "d", true, EXCHANGE_EXPECT, true, PROBE_CONTINUE };

static struct probe_cell
cell_of(const struct probe_kind *kind, enum judge_result result)
{
    return (struct probe_cell){ .kind = kind, .played = true, .judgement = { .result = result } };
}

static void
verdicts(void **state)
{
    struct probe_cell cells[] = { cell_of(&apart_nagle, JUDGE_STALL),
                                  cell_of(&apart_nodelay, JUDGE_QUIET),
                                  cell_of(&answer, JUDGE_QUIET), cell_of(&expect, JUDGE_QUIET) };
    struct probe_verdict v;

    (void)state;
    probe_judge(cells, 4, true, &v);
    assert_true(v.found[PROBE_HALF_REQUEST]);
    assert_false(v.found[PROBE_SLOW_PIECES] || v.found[PROBE_SPLIT_ANSWER] ||
                 v.found[PROBE_CONTINUE_LATE] || v.found[PROBE_CONTINUE_NEVER]);
    cells[1].judgement.result = JUDGE_STALL; /* the same without Nagle: it is not Nagle's */
    probe_judge(cells, 4, true, &v);
    assert_false(v.found[PROBE_HALF_REQUEST]);
    assert_true(v.found[PROBE_SLOW_PIECES]);
    cells[0].judgement.result = cells[1].judgement.result = JUDGE_QUIET;
    cells[2].judgement.result = JUDGE_STALL;
    probe_judge(cells, 4, true, &v);
    assert_true(v.found[PROBE_SPLIT_ANSWER]);
    cells[2].judgement.result = JUDGE_UNSTEADY;
    probe_judge(cells, 4, true, &v);
    assert_false(probe_found(&v));
    assert_int_equal(v.unsteady, 1);
    cells[3].judgement.result = JUDGE_STALL;
    probe_judge(cells, 4, true, &v);
    assert_true(v.found[PROBE_CONTINUE_LATE]);
    cells[3] = cell_of(&expect, JUDGE_UNSTEADY);
    cells[3].continue_none = 2;
    probe_judge(cells, 4, true, &v);
    assert_true(v.found[PROBE_CONTINUE_NEVER]);
    assert_int_equal(v.unsteady, 1);
}

static void
what_was_not_played_is_skipped(void **state)
{
    struct probe_cell cells[] = { { .kind = &apart_nagle }, { .kind = &answer } };
    struct probe_verdict v;

    (void)state;
    probe_judge(cells, 2, true, &v);
    assert_int_equal(v.skipped, 2);
    assert_false(probe_found(&v));
    probe_judge(cells, 2, false, &v); /* refused writes are not for want of time */
    assert_int_equal(v.skipped, 1);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantiles_are_nearest_rank),
        cmocka_unit_test(histogram_counts_at_its_bounds),
        cmocka_unit_test(histogram_draws_what_there_is),
        cmocka_unit_test(a_stall_is_one),
        cmocka_unit_test(a_slow_server_is_none),
        cmocka_unit_test(a_spike_is_none),
        cmocka_unit_test(a_far_server_is_none),
        cmocka_unit_test(sweep_marks_what_size_does_not_explain),
        cmocka_unit_test(verdicts),
        cmocka_unit_test(what_was_not_played_is_skipped),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
