/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * main.c: the command line. Turns it and the file into one configuration, and gives that to the
 * server; knows nothing of requests and stores.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sysexits.h>
#include <unistd.h>

#include "config.h"
#include "log.h"
#include "server.h"
#include "slice.h"

static const char usage[] =
    "usage: kvgate [-c FILE] [-t] [-l ADDR]... [-s STORE] [-w N] [-v] [-V] [-h]\n"
    "\n"
    "An HTTP gateway to key-value stores.\n"
    "\n"
    "  -c FILE   read the configuration from FILE, see kvgate.conf(5)\n"
    "  -t        check the configuration, print what it means, and end with 0 or 1\n"
    "  -l ADDR   listen here: 127.0.0.1:8085, [::1]:8085 or unix:/run/kvgate.sock;\n"
    "            port 0 picks a free one; give it again for more addresses\n"
    "  -s STORE  serve this one store under \"/\": embedded:DIR, or\n"
    "            memcached://HOST:PORT[,HOST:PORT...], or memcached:///path/to/socket\n"
    "  -w N      worker threads; 0, the default, is one per core\n"
    "  -v        tell more (log_level = debug)\n"
    "  -V        print the version\n"
    "  -h        print this text\n"
    "\n"
    "-l, -s and -w override the file. Without -c and -s the values are kept in ./kvgate-data;\n"
    "without an address they are served on 127.0.0.1:8085.\n";

/* What was asked for; texts are (ref) into argv. */
struct options {
    const char *file;                      /* -c, or NULL */
    const char *store;                     /* -s, or NULL */
    const char *listen[CONFIG_LISTEN_MAX]; /* -l */
    size_t listen_count;
    int64_t workers; /* -w, or -1 */
    bool check;      /* -t */
    bool verbose;    /* -v */
};

/* Returned when the program is to go on; no exit code. */
#define GO_ON (-1)

static int
usage_error(const char *what, const char *text)
{
    fprintf(stderr, "kvgate: %s%s\nTry kvgate -h.\n", what, text);
    return EX_USAGE;
}

/* Takes in one option. GO_ON, or the exit code. */
static int
option_take(struct options *o, int letter)
{
    uint64_t number;

    switch (letter) {
    case 'c':
        o->file = optarg;
        break;
    case 't':
        o->check = true;
        break;
    case 'l':
        if (o->listen_count == CONFIG_LISTEN_MAX) {
            return usage_error("-l: too many addresses: ", optarg);
        }
        o->listen[o->listen_count++] = optarg;
        break;
    case 's':
        o->store = optarg;
        break;
    case 'w':
        if (!slice_to_u64(slice_from_string(optarg), &number) || number > CONFIG_WORKERS_MAX) {
            return usage_error("-w: not a number from 0 to 256: ", optarg);
        }
        o->workers = (int64_t)number;
        break;
    case 'v':
        o->verbose = true;
        break;
    case 'V':
        puts("kvgate " SERVER_VERSION);
        return EX_OK;
    case 'h':
        fputs(usage, stdout);
        return EX_OK;
    default: /* getopt has said what is wrong */
        return EX_USAGE;
    }
    return GO_ON;
}

/* Lays the command line over CONFIG. False: ERROR says why. */
static bool
options_apply(const struct options *o, struct config *config, char error[CONFIG_ERROR_MAX])
{
    bool first = true;

    for (size_t i = 0; i < o->listen_count; i++) {
        if (!config_add_listen(config, o->listen[i], &first, error)) {
            return false;
        }
    }
    if (o->workers >= 0) {
        config->workers = (uint32_t)o->workers;
    }
    if (o->verbose) {
        config->log_level = LOG_DEBUG;
    }
    return o->store == NULL || config_set_store(config, o->store, error);
}

/* Makes CONFIG what file and command line ask for. GO_ON, or the exit code after a message. */
static int
configure(const struct options *o, struct config *config)
{
    char error[CONFIG_ERROR_MAX];
    bool loaded = o->file == NULL || config_load(config, o->file, error);

    if (loaded && !options_apply(o, config, error)) {
        return usage_error("", error);
    }
    if (loaded && config_finish(config, error)) {
        return GO_ON;
    }
    if (o->check) {
        fprintf(stderr, "%s\n", error); /* bare, so that editors jump to FILE:LINE */
        return EXIT_FAILURE;
    }
    log_error("%s", error);
    return EX_CONFIG;
}

int
main(int argc, char **argv)
{
    struct options options = { .workers = -1 };
    struct config *config = config_create();
    int letter, code = GO_ON;

    if (config == NULL) {
        log_error("no memory");
        return EX_UNAVAILABLE;
    }
    while (code == GO_ON && (letter = getopt(argc, argv, "c:tl:s:w:vVh")) != -1) {
        code = option_take(&options, letter);
    }
    if (code == GO_ON && optind != argc) {
        code = usage_error("unexpected argument: ", argv[optind]);
    }
    if (code == GO_ON) {
        code = configure(&options, config);
    }
    if (code == GO_ON && options.check) {
        config_print(config);
        code = EX_OK;
    } else if (code == GO_ON) {
        log_set_level(config->log_level);
        code = server_run(config);
    }
    config_destroy(config);
    return code;
}
