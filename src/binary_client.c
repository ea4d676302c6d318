/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * binary_client.c: store operations as calls of libmemcached; with ring.c the only file that uses it.
 *
 * libmemcached says NOT FOUND in some cases in which it could not ask, and when a server refuses to
 * answer before a password. A miss is believed only on a connection that was proven good, and where
 * it remembers no other error; and after everything that is no orderly answer its connections are
 * closed, so that what comes late answers nobody.
 */
#include "binary_client.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libmemcached/memcached.h>

#include "clock.h"
#include "memcached_codec.h"
#include "ring_priv.h"

/* Never reached: libmemcached shall not leave a server alone after failures, as every client would
 * for itself, for whole seconds. store_binary.c does that for all of them. */
#define FAILURES_MAX 1000000000

/*
 * A connection that had nothing to do for so long is proven again before it is used, in ms: the
 * server may have been restarted, and a write that fails half-way cannot be sent a second time.
 */
#define PROOF_MS 100

/* A key that nobody has, and a cas that no item of that name would have if somebody did. */
#define PROBE     SLICE("kvgate:probe")
#define PROBE_CAS UINT64_MAX

/* How often a counter is found missing and then present by turns before that is given up. */
#define CREATE_ROUNDS 5

struct binary_client {
    const struct config_store *config;    /* (ref) */
    memcached_st *handle;                 /* owned */
    size_t server;                        /* of the last op: index in the configuration */
    memcached_return_t result;            /* of the last op */
    int64_t proven_ms[CONFIG_SERVER_MAX]; /* monotonic; when a server last answered; 0: not yet */
};

static bool
set_behaviors(memcached_st *handle, const struct config_store *config)
{
    const struct {
        memcached_behavior_t name;
        uint64_t value;
    } behaviors[] = {
        { MEMCACHED_BEHAVIOR_BINARY_PROTOCOL, 1 },
        { MEMCACHED_BEHAVIOR_SUPPORT_CAS, 1 },
        { MEMCACHED_BEHAVIOR_TCP_NODELAY, 1 },
        { MEMCACHED_BEHAVIOR_NO_BLOCK, 1 }, /* or its time-outs mean nothing */
        { MEMCACHED_BEHAVIOR_CONNECT_TIMEOUT, config->connect_timeout_ms },
        { MEMCACHED_BEHAVIOR_POLL_TIMEOUT, config->op_timeout_ms },
        { MEMCACHED_BEHAVIOR_SERVER_FAILURE_LIMIT, FAILURES_MAX },
    };

    for (size_t i = 0; i < sizeof(behaviors) / sizeof(behaviors[0]); i++) {
        if (memcached_behavior_set(handle, behaviors[i].name, behaviors[i].value) !=
            MEMCACHED_SUCCESS) {
            return false;
        }
    }
    return true;
}

/* libmemcached says no name and no password on a unix socket, and does not mention it. */
static bool
has_unix_socket(const struct config_store *config)
{
    for (size_t i = 0; i < config->server_count; i++) {
        if (config->servers[i].port == 0) {
            return true;
        }
    }
    return false;
}

struct binary_client *
binary_client_open(const struct config_store *config, char error[CONFIG_ERROR_MAX])
{
    struct binary_client *client = calloc(1, sizeof(*client));

    if (client == NULL || (client->handle = memcached_create(NULL)) == NULL) {
        snprintf(error, CONFIG_ERROR_MAX, "out of memory");
        goto fail;
    }
    client->config = config;
    if (config->username[0] != '\0' && has_unix_socket(config)) {
        snprintf(error, CONFIG_ERROR_MAX,
                 "store %s: dialect = binary cannot authenticate over a unix socket", config->name);
        goto fail;
    }
    if (!set_behaviors(client->handle, config)) {
        snprintf(error, CONFIG_ERROR_MAX, "libmemcached has no binary protocol");
        goto fail;
    }
    if (!ring_set_up(client->handle, config, error)) {
        goto fail;
    }
    if (config->username[0] != '\0' &&
        memcached_set_sasl_auth_data(client->handle, config->username, config->password) !=
            MEMCACHED_SUCCESS) {
        snprintf(error, CONFIG_ERROR_MAX, "libmemcached has no SASL");
        goto fail;
    }
    return client;
fail:
    binary_client_close(client);
    return NULL;
}

void
binary_client_close(struct binary_client *client)
{
    if (client == NULL) {
        return;
    }
    if (client->handle != NULL) {
        memcached_destroy_sasl_auth_data(client->handle);
        memcached_free(client->handle);
    }
    free(client);
}

