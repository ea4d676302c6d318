/* SPDX-License-Identifier: BSD-2-Clause */
/* http_head.c: picks the few header fields that decide something out of all that came. Judges nothing. */
#include "http_head.h"

#include <string.h>

#include "slice.h"

/*
 * Whether the header was folded over two lines, which RFC 9112, section 5.2, lets us refuse. libmicrohttpd
 * glues the second line to the header's *name*: a folded Content-Length would be hidden, and its body run
 * as the next request. Of a header that came in one line, the value stands behind name, colon and blanks.
 */
static bool
is_folded(struct slice name, const char *value)
{
    const char *expected = name.ptr + name.len + 1;

    if (value == NULL) {
        return false;
    }
    while (expected < value && (*expected == ' ' || *expected == '\t')) {
        expected++;
    }
    return expected != value;
}

/* Whether a NUL cuts the value of a header that frames the request: behind one that came whole, CRLF has
   become two NULs. A line that ends in a bare LF is taken for cut, too. */
static bool
is_cut(struct slice text)
{
    return text.ptr[text.len + 1] != '\0';
}

/* A field of one value. Twice is none that could be understood: whoever reads it finds it malformed. */
static void
keep(struct slice key, struct slice name, struct slice text, struct slice *field)
{
    if (slice_equal_nocase(key, name)) {
        *field = field->ptr == NULL ? text : SLICE("?");
    }
}

/* Of several Cache-Control lines, the one that says something about age. */
static void
keep_cache_control(struct slice key, struct slice text, struct request_head *head)
{
    if (slice_equal_nocase(key, SLICE("Cache-Control")) &&
        (head->cache_control.ptr == NULL || strcasestr(text.ptr, "max-age") != NULL)) {
        head->cache_control = text;
    }
}

/* One header: the few that decide something. */
static enum MHD_Result
on_header(void *cls, enum MHD_ValueKind kind, const char *name, size_t name_len, const char *value,
          size_t value_len)
{
    struct request_head *head = cls;
    struct slice key = slice_of(name, name_len);
    struct slice text = slice_of(value == NULL ? "\0" : value, value_len);

    (void)kind;
    if (name_len == 0 || name[name_len - 1] == ' ' || name[name_len - 1] == '\t' ||
        is_folded(key, value)) {
        head->bad_header = true;
        return MHD_YES;
    }
    switch (name_len) {
    case sizeof("Host") - 1:
        head->hosts += slice_equal_nocase(key, SLICE("Host"));
        break;
    case sizeof("Expect") - 1:
        if (slice_equal_nocase(key, SLICE("Expect"))) {
            head->expect = text;
        }
        break;
    case sizeof("Range") - 1:
        keep(key, SLICE("Range"), text, &head->range);
        break;
    case sizeof("If-Match") - 1: /* and of If-Range */
        keep(key, SLICE("If-Match"), text, &head->if_match);
        keep(key, SLICE("If-Range"), text, &head->if_range);
        break;
    case sizeof("Content-Type") - 1:
        keep(key, SLICE("Content-Type"), text, &head->content_type);
        break;
    case sizeof("If-None-Match") - 1: /* and of Cache-Control, Content-Range */
        head->partial |= slice_equal_nocase(key, SLICE("Content-Range"));
        keep(key, SLICE("If-None-Match"), text, &head->if_none_match);
        keep_cache_control(key, text, head);
        break;
    case sizeof("Content-Length") - 1:
        if (slice_equal_nocase(key, SLICE("Content-Length"))) {
            head->lengths++;
            head->bad_header |= is_cut(text);
            head->bad_length |= !slice_to_u64(text, &head->content_length);
        }
        break;
    case sizeof("Transfer-Encoding") - 1:
        if (slice_equal_nocase(key, SLICE("Transfer-Encoding"))) {
            head->transfers++;
            head->bad_header |= is_cut(text);
            head->chunked = slice_equal_nocase(text, SLICE("chunked"));
            head->bad_transfer |= !head->chunked;
        }
        break;
    default:
        break;
    }
    return MHD_YES;
}

void
http_head_read(struct MHD_Connection *mhd, struct request_head *head)
{
    MHD_get_connection_values_n(mhd, MHD_HEADER_KIND, on_header, head);
}
