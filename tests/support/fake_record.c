/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fake_record.c: what came to the fake, taken down as bytes, as reads and as commands, and the
 * questions that a test may ask about it. It sends nothing.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_priv.h"

static void
record_command(struct fake *fake, size_t index, struct fake_connection *c)
{
    size_t len = c->line.len - 1;
    const char *line = c->line.ptr;
    const char *opaque;

    if (len > 0 && line[len - 1] == '\r') {
        len--;
    }
    if (fake->command_count == fake->command_cap) {
        fake->command_cap = fake->command_cap * 2 + 64;
        fake->commands = realloc(fake->commands, fake->command_cap * sizeof(*fake->commands));
        assert(fake->commands != NULL);
    }
    fake->commands[fake->command_count].connection = index;
    fake->commands[fake->command_count].line = strndup(line, len);
    fake->command_count++;
    c->data_left = fake_data_len(line, len, fake->lacks);
    opaque = strstr(line, " O");
    if (opaque != NULL) {
        size_t n = strcspn(opaque + 1, " \r\n");
        snprintf(c->opaque, sizeof(c->opaque), "%.*s", (int)n, opaque + 1);
    }
}

/* Takes note of LEN bytes that have just come. */
void
fake_record(struct fake *fake, size_t index, const char *data, size_t len)
{
    struct fake_connection *c = fake->connections[index];

    if (c->read_count < FAKE_READS_MAX) {
        c->reads[c->read_count++] = (uint32_t)c->received.len;
    }
    fake_bytes_add(&c->received, data, len);
    fake_bytes_add(&c->in, data, len);
    while (len > 0) {
        size_t take;
        if (c->data_left > 0) {
            take = c->data_left < len ? c->data_left : len;
            c->data_left -= take;
        } else {
            const char *end = memchr(data, '\n', len);
            take = end != NULL ? (size_t)(end - data) + 1 : len;
            fake_bytes_add(&c->line, data, take);
            if (end != NULL) {
                record_command(fake, index, c);
                c->line.len = 0;
            }
        }
        data += take;
        len -= take;
    }
}

void
fake_record_free(struct fake *fake)
{
    for (size_t i = 0; i < fake->accepted; i++) {
        fake_bytes_free(&fake->connections[i]->in);
        fake_bytes_free(&fake->connections[i]->out);
        fake_bytes_free(&fake->connections[i]->received);
        fake_bytes_free(&fake->connections[i]->line);
        free(fake->connections[i]);
    }
    for (size_t i = 0; i < fake->command_count; i++) {
        free(fake->commands[i].line);
    }
    free(fake->commands);
}

size_t
fake_accepted(struct fake *fake)
{
    size_t n;

    pthread_mutex_lock(&fake->lock);
    n = fake->accepted;
    pthread_mutex_unlock(&fake->lock);
    return n;
}

/* Connections for which SEES is true. */
static size_t
count_connections(struct fake *fake, bool (*sees)(const struct fake_connection *c))
{
    size_t n = 0;

    pthread_mutex_lock(&fake->lock);
    for (size_t i = 0; i < fake->accepted; i++) {
        n += sees(fake->connections[i]);
    }
    pthread_mutex_unlock(&fake->lock);
    return n;
}

static bool
sees_open(const struct fake_connection *c)
{
    return c->fd >= 0 && !c->client_gone && !c->hung_up;
}

static bool
sees_holding(const struct fake_connection *c)
{
    return c->fd >= 0 && c->holding;
}

size_t
fake_open(struct fake *fake)
{
    return count_connections(fake, sees_open);
}

size_t
fake_holding(struct fake *fake)
{
    return count_connections(fake, sees_holding);
}

bool
fake_is_open(struct fake *fake, size_t index)
{
    bool is_open;

    pthread_mutex_lock(&fake->lock);
    is_open = index < fake->accepted && sees_open(fake->connections[index]);
    pthread_mutex_unlock(&fake->lock);
    return is_open;
}

size_t
fake_played(struct fake *fake)
{
    size_t n;

    pthread_mutex_lock(&fake->lock);
    n = fake->played;
    pthread_mutex_unlock(&fake->lock);
    return n;
}

size_t
fake_count_on(struct fake *fake, size_t index, const char *prefix)
{
    size_t n = 0;

    pthread_mutex_lock(&fake->lock);
    for (size_t i = 0; i < fake->command_count; i++) {
        n += (index == SIZE_MAX || fake->commands[i].connection == index) &&
             strncmp(fake->commands[i].line, prefix, strlen(prefix)) == 0;
    }
    pthread_mutex_unlock(&fake->lock);
    return n;
}

size_t
fake_count(struct fake *fake, const char *prefix)
{
    return fake_count_on(fake, SIZE_MAX, prefix);
}

size_t
fake_connection_of(struct fake *fake, const char *prefix)
{
    size_t index = SIZE_MAX;

    pthread_mutex_lock(&fake->lock);
    for (size_t i = 0; i < fake->command_count && index == SIZE_MAX; i++) {
        if (strncmp(fake->commands[i].line, prefix, strlen(prefix)) == 0) {
            index = fake->commands[i].connection;
        }
    }
    pthread_mutex_unlock(&fake->lock);
    return index;
}

char *
fake_received(struct fake *fake, size_t index, size_t *len)
{
    char *copy = NULL;

    *len = 0;
    pthread_mutex_lock(&fake->lock);
    if (index < fake->accepted) {
        const struct fake_bytes *received = &fake->connections[index]->received;
        copy = calloc(1, received->len + 1);
        assert(copy != NULL);
        if (received->len > 0) {
            memcpy(copy, received->ptr, received->len);
        }
        *len = received->len;
    }
    pthread_mutex_unlock(&fake->lock);
    return copy;
}

size_t
fake_reads_since(struct fake *fake, size_t index, size_t offset)
{
    size_t n = 0;

    pthread_mutex_lock(&fake->lock);
    for (size_t i = 0; index < fake->accepted && i < fake->connections[index]->read_count; i++) {
        n += fake->connections[index]->reads[i] >= offset;
    }
    pthread_mutex_unlock(&fake->lock);
    return n;
}

const char *
fake_surprise(struct fake *fake)
{
    const char *text;

    pthread_mutex_lock(&fake->lock);
    text = fake->surprise[0] != '\0' ? fake->surprise : NULL;
    pthread_mutex_unlock(&fake->lock);
    return text;
}
