/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * config_priv.h: the table of directives, shared by the files of the config module alone.
 *
 * A directive is one row: where it stands, what kind of value it takes, where the value goes and
 * what it is by default. Reading, printing, defaults and messages all follow from the row.
 */
#ifndef KVGATE_CONFIG_PRIV_H
#define KVGATE_CONFIG_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "config.h"

/* Bytes of a phrase that says what a directive allows, with its NUL. */
#define CONFIG_WHY_MAX 256

/*
 * Bytes of a text value, without NUL. libinih reads lines of 199 bytes; this leaves room for the
 * longest name and " = ", so what config_print writes can always be read back.
 */
#define CONFIG_VALUE_MAX 180

/* Rows of the table at the most; the loader keeps one number per row. */
#define CONFIG_DIRECTIVE_MAX 48

enum config_section {
    CONFIG_SECTION_NONE,
    CONFIG_SECTION_SERVER, /* fills struct config */
    CONFIG_SECTION_STORE,  /* fills struct config_store */
    CONFIG_SECTION_ROUTE   /* fills struct config_route */
};

struct config_directive;

/* One kind of value. FIELD is the section's struct plus the directive's offset. */
struct config_kind {
    /* Puts TEXT into FIELD. False: WHY says what is allowed. */
    bool (*set)(const struct config_directive *d, void *field, const char *text,
                char why[CONFIG_WHY_MAX]);
    /* Prints the lines "name = value" from which `set` makes FIELD again. */
    void (*print)(const struct config_directive *d, const void *field, FILE *out);
    bool repeats; /* may be given several times; each adds */
};

struct config_directive {
    const char *name;
    enum config_section section;
    const struct config_kind *kind;
    size_t offset;             /* of the field in the section's struct */
    uint64_t min;              /* smallest value, in the field's unit; 0 for texts and words */
    uint64_t max;              /* largest value; 0 for texts and words */
    const char *const *words;  /* names of an enum's values by number, NULL at the end; or NULL */
    unsigned types;            /* CONFIG_ONLY(type) bits: store types that have it; 0: all */
    const char *default_value; /* as it would be written; NULL: empty until set */
};

/* The bit in config_directive.types of a store type. */
#define CONFIG_ONLY(type) (1u << (type))

extern const struct config_kind config_kind_count;         /* uint32_t */
extern const struct config_kind config_kind_size;          /* uint64_t, bytes */
extern const struct config_kind config_kind_ms;            /* uint32_t, milliseconds */
extern const struct config_kind config_kind_ms_whole;      /* the same, whole seconds only */
extern const struct config_kind config_kind_seconds;       /* uint64_t, seconds */
extern const struct config_kind config_kind_word;          /* an enum, see `words` */
extern const struct config_kind config_kind_level;         /* enum log_level */
extern const struct config_kind config_kind_methods;       /* unsigned, enum config_method bits */
extern const struct config_kind config_kind_path;          /* texts of CONFIG_TEXT_MAX: a path, */
extern const struct config_kind config_kind_optional_path; /* ... a path or nothing, */
extern const struct config_kind config_kind_user_name;  /* ... a name without blanks, or nothing, */
extern const struct config_kind config_kind_store_name; /* ... a store's name, */
extern const struct config_kind config_kind_key_prefix; /* ... the beginning of a key, */
extern const struct config_kind config_kind_header;     /* ... a header's value, or nothing, */
extern const struct config_kind config_kind_media_type; /* ... type/subtype, or "stored" */
extern const struct config_kind config_kind_listen;     /* struct config, offset 0 */
extern const struct config_kind config_kind_servers;    /* struct config_store, offset 0 */

/* The whole table. */
const struct config_directive *config_directives(size_t *count);

/* The row of NAME in SECTION, or NULL. */
const struct config_directive *config_directive_find(enum config_section section, const char *name);

/* Sets every directive of SECTION in TARGET to its default. */
void config_directive_defaults(enum config_section section, void *target);

/*
 * Copies TEXT and clears the rest of TO. The caller has checked that TEXT is no longer than
 * CONFIG_VALUE_MAX.
 */
void config_text_copy(char to[CONFIG_TEXT_MAX], const char *text);

/* Whether TEXT can be a store's name: letters, digits, ".", "_", "-". */
bool config_store_name_valid(const char *text);

/* Formats a message, and returns false for the caller to return. */
bool config_fail(char *to, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
