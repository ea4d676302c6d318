/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * probe.c: `kvstall probe`. Plays well-behaved and badly behaved clients against any HTTP server,
 * and says whether it stalls, and whose fault it is.
 */
#include "probe.h"

#include <sysexits.h>

#include "commands.h"
#include "interrupt.h"
#include "options.h"
#include "report.h"
#include "timing.h"

#define SIZE_DEFAULT 1000 /* less than a segment of any network, so nothing is cut by itself */
#define SIZE_MOST    1000000

#define ROUNDS_DEFAULT 10
#define ROUNDS_MAX     1000

/* Clients that are left when the time is over are not played. */
#define SECONDS_DEFAULT 30
#define SECONDS_MAX     3600

static const char usage[] =
    "usage: kvstall probe [OPTION]... URL\n"
    "\n"
    "Plays clients of many manners against an HTTP server, compares each with a well-behaved one,\n"
    "and says whether it stalls, and whose fault it is. It writes to a key of its own under URL,\n"
    "and removes it at the end; where writes are refused, it only reads URL.\n"
    "\n"
    "  -b, --size BYTES          size of the value, 1 to 1000000 (1000)\n"
    "  -r, --rounds N            rounds for each client, 3 to 1000 (10)\n"
    "  -s, --seconds N           stop after this time (30)\n"
    "  -j, --json                write the result for machines\n" SERVICE_USAGE
    "  -h, --help                print this text\n"
    "\n"
    "Exit code: 0 no stall, 1 a stall was found, 64 usage, 69 cannot connect, 75 the time was "
    "over\n"
    "before all was played, 76 this is no HTTP server, or it does not answer.\n";

/* The exit code for the verdict. */
static int
verdict_code(const struct probe_verdict *verdict)
{
    if (probe_found(verdict)) {
        return COMMAND_STALL;
    }
    return verdict->skipped > 0 ? EX_TEMPFAIL : EX_OK;
}

static int
run(struct probe *p, const char *url)
{
    int code = service_open(&p->service, url);

    if (code != EX_OK) {
        return code;
    }
    p->end_ns = timing_now_ns() + (int64_t)p->seconds * NS_PER_S;
    code = probe_play(p);
    report_progress_end();
    service_remove(&p->service);
    if (code != EX_OK) {
        return code;
    }
    probe_judge(p->cells, p->cell_count, p->writes, &p->verdict);
    if (p->json) {
        probe_print_json(p, stdout);
    } else {
        probe_print_text(p, stdout);
    }
    return verdict_code(&p->verdict);
}

/* Takes in one option. -1: go on; else the exit code. */
static int
option_take(struct probe *p, int letter)
{
    switch (letter) {
    case 'b':
        return option_number("size", optarg, 1, SIZE_MOST, &p->size) ? -1 : EX_USAGE;
    case 'r':
        return option_number("rounds", optarg, JUDGE_ROUNDS_MIN, ROUNDS_MAX, &p->rounds) ? -1
                                                                                         : EX_USAGE;
    case 's':
        return option_number("seconds", optarg, 1, SECONDS_MAX, &p->seconds) ? -1 : EX_USAGE;
    case 'j':
        p->json = true;
        return -1;
    case 'h':
        fputs(usage, stdout);
        return EX_OK;
    default:
        return service_option(&p->service, letter, optarg);
    }
}

int
probe_main(int argc, char **argv)
{
    static const struct option table[] = {
        { "size", required_argument, NULL, 'b' },
        { "rounds", required_argument, NULL, 'r' },
        { "seconds", required_argument, NULL, 's' },
        { "json", no_argument, NULL, 'j' },
        { "help", no_argument, NULL, 'h' },
        SERVICE_ROWS,
        { NULL, 0, NULL, 0 },
    };
    struct probe p = { .size = SIZE_DEFAULT, .rounds = ROUNDS_DEFAULT, .seconds = SECONDS_DEFAULT };
    int letter, code;

    service_init(&p.service);
    while ((letter = getopt_long(argc, argv, "b:r:s:jh" SERVICE_LETTERS, table, NULL)) != -1) {
        code = option_take(&p, letter);
        if (code != -1) {
            return code;
        }
    }
    if (optind + 1 != argc) {
        return report_usage("probe takes one URL");
    }
    return run(&p, argv[optind]);
}
