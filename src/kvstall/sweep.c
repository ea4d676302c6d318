/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sweep.c: `kvstall sweep`. Puts and gets values of growing size on one kept-alive connection, and
 * shows the latency by size as a table, and as a picture.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "commands.h"
#include "exchange.h"
#include "interrupt.h"
#include "judge.h"
#include "options.h"
#include "plot.h"
#include "report.h"
#include "samples.h"
#include "service.h"
#include "sweep_mark.h"
#include "timing.h"

#define SIZES_MAX      64
#define SIZE_MAX_BYTES (UINT64_C(64) << 20)
#define ROUNDS_DEFAULT 5
#define ROUNDS_MAX     100

/* Sizes that are left when the time is over are not played. */
#define SECONDS_DEFAULT 40
#define SECONDS_MAX     3600

static const char usage[] =
    "usage: kvstall sweep [OPTION]... URL\n"
    "\n"
    "Puts and gets values of growing size on one kept-alive connection, shows the latency by "
    "size,\n"
    "and marks the sizes that stall.\n"
    "\n"
    "  -S, --sizes N[,N]...      bytes of the values (23 sizes from 100 to 1000000)\n"
    "  -r, --rounds N            rounds for each size, 3 to 100 (5)\n"
    "  -a, --apart               write header and body apart\n"
    "  -n, --nagle               leave Nagle's algorithm on in the client\n"
    "  -p, --plot FILE           draw a picture, too: FILE.svg or FILE.png (needs gnuplot)\n"
    "  -s, --seconds N           stop after this time (40)\n" SERVICE_USAGE
    "  -h, --help                print this text\n";

struct sweep {
    struct service service;
    struct exchange_connection connection;
    uint64_t sizes[SIZES_MAX];         /* bytes, ascending */
    size_t count;                      /* sizes */
    struct sweep_point put[SIZES_MAX]; /* what was measured */
    struct sweep_point get[SIZES_MAX];
    uint64_t rounds;
    uint64_t seconds;
    bool apart;       /* the client writes header and body apart */
    const char *plot; /* a file, or NULL */
    int64_t end_ns;   /* when the time is over */
};

/*
 * The places where something changes: one segment of an Ethernet (1448, 1460), 2 KB, one segment
 * of a loopback (65483), the last kilobyte buffers before 100,000, and large ones.
 */
static const uint64_t default_sizes[] = {
    100,   500,   1000,  1400,  1448,  1460,  1500,  2000,   2048,   4096,   8192,    16384,
    32768, 65483, 65484, 99900, 99925, 99950, 99975, 100000, 300000, 600000, 1000000,
};

#define DEFAULT_COUNT (sizeof(default_sizes) / sizeof(default_sizes[0]))

static int
compare_sizes(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

    return (a > b) - (a < b);
}

/* One exchange. Returns EX_OK, or the exit code after a message. */
static int
play(struct sweep *s, const struct exchange_request *request, bool put,
     struct exchange_result *result)
{
    enum exchange_outcome outcome =
        exchange_play(&s->service.target, &s->connection, request, result);

    if (put) {
        service_note_write(&s->service, outcome, result->status);
    }
    if (outcome == EXCHANGE_ANSWERED) {
        return EX_OK;
    }
    if (outcome != EXCHANGE_INTERRUPTED) {
        report_error("%s of %zu bytes: %s", put ? s->service.method : "GET",
                     request->len - request->head_len, exchange_outcome_text(outcome));
    }
    return exchange_outcome_code(outcome);
}

/* Plays the rounds of one size into the samples. */
static int
play_rounds(struct sweep *s, size_t i, const struct exchange_request *put,
            const struct exchange_request *get, struct samples *put_ns, struct samples *get_ns)
{
    int code = EX_OK;

    for (uint64_t k = 0; k < s->rounds && code == EX_OK; k++) {
        struct exchange_result result = { 0 };

        report_progress("%" PRIu64 " bytes: round %" PRIu64 " of %" PRIu64, s->sizes[i], k + 1,
                        s->rounds);
        code = play(s, put, true, &result);
        if (code != EX_OK) {
            break;
        }
        s->put[i].status = result.status;
        if (result.status >= 400) {
            break; /* too large, most likely: the smaller sizes have been measured */
        }
        samples_add(put_ns, result.total_ns);
        code = play(s, get, false, &result);
        if (code == EX_OK) {
            s->get[i].status = result.status;
            if (result.status == 200) {
                samples_add(get_ns, result.total_ns);
            }
        }
        if (timing_now_ns() >= s->end_ns) {
            break;
        }
    }
    return code;
}

