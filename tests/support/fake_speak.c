/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fake_speak.c: a small memcached without sockets. What one protocol stores, the other reads.
 *
 *   fake_speak -> split the line -> text_*, or meta_*  -> the table (find, put, change, count)
 */
#include "fake_speak.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "slice.h"

#define TOKENS_MAX 32

/* A command line, split at its spaces. */
struct words {
    struct slice at[TOKENS_MAX]; /* (ref) into the line */
    size_t count;
};

/* ---- words ---- */

static void
split(const char *line, size_t len, struct words *words)
{
    size_t i = 0;

    words->count = 0;
    while (i < len && words->count < TOKENS_MAX) {
        size_t start = i;
        while (i < len && line[i] != ' ') {
            i++;
        }
        if (i > start) {
            words->at[words->count++] = slice_of(line + start, i - start);
        }
        i++;
    }
}

static bool
word_is(const struct words *words, size_t i, const char *text)
{
    return i < words->count && slice_equal(words->at[i], slice_from_string(text));
}

/* A decimal number, perhaps with a sign; false for anything else. */
static bool
number_of(struct slice word, int64_t *number)
{
    uint64_t n;
    bool minus = word.len > 0 && word.ptr[0] == '-';

    if (minus) {
        word = slice_of(word.ptr + 1, word.len - 1);
    }
    if (!slice_to_u64(word, &n) || n > INT64_MAX) {
        return false;
    }
    *number = minus ? -(int64_t)n : (int64_t)n;
    return true;
}

/* The value of the meta flag LETTER from word FROM on: what stands behind the letter. */
static bool
flag_of(const struct words *words, size_t from, char letter, struct slice *value)
{
    for (size_t i = from; i < words->count; i++) {
        if (words->at[i].ptr[0] == letter) {
            *value = slice_of(words->at[i].ptr + 1, words->at[i].len - 1);
            return true;
        }
    }
    return false;
}

static uint64_t
flag_number(const struct words *words, size_t from, char letter, uint64_t otherwise)
{
    struct slice value;
    uint64_t n;

    return flag_of(words, from, letter, &value) && slice_to_u64(value, &n) ? n : otherwise;
}

static int64_t
flag_exptime(const struct words *words, size_t from, char letter, int64_t otherwise)
{
    struct slice value;
    int64_t n;

    return flag_of(words, from, letter, &value) && number_of(value, &n) ? n : otherwise;
}

/* ---- the text protocol ---- */

static void
text_get(struct fake_table *table, const struct words *words, struct fake_bytes *out)
{
    bool with_cas = word_is(words, 0, "gets");

    for (size_t i = 1; i < words->count; i++) {
        struct fake_item *item = fake_table_find(table, words->at[i]);
        if (item == NULL) {
            continue;
        }
        fake_bytes_printf(out, "VALUE %.*s %" PRIu32 " %zu", (int)item->key_len, item->key,
                          item->flags, item->len);
        if (with_cas) {
            fake_bytes_printf(out, " %" PRIu64, item->cas);
        }
        fake_bytes_add(out, "\r\n", 2);
        fake_bytes_add(out, item->value, item->len);
        fake_bytes_add(out, "\r\n", 2);
    }
    fake_bytes_add(out, "END\r\n", 5);
}

static char
mode_of(const struct words *words)
{
    static const struct {
        const char *name;
        char mode;
    } modes[] = { { "set", 'S' },    { "add", 'E' },     { "replace", 'R' },
                  { "append", 'A' }, { "prepend", 'P' }, { "cas", 'S' } };

    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        if (word_is(words, 0, modes[i].name)) {
            return modes[i].mode;
        }
    }
    return '\0';
}

static const char *
outcome_line(enum fake_outcome outcome, bool meta)
{
    static const char *const text[] = { "STORED", "NOT_STORED", "EXISTS", "NOT_FOUND" };
    static const char *const short_text[] = { "HD", "NS", "EX", "NF" };

    switch (outcome) {
    case FAKE_TOO_LARGE:
        return "SERVER_ERROR object too large for cache";
    case FAKE_NOT_A_NUMBER:
        return "CLIENT_ERROR cannot increment or decrement non-numeric value";
    default:
        return meta ? short_text[outcome] : text[outcome];
    }
}

