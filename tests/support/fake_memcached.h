/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fake_memcached.h: a memcached inside the test process that does as it is told.
 *
 * It listens on a free port of loopback and runs in a thread of its own. A connection either
 * behaves (a small memcached with the text and meta protocols, see fake_speak.h) or plays a script,
 * step by step, and behaves after the last one. What arrives is recorded, whatever the connection
 * does. All functions here are for the test's thread; none of them waits for the client.
 */
#ifndef KVGATE_TESTS_FAKE_MEMCACHED_H
#define KVGATE_TESTS_FAKE_MEMCACHED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fake_speak.h"

struct fake;

enum fake_step_kind {
    FAKE_STEP_EXPECT,      /* these bytes must come next */
    FAKE_STEP_LINE,        /* a line, whatever it says */
    FAKE_STEP_TAKE,        /* NUMBER bytes, whatever they are */
    FAKE_STEP_SEND,        /* at once, in one piece */
    FAKE_STEP_PIECES,      /* NUMBER bytes at a time, a moment apart */
    FAKE_STEP_DRIP,        /* one byte every NUMBER milliseconds */
    FAKE_STEP_HOLD,        /* neither read nor write until fake_release */
    FAKE_STEP_SILENT,      /* read, say nothing, until the client closes */
    FAKE_STEP_CLOSE,       /* close */
    FAKE_STEP_RESET,       /* close with a reset */
    FAKE_STEP_CLOSE_AFTER, /* close once NUMBER bytes have been read in this step */
    FAKE_STEP_BEHAVE,      /* a memcached from here on */
    FAKE_STEP_BEHAVE_FOR,  /* a memcached until NUMBER bytes of answers have left; then close */
};

/*
 * One step. In the bytes of a step made by a macro below, "%O" is the opaque of the command that
 * came last ("O" and its number), so that a reply of the meta protocol can be written down.
 */
struct fake_step {
    enum fake_step_kind kind;
    const char *bytes; /* EXPECT SEND PIECES DRIP (ref) */
    size_t len;        /* of bytes */
    size_t number;     /* see the kinds */
    bool raw;          /* "%O" stays what it is */
};

#define FAKE_EXPECT(text)                                                                          \
    {                                                                                              \
        .kind = FAKE_STEP_EXPECT, .bytes = (text), .len = sizeof(text) - 1                         \
    }
#define FAKE_LINE                                                                                  \
    {                                                                                              \
        .kind = FAKE_STEP_LINE                                                                     \
    }
#define FAKE_TAKE(count)                                                                           \
    {                                                                                              \
        .kind = FAKE_STEP_TAKE, .number = (count)                                                  \
    }
#define FAKE_SEND(text)                                                                            \
    {                                                                                              \
        .kind = FAKE_STEP_SEND, .bytes = (text), .len = sizeof(text) - 1                           \
    }
#define FAKE_SEND_RAW(start, count)                                                                \
    {                                                                                              \
        .kind = FAKE_STEP_SEND, .bytes = (start), .len = (count), .raw = true                      \
    }
#define FAKE_PIECES(text, count)                                                                   \
    {                                                                                              \
        .kind = FAKE_STEP_PIECES, .bytes = (text), .len = sizeof(text) - 1, .number = (count)      \
    }
#define FAKE_DRIP(text, ms)                                                                        \
    {                                                                                              \
        .kind = FAKE_STEP_DRIP, .bytes = (text), .len = sizeof(text) - 1, .number = (ms)           \
    }
#define FAKE_HOLD                                                                                  \
    {                                                                                              \
        .kind = FAKE_STEP_HOLD                                                                     \
    }
#define FAKE_SILENT                                                                                \
    {                                                                                              \
        .kind = FAKE_STEP_SILENT                                                                   \
    }
#define FAKE_CLOSE                                                                                 \
    {                                                                                              \
        .kind = FAKE_STEP_CLOSE                                                                    \
    }
#define FAKE_RESET                                                                                 \
    {                                                                                              \
        .kind = FAKE_STEP_RESET                                                                    \
    }
#define FAKE_CLOSE_AFTER(count)                                                                    \
    {                                                                                              \
        .kind = FAKE_STEP_CLOSE_AFTER, .number = (count)                                           \
    }
#define FAKE_BEHAVE                                                                                \
    {                                                                                              \
        .kind = FAKE_STEP_BEHAVE                                                                   \
    }

#define FAKE_BEHAVE_FOR(count)                                                                     \
    {                                                                                              \
        .kind = FAKE_STEP_BEHAVE_FOR, .number = (count)                                            \
    }

/* Listening, with an empty table; LACKS is what this dialect goes without (FAKE_LACKS_...). */
struct fake *fake_create(unsigned lacks);

/* Everything closed, the thread gone. NULL is allowed. */
void fake_destroy(struct fake *fake);

uint16_t fake_port(const struct fake *fake);

/*
 * The next connection to be accepted that has no script yet plays STEPS (copied; the bytes are
 * not). `version` is answered out of turn where a script expects another line, so that a handshake
 * needs no steps; a script that expects it, or is silent, has it.
 */
void fake_script(struct fake *fake, const struct fake_step *steps, size_t count);

/* Every connection for which fake_script left nothing plays STEPS; COUNT 0: they behave again. */
void fake_script_every(struct fake *fake, const struct fake_step *steps, size_t count);

#define FAKE_SCRIPT(fake, steps) fake_script(fake, steps, sizeof(steps) / sizeof((steps)[0]))
#define FAKE_SCRIPT_EVERY(fake, steps)                                                             \
    fake_script_every(fake, steps, sizeof(steps) / sizeof((steps)[0]))

/* Puts an item into the table, as a client other than the one under test would. */
void fake_put(struct fake *fake, struct slice key, struct slice value, uint32_t flags);

/* Connections in a HOLD step go on to the next; those that come to one later wait again. */
void fake_release(struct fake *fake);

/* As if the process was killed: nobody listens, all connections are closed. The table stays. */
void fake_stop(struct fake *fake);

/* Listens again, on the same port. */
void fake_start(struct fake *fake);

/* Closes all connections; goes on listening. */
void fake_drop(struct fake *fake);

/* ---- what was seen ---- */

/* Connections accepted so far; those open now. */
size_t fake_accepted(struct fake *fake);
size_t fake_open(struct fake *fake);

/* True while connection INDEX (in order of acceptance) has not been closed by either side. */
bool fake_is_open(struct fake *fake, size_t index);

/* Connections that wait in a HOLD step; scripts that were played to the end. */
size_t fake_holding(struct fake *fake);
size_t fake_played(struct fake *fake);

/* Commands received whose line begins with PREFIX, on all connections; on connection INDEX. */
size_t fake_count(struct fake *fake, const char *prefix);
size_t fake_count_on(struct fake *fake, size_t index, const char *prefix);

/* The connection on which the first command beginning with PREFIX came; SIZE_MAX: none did. */
size_t fake_connection_of(struct fake *fake, const char *prefix);

/* The bytes that came on connection INDEX, with a NUL behind. The caller frees. NULL: none. */
char *fake_received(struct fake *fake, size_t index, size_t *len);

/* How many reads brought the bytes from OFFSET on, of connection INDEX. */
size_t fake_reads_since(struct fake *fake, size_t index, size_t offset);

/* What a script expected and did not get; NULL when all went as written. */
const char *fake_surprise(struct fake *fake);

#endif
