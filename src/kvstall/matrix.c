/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * matrix.c: `kvstall matrix`, the classic experiment. A request is sent in one write or in two,
 * with Nagle's algorithm or without; the round trips are shown, and why they are what they are.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "commands.h"
#include "interrupt.h"
#include "judge.h"
#include "matrix_server.h"
#include "net.h"
#include "options.h"
#include "report.h"

#define ROUNDS_DEFAULT 10
#define ROUNDS_MAX     100
#define BODY_DEFAULT   100

/* One round must not take longer: 200 ms is the longest delay of an ACK in common use. */
#define ROUND_TIMEOUT_NS (5 * NS_PER_S)

static const char usage[] =
    "usage: kvstall matrix [OPTION]...\n"
    "\n"
    "Sends requests in one write or in two (header, then body), with Nagle's algorithm or "
    "without,\n"
    "and shows the round trips. Client and server are both in it, unless told otherwise.\n"
    "\n"
    "  -s, --serve ADDR     be only the server: HOST:PORT; port 0 picks one; ends with a signal\n"
    "  -c, --connect ADDR   be only the client of the server there\n"
    "  -q, --quickack       the server acknowledges half a request at once: the remedy on its "
    "side\n"
    "  -r, --rounds N       rounds of each kind, 3 to 100 (10)\n"
    "  -b, --body LEN       bytes of the body (100)\n"
    "  -h, --help           print this text\n";

struct options {
    const char *serve;   /* an address, or NULL */
    const char *connect; /* an address, or NULL */
    bool quickack;
    uint64_t rounds;
    uint64_t body; /* bytes */
};

/* One of the four experiments. */
struct cell {
    bool apart;            /* header and body in two writes */
    bool nodelay;          /* Nagle off */
    const char *reason[3]; /* what each enum judge_result means here */
};

#define UNSTEADY "The times are too scattered to tell; try again when the machine is less busy."

static const struct cell cells[] = {
    { .apart = false,
      .nodelay = false,
      .reason = { "The request leaves whole, and the answer acknowledges it. Nothing is waiting "
                  "to be acknowledged, so Nagle holds nothing back.",
                  "Unexpected: something else than Nagle holds a whole request up.", UNSTEADY } },
    { .apart = true,
      .nodelay = false,
      .reason = { "No stall, although Nagle holds the body back until the header is acknowledged: "
                  "the server acknowledges the header at once.",
                  "The stall: Nagle holds the body back until the header is acknowledged; the "
                  "server has nothing to answer yet, so its kernel delays the ACK. Each waits for "
                  "the other until the ACK's timer ends it.",
                  UNSTEADY } },
    { .apart = false,
      .nodelay = true,
      .reason = { "The request leaves whole; Nagle is off, and would have had nothing to do.",
                  "Unexpected: Nagle is off, so something else holds the request up.", UNSTEADY } },
    { .apart = true,
      .nodelay = true,
      .reason = { "Two segments, but Nagle is off: the body follows the header at once, and the "
                  "delayed ACK delays nobody.",
                  "Unexpected: Nagle is off, so something else holds the body up.", UNSTEADY } },
};

#define CELL_COUNT (sizeof(cells) / sizeof(cells[0]))

/* The cell that all are judged against: one write, Nagle off. */
#define CELL_GOOD 2

/* What was measured: each round trip of each cell, ns, in order. */
struct times {
    int64_t round_ns[CELL_COUNT][ROUNDS_MAX];
};

/* One round trip, ns; -1: a message was printed, or the program is to end. */
static int64_t
play_round(int fd, const char *request, size_t len, bool apart)
{
    char answer[MATRIX_ANSWER];
    int64_t start = timing_now_ns(), deadline = start + ROUND_TIMEOUT_NS;
    size_t first = apart ? MATRIX_HEAD : len, have = 0;
    enum net_result result = net_write(fd, request, first, deadline);

    if (result == NET_OK && first < len) {
        result = net_write(fd, request + first, len - first, deadline);
    }
    while (result == NET_OK && have < sizeof(answer)) {
        size_t got = 0;

        result = net_read(fd, answer + have, sizeof(answer) - have, &got, deadline);
        have += got;
    }
    if (result == NET_OK) {
        return timing_now_ns() - start;
    }
    if (result != NET_INTERRUPTED) {
        report_error("%s", result == NET_TIMEOUT  ? "the server did not answer within 5 seconds"
                           : result == NET_CLOSED ? "the server closed the connection: is it "
                                                    "kvstall matrix --serve?"
                                                  : strerror(errno));
    }
    return -1;
}

