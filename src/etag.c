/* SPDX-License-Identifier: BSD-2-Clause */
/* etag.c: see etag.h. */
#include "etag.h"

struct tag {
    struct slice opaque; /* (ref) between the quotes */
    bool weak;
};

/* What goes between the quotes: "etagc". */
static bool
is_etagc(unsigned char c)
{
    return c == 0x21 || (c >= 0x23 && c != 0x7f);
}

static struct slice
skip(struct slice s, size_t n)
{
    return slice_of(s.ptr + n, s.len - n);
}

/* Takes a tag off the front of *TEXT. False: there is none. */
static bool
take_tag(struct slice *text, struct tag *tag)
{
    size_t len = 1;

    tag->weak = slice_starts_with(*text, SLICE("W/"));
    if (tag->weak) {
        *text = skip(*text, 2);
    }
    if (text->len < 2 || text->ptr[0] != '"') {
        return false;
    }
    while (len < text->len && is_etagc((unsigned char)text->ptr[len])) {
        len++;
    }
    if (len == text->len || text->ptr[len] != '"') {
        return false;
    }
    tag->opaque = slice_of(text->ptr + 1, len - 1);
    *text = skip(*text, len + 1);
    return true;
}

/* Leading zeros would make two names of one value. */
static bool
is_ours(const struct tag *tag, uint64_t *cas)
{
    return tag->opaque.len > 0 && tag->opaque.ptr[0] != '0' && slice_to_u64(tag->opaque, cas);
}

/*
 * Takes the next tag of the list *TEXT (RFC 9110, section 5.6.1: elements may be empty). False: the
 * list has ended, or *MALFORMED is set.
 */
static bool
next_tag(struct slice *text, struct tag *tag, bool *malformed)
{
    while (text->len > 0 && (text->ptr[0] == ',' || text->ptr[0] == ' ' || text->ptr[0] == '\t')) {
        *text = skip(*text, 1);
    }
    if (text->len == 0) {
        return false;
    }
    if (!take_tag(text, tag)) {
        *malformed = true;
        return false;
    }
    *text = slice_trim(*text);
    *malformed = text->len > 0 && text->ptr[0] != ',';
    return !*malformed;
}

enum etag_match
etag_list_has(struct slice list, uint64_t cas, bool weak)
{
    struct slice text = slice_trim(list);
    bool found = false, malformed = false;
    size_t count = 0;
    struct tag tag;
    uint64_t value;

    if (slice_equal(text, SLICE("*"))) {
        return ETAG_YES;
    }
    while (next_tag(&text, &tag, &malformed)) {
        count++;
        found |= (weak || !tag.weak) && cas != 0 && is_ours(&tag, &value) && value == cas;
    }
    if (malformed || count == 0) {
        return ETAG_MALFORMED;
    }
    return found ? ETAG_YES : ETAG_NO;
}

enum etag_single
etag_single(struct slice text, uint64_t *cas)
{
    bool malformed = false;
    struct tag tag, other;

    text = slice_trim(text);
    if (slice_equal(text, SLICE("*"))) {
        return ETAG_SINGLE_ANY;
    }
    if (!next_tag(&text, &tag, &malformed)) {
        return ETAG_SINGLE_MALFORMED;
    }
    if (next_tag(&text, &other, &malformed)) {
        while (next_tag(&text, &other, &malformed)) {
        }
        return malformed ? ETAG_SINGLE_MALFORMED : ETAG_SINGLE_LIST;
    }
    if (malformed) {
        return ETAG_SINGLE_MALFORMED;
    }
    return !tag.weak && is_ours(&tag, cas) ? ETAG_SINGLE_CAS : ETAG_SINGLE_NEVER;
}

bool
etag_parse_one(struct slice text, uint64_t *cas)
{
    return etag_single(text, cas) == ETAG_SINGLE_CAS;
}

size_t
etag_print(uint64_t cas, char out[ETAG_TEXT_MAX])
{
    char digits[ETAG_TEXT_MAX];
    size_t count = 0, len = 0;

    do {
        digits[count++] = (char)('0' + cas % 10);
        cas /= 10;
    } while (cas != 0);
    out[len++] = '"';
    while (count > 0) {
        out[len++] = digits[--count];
    }
    out[len++] = '"';
    out[len] = '\0';
    return len;
}
