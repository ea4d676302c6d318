/* SPDX-License-Identifier: BSD-2-Clause */
/* json_out.c: see json_out.h. */
#include "json_out.h"

#include <stdio.h>
#include <string.h>

/* Room for LEN more bytes, and a place to write them to. NULL: no memory. */
static char *
room(struct buffer **out, size_t len)
{
    struct buffer *b = *out;
    size_t need = b->len + len;

    if (need > b->cap && buffer_reserve(out, need > 2 * b->cap ? need : 2 * b->cap) < 0) {
        return NULL;
    }
    return (*out)->data + (*out)->len;
}

bool
json_out_raw(struct buffer **out, struct slice text)
{
    char *at = room(out, text.len);

    if (at == NULL) {
        return false;
    }
    if (text.len > 0) {
        memcpy(at, text.ptr, text.len);
    }
    (*out)->len += text.len;
    return true;
}

/* What stands behind the backslash for byte C: 'u' with four digits, or itself; 0: C needs none. */
static char
escape_of(unsigned char c)
{
    if (c >= 0x20 && c != '"' && c != '\\') {
        return 0;
    }
    switch (c) {
    case '"':
    case '\\':
        return (char)c;
    case '\n':
        return 'n';
    case '\r':
        return 'r';
    case '\t':
        return 't';
    default:
        return 'u';
    }
}

/* Bytes of TEXT as a string, with its quotes. */
static size_t
string_len(struct slice text)
{
    size_t len = text.len + 2;

    for (size_t i = 0; i < text.len; i++) {
        char escape = escape_of((unsigned char)text.ptr[i]);
        len += escape == 0 ? 0 : escape == 'u' ? 5 : 1;
    }
    return len;
}

/* Writes TEXT to AT, what needs it escaped, and returns the end. */
static char *
write_escaped(char *at, struct slice text)
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        char escape = escape_of(c);
        if (escape == 0) {
            *at++ = (char)c;
            continue;
        }
        *at++ = '\\';
        *at++ = escape;
        if (escape == 'u') {
            *at++ = '0';
            *at++ = '0';
            *at++ = digits[c >> 4];
            *at++ = digits[c & 15];
        }
    }
    return at;
}

/*
 * Asks for its room once, and writes byte for byte only where something is to be escaped: a value of
 * nothing but control characters must not hold up the worker.
 */
bool
json_out_string(struct buffer **out, struct slice text)
{
    size_t len = string_len(text);
    char *at = room(out, len);

    if (at == NULL) {
        return false;
    }
    *at++ = '"';
    if (len > text.len + 2) {
        at = write_escaped(at, text);
    } else if (text.len > 0) {
        memcpy(at, text.ptr, text.len);
        at += text.len;
    }
    *at = '"';
    (*out)->len += len;
    return true;
}

bool
json_out_base64(struct buffer **out, struct slice bytes)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *in = (const unsigned char *)bytes.ptr;
    size_t len = (bytes.len + 2) / 3 * 4 + 2;
    char *at = room(out, len);

    if (at == NULL) {
        return false;
    }
    *at++ = '"';
    for (size_t i = 0; i < bytes.len; i += 3) {
        size_t left = bytes.len - i;
        uint32_t three = (uint32_t)in[i] << 16 | (left > 1 ? (uint32_t)in[i + 1] << 8 : 0) |
                         (left > 2 ? in[i + 2] : 0);
        *at++ = digits[three >> 18];
        *at++ = digits[three >> 12 & 63];
        *at++ = left > 1 ? digits[three >> 6 & 63] : '=';
        *at++ = left > 2 ? digits[three & 63] : '=';
    }
    *at = '"';
    (*out)->len += len;
    return true;
}

bool
json_out_number(struct buffer **out, uint64_t number)
{
    char text[24];

    snprintf(text, sizeof(text), "%llu", (unsigned long long)number);
    return json_out_raw(out, slice_from_string(text));
}

/* Bytes of the character at TEXT[0], of which LEFT are there; 0: it is none. */
static size_t
utf8_len(const unsigned char *text, size_t left)
{
    /* The second byte is what rules out overlong forms, surrogates and what is too large. */
    unsigned char c = text[0], low = 0x80, high = 0xbf;
    size_t len = c < 0x80 ? 1 : c < 0xc2 ? 0 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : c < 0xf5 ? 4 : 0;

    if (len == 0 || len > left) {
        return 0;
    }
    low = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : low;
    high = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : high;
    for (size_t i = 1; i < len; i++) {
        if (text[i] < low || text[i] > high) {
            return 0;
        }
        low = 0x80;
        high = 0xbf;
    }
    return len;
}

bool
json_out_is_utf8(struct slice text)
{
    const unsigned char *at = (const unsigned char *)text.ptr;

    for (size_t i = 0, len; i < text.len; i += len) {
        len = utf8_len(at + i, text.len - i);
        if (len == 0) {
            return false;
        }
    }
    return true;
}