size_t
binary_client_server(struct binary_client *client, const struct store_op *op)
{
    return memcached_generate_hash(client->handle, op->key.ptr, op->key.len);
}

const char *
binary_client_error(struct binary_client *client)
{
    switch (client->result) {
    case MEMCACHED_AUTH_FAILURE:
    case MEMCACHED_AUTH_PROBLEM:
        return "authentication refused";
    case MEMCACHED_SOME_ERRORS:
    case MEMCACHED_FAILURE:
        return "the connection broke";
    case MEMCACHED_TIMEOUT:
        return "no answer";
    default:
        return memcached_strerror(client->handle, client->result);
    }
}

/* ---- connections ----------------------------------------------------------------------------- */

static void
disconnect(struct binary_client *client)
{
    memcached_quit(client->handle);
    memset(client->proven_ms, 0, sizeof(client->proven_ms));
}

/* What is left of OP's time is all that libmemcached may wait for one step of it. */
static void
set_time_left(struct binary_client *client, const struct store_op *op)
{
    int64_t left_ms = op->deadline_ms - clock_monotonic_ms();
    uint64_t poll_ms = left_ms < 1 ? 1 : (uint64_t)left_ms;
    uint64_t connect_ms = client->config->connect_timeout_ms;

    if (poll_ms > client->config->op_timeout_ms) {
        poll_ms = client->config->op_timeout_ms;
    }
    memcached_behavior_set(client->handle, MEMCACHED_BEHAVIOR_POLL_TIMEOUT, poll_ms);
    memcached_behavior_set(client->handle, MEMCACHED_BEHAVIOR_CONNECT_TIMEOUT,
                           poll_ms < connect_ms ? poll_ms : connect_ms);
}

/* SUCCESS: OP's server has answered, and not with a refusal to talk to us. */
static memcached_return_t
probe(memcached_st *handle, const struct store_op *op)
{
    memcached_return_t rc = memcached_cas_by_key(handle, op->key.ptr, op->key.len, PROBE.ptr,
                                                 PROBE.len, "", 0, 0, 0, PROBE_CAS);

    return rc == MEMCACHED_NOTFOUND || rc == MEMCACHED_DATA_EXISTS ? MEMCACHED_SUCCESS : rc;
}

/* Sees to it that OP's server is there, on a fresh connection if the old one has died. */
static memcached_return_t
prove(struct binary_client *client, const struct store_op *op)
{
    int64_t proven_ms = client->proven_ms[client->server];
    memcached_return_t rc;

    if (proven_ms != 0 && clock_monotonic_ms() - proven_ms < PROOF_MS) {
        return MEMCACHED_SUCCESS;
    }
    rc = probe(client->handle, op);
    if (rc != MEMCACHED_SUCCESS && rc != MEMCACHED_TIMEOUT && proven_ms != 0) {
        disconnect(client);
        rc = probe(client->handle, op);
    }
    return rc;
}

/* ---- results --------------------------------------------------------------------------------- */

/* What RESULT means for VERB; sets *ORDERLY when the server has answered, and is in step. */
static enum store_status
status_of(memcached_return_t result, enum store_verb verb, bool *orderly)
{
    *orderly = true;
    switch (result) {
    case MEMCACHED_SUCCESS:
    case MEMCACHED_STORED:
    case MEMCACHED_DELETED:
        return STORE_OK;
    case MEMCACHED_NOTFOUND:
        return store_verb_has_value(verb) && verb != STORE_CAS ? STORE_NOT_STORED : STORE_MISS;
    case MEMCACHED_DATA_EXISTS:
        return verb == STORE_ADD ? STORE_NOT_STORED : STORE_EXISTS;
    case MEMCACHED_NOTSTORED:
        return STORE_NOT_STORED;
    default:
        break;
    }
    *orderly = false;
    switch (result) {
    case MEMCACHED_E2BIG: /* memcached answers before it has read it all */
        return STORE_TOO_LARGE;
    case MEMCACHED_SERVER_MEMORY_ALLOCATION_FAILURE:
        return STORE_NO_MEMORY;
    case MEMCACHED_TIMEOUT:
    case MEMCACHED_IN_PROGRESS:
        return STORE_TIMEOUT;
    case MEMCACHED_MEMORY_ALLOCATION_FAILURE: /* the server's, or ours with an answer half read */
        return STORE_NO_MEMORY;
    case MEMCACHED_END: /* somebody else's answer */
    case MEMCACHED_PROTOCOL_ERROR:
    case MEMCACHED_UNKNOWN_READ_FAILURE:
    case MEMCACHED_CLIENT_ERROR:
    case MEMCACHED_SERVER_ERROR:
    case MEMCACHED_UNKNOWN_STAT_KEY:
        return STORE_BAD_REPLY;
    case MEMCACHED_NOT_SUPPORTED:
        return STORE_UNSUPPORTED;
    default:
        return STORE_UNAVAILABLE;
    }
}

