/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stream.c: `kvstall stream`. One message per millisecond over a TCP connection of this machine,
 * with Nagle's algorithm and without: how long is each on its way?
 *
 *     first thread: sleep, stamp, write          second thread: read, compare the stamp, count
 */
#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <stdbool.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "commands.h"
#include "histogram.h"
#include "interrupt.h"
#include "net.h"
#include "options.h"
#include "report.h"
#include "samples.h"
#include "timing.h"

#define LENGTH_MIN  16
#define LENGTH_MAX  65536
#define LENGTHS_MAX 16
#define PER_SECOND  1000 /* messages */

/* The time of one run. Nagle's delays repeat within 40 ms: two seconds show fifty of them. */
#define SECONDS_DEFAULT 2
#define SECONDS_MAX     60

/* The receiver gives up when nothing has come for so long. */
#define SILENCE_NS (5 * NS_PER_S)

static const char usage[] =
    "usage: kvstall stream [OPTION]...\n"
    "\n"
    "Sends one message per millisecond over a TCP connection of this machine, with Nagle's\n"
    "algorithm and without, and shows how long the messages are on their way.\n"
    "\n"
    "  -l, --length LEN[,LEN]...  bytes of a message, 16 to 65536 (100,512,1024,2048,4096)\n"
    "  -s, --seconds N            the time for each length and kind, 1 to 60 (2)\n"
    "  -a, --answering            the receiver delays its ACKs, as one does that also answers;\n"
    "                             one that only reads acknowledges small messages sooner\n"
    "  -h, --help                 print this text\n";

struct options {
    uint64_t lengths[LENGTHS_MAX]; /* bytes */
    size_t length_count;
    uint64_t seconds; /* for each run */
    bool answering;   /* the receiver delays its ACKs */
};

/* The two kinds of a run. */
enum { NAGLE_ON, NAGLE_OFF, KINDS };

static const char *const kind_names[KINDS] = { "Nagle on", "Nagle off" };

/* One run: a length, and Nagle on or off. */
struct run {
    size_t len;                 /* bytes of a message */
    size_t messages;            /* to send */
    bool answering;             /* the receiver delays its ACKs */
    int out;                    /* the sending end (owned) */
    int in;                     /* the receiving end (owned) */
    struct samples delays;      /* one-way delays (owned) */
    struct histogram histogram; /* the same, counted */
};

/* Takes in the message whose LEN bytes have just been read. */
static void
take_in(struct run *run, const char *message)
{
    int64_t sent, delay;

    memcpy(&sent, message, sizeof(sent));
    delay = timing_now_ns() - sent;
    samples_add(&run->delays, delay);
    histogram_add(&run->histogram, delay);
}

/* The receiver: reads until the sender has shut down. */
static void *
receive(void *arg)
{
    struct run *run = arg;
    char message[LENGTH_MAX];
    size_t have = 0, got;

    if (run->answering) {
        net_set_quickack(run->in, false);
    }
    while (net_read(run->in, message + have, run->len - have, &got, timing_now_ns() + SILENCE_NS) ==
           NET_OK) {
        have += got;
        if (run->answering) {
            net_set_quickack(run->in, false);
        }
        if (have == run->len) {
            take_in(run, message);
            have = 0;
        }
    }
    return NULL;
}

/* The sender: one message at each full millisecond from now on. */
static enum net_result
send_all(const struct run *run)
{
    char message[LENGTH_MAX] = { 0 };
    int64_t start = timing_now_ns();
    enum net_result result = NET_OK;

    for (size_t i = 0; i < run->messages && result == NET_OK; i++) {
        struct timespec next = timing_to_timespec(start + (int64_t)i * (NS_PER_S / PER_SECOND));
        int64_t now;

        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
        now = timing_now_ns();
        memcpy(message, &now, sizeof(now));
        result = net_write(run->out, message, run->len, now + SILENCE_NS);
    }
    return result;
}

/* A connection with itself. False: a message was printed. */
static bool
connect_ends(struct run *run, bool nodelay)
{
    struct net_name name = { "127.0.0.1", "0" };
    struct net_address address;
    const char *reason = "no connection";
    int64_t deadline = timing_now_ns() + SILENCE_NS;
    int listener = net_listen(&name, &address, &reason);

    if (listener != -1) {
        run->out = net_connect(&address, deadline);
        run->in = run->out == -1 ? -1 : net_accept(listener, deadline);
        close(listener);
    }
    if (run->in == -1) {
        report_error("cannot connect on 127.0.0.1: %s", reason);
        return false;
    }
    net_set_nodelay(run->out, nodelay);
    return true;
}