static void
text_store(struct fake_table *table, const struct words *words, struct slice data,
           struct fake_bytes *out)
{
    struct fake_write w = { .mode = mode_of(words), .key = words->at[1] };
    int64_t flags = 0;

    w.value = slice_of(data.ptr, data.len - 2);
    w.compare = word_is(words, 0, "cas");
    if (memcmp(data.ptr + data.len - 2, "\r\n", 2) != 0) {
        fake_bytes_printf(out, "CLIENT_ERROR bad data chunk\r\n");
        return;
    }
    if (!number_of(words->at[2], &flags) || !number_of(words->at[3], &w.exptime) ||
        (w.compare && !slice_to_u64(words->at[5], &w.cas))) {
        fake_bytes_printf(out, "CLIENT_ERROR bad command line format\r\n");
        return;
    }
    w.flags = (uint32_t)flags;
    fake_bytes_printf(out, "%s\r\n", outcome_line(fake_table_store(table, &w), false));
}

static void
text_count(struct fake_table *table, const struct words *words, struct fake_bytes *out)
{
    struct fake_item *item = fake_table_find(table, words->at[1]);
    enum fake_outcome outcome;
    uint64_t delta, result;

    if (!slice_to_u64(words->at[2], &delta)) {
        fake_bytes_printf(out, "CLIENT_ERROR invalid numeric delta argument\r\n");
        return;
    }
    if (item == NULL) {
        fake_bytes_printf(out, "NOT_FOUND\r\n");
        return;
    }
    outcome = fake_table_count(table, item, word_is(words, 0, "incr"), delta, &result);
    if (outcome == FAKE_STORED) {
        fake_bytes_printf(out, "%" PRIu64 "\r\n", result);
    } else {
        fake_bytes_printf(out, "%s\r\n", outcome_line(outcome, false));
    }
}

static void
text_touch(struct fake_table *table, const struct words *words, struct fake_bytes *out)
{
    struct fake_item *item = fake_table_find(table, words->at[1]);
    int64_t exptime;

    if (!number_of(words->at[2], &exptime)) {
        fake_bytes_printf(out, "CLIENT_ERROR invalid exptime argument\r\n");
        return;
    }
    if (item != NULL) {
        item->expires_ms = fake_expiry_ms(exptime);
    }
    fake_bytes_printf(out, item != NULL ? "TOUCHED\r\n" : "NOT_FOUND\r\n");
}

/* ---- the meta protocol ---- */

static void
meta_flag(char letter, const struct fake_item *item, struct fake_bytes *out)
{
    switch (letter) {
    case 'c':
        fake_bytes_printf(out, " c%" PRIu64, item->cas);
        break;
    case 's':
        fake_bytes_printf(out, " s%zu", item->len);
        break;
    case 'f':
        fake_bytes_printf(out, " f%" PRIu32, item->flags);
        break;
    case 't':
        fake_bytes_printf(out, " t%" PRId64, fake_ttl_left(item));
        break;
    default:
        break;
    }
}

/* The flags of a reply, in the order of the request. ITEM is NULL when there is none to tell of. */
static void
meta_flags(const struct words *words, size_t from, const struct fake_item *item,
           struct fake_bytes *out)
{
    for (size_t i = from; i < words->count; i++) {
        if (words->at[i].ptr[0] == 'O') {
            fake_bytes_printf(out, " %.*s", (int)words->at[i].len, words->at[i].ptr);
        } else if (item != NULL) {
            meta_flag(words->at[i].ptr[0], item, out);
        }
    }
    fake_bytes_add(out, "\r\n", 2);
}

static void
meta_get(struct fake_table *table, const struct words *words, struct fake_bytes *out)
{
    struct fake_item *item = fake_table_find(table, words->at[1]);
    struct slice none;
    bool with_value = flag_of(words, 2, 'v', &none);

    if (item == NULL) {
        fake_bytes_printf(out, "EN");
        meta_flags(words, 2, NULL, out);
        return;
    }
    if (flag_of(words, 2, 'T', &none)) {
        item->expires_ms = fake_expiry_ms(flag_exptime(words, 2, 'T', 0));
    }
    if (!with_value) {
        fake_bytes_printf(out, "HD");
        meta_flags(words, 2, item, out);
        return;
    }
    fake_bytes_printf(out, "VA %zu", item->len);
    meta_flags(words, 2, item, out);
    fake_bytes_add(out, item->value, item->len);
    fake_bytes_add(out, "\r\n", 2);
}

