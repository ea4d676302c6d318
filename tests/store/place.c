/* SPDX-License-Identifier: BSD-2-Clause */
/* place.c: see place.h. */
#include "place.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define VALUE_MAX ((size_t)1 << 20) /* of place_value */

struct config_store *
place_config_make(uint64_t map_size, enum config_sync sync)
{
    struct config_store *config = calloc(1, sizeof(*config));
    char parent[] = "/tmp/kvgate-embedded-XXXXXX";

    if (config == NULL || mkdtemp(parent) == NULL) {
        perror("place");
        abort();
    }
    config->type = CONFIG_STORE_EMBEDDED;
    config->map_size = map_size;
    config->sync = sync;
    snprintf(config->directory, sizeof(config->directory), "%s/data", parent);
    return config;
}

void
place_config_remove(struct config_store *config)
{
    static const char *const files[] = { "data.mdb", "lock.mdb", "kvgate.lock" };
    char path[CONFIG_TEXT_MAX + 16];

    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", config->directory, files[i]);
        unlink(path);
    }
    rmdir(config->directory);
    unlink(config->directory);
    *strrchr(config->directory, '/') = '\0';
    if (rmdir(config->directory) != 0) {
        perror(config->directory);
    }
    free(config);
}

void
place_open(struct place *place)
{
    char error[CONFIG_ERROR_MAX] = "";

    place->shared = store_embedded.setup(place->config, error);
    if (place->shared == NULL) {
        fprintf(stderr, "place: %s\n", error);
        abort();
    }
    if (!driver_open(&place->driver, place->shared)) {
        abort();
    }
}

void
place_close(struct place *place)
{
    driver_close(&place->driver);
    store_embedded.teardown(place->shared);
    place->shared = NULL;
}

void
place_make(struct place *place, uint64_t map_size)
{
    *place = (struct place){ .config = place_config_make(map_size, CONFIG_SYNC_NONE) };
    place_open(place);
}

void
place_remove(struct place *place)
{
    if (place->shared != NULL) {
        place_close(place);
    }
    place_config_remove(place->config);
}

struct slice
place_key(unsigned n)
{
    static char keys[1024][16];
    static size_t next;
    char *key = keys[next++ % 1024];

    return slice_of(key, (size_t)snprintf(key, sizeof(keys[0]), "key-%u", n));
}

struct slice
place_value(unsigned n, size_t len)
{
    static char bytes[VALUE_MAX];

    for (size_t i = 0; i < len; i++) {
        bytes[i] = (char)(n * 31 + i * 7 + i / 251);
    }
    return slice_of(bytes, len);
}

enum store_status
place_set(struct place *place, unsigned n, size_t len)
{
    struct store_op op;

    store_op_init(&op, STORE_SET, place_key(n));
    op.value = place_value(n, len);
    return driver_run(&place->driver, &op);
}

enum store_status
place_erase(struct place *place, unsigned n)
{
    struct store_op op;

    store_op_init(&op, STORE_DELETE, place_key(n));
    return driver_run(&place->driver, &op);
}

bool
place_has(struct place *place, unsigned n, size_t len)
{
    struct store_op op;
    bool same;

    store_op_init(&op, STORE_GET, place_key(n));
    if (driver_run(&place->driver, &op) != STORE_OK) {
        return false;
    }
    same = slice_equal(slice_of(op.data->data, op.data->len), place_value(n, len));
    buffer_unref(op.data);
    return same;
}

bool
place_lacks(struct place *place, unsigned n)
{
    struct store_op op;

    store_op_init(&op, STORE_GET, place_key(n));
    if (driver_run(&place->driver, &op) == STORE_OK) {
        buffer_unref(op.data);
    }
    return op.status == STORE_MISS;
}