static void
point_set(struct sweep_point *point, uint64_t bytes, struct samples *samples)
{
    point->bytes = bytes;
    if (samples->count >= JUDGE_ROUNDS_MIN) {
        point->median_ns = samples_quantile(samples, 500);
        point->worst_ns = samples_quantile(samples, 1000);
    }
}

static int
play_size(struct sweep *s, size_t i)
{
    struct samples put_ns = { 0 }, get_ns = { 0 };
    struct exchange_request put = { 0 }, get = { 0 };
    struct service *v = &s->service;
    int code = EX_OSERR;

    if (samples_init(&put_ns, s->rounds) && samples_init(&get_ns, s->rounds) &&
        exchange_request_init(&put, v->method, v->url.path, v->key, v->url.host,
                              (int64_t)s->sizes[i],
                              s->apart ? EXCHANGE_APART : EXCHANGE_ONE_WRITE) &&
        exchange_request_init(&get, "GET", service_read_path(v), v->key, v->url.host, -1,
                              EXCHANGE_ONE_WRITE)) {
        code = play_rounds(s, i, &put, &get, &put_ns, &get_ns);
        point_set(&s->put[i], s->sizes[i], &put_ns);
        point_set(&s->get[i], s->sizes[i], &get_ns);
    } else {
        report_error("no memory");
    }
    exchange_request_deinit(&put);
    exchange_request_deinit(&get);
    samples_deinit(&put_ns);
    samples_deinit(&get_ns);
    return code;
}

/* Brings the connection to the state that it has in use, and finds out if writes are taken. */
static int
warm_up(struct sweep *s)
{
    struct exchange_request put;
    struct exchange_result result = { 0 };
    struct service *v = &s->service;
    int code = EX_OK;

    if (!exchange_request_init(&put, v->method, v->url.path, v->key, v->url.host,
                               (int64_t)s->sizes[0], EXCHANGE_ONE_WRITE)) {
        report_error("no memory");
        return EX_OSERR;
    }
    for (int i = 0; i < JUDGE_WARMUP && code == EX_OK && result.status < 400; i++) {
        code = play(s, &put, true, &result);
    }
    exchange_request_deinit(&put);
    if (code == EX_OK && result.status >= 400) {
        report_error("%s %s%s was answered %d: a sweep needs a service that stores", v->method,
                     v->url.path, v->key, result.status);
        return EX_PROTOCOL;
    }
    return code;
}

static void
print_point(const struct sweep_point *point, int good_status)
{
    if (point->median_ns > 0) {
        printf(" %10.3f %10.3f %6s", timing_ms(point->median_ns), timing_ms(point->worst_ns),
               point->stalled ? "STALL" : "-");
    } else if (point->status != 0 && point->status / 100 != good_status / 100) {
        printf(" %17s%4d %6s", "answered", point->status, "-");
    } else {
        printf(" %10s %10s %6s", "-", "-", "-");
    }
}

static void
print_table(const struct sweep *s)
{
    printf("%s and GET on one connection to %s%s; client: %s, Nagle %s; ms\n\n", s->service.method,
           s->service.url.host, s->service.url.path, s->apart ? "header, then body" : "one write",
           s->connection.nodelay ? "off" : "on");
    printf("%10s %10s %10s %6s %10s %10s %6s\n", "bytes", s->service.method, "longest", "stall",
           "GET", "longest", "stall");
    for (size_t i = 0; i < s->count; i++) {
        printf("%10" PRIu64, s->sizes[i]);
        print_point(&s->put[i], 200);
        print_point(&s->get[i], 200);
        putchar('\n');
    }
    putchar('\n');
}

