/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * memcached_handshake.c: what is said on a connection before its first op: name and password, where
 * the configuration has them, and the question which dialect the server speaks, where it does not
 * say.
 *
 *                  connected
 *   CONNECTING --+---------> AUTH ---+--> VERSION --> PROBE --> READY
 *                |                   |                            ^
 *                '-------------------'--- dialect is known -------'
 */
#include "memcached_lane.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "address_book.h"
#include "clock.h"
#include "log.h"
#include "memcached_lane_priv.h"
#include "memcached_server.h"

/* The key that the handshake asks for; nobody needs to have it. */
#define LANE_PROBE_KEY "kvgate:probe"

/* Both questions leave in one write; a server without meta answers the second with an error. */
static const char questions[] = "version\r\nmg " LANE_PROBE_KEY " O0\r\n";

/* The command line and the data of a text authentication, with room for name and password. */
#define AUTH_MAX (2 * CONFIG_TEXT_MAX + 64)

const char *
lane_refusal(const char *in, size_t in_len)
{
    static const struct {
        const char *says;
        const char *means;
    } refusals[] = {
        { "ERROR Too many open connections", "it takes no more connections" },
        { "CLIENT_ERROR unauthenticated", "it wants authentication: username and password_file" },
        { "CLIENT_ERROR authentication failure", "authentication refused" },
    };

    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
        size_t len = strlen(refusals[i].says);
        if (in_len >= len && memcmp(in, refusals[i].says, len) == 0) {
            return refusals[i].means;
        }
    }
    return NULL;
}

/* Sends LEN bytes, which an empty socket buffer takes whole. False: the lane has failed. */
static bool
say(struct memcached_lane *lane, const char *text, size_t len)
{
    ssize_t n = send(lane->watch.fd, text, len, MSG_NOSIGNAL);

    if (n != (ssize_t)len) {
        lane_fail(lane, STORE_UNAVAILABLE, n < 0 ? strerror(errno) : "short handshake");
        return false;
    }
    return true;
}

static void
set_ready(struct memcached_lane *lane, const struct memcached_dialect *dialect)
{
    lane->state = LANE_READY;
    lane->dialect = dialect;
    lane->deadline_ms = CLOCK_NEVER;
    lane->last_used_ms = lane->server->loop->now_ms;
    memcached_server_connected(lane->server, lane);
}

/* Authenticated, or no need of it: which dialect? */
static void
agree_on_dialect(struct memcached_lane *lane)
{
    switch (lane->server->config->dialect) {
    case CONFIG_DIALECT_TEXT:
        set_ready(lane, &memcached_text);
        return;
    case CONFIG_DIALECT_META:
        set_ready(lane, &memcached_meta);
        return;
    default:
        break;
    }
    if (say(lane, questions, sizeof(questions) - 1)) {
        lane->state = LANE_VERSION;
    }
}

/* memcached's text authentication (doc/protocol.txt): a `set` of any key with "name password". */
void
lane_connected(struct memcached_lane *lane)
{
    const struct config_store *config = lane->server->config;
    char text[AUTH_MAX];
    int len;

    if (config->username[0] == '\0') {
        agree_on_dialect(lane);
        return;
    }
    len = snprintf(text, sizeof(text), "set kvgate 0 0 %zu\r\n%s %s\r\n",
                   strlen(config->username) + 1 + strlen(config->password), config->username,
                   config->password);
    if (say(lane, text, (size_t)len)) {
        lane->state = LANE_AUTH;
    }
    explicit_bzero(text, sizeof(text));
}

/* Takes N bytes off the front of in[]. */
static void
consume(struct memcached_lane *lane, size_t n)
{
    lane->in_len -= n;
    memmove(lane->in, lane->in + n, lane->in_len);
}

static void
read_auth(struct memcached_lane *lane)
{
    static const char stored[] = "STORED\r\n";
    size_t len = sizeof(stored) - 1;

    if (lane->in_len >= len && memcmp(lane->in, stored, len) == 0) {
        consume(lane, len);
        agree_on_dialect(lane);
    } else if (memchr(lane->in, '\n', lane->in_len) != NULL) {
        lane_fail(lane, STORE_UNAVAILABLE, "authentication refused");
    }
}

static void
read_version(struct memcached_lane *lane)
{
    size_t used = 0;

    switch (memcached_version_parse(lane->in, lane->in_len, &lane->handshake_meta, &used)) {
    case MEMCACHED_MORE:
        return;
    case MEMCACHED_NONSENSE:
        lane_fail(lane, STORE_BAD_REPLY, "not memcached's protocol");
        return;
    case MEMCACHED_REPLY:
        break;
    }
    consume(lane, used);
    lane->state = LANE_PROBE;
}

/* The answer to the probe: anything but an orderly meta reply means text. */
static void
read_probe(struct memcached_lane *lane)
{
    struct memcached_context context = { 0 };
    struct memcached_reply reply;
    struct store_op probe;
    bool meta = false;

    store_op_init(&probe, STORE_TOUCH, SLICE(LANE_PROBE_KEY));
    switch (memcached_meta.decode(&probe, &context, lane->in, lane->in_len, &reply)) {
    case MEMCACHED_MORE:
        return;
    case MEMCACHED_NONSENSE:
        lane_fail(lane, STORE_BAD_REPLY, "nonsense in the handshake");
        return;
    case MEMCACHED_REPLY:
        /* somebody may have stored something under this key */
        meta = lane->handshake_meta && (reply.status == STORE_MISS || reply.status == STORE_OK);
        break;
    }
    if (reply.close || reply.line_len != lane->in_len) {
        lane_fail(lane, STORE_UNAVAILABLE, "refused in the handshake");
        return;
    }
    lane->in_len = 0;
    lane->has_replied = true;
    memcached_server_alive(lane->server);
    set_ready(lane, meta ? &memcached_meta : &memcached_text);
    log_debug("server %s: connected, dialect %s", address_book_name(lane->server->shared->book),
              lane->dialect->name);
}

bool
lane_handshake(struct memcached_lane *lane)
{
    const char *refusal = lane_refusal(lane->in, lane->in_len);

    if (refusal != NULL) {
        lane_fail(lane, STORE_UNAVAILABLE, refusal);
        return false;
    }
    if (lane->state == LANE_AUTH) {
        read_auth(lane);
    }
    if (lane->state == LANE_VERSION) {
        read_version(lane);
    }
    if (lane->state == LANE_PROBE && lane->in_len > 0) {
        read_probe(lane);
    }
    return lane->state != LANE_CLOSED;
}