/* ---- ops ------------------------------------------------------------------------------------- */

/* Takes the value of RESULT into OP. */
static memcached_return_t
take_value(struct store_op *op, const memcached_result_st *result)
{
    op->value_len = memcached_result_length(result);
    op->out_flags = memcached_result_flags(result);
    op->out_cas = memcached_result_cas(result);
    if (op->verb == STORE_HEAD) {
        return MEMCACHED_SUCCESS;
    }
    op->data = buffer_create(op->value_len);
    if (op->data == NULL) {
        return MEMCACHED_MEMORY_ALLOCATION_FAILURE;
    }
    if (op->value_len > 0) {
        memcpy(op->data->data, memcached_result_value(result), op->value_len);
    }
    op->data->len = op->value_len;
    return MEMCACHED_SUCCESS;
}

/* A value is followed by the answer to a NOOP, which must not become that of the next op. */
static memcached_return_t
finish_reading(memcached_st *handle)
{
    memcached_return_t rc = MEMCACHED_SUCCESS;
    memcached_result_st *more = memcached_fetch_result(handle, NULL, &rc);

    if (more == NULL) {
        return rc == MEMCACHED_NOTFOUND || rc == MEMCACHED_END ? MEMCACHED_SUCCESS : rc;
    }
    memcached_result_free(more);
    return MEMCACHED_PROTOCOL_ERROR;
}

static memcached_return_t
read_value(memcached_st *handle, struct store_op *op)
{
    const char *key = op->key.ptr;
    size_t key_len = op->key.len;
    memcached_return_t rc = memcached_mget(handle, &key, &key_len, 1);
    memcached_result_st *result;

    if (rc != MEMCACHED_SUCCESS) {
        return rc == MEMCACHED_NOTFOUND ? MEMCACHED_CONNECTION_FAILURE : rc;
    }
    result = memcached_fetch_result(handle, NULL, &rc);
    if (result != NULL) {
        rc = take_value(op, result);
        memcached_result_free(result);
        return rc == MEMCACHED_SUCCESS ? finish_reading(handle) : rc;
    }
    if (rc == MEMCACHED_NOTFOUND || rc == MEMCACHED_END) {
        memcached_return_t other = memcached_last_error(handle);
        return other == MEMCACHED_SUCCESS || other == MEMCACHED_NOTFOUND ? MEMCACHED_NOTFOUND
                                                                         : other;
    }
    return rc == MEMCACHED_SUCCESS ? MEMCACHED_PROTOCOL_ERROR : rc;
}

/* No item has the cas 0, and libmemcached takes it for no condition at all. */
static memcached_return_t
compare_with_nothing(memcached_st *handle, const struct store_op *op)
{
    struct store_op head;
    memcached_return_t rc;

    store_op_init(&head, STORE_HEAD, op->key);
    rc = read_value(handle, &head);
    return rc == MEMCACHED_SUCCESS ? MEMCACHED_DATA_EXISTS : rc;
}

static memcached_return_t
write_value(memcached_st *handle, const struct store_op *op)
{
    time_t exptime = (time_t)memcached_exptime(op->ttl_s, clock_wall_ms() / 1000);
    const char *value = op->value.len == 0 ? "" : op->value.ptr;
    memcached_return_t (*store)(memcached_st *, const char *, size_t, const char *, size_t, time_t,
                                uint32_t) = memcached_set;

    switch (op->verb) {
    case STORE_CAS:
        if (op->cas == 0) {
            return compare_with_nothing(handle, op);
        }
        return memcached_cas(handle, op->key.ptr, op->key.len, value, op->value.len, exptime,
                             op->flags, op->cas);
    case STORE_ADD:
        store = memcached_add;
        break;
    case STORE_REPLACE:
        store = memcached_replace;
        break;
    case STORE_APPEND:
        store = memcached_append;
        break;
    case STORE_PREPEND:
        store = memcached_prepend;
        break;
    default:
        break;
    }
    return store(handle, op->key.ptr, op->key.len, value, op->value.len, exptime, op->flags);
}

