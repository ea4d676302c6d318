/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fake_script.c: what a connection of the fake does: its script, step by step, or, behind the end
 * of it, what a memcached would.
 */
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "fake_priv.h"

#define PIECE_GAP_MS 1

static void
be_surprised(struct fake *fake, const struct fake_connection *c, const struct fake_step *step)
{
    if (fake->surprise[0] == '\0') {
        snprintf(fake->surprise, sizeof(fake->surprise),
                 "step %zu: expected \"%.*s\", got \"%.*s\"", c->step,
                 (int)(step->len < 200 ? step->len : 200), step->bytes,
                 (int)(c->in.len < 200 ? c->in.len : 200), c->in.ptr);
    }
}

/* The handshake, where the script is about something else. */
static void
answer_version(struct fake *fake, struct fake_connection *c, const struct fake_step *step)
{
    static const char command[] = "version\r\n";

    if (c->in.len >= sizeof(command) - 1 && memcmp(c->in.ptr, command, sizeof(command) - 1) == 0 &&
        (step->kind != FAKE_STEP_EXPECT || step->len < sizeof(command) - 1 ||
         memcmp(step->bytes, command, sizeof(command) - 1) != 0)) {
        fake_bytes_drop(&c->in, fake_speak(fake->table, c->in.ptr, c->in.len, &c->out));
    }
}

/* True: what the step waits for has come, and is taken off the input. */
static bool
take_step(struct fake *fake, struct fake_connection *c, const struct fake_step *step)
{
    const char *end;
    size_t n;

    if (step->kind == FAKE_STEP_TAKE && step->number == 0) {
        return true;
    }
    answer_version(fake, c, step);
    if (c->in.len == 0) {
        return false;
    }
    switch (step->kind) {
    case FAKE_STEP_EXPECT:
        n = c->in.len < step->len ? c->in.len : step->len;
        if (memcmp(c->in.ptr, step->bytes, n) != 0) {
            be_surprised(fake, c, step);
            fake_close(c, false);
            return false;
        }
        if (n < step->len) {
            return false;
        }
        fake_bytes_drop(&c->in, n);
        return true;
    case FAKE_STEP_LINE:
        end = memchr(c->in.ptr, '\n', c->in.len);
        if (end == NULL) {
            return false;
        }
        fake_bytes_drop(&c->in, (size_t)(end - c->in.ptr) + 1);
        return true;
    default:
        if (c->in.len < step->number) {
            return false;
        }
        fake_bytes_drop(&c->in, step->number);
        return true;
    }
}

/* Adds LEN bytes of STEP from OFFSET on to the output, with the opaque put in. */
static void
add_output(struct fake_connection *c, const struct fake_step *step, size_t offset, size_t len)
{
    for (size_t i = offset; i < offset + len; i++) {
        bool mark =
            !step->raw && step->bytes[i] == '%' && i + 1 < step->len && step->bytes[i + 1] == 'O';
        if (mark) {
            fake_bytes_add(&c->out, c->opaque, strlen(c->opaque));
            i++;
        } else {
            fake_bytes_add(&c->out, step->bytes + i, 1);
        }
    }
}

/* True: the whole of the step has been sent. A piece may end one byte late, behind a mark. */
static bool
send_step(struct fake_connection *c, const struct fake_step *step)
{
    size_t size = step->kind == FAKE_STEP_DRIP ? 1 : step->number;
    size_t gap = step->kind == FAKE_STEP_DRIP ? step->number : PIECE_GAP_MS;
    size_t left = step->len - c->step_done;

    if (step->kind == FAKE_STEP_SEND) {
        if (step->raw) {
            fake_bytes_add(&c->out, step->bytes, step->len);
        } else {
            add_output(c, step, 0, step->len);
        }
        return true;
    }
    if (clock_monotonic_ms() < c->due_ms || c->out.len > 0) {
        return false;
    }
    size = size < left ? size : left;
    if (step->bytes[c->step_done + size - 1] == '%' && size < left) {
        size++;
    }
    add_output(c, step, c->step_done, size);
    c->step_done += size;
    c->due_ms = clock_monotonic_ms() + (int64_t)gap;
    return c->step_done == step->len;
}

static void
behave(struct fake *fake, struct fake_connection *c)
{
    size_t used = 0, n;

    while (used < c->in.len) {
        n = fake_speak(fake->table, c->in.ptr + used, c->in.len - used, &c->out);
        if (n == 0) {
            break;
        }
        used += n;
    }
    fake_bytes_drop(&c->in, used);
}

/* True: as many bytes of answers as there should be have left, and the connection is closed. */
static bool
behave_for(struct fake *fake, struct fake_connection *c, const struct fake_step *step)
{
    size_t before = c->out.len;

    behave(fake, c);
    if (c->step_done + c->out.len - before < step->number) {
        c->step_done += c->out.len - before;
        return false;
    }
    c->out.len = before + step->number - c->step_done;
    fake_send_some(c);
    fake_close(c, false);
    return true;
}

/* Plays C's step. True: it is over, the next one may begin. */
static bool
play_step(struct fake *fake, struct fake_connection *c, const struct fake_step *step)
{
    switch (step->kind) {
    case FAKE_STEP_EXPECT:
    case FAKE_STEP_LINE:
    case FAKE_STEP_TAKE:
        return take_step(fake, c, step);
    case FAKE_STEP_SEND:
    case FAKE_STEP_PIECES:
    case FAKE_STEP_DRIP:
        return send_step(c, step);
    case FAKE_STEP_HOLD:
        c->holding = true;
        return false;
    case FAKE_STEP_SILENT:
        return false;
    case FAKE_STEP_CLOSE:
    case FAKE_STEP_RESET:
        if (c->out.len > 0) {
            return false;
        }
        fake_close(c, step->kind == FAKE_STEP_RESET);
        return true;
    case FAKE_STEP_CLOSE_AFTER:
        if (c->in.len >= step->number) {
            fake_close(c, false);
            return true;
        }
        return false;
    case FAKE_STEP_BEHAVE_FOR:
        return behave_for(fake, c, step);
    default:
        c->step = c->script.count - 1;
        return true;
    }
}

void
fake_next_step(struct fake *fake, struct fake_connection *c)
{
    c->step++;
    c->step_done = 0;
    c->due_ms = 0;
    fake->played += c->step == c->script.count;
}

void
fake_play(struct fake *fake, struct fake_connection *c)
{
    while (c->fd >= 0 && c->step < c->script.count &&
           play_step(fake, c, &c->script.steps[c->step])) {
        fake_send_some(c);
        fake_next_step(fake, c);
    }
    if (c->fd >= 0 && c->step == c->script.count) {
        behave(fake, c);
    }
    fake_send_some(c);
    if (c->fd >= 0 && c->client_gone && !c->holding) {
        if (c->step < c->script.count && c->script.steps[c->step].kind == FAKE_STEP_SILENT) {
            fake_next_step(fake, c);
        }
        fake_close(c, false);
    }
}