/* Plays the rounds of one cell on a connection of its own. Returns the exit code. */
static int
play_cell(const struct options *o, const struct net_address *address, const struct cell *cell,
          const char *request, int64_t *round_ns)
{
    int fd = net_connect(address, timing_now_ns() + ROUND_TIMEOUT_NS), code = EX_OK;

    if (fd == -1) {
        report_error("cannot connect: %s", strerror(errno));
        return EX_UNAVAILABLE;
    }
    net_set_nodelay(fd, cell->nodelay);
    for (uint64_t i = 0; i < o->rounds && code == EX_OK; i++) {
        report_progress("%s, Nagle %s: round %" PRIu64 " of %" PRIu64,
                        cell->apart ? "header, then body" : "one write",
                        cell->nodelay ? "off" : "on", i + 1, o->rounds);
        round_ns[i] = play_round(fd, request, MATRIX_HEAD + (size_t)o->body, cell->apart);
        if (round_ns[i] < 0) {
            code = EX_PROTOCOL;
        }
    }
    close(fd);
    return code;
}

static void
print_table(const struct options *o, const struct times *times)
{
    printf("%-18s %-5s  round trips, ms\n", "client writes", "Nagle");
    for (size_t i = 0; i < CELL_COUNT; i++) {
        const struct cell *cell = &cells[i];

        printf("%-18s %-5s ", cell->apart ? "header, then body" : "one write",
               cell->nodelay ? "off" : "on");
        for (uint64_t k = 0; k < o->rounds; k++) {
            if (k > 0 && k % 10 == 0) {
                printf("\n%-18s %-5s ", "", "");
            }
            printf(" %6.2f", timing_ms(times->round_ns[i][k]));
        }
        putchar('\n');
    }
    putchar('\n');
}

/* The rounds of a cell that count. */
static void
collect(const struct options *o, const int64_t *round_ns, struct samples *to)
{
    uint64_t skip = o->rounds >= JUDGE_WARMUP + JUDGE_ROUNDS_MIN ? JUDGE_WARMUP : 1;

    to->count = 0;
    for (uint64_t i = skip; i < o->rounds; i++) {
        samples_add(to, round_ns[i]);
    }
}

static int
print_reasons(const struct options *o, const struct times *times, int64_t rtt_ns)
{
    struct samples suspect, good = { 0 };
    bool room = samples_init(&suspect, ROUNDS_MAX) && samples_init(&good, ROUNDS_MAX);

    if (room) {
        for (size_t i = 0; i < CELL_COUNT; i++) {
            struct judgement j;

            collect(o, times->round_ns[i], &suspect);
            collect(o, times->round_ns[CELL_GOOD], &good);
            j = judge(&suspect, &good, rtt_ns);
            printf("%s, Nagle %s: %.2f ms%s\n  %s\n",
                   cells[i].apart ? "Header, then body" : "One write",
                   cells[i].nodelay ? "off" : "on", timing_ms(j.median_ns),
                   j.result == JUDGE_STALL ? ", STALL" : "", cells[i].reason[j.result]);
        }
    } else {
        report_error("no memory");
    }
    samples_deinit(&suspect);
    samples_deinit(&good);
    return room ? EX_OK : EX_OSERR;
}

static int
play_all(const struct options *o, const struct net_address *address, int64_t rtt_ns)
{
    char *request = malloc(MATRIX_HEAD + (size_t)o->body), where[NET_HOST_MAX + NET_PORT_MAX + 3];
    struct times times;
    int code = EX_OK;

    if (request == NULL) {
        report_error("no memory");
        return EX_OSERR;
    }
    matrix_make_head(request, (size_t)o->body);
    memset(request + MATRIX_HEAD, 'b', (size_t)o->body);
    for (size_t i = 0; i < CELL_COUNT && code == EX_OK; i++) {
        code = play_cell(o, address, &cells[i], request, times.round_ns[i]);
    }
    free(request);
    report_progress_end();
    if (code == EX_OK) {
        net_print_address(address, where, sizeof(where));
        printf("A header of %d bytes and a body of %" PRIu64 ", to %s; %" PRIu64
               " rounds each.\n\n",
               MATRIX_HEAD, o->body, where, o->rounds);
        print_table(o, &times);
        code = print_reasons(o, &times, rtt_ns);
    }
    return code;
}