static void
meta_store(struct fake_table *table, const struct words *words, struct slice data,
           struct fake_bytes *out)
{
    struct fake_write w = { .mode = 'S', .key = words->at[1] };
    struct slice mode;
    struct fake_item told = { 0 };
    enum fake_outcome outcome;

    if (memcmp(data.ptr + data.len - 2, "\r\n", 2) != 0) {
        fake_bytes_printf(out, "CLIENT_ERROR bad data chunk\r\n");
        return;
    }
    if (flag_of(words, 3, 'M', &mode) && mode.len > 0) {
        w.mode = mode.ptr[0];
    }
    w.value = slice_of(data.ptr, data.len - 2);
    w.flags = (uint32_t)flag_number(words, 3, 'F', 0);
    w.exptime = flag_exptime(words, 3, 'T', 0);
    w.cas = flag_number(words, 3, 'C', 0);
    w.compare = w.cas != 0;
    outcome = fake_table_store(table, &w);
    told.cas = w.new_cas;
    fake_bytes_printf(out, "%s", outcome_line(outcome, true));
    if (outcome == FAKE_TOO_LARGE) {
        fake_bytes_add(out, "\r\n", 2);
    } else {
        meta_flags(words, 3, &told, out);
    }
}

static void
meta_delete(struct fake_table *table, const struct words *words, struct fake_bytes *out)
{
    struct fake_item *item = fake_table_find(table, words->at[1]);
    uint64_t cas = flag_number(words, 2, 'C', 0);
    enum fake_outcome outcome = FAKE_STORED;

    if (item == NULL) {
        outcome = FAKE_NOT_FOUND;
    } else if (cas != 0 && item->cas != cas) {
        outcome = FAKE_EXISTS;
    } else {
        fake_table_erase(table, words->at[1]);
    }
    fake_bytes_printf(out, "%s", outcome_line(outcome, true));
    meta_flags(words, 2, NULL, out);
}

static struct fake_item *
meta_create_counter(struct fake_table *table, const struct words *words, uint64_t *result)
{
    char text[24];
    struct fake_item *item;
    int len;

    *result = flag_number(words, 2, 'J', 0);
    len = snprintf(text, sizeof(text), "%" PRIu64, *result);
    item = fake_table_put(table, words->at[1], slice_of(text, (size_t)len));
    item->expires_ms = fake_expiry_ms(flag_exptime(words, 2, 'N', 0));
    return item;
}

static void
meta_count(struct fake_table *table, const struct words *words, struct fake_bytes *out)
{
    struct fake_item *item = fake_table_find(table, words->at[1]);
    struct slice word;
    bool up = !flag_of(words, 2, 'M', &word) || word.len == 0 || strchr("Dd-", word.ptr[0]) == NULL;
    uint64_t result = 0;
    char text[24];
    int len;

    if (item == NULL && flag_of(words, 2, 'N', &word)) {
        item = meta_create_counter(table, words, &result);
    } else if (item == NULL) {
        fake_bytes_printf(out, "NF");
        meta_flags(words, 2, NULL, out);
        return;
    } else if (fake_table_count(table, item, up, flag_number(words, 2, 'D', 1), &result) !=
               FAKE_STORED) {
        fake_bytes_printf(out, "%s\r\n", outcome_line(FAKE_NOT_A_NUMBER, true));
        return;
    }
    if (flag_of(words, 2, 'T', &word)) {
        item->expires_ms = fake_expiry_ms(flag_exptime(words, 2, 'T', 0));
    }
    if (!flag_of(words, 2, 'v', &word)) {
        fake_bytes_printf(out, "HD");
        meta_flags(words, 2, item, out);
        return;
    }
    len = snprintf(text, sizeof(text), "%" PRIu64, result);
    fake_bytes_printf(out, "VA %d", len);
    meta_flags(words, 2, item, out);
    fake_bytes_printf(out, "%s\r\n", text);
}

/* ---- commands ---- */

