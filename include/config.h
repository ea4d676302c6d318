/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * config.h: what the operator asked for, as one read-only struct.
 *
 * The file is INI (sections [server], [store NAME], [route PREFIX]); conf/kvgate.conf shows every
 * directive. All text lives inside the struct, so it has one owner and one size and nothing to
 * free piece by piece. After config_finish nobody writes to it; all workers read it.
 */
#ifndef KVGATE_CONFIG_H
#define KVGATE_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "log.h"

#define CONFIG_LISTEN_MAX 16  /* listen addresses */
#define CONFIG_STORE_MAX  16  /* [store] sections */
#define CONFIG_ROUTE_MAX  64  /* [route] sections */
#define CONFIG_SERVER_MAX 256 /* servers of one memcached store */
#define CONFIG_TEXT_MAX   256 /* bytes of a text directive, with its NUL */
#define CONFIG_ERROR_MAX  512 /* bytes of an error message, with its NUL */

#define CONFIG_WORKERS_MAX 256 /* threads; more than any machine has cores to feed */

/* How the system runs a worker beside other programs; see sched(7). */
enum config_scheduling {
    CONFIG_SCHEDULING_BATCH,  /* SCHED_BATCH: a worker that wakes pushes nobody aside */
    CONFIG_SCHEDULING_INHERIT /* as kvgate was started */
};
enum config_store_type { CONFIG_STORE_EMBEDDED, CONFIG_STORE_MEMCACHED };
enum config_sync { CONFIG_SYNC_FULL, CONFIG_SYNC_NONE };
enum config_distribution { CONFIG_KETAMA, CONFIG_MODULA };
enum config_hash {
    CONFIG_HASH_AUTO, /* what other clients use with the distribution: md5; one_at_a_time */
    CONFIG_HASH_MD5,
    CONFIG_HASH_ONE_AT_A_TIME,
    CONFIG_HASH_FNV1A_64
};
enum config_dialect {
    CONFIG_DIALECT_AUTO,
    CONFIG_DIALECT_TEXT,
    CONFIG_DIALECT_META,
    CONFIG_DIALECT_BINARY /* through libmemcached, for servers that want SASL */
};
/* What becomes of the keys of a server that is down. */
enum config_on_failure {
    CONFIG_FAIL,   /* they are unavailable */
    CONFIG_REHASH, /* the servers that are left have them */
    CONFIG_MISS    /* reads miss, writes are unavailable */
};

/* The methods that a route may allow, as bits of config_route.methods. */
enum config_method {
    CONFIG_GET = 1,
    CONFIG_HEAD = 2,
    CONFIG_PUT = 4,
    CONFIG_POST = 8,
    CONFIG_DELETE = 16,
    CONFIG_METHODS_ALL = 31
};

/* One server of a memcached store. */
struct config_server_address {
    char host[CONFIG_TEXT_MAX]; /* name or address without brackets; path when port is 0 */
    uint16_t port;              /* 0: HOST is the path of a unix socket */
    uint32_t weight;            /* share of the ring; 1 by default */
};

/* A [store NAME] section. */
struct config_store {
    char name[CONFIG_TEXT_MAX];
    enum config_store_type type;
    /* embedded */
    char directory[CONFIG_TEXT_MAX]; /* where the database lies */
    uint64_t map_size;               /* bytes that it may grow to */
    enum config_sync sync;           /* whether a write waits for the disk */
    /* memcached */
    struct config_server_address servers[CONFIG_SERVER_MAX];
    size_t server_count;
    enum config_distribution distribution; /* how a key finds its server */
    enum config_hash hash;
    enum config_dialect dialect;
    uint32_t lanes;     /* connections at the most, per worker and server */
    uint32_t ops_max;   /* operations waiting at the most, per worker and server */
    uint64_t bytes_max; /* bytes of values under way at the most, per worker and server */
    uint64_t item_max;  /* bytes: the server's own -I */
    enum config_on_failure on_failure;
    char username[CONFIG_TEXT_MAX];      /* empty: no authentication */
    char password_file[CONFIG_TEXT_MAX]; /* its first line is the password */
    char password[CONFIG_TEXT_MAX];      /* read by config_finish; never printed */
    uint32_t connect_timeout_ms;
    uint32_t op_timeout_ms;
};