/* Client and server in one program. */
static int
run_both(const struct options *o)
{
    struct net_name name = { "127.0.0.1", "0" };
    struct matrix_server server = { .quickack = o->quickack };
    struct net_address address;
    const char *reason;
    pthread_t thread;
    int code, error;

    server.listener = net_listen(&name, &address, &reason);
    if (server.listener == -1) {
        report_error("cannot listen on 127.0.0.1: %s", reason);
        return EX_UNAVAILABLE;
    }
    error = pthread_create(&thread, NULL, matrix_serve, &server);
    if (error != 0) {
        report_error("cannot start a thread: %s", strerror(error));
        close(server.listener);
        return EX_OSERR;
    }
    code = play_all(o, &address, 0);
    shutdown(server.listener, SHUT_RDWR); /* wakes the thread */
    pthread_join(thread, NULL);
    close(server.listener);
    return code;
}

static int
run_server(const struct options *o)
{
    struct matrix_server server = { .quickack = o->quickack };
    struct net_name name;
    struct net_address address;
    const char *reason;
    char where[NET_HOST_MAX + NET_PORT_MAX + 3];

    if (!net_split(o->serve, strlen(o->serve), NULL, &name)) {
        return report_usage("--serve: not HOST:PORT: %s", o->serve);
    }
    server.listener = net_listen(&name, &address, &reason);
    if (server.listener == -1) {
        report_error("cannot listen on %s: %s", o->serve, reason);
        return EX_UNAVAILABLE;
    }
    net_print_address(&address, where, sizeof(where));
    printf("serving on %s\n", where);
    fflush(stdout);
    matrix_serve(&server);
    close(server.listener);
    return EX_OK;
}

static int
run_client(const struct options *o)
{
    int64_t start = timing_now_ns();
    struct net_name name;
    struct net_address address;
    const char *reason;
    int fd;

    if (!net_split(o->connect, strlen(o->connect), NULL, &name)) {
        return report_usage("--connect: not HOST:PORT: %s", o->connect);
    }
    fd = net_dial(&name, start + ROUND_TIMEOUT_NS, &address, &reason);
    if (fd == -1) {
        report_error("cannot connect to %s: %s", o->connect, reason);
        return EX_UNAVAILABLE;
    }
    close(fd);
    start = timing_now_ns();
    fd = net_connect(&address, start + ROUND_TIMEOUT_NS);
    if (fd == -1) {
        report_error("cannot connect to %s: %s", o->connect, strerror(errno));
        return EX_UNAVAILABLE;
    }
    close(fd);
    return play_all(o, &address, timing_now_ns() - start);
}

/* Takes in one option. -1: go on; else the exit code. */
static int
option_take(struct options *o, int letter)
{
    switch (letter) {
    case 's':
        o->serve = optarg;
        return -1;
    case 'c':
        o->connect = optarg;
        return -1;
    case 'q':
        o->quickack = true;
        return -1;
    case 'r':
        return option_number("rounds", optarg, JUDGE_ROUNDS_MIN, ROUNDS_MAX, &o->rounds) ? -1
                                                                                         : EX_USAGE;
    case 'b':
        return option_number("body", optarg, 1, MATRIX_BODY_MAX, &o->body) ? -1 : EX_USAGE;
    case 'h':
        fputs(usage, stdout);
        return EX_OK;
    default: /* getopt has said what is wrong */
        return report_hint();
    }
}

int
matrix_main(int argc, char **argv)
{
    static const struct option table[] = {
        { "serve", required_argument, NULL, 's' },
        { "connect", required_argument, NULL, 'c' },
        { "quickack", no_argument, NULL, 'q' },
        { "rounds", required_argument, NULL, 'r' },
        { "body", required_argument, NULL, 'b' },
        { "help", no_argument, NULL, 'h' },
        { NULL, 0, NULL, 0 },
    };
    struct options o = { .rounds = ROUNDS_DEFAULT, .body = BODY_DEFAULT };
    int letter, code;

    while ((letter = getopt_long(argc, argv, "s:c:qr:b:h", table, NULL)) != -1) {
        code = option_take(&o, letter);
        if (code != -1) {
            return code;
        }
    }
    if (optind < argc) {
        return report_usage("matrix takes no argument: %s", argv[optind]);
    }
    if (o.serve != NULL && o.connect != NULL) {
        return report_usage("--serve or --connect, not both");
    }
    if (o.connect != NULL && o.quickack) {
        return report_usage("--quickack is the server's: give it with --serve");
    }
    return o.serve != NULL ? run_server(&o) : o.connect != NULL ? run_client(&o) : run_both(&o);
}