static bool
stores_text(const struct words *words, unsigned lacks)
{
    if (word_is(words, 0, "cas")) {
        return words->count >= 6 && (lacks & FAKE_LACKS_GETS) == 0;
    }
    return words->count >= 5 && mode_of(words) != '\0';
}

static bool
stores_meta(const struct words *words, unsigned lacks)
{
    return words->count >= 3 && word_is(words, 0, "ms") && (lacks & FAKE_LACKS_META) == 0;
}

size_t
fake_data_len(const char *line, size_t len, unsigned lacks)
{
    struct words words;
    uint64_t n = 0;
    size_t at;

    split(line, len, &words);
    if (!stores_text(&words, lacks) && !stores_meta(&words, lacks)) {
        return 0;
    }
    at = stores_meta(&words, lacks) ? 2 : 4;
    return slice_to_u64(words.at[at], &n) && n < SIZE_MAX - 2 ? (size_t)n + 2 : 0;
}

/* The commands that carry no key, or nothing that could be wrong. False: not one of them. */
static bool
speak_small(struct fake_table *table, const struct words *words, struct fake_bytes *out)
{
    if (word_is(words, 0, "version")) {
        fake_bytes_printf(out, "VERSION %s\r\n",
                          (table->lacks & FAKE_LACKS_META) != 0 ? "1.4.39" : "1.6.18");
    } else if (word_is(words, 0, "flush_all")) {
        fake_table_flush(table);
        fake_bytes_printf(out, "OK\r\n");
    } else {
        return false;
    }
    return true;
}

static bool
speak_text(struct fake_table *table, const struct words *words, struct slice data,
           struct fake_bytes *out)
{
    if (data.len > 0) {
        text_store(table, words, data, out);
    } else if (word_is(words, 0, "get") ||
               (word_is(words, 0, "gets") && (table->lacks & FAKE_LACKS_GETS) == 0)) {
        text_get(table, words, out);
    } else if ((word_is(words, 0, "incr") || word_is(words, 0, "decr")) && words->count == 3) {
        text_count(table, words, out);
    } else if (word_is(words, 0, "delete")) {
        fake_bytes_printf(out,
                          fake_table_erase(table, words->at[1]) ? "DELETED\r\n" : "NOT_FOUND\r\n");
    } else if (word_is(words, 0, "touch") && words->count == 3 &&
               (table->lacks & FAKE_LACKS_TOUCH) == 0) {
        text_touch(table, words, out);
    } else {
        return false;
    }
    return true;
}

static bool
speak_meta(struct fake_table *table, const struct words *words, struct slice data,
           struct fake_bytes *out)
{
    if ((table->lacks & FAKE_LACKS_META) != 0) {
        return false;
    }
    if (word_is(words, 0, "mg")) {
        meta_get(table, words, out);
    } else if (word_is(words, 0, "ms") && data.len > 0) {
        meta_store(table, words, data, out);
    } else if (word_is(words, 0, "md")) {
        meta_delete(table, words, out);
    } else if (word_is(words, 0, "ma")) {
        meta_count(table, words, out);
    } else {
        return false;
    }
    return true;
}

size_t
fake_speak(struct fake_table *table, const char *in, size_t len, struct fake_bytes *out)
{
    const char *end = memchr(in, '\n', len);
    struct words words;
    struct slice data;
    size_t line_len, used;

    if (end == NULL) {
        return 0;
    }
    used = (size_t)(end - in) + 1;
    line_len = used >= 2 && end[-1] == '\r' ? used - 2 : used - 1;
    data = slice_of(in + used, fake_data_len(in, line_len, table->lacks));
    if (data.len > len - used) {
        return 0;
    }
    split(in, line_len, &words);
    if (word_is(&words, 0, "mn") && (table->lacks & FAKE_LACKS_META) == 0) {
        fake_bytes_printf(out, "MN\r\n");
    } else if (words.count >= 2 && words.at[1].len > 250) {
        fake_bytes_printf(out, "CLIENT_ERROR bad command line format\r\n");
    } else if (!speak_small(table, &words, out) &&
               (words.count < 2 ||
                (!(words.at[0].ptr[0] == 'm' ? speak_meta(table, &words, data, out)
                                             : speak_text(table, &words, data, out))))) {
        fake_bytes_printf(out, "ERROR\r\n");
    }
    return used + data.len;
}