/* Returns the exit code. */
static int
run_play(struct run *run, bool nodelay)
{
    pthread_t receiver;
    enum net_result result = NET_FAILED;
    int error;

    if (!samples_init(&run->delays, run->messages)) {
        report_error("no memory");
        return EX_OSERR;
    }
    if (!connect_ends(run, nodelay)) {
        return EX_UNAVAILABLE;
    }
    error = pthread_create(&receiver, NULL, receive, run);
    if (error != 0) {
        report_error("cannot start a thread: %s", strerror(error));
        return EX_OSERR;
    }
    result = send_all(run);
    shutdown(run->out, SHUT_WR);
    pthread_join(receiver, NULL);
    if (result != NET_OK || run->delays.count != run->messages) {
        if (result != NET_INTERRUPTED) {
            report_error("only %zu of %zu messages arrived", run->delays.count, run->messages);
        }
        return EX_IOERR;
    }
    return EX_OK;
}

static void
run_deinit(struct run *run)
{
    samples_deinit(&run->delays);
    if (run->out != -1) {
        close(run->out);
    }
    if (run->in != -1) {
        close(run->in);
    }
}

static void
print_runs(struct run *runs)
{
    static const unsigned permille[] = { 500, 900, 990, 999, 1000 };
    struct histogram histograms[KINDS];

    printf("%zu bytes, %zu messages each; one-way delay, ms\n\n", runs[0].len, runs[0].messages);
    printf("  %-12s %8s %8s %8s %8s %8s\n", "", "median", "90 %", "99 %", "99.9 %", "longest");
    for (size_t k = 0; k < KINDS; k++) {
        printf("  %-12s", kind_names[k]);
        for (size_t i = 0; i < sizeof(permille) / sizeof(permille[0]); i++) {
            printf(" %8.3f", timing_ms(samples_quantile(&runs[k].delays, permille[i])));
        }
        putchar('\n');
        histograms[k] = runs[k].histogram;
    }
    putchar('\n');
    histogram_print(stdout, histograms, kind_names, KINDS);
    putchar('\n');
    fflush(stdout);
}

static int
play_length(const struct options *o, size_t len)
{
    struct run runs[KINDS];
    int code = EX_OK;

    for (size_t k = 0; k < KINDS; k++) {
        runs[k] = (struct run){ .len = len,
                                .answering = o->answering,
                                .messages = (size_t)o->seconds * PER_SECOND,
                                .out = -1,
                                .in = -1 };
    }
    for (size_t k = 0; k < KINDS && code == EX_OK; k++) {
        report_progress("%zu bytes, %s: %" PRIu64 " s", len, kind_names[k], o->seconds);
        code = run_play(&runs[k], k == NAGLE_OFF);
    }
    report_progress_end();
    if (code == EX_OK) {
        print_runs(runs);
    }
    for (size_t k = 0; k < KINDS; k++) {
        run_deinit(&runs[k]);
    }
    return code;
}

/* Takes in one option. -1: go on; else the exit code. */
static int
option_take(struct options *o, int letter)
{
    switch (letter) {
    case 'l':
        o->length_count =
            option_list("length", optarg, LENGTH_MIN, LENGTH_MAX, o->lengths, LENGTHS_MAX);
        return o->length_count > 0 ? -1 : EX_USAGE;
    case 's':
        return option_number("seconds", optarg, 1, SECONDS_MAX, &o->seconds) ? -1 : EX_USAGE;
    case 'a':
        o->answering = true;
        return -1;
    case 'h':
        fputs(usage, stdout);
        return EX_OK;
    default: /* getopt has said what is wrong */
        return report_hint();
    }
}

int
stream_main(int argc, char **argv)
{
    static const struct option table[] = {
        { "length", required_argument, NULL, 'l' },
        { "seconds", required_argument, NULL, 's' },
        { "answering", no_argument, NULL, 'a' },
        { "help", no_argument, NULL, 'h' },
        { NULL, 0, NULL, 0 },
    };
    struct options o = { .lengths = { 100, 512, 1024, 2048, 4096 },
                         .length_count = 5,
                         .seconds = SECONDS_DEFAULT };
    int letter, code = EX_OK;

    while ((letter = getopt_long(argc, argv, "l:s:ah", table, NULL)) != -1) {
        code = option_take(&o, letter);
        if (code != -1) {
            return code;
        }
    }
    if (optind < argc) {
        return report_usage("stream takes no argument: %s", argv[optind]);
    }
    code = EX_OK;
    for (size_t i = 0; i < o.length_count && code == EX_OK; i++) {
        code = play_length(&o, (size_t)o.lengths[i]);
    }
    if (code == EX_OK) {
        puts(
            "Nagle sends a small message only when the one before it is acknowledged, so messages\n"
            "collect for as long as the receiver delays its ACK. TCP_NODELAY sends each at once.");
    }
    return code;
}