/* Says what the table means. Returns the exit code. */
static int
print_verdict(struct sweep *s)
{
    size_t put = sweep_mark(s->put, s->count), get = sweep_mark(s->get, s->count);
    bool hidden = sweep_all_slow(s->put, s->count) || sweep_all_slow(s->get, s->count);

    print_table(s);
    if (put + get > 0) {
        printf("Stalls found: %zu sizes of %s, %zu of GET take a delayed ACK longer than their "
               "size explains.\n",
               put, s->service.method, get);
    } else {
        puts("No size stands out.");
    }
    if (hidden) {
        puts("Every size takes long: a stall at all sizes looks the same as a slow server here; "
             "kvstall probe\ntells them apart.");
    }
    if (timing_now_ns() >= s->end_ns) {
        puts("The time was over before all was measured; --seconds gives it more.");
    }
    return put + get > 0 ? COMMAND_STALL : EX_OK;
}

static int
draw(const struct sweep *s)
{
    const struct plot_line lines[] = {
        { s->service.method, s->put, s->count },
        { "GET", s->get, s->count },
    };
    char title[URL_HOST_MAX + URL_PATH_MAX + 16];

    snprintf(title, sizeof(title), "http://%s%s", s->service.url.host, s->service.url.path);
    return plot_write(s->plot, title, lines, 2);
}

static int
run(struct sweep *s, const char *url)
{
    int code = service_open(&s->service, url), drawn;

    if (code != EX_OK) {
        return code;
    }
    s->end_ns = timing_now_ns() + (int64_t)s->seconds * NS_PER_S;
    code = warm_up(s);
    for (size_t i = 0; i < s->count && code == EX_OK && timing_now_ns() < s->end_ns; i++) {
        code = play_size(s, i);
    }
    report_progress_end();
    exchange_close(&s->connection);
    service_remove(&s->service);
    if (code != EX_OK || interrupt_pending()) {
        return code;
    }
    code = print_verdict(s);
    drawn = s->plot == NULL ? EX_OK : draw(s);
    return drawn == EX_OK ? code : drawn;
}

/* Takes in one option. -1: go on; else the exit code. */
static int
option_take(struct sweep *s, int letter)
{
    switch (letter) {
    case 'S':
        s->count = option_list("sizes", optarg, 1, SIZE_MAX_BYTES, s->sizes, SIZES_MAX);
        qsort(s->sizes, s->count, sizeof(s->sizes[0]), compare_sizes);
        return s->count > 0 ? -1 : EX_USAGE;
    case 'r':
        return option_number("rounds", optarg, JUDGE_ROUNDS_MIN, ROUNDS_MAX, &s->rounds) ? -1
                                                                                         : EX_USAGE;
    case 's':
        return option_number("seconds", optarg, 1, SECONDS_MAX, &s->seconds) ? -1 : EX_USAGE;
    case 'a':
        s->apart = true;
        return -1;
    case 'n':
        s->connection.nodelay = false;
        return -1;
    case 'p':
        s->plot = optarg;
        return -1;
    case 'h':
        fputs(usage, stdout);
        return EX_OK;
    default:
        return service_option(&s->service, letter, optarg);
    }
}

int
sweep_main(int argc, char **argv)
{
    static const struct option table[] = {
        { "sizes", required_argument, NULL, 'S' },
        { "rounds", required_argument, NULL, 'r' },
        { "seconds", required_argument, NULL, 's' },
        { "apart", no_argument, NULL, 'a' },
        { "nagle", no_argument, NULL, 'n' },
        { "plot", required_argument, NULL, 'p' },
        { "help", no_argument, NULL, 'h' },
        SERVICE_ROWS,
        { NULL, 0, NULL, 0 },
    };
    struct sweep s = { .connection = { .fd = -1, .nodelay = true },
                       .rounds = ROUNDS_DEFAULT,
                       .seconds = SECONDS_DEFAULT,
                       .count = DEFAULT_COUNT };
    int letter, code;

    service_init(&s.service);
    memcpy(s.sizes, default_sizes, sizeof(default_sizes));
    while ((letter = getopt_long(argc, argv, "S:r:s:anp:h" SERVICE_LETTERS, table, NULL)) != -1) {
        code = option_take(&s, letter);
        if (code != -1) {
            return code;
        }
    }
    if (optind + 1 != argc) {
        return report_usage("sweep takes one URL");
    }
    code = s.plot == NULL ? EX_OK : plot_check(s.plot);
    return code == EX_OK ? run(&s, argv[optind]) : code;
}
