/* SPDX-License-Identifier: BSD-2-Clause */
/* media_type.c: see media_type.h. */
#include "media_type.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define MARK  0x40000000U
#define MASK  0xE03FFFFFU
#define SHIFT 22

/* Longer than any type of the table. */
#define TYPE_TEXT_MAX 96

/* By number, which is what items are kept with: a type is appended, and never moved or taken out. */
static const struct slice types[] = {
    [1] = SLICE_LITERAL("text/plain"),
    [2] = SLICE_LITERAL("text/plain; charset=utf-8"),
    [3] = SLICE_LITERAL("text/html"),
    [4] = SLICE_LITERAL("text/html; charset=utf-8"),
    [5] = SLICE_LITERAL("text/css"),
    [6] = SLICE_LITERAL("text/css; charset=utf-8"),
    [7] = SLICE_LITERAL("text/javascript"),
    [8] = SLICE_LITERAL("text/javascript; charset=utf-8"),
    [9] = SLICE_LITERAL("text/csv"),
    [10] = SLICE_LITERAL("text/csv; charset=utf-8"),
    [11] = SLICE_LITERAL("text/xml"),
    [12] = SLICE_LITERAL("text/xml; charset=utf-8"),
    [13] = SLICE_LITERAL("text/markdown"),
    [14] = SLICE_LITERAL("text/markdown; charset=utf-8"),
    [15] = SLICE_LITERAL("text/calendar"),
    [16] = SLICE_LITERAL("text/calendar; charset=utf-8"),
    [17] = SLICE_LITERAL("text/vcard"),
    [18] = SLICE_LITERAL("text/event-stream"),
    [19] = SLICE_LITERAL("text/tab-separated-values"),
    [20] = SLICE_LITERAL("text/vtt"),
    [21] = SLICE_LITERAL("application/json"),
    [22] = SLICE_LITERAL("application/json; charset=utf-8"),
    [23] = SLICE_LITERAL("application/ld+json"),
    [24] = SLICE_LITERAL("application/problem+json"),
    [25] = SLICE_LITERAL("application/vnd.api+json"),
    [26] = SLICE_LITERAL("application/geo+json"),
    [27] = SLICE_LITERAL("application/hal+json"),
    [28] = SLICE_LITERAL("application/manifest+json"),
    [29] = SLICE_LITERAL("application/json-patch+json"),
    [30] = SLICE_LITERAL("application/merge-patch+json"),
    [31] = SLICE_LITERAL("application/x-ndjson"),
    [32] = SLICE_LITERAL("application/schema+json"),
    [33] = SLICE_LITERAL("application/javascript"),
    [34] = SLICE_LITERAL("application/javascript; charset=utf-8"),
    [35] = SLICE_LITERAL("application/xml"),
    [36] = SLICE_LITERAL("application/xml; charset=utf-8"),
    [37] = SLICE_LITERAL("application/xhtml+xml"),
    [38] = SLICE_LITERAL("application/atom+xml"),
    [39] = SLICE_LITERAL("application/rss+xml"),
    [40] = SLICE_LITERAL("application/soap+xml"),
    [41] = SLICE_LITERAL("application/yaml"),
    [42] = SLICE_LITERAL("application/toml"),
    [43] = SLICE_LITERAL("application/x-www-form-urlencoded"),
    [44] = SLICE_LITERAL("application/graphql"),
    [45] = SLICE_LITERAL("application/graphql-response+json"),
    [46] = SLICE_LITERAL("application/sql"),
    [47] = SLICE_LITERAL("application/wasm"),
    [48] = SLICE_LITERAL("application/protobuf"),
    [49] = SLICE_LITERAL("application/x-protobuf"),
    [50] = SLICE_LITERAL("application/vnd.google.protobuf"),
    [51] = SLICE_LITERAL("application/grpc"),
    [52] = SLICE_LITERAL("application/msgpack"),
    [53] = SLICE_LITERAL("application/x-msgpack"),
    [54] = SLICE_LITERAL("application/vnd.msgpack"),
    [55] = SLICE_LITERAL("application/cbor"),
    [56] = SLICE_LITERAL("application/bson"),
    [57] = SLICE_LITERAL("application/avro"),
    [58] = SLICE_LITERAL("application/vnd.apache.parquet"),
    [59] = SLICE_LITERAL("application/vnd.apache.arrow.stream"),
    [60] = SLICE_LITERAL("application/x-java-serialized-object"),
    [61] = SLICE_LITERAL("application/vnd.php.serialized"),
    [62] = SLICE_LITERAL("application/jwt"),
    [63] = SLICE_LITERAL("application/pdf"),
    [64] = SLICE_LITERAL("application/postscript"),
    [65] = SLICE_LITERAL("application/rtf"),
    [66] = SLICE_LITERAL("application/epub+zip"),
    [67] = SLICE_LITERAL("application/msword"),
    [68] = SLICE_LITERAL("application/vnd.ms-excel"),
    [69] = SLICE_LITERAL("application/vnd.ms-powerpoint"),
    [70] = SLICE_LITERAL("application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
    [71] = SLICE_LITERAL("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    [72] =
        SLICE_LITERAL("application/vnd.openxmlformats-officedocument.presentationml.presentation"),
    [73] = SLICE_LITERAL("application/vnd.oasis.opendocument.text"),
    [74] = SLICE_LITERAL("application/vnd.oasis.opendocument.spreadsheet"),
    [75] = SLICE_LITERAL("application/zip"),
    [76] = SLICE_LITERAL("application/gzip"),
    [77] = SLICE_LITERAL("application/zstd"),
    [78] = SLICE_LITERAL("application/x-bzip2"),
    [79] = SLICE_LITERAL("application/x-xz"),
    [80] = SLICE_LITERAL("application/x-tar"),
    [81] = SLICE_LITERAL("application/x-7z-compressed"),
    [82] = SLICE_LITERAL("application/vnd.rar"),
    [83] = SLICE_LITERAL("application/java-archive"),
    [84] = SLICE_LITERAL("application/vnd.android.package-archive"),
    [85] = SLICE_LITERAL("application/vnd.debian.binary-package"),
    [86] = SLICE_LITERAL("application/x-sqlite3"),
    [87] = SLICE_LITERAL("application/vnd.apple.mpegurl"),
    [88] = SLICE_LITERAL("application/dash+xml"),
    [89] = SLICE_LITERAL("application/pkcs7-mime"),
    [90] = SLICE_LITERAL("application/pkix-cert"),
    [91] = SLICE_LITERAL("application/x-pem-file"),
    [92] = SLICE_LITERAL("image/png"),
    [93] = SLICE_LITERAL("image/jpeg"),
    [94] = SLICE_LITERAL("image/gif"),
    [95] = SLICE_LITERAL("image/webp"),
    [96] = SLICE_LITERAL("image/avif"),
    [97] = SLICE_LITERAL("image/svg+xml"),
    [98] = SLICE_LITERAL("image/bmp"),
    [99] = SLICE_LITERAL("image/tiff"),
    [100] = SLICE_LITERAL("image/x-icon"),
    [101] = SLICE_LITERAL("image/vnd.microsoft.icon"),
    [102] = SLICE_LITERAL("image/heic"),
    [103] = SLICE_LITERAL("image/jxl"),
    [104] = SLICE_LITERAL("audio/mpeg"),
    [105] = SLICE_LITERAL("audio/ogg"),
    [106] = SLICE_LITERAL("audio/wav"),
    [107] = SLICE_LITERAL("audio/webm"),
    [108] = SLICE_LITERAL("audio/aac"),
    [109] = SLICE_LITERAL("audio/flac"),
    [110] = SLICE_LITERAL("audio/mp4"),
    [111] = SLICE_LITERAL("video/mp4"),
    [112] = SLICE_LITERAL("video/webm"),
    [113] = SLICE_LITERAL("video/ogg"),
    [114] = SLICE_LITERAL("video/mpeg"),
    [115] = SLICE_LITERAL("video/quicktime"),
    [116] = SLICE_LITERAL("video/mp2t"),
    [117] = SLICE_LITERAL("font/woff"),
    [118] = SLICE_LITERAL("font/woff2"),
    [119] = SLICE_LITERAL("font/ttf"),
    [120] = SLICE_LITERAL("font/otf"),
    [121] = SLICE_LITERAL("model/gltf-binary"),
};

#define TYPE_COUNT (sizeof(types) / sizeof(types[0]))
_Static_assert(TYPE_COUNT <= 128, "a number has 7 bits");

/*
 * Writes TEXT into OUT as the table has it: in small letters, with one blank behind ";" and none before
 * it. False: it is too long for any type.
 */
static bool
normalise(struct slice text, char out[TYPE_TEXT_MAX], struct slice *result)
{
    size_t len = 0;

    text = slice_trim(text);
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i] == '\t' ? ' ' : text.ptr[i];
        if (c == ' ' && len > 0 && out[len - 1] == ' ') {
            continue;
        }
        if (c == ';' && len > 0 && out[len - 1] == ' ') {
            len--;
        }
        if (len + 2 > TYPE_TEXT_MAX) {
            return false;
        }
        out[len++] = c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
        if (c == ';') {
            out[len++] = ' ';
        }
    }
    *result = slice_of(out, len);
    return true;
}

/* Most types are ruled out by their length alone, so that going through all of them is quick. */
uint32_t
media_type_to_flags(struct slice type)
{
    char plain[TYPE_TEXT_MAX];
    struct slice text;

    if (!normalise(type, plain, &text)) {
        return 0;
    }
    for (size_t i = 1; i < TYPE_COUNT; i++) {
        if (slice_equal(types[i], text)) {
            return MARK | (uint32_t)i << SHIFT;
        }
    }
    return 0;
}

const char *
media_type_from_flags(uint32_t flags)
{
    size_t number = (flags & ~MASK & ~MARK) >> SHIFT;

    return (flags & MASK) == MARK && number > 0 && number < TYPE_COUNT ? types[number].ptr : NULL;
}
