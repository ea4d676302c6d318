/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * server.c: sets up what all workers share, starts them, waits for a signal, takes everything down
 * in reverse. Serves nothing itself.
 */
#include "server.h"

#include <malloc.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sysexits.h>
#include <unistd.h>

#include "quota.h"
#include "listener.h"
#include "log.h"
#include "store.h"
#include "worker.h"

/* Descriptors that are no clients': stores, files, and clients that get a refusal. */
#define DESCRIPTORS_KEPT 400

struct server {
    const struct config *config; /* (ref) */
    struct quota quota;
    struct store_shared *stores[CONFIG_STORE_MAX]; /* (owned) by config index */
    struct listener listeners[CONFIG_LISTEN_MAX];  /* (owned) */
    size_t listener_count;                         /* listeners that are open */
    size_t worker_count;                           /* workers wanted */
    struct worker *workers[LISTENER_SOCKETS_MAX];  /* (owned) those that run */
    struct worker_shared shared;                   /* what they see of this */
    sigset_t signals;                              /* those that stop it */
};

/*
 * As many descriptors as the system lets us have: a connection is one. Where that is too few, there are
 * fewer connections, so that the others get an answer: some are kept for those, stores and files.
 */
static void
raise_descriptor_limit(struct server *server)
{
    struct rlimit limit;
    unsigned usable;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0) {
        return;
    }
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur == RLIM_INFINITY ||
        limit.rlim_cur >= server->config->connections + (rlim_t)DESCRIPTORS_KEPT) {
        return;
    }
    usable = (unsigned)(limit.rlim_cur > 2 * DESCRIPTORS_KEPT ? limit.rlim_cur - DESCRIPTORS_KEPT
                                                              : limit.rlim_cur / 2);
    server->quota.connections_max = usable;
    log_warn("connections = %u, but this process may open only %llu files (ulimit -n, or "
             "LimitNOFILE= in the unit): there will be %u",
             server->config->connections, (unsigned long long)limit.rlim_cur, usable);
}

/*
 * Values of some 100 KB come and go all the time. By default each would be mapped anew and returned at
 * once, and most of the time of a PUT would be page faults: keep freed memory, up to a bound.
 */
static void
keep_freed_memory(void)
{
    mallopt(M_MMAP_THRESHOLD, 32 * 1024 * 1024);
    mallopt(M_TRIM_THRESHOLD, 64 * 1024 * 1024);
}

static size_t
count_workers(const struct config *config)
{
    long cores = config->workers != 0 ? (long)config->workers : sysconf(_SC_NPROCESSORS_ONLN);

    if (cores < 1) {
        return 1;
    }
    return cores > LISTENER_SOCKETS_MAX ? LISTENER_SOCKETS_MAX : (size_t)cores;
}

/* Blocked here, and so in every thread: they are only ever taken by sigwait. */
static void
setup_signals(struct server *server)
{
    sigemptyset(&server->signals);
    sigaddset(&server->signals, SIGTERM);
    sigaddset(&server->signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, &server->signals, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGHUP, SIG_IGN); /* there is nothing to reload; who sends it does not mean to kill */
}

static int
setup_stores(struct server *server, char error[CONFIG_ERROR_MAX])
{
    for (size_t i = 0; i < server->config->store_count; i++) {
        const struct config_store *config = &server->config->stores[i];
        server->stores[i] = store_type_of(config)->setup(config, error);
        if (server->stores[i] == NULL) {
            return -1;
        }
    }
    return 0;
}

static int
open_listeners(struct server *server, char error[CONFIG_ERROR_MAX])
{
    for (size_t i = 0; i < server->config->listen_count; i++) {
        if (listener_open(&server->listeners[i], server->config->listen[i], server->worker_count,
                          error) < 0) {
            return -1;
        }
        server->listener_count++;
    }
    return 0;
}

