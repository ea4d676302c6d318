/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * json_out.h: writes JSON (RFC 8259) at the end of a buffer, which grows as it has to and may move; its
 * only holder is the caller. Each function returns false when there is no memory.
 */
#ifndef KVGATE_JSON_OUT_H
#define KVGATE_JSON_OUT_H

#include <stdbool.h>
#include <stdint.h>

#include "buffer.h"
#include "slice.h"

/* TEXT as it stands: brackets, commas, names. */
bool json_out_raw(struct buffer **out, struct slice text);

/* TEXT, which is UTF-8, as a string in quotes. */
bool json_out_string(struct buffer **out, struct slice text);

/* BYTES in base64 with padding (RFC 4648, section 4), in quotes. */
bool json_out_base64(struct buffer **out, struct slice bytes);

bool json_out_number(struct buffer **out, uint64_t number);

/* Whether TEXT is UTF-8 (RFC 3629): no overlong forms, no surrogates, nothing over U+10FFFF. */
bool json_out_is_utf8(struct slice text);

#endif
