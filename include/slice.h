/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * slice.h: a borrowed run of bytes, and the few questions that everybody asks of one.
 *
 * A slice owns nothing: whoever hands one out says how long the bytes stay. The bytes are not
 * terminated by a NUL and may contain some. All of it is inline; no function allocates.
 */
#ifndef KVGATE_SLICE_H
#define KVGATE_SLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct slice {
    const char *ptr; /* first byte (ref); may be NULL when len is 0 */
    size_t len;      /* bytes */
};

/* The slice of a string literal, for code and for initialisers. */
#define SLICE_LITERAL(text)                                                                        \
    {                                                                                              \
        (text), sizeof(text) - 1                                                                   \
    }
#define SLICE(text) ((struct slice)SLICE_LITERAL(text))

static inline struct slice
slice_of(const char *ptr, size_t len)
{
    struct slice s = { ptr, len };
    return s;
}

/* TEXT may be NULL: then the slice is empty. */
static inline struct slice
slice_from_string(const char *text)
{
    return slice_of(text, text == NULL ? 0 : strlen(text));
}

static inline bool
slice_equal(struct slice a, struct slice b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

static inline bool
slice_starts_with(struct slice s, struct slice prefix)
{
    return s.len >= prefix.len && (prefix.len == 0 || memcmp(s.ptr, prefix.ptr, prefix.len) == 0);
}

/* Equal but for the case of ASCII letters; the locale plays no part. */
static inline bool
slice_equal_nocase(struct slice a, struct slice b)
{
    if (a.len != b.len) {
        return false;
    }
    for (size_t i = 0; i < a.len; i++) {
        unsigned char x = (unsigned char)a.ptr[i], y = (unsigned char)b.ptr[i];
        if (x >= 'A' && x <= 'Z') {
            x = (unsigned char)(x | 0x20);
        }
        if (y >= 'A' && y <= 'Z') {
            y = (unsigned char)(y | 0x20);
        }
        if (x != y) {
            return false;
        }
    }
    return true;
}

/* S without the blanks and tabs at both ends. */
static inline struct slice
slice_trim(struct slice s)
{
    while (s.len > 0 && (s.ptr[0] == ' ' || s.ptr[0] == '\t')) {
        s = slice_of(s.ptr + 1, s.len - 1);
    }
    while (s.len > 0 && (s.ptr[s.len - 1] == ' ' || s.ptr[s.len - 1] == '\t')) {
        s.len--;
    }
    return s;
}

/* S without the quotes around it, if there are any. */
static inline struct slice
slice_unquote(struct slice s)
{
    bool quoted = s.len >= 2 && s.ptr[0] == '"' && s.ptr[s.len - 1] == '"';

    return quoted ? slice_of(s.ptr + 1, s.len - 2) : s;
}

/*
 * The whole of S as an unsigned decimal number: digits only (no sign, no space, no empty text).
 * False, with *NUMBER untouched, for anything else and for more than 2^64-1.
 */
static inline bool
slice_to_u64(struct slice s, uint64_t *number)
{
    uint64_t n = 0;

    if (s.len == 0 || s.len > 20) {
        return false;
    }
    for (size_t i = 0; i < s.len; i++) {
        unsigned digit = (unsigned)(unsigned char)s.ptr[i] - '0';
        if (digit > 9 || n > (UINT64_MAX - digit) / 10) {
            return false;
        }
        n = n * 10 + digit;
    }
    *number = n;
    return true;
}

#endif