static int
start_workers(struct server *server, char error[CONFIG_ERROR_MAX])
{
    server->shared = (struct worker_shared){
        .config = server->config,
        .quota = &server->quota,
        .listeners = server->listeners,
        .listener_count = server->listener_count,
        .stores = server->stores,
    };
    for (size_t i = 0; i < server->worker_count; i++) {
        server->workers[i] = worker_start(&server->shared, i, error);
        if (server->workers[i] == NULL) {
            return -1;
        }
    }
    return 0;
}

static int
setup(struct server *server, char error[CONFIG_ERROR_MAX])
{
    if (quota_init(&server->quota, server->config) < 0) {
        snprintf(error, CONFIG_ERROR_MAX, "no memory");
        return -1;
    }
    raise_descriptor_limit(server);
    if (open_listeners(server, error) < 0 || setup_stores(server, error) < 0) {
        return -1;
    }
    return start_workers(server, error);
}

/* Workers that serve answer what is under way first. */
static void
teardown(struct server *server)
{
    for (size_t i = 0; i < server->worker_count; i++) {
        if (server->workers[i] != NULL) {
            worker_stop(server->workers[i]);
        }
    }
    for (size_t i = 0; i < server->worker_count; i++) {
        worker_join(server->workers[i]);
    }
    for (size_t i = 0; i < server->config->store_count; i++) {
        if (server->stores[i] != NULL) {
            server->stores[i]->type->teardown(server->stores[i]);
        }
    }
    for (size_t i = 0; i < server->listener_count; i++) {
        listener_close(&server->listeners[i]);
    }
    quota_deinit(&server->quota);
}

/* Whether a PUT and a GET of any key on the first address would do. */
static bool
can_suggest(const struct server *server)
{
    const struct config *config = server->config;

    if (strncmp(server->listeners[0].name, "http:", 5) != 0) {
        return false;
    }
    for (size_t i = 0; i < config->route_count; i++) {
        const struct config_route *route = &config->routes[i];
        if (strcmp(route->prefix, "/") == 0) {
            return (route->methods & CONFIG_GET) != 0 && (route->methods & CONFIG_PUT) != 0;
        }
    }
    return false;
}

/* One line, to stdout: where it listens, what is behind it, what to try. */
static void
print_ready(const struct server *server)
{
    const struct config *config = server->config;
    const struct config_store *store = &config->stores[config->routes[0].store];
    const char *address = server->listeners[0].name;

    printf("kvgate " SERVER_VERSION " ready on");
    for (size_t i = 0; i < server->listener_count; i++) {
        printf(" %s", server->listeners[i].name);
    }
    if (config->store_count > 1) {
        printf(" (%zu stores)", config->store_count);
    } else if (store->type == CONFIG_STORE_EMBEDDED) {
        printf(" (store: embedded in %s)", store->directory);
    } else {
        printf(" (store: %s, %zu server%s)", store_type_of(store)->name, store->server_count,
               store->server_count == 1 ? "" : "s");
    }
    if (can_suggest(server)) {
        printf("  try: curl -T photo.jpg %sphoto; curl -o copy.jpg %sphoto", address, address);
    }
    printf("\n");
    fflush(stdout);
}

static void
wait_for_signal(const struct server *server)
{
    int number = 0;

    while (sigwait(&server->signals, &number) != 0) {
    }
    log_info("%s: stopping", number == SIGINT ? "SIGINT" : "SIGTERM");
}

int
server_run(const struct config *config)
{
    struct server *server = calloc(1, sizeof(*server));
    char error[CONFIG_ERROR_MAX] = "";
    int status = EX_OK;

    if (server == NULL) {
        log_error("no memory");
        return EX_UNAVAILABLE;
    }
    server->config = config;
    server->worker_count = count_workers(config);
    keep_freed_memory();
    setup_signals(server);
    if (setup(server, error) < 0) {
        log_error("%s", error);
        status = EX_UNAVAILABLE;
    } else {
        print_ready(server);
        wait_for_signal(server);
    }
    teardown(server);
    free(server);
    return status;
}
