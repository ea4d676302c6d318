/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fake_speak.h: the part of the fake that behaves: a table, and the text and meta protocols on it.
 *
 * It answers as memcached 1.6.18 does, byte for byte, for every command that kvgate may send; what
 * kvgate never sends (noreply, binary, stats) it does not know. No I/O.
 */
#ifndef KVGATE_TESTS_FAKE_SPEAK_H
#define KVGATE_TESTS_FAKE_SPEAK_H

#include <stdbool.h>
#include <stddef.h>

#include "fake_table.h"

/* What a dialect goes without; the answer is ERROR. */
#define FAKE_LACKS_META  1u /* and it calls itself 1.4.39 */
#define FAKE_LACKS_GETS  2u /* no cas either */
#define FAKE_LACKS_TOUCH 4u

/* The bytes of the data block, with its CRLF, that follow the command LINE (without CRLF). */
size_t fake_data_len(const char *line, size_t len, unsigned lacks);

/*
 * Carries out the first command of IN and adds the answer to OUT. Returns the bytes used up; 0:
 * not all of it is there.
 */
size_t fake_speak(struct fake_table *table, const char *in, size_t len, struct fake_bytes *out);

#endif