static memcached_return_t
create_counter(memcached_st *handle, struct store_op *op)
{
    time_t exptime = (time_t)memcached_exptime(op->ttl_s, clock_wall_ms() / 1000);
    char digits[24];
    int len = snprintf(digits, sizeof(digits), "%" PRIu64, op->initial);

    op->number = op->initial;
    return memcached_add(handle, op->key.ptr, op->key.len, digits, (size_t)len, exptime, 0);
}

/*
 * The protocol creates a counter in the same step, but a server without memory for it refuses, and
 * with some refusals of this command libmemcached ends the process. So an `add` creates it; if
 * somebody else was faster, his is counted on.
 */
static memcached_return_t
count(memcached_st *handle, struct store_op *op)
{
    memcached_return_t (*step)(memcached_st *, const char *, size_t, uint64_t, uint64_t, time_t,
                               uint64_t *) = op->verb == STORE_INCR
                                                 ? memcached_increment_with_initial
                                                 : memcached_decrement_with_initial;
    memcached_return_t rc;

    for (int round = 0; round < CREATE_ROUNDS; round++) {
        rc = step(handle, op->key.ptr, op->key.len, op->delta, 0, MEMCACHED_EXPIRATION_NOT_ADD,
                  &op->number);
        if (rc != MEMCACHED_NOTFOUND || !op->create) {
            return rc;
        }
        rc = create_counter(handle, op);
        if (rc != MEMCACHED_DATA_EXISTS && rc != MEMCACHED_NOTSTORED) {
            return rc;
        }
    }
    return MEMCACHED_SERVER_ERROR;
}

/*
 * libmemcached has no word for "not a number": it calls that an unknown failure. Whether it was
 * that is seen from the value, which is there and is none.
 */
static enum store_status
why_not_counted(memcached_st *handle, const struct store_op *op)
{
    enum store_status status = STORE_BAD_REPLY;
    struct store_op get;
    uint64_t number;

    store_op_init(&get, STORE_GET, op->key);
    memcached_quit(handle);
    if (read_value(handle, &get) == MEMCACHED_SUCCESS) {
        struct slice value = slice_of(get.data->data, get.value_len);
        if (!slice_to_u64(value, &number)) {
            status = STORE_BAD_VALUE;
        }
        buffer_unref(get.data);
    }
    return status;
}

static memcached_return_t
run(memcached_st *handle, struct store_op *op)
{
    switch (op->verb) {
    case STORE_GET:
    case STORE_HEAD:
        return read_value(handle, op);
    case STORE_DELETE:
        return op->cas != 0 ? MEMCACHED_NOT_SUPPORTED
                            : memcached_delete(handle, op->key.ptr, op->key.len, 0);
    case STORE_INCR:
    case STORE_DECR:
        return count(handle, op);
    case STORE_TOUCH:
        return memcached_touch(handle, op->key.ptr, op->key.len,
                               (time_t)memcached_exptime(op->ttl_s, clock_wall_ms() / 1000));
    default:
        return write_value(handle, op);
    }
}

static void
attempt(struct binary_client *client, struct store_op *op)
{
    bool orderly;

    set_time_left(client, op);
    client->result = prove(client, op);
    if (client->result == MEMCACHED_SUCCESS) {
        client->result = run(client->handle, op);
    }
    op->status = status_of(client->result, op->verb, &orderly);
    if (op->status != STORE_OK) {
        buffer_unref(op->data);
        op->data = NULL;
    }
    if (client->result == MEMCACHED_UNKNOWN_READ_FAILURE &&
        (op->verb == STORE_INCR || op->verb == STORE_DECR)) {
        op->status = why_not_counted(client->handle, op);
    }
    if (orderly) {
        client->proven_ms[client->server] = clock_monotonic_ms();
    } else if (op->status != STORE_UNSUPPORTED) {
        disconnect(client);
    }
}

void
binary_client_run(struct binary_client *client, struct store_op *op)
{
    bool was_proven;

    client->server = binary_client_server(client, op);
    was_proven = client->proven_ms[client->server] != 0;
    op->data = NULL;
    op->out_cas = 0;
    op->ttl_left_s = STORE_TTL_UNKNOWN;
    attempt(client, op);
    if (op->status == STORE_UNAVAILABLE && was_proven && store_verb_reads(op->verb)) {
        attempt(client, op); /* the connection had died: a read is sent again, on a fresh one */
    }
}
