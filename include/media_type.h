/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * media_type.h: media types as flags of an item, for routes with `content_type = stored`.
 *
 * A type is kept as 0x40000000 | number << 22: bits 0 to 21, which all clients of memcached use for
 * something of their own, stay 0, and so do bits 29 and 31. Its number is for ever: items outlive
 * this program.
 */
#ifndef KVGATE_MEDIA_TYPE_H
#define KVGATE_MEDIA_TYPE_H

#include <stdint.h>

#include "slice.h"

/* The flags of TYPE, whatever its case and its blanks around ";". 0: it is not in the table. */
uint32_t media_type_to_flags(struct slice type);

/* The type that FLAGS stand for, a constant. NULL: none of ours. */
const char *media_type_from_flags(uint32_t flags);

#endif