/* A [route PREFIX] section. */
struct config_route {
    char prefix[CONFIG_TEXT_MAX];     /* begins with "/" */
    char store_name[CONFIG_TEXT_MAX]; /* as written */
    size_t store;                     /* index into config.stores; set by config_finish */
    char key_prefix[CONFIG_TEXT_MAX]; /* goes before every key of this route */
    unsigned methods;                 /* enum config_method bits */
    uint64_t ttl_s;                   /* default time to live in seconds; 0: for ever */
    uint64_t ttl_max_s;               /* no value lives longer; 0: no limit */
    uint64_t body_max;                /* bytes; 0: as much as the store takes */
    char content_type[CONFIG_TEXT_MAX];
    bool keeps_types;                    /* content_type is "stored": each value has its own */
    char cache_control[CONFIG_TEXT_MAX]; /* of values; empty: not sent */
    bool caches_ttl;                     /* cache_control is "ttl": max-age is what is left */
};

struct config {
    /* [server] */
    char listen[CONFIG_LISTEN_MAX][CONFIG_TEXT_MAX]; /* host:port, [v6]:port, unix:/path */
    size_t listen_count;
    uint32_t workers; /* threads; 0: one per core */
    enum config_scheduling scheduling;
    uint32_t connections;             /* of all clients together */
    uint32_t connections_per_address; /* 0: no limit */
    uint64_t connection_buffer;       /* bytes per connection; bounds the request's header */
    uint64_t bytes_in_flight;         /* bodies and values held at one moment, all workers */
    uint32_t idle_timeout_ms;         /* whole seconds: libmicrohttpd counts in them */
    uint32_t request_timeout_ms;      /* from a request's first byte to its last */
    uint32_t drain_timeout_ms;        /* how long a stop waits for requests under way */
    enum log_level log_level;

    struct config_store stores[CONFIG_STORE_MAX];
    size_t store_count;
    struct config_route routes[CONFIG_ROUTE_MAX];
    size_t route_count;
};

/*
 * A new configuration: every directive at its default, no store, no route, no listen address.
 * The caller owns it; free with config_destroy. NULL: no memory.
 */
struct config *config_create(void);

/* NULL is allowed. */
void config_destroy(struct config *config);

/* All of a store or route at its default, for sections and for tests. */
void config_store_defaults(struct config_store *store, const char *name);
void config_route_defaults(struct config_route *route, const char *prefix);

/*
 * Reads FILE into CONFIG. False: ERROR says "FILE:LINE: what is wrong" (the first thing that
 * was), and CONFIG is not to be used. Unknown sections and directives are errors, and so is a
 * directive given twice (but for `listen` and `servers`, which add).
 */
bool config_load(struct config *config, const char *file, char error[CONFIG_ERROR_MAX]);

/*
 * What the command line says; each overrides the file. `-l` replaces the file's addresses with
 * the first call and adds with the next: *FIRST is true at the first call and false after it.
 * `-s` makes "embedded:DIR" or "memcached://host:port[,host:port...]" (a weight may follow as in
 * the file, unix sockets are memcached:///path) the one store, behind the one route "/".
 */
bool config_add_listen(struct config *config, const char *address, bool *first,
                       char error[CONFIG_ERROR_MAX]);
bool config_set_store(struct config *config, const char *url, char error[CONFIG_ERROR_MAX]);

/*
 * Fills in what is still open (127.0.0.1:8085; the embedded store in ./kvgate-data; the
 * route "/" when there is just one store; the store of each route) and checks what only the whole
 * can tell. False: ERROR says what is wrong, without a line.
 */
bool config_finish(struct config *config, char error[CONFIG_ERROR_MAX]);

/* Prints the finished configuration to stdout as a file that config_load reads back (`-t`). */
void config_print(const struct config *config);

/*
 * The length of the host part of "host:port" or "[v6]:port" (brackets included) and the port, for
 * listen addresses. False: not of that form. A port is 0 to 65535.
 */
bool config_split_host_port(const char *text, size_t *host_len, uint16_t *port);

#endif
