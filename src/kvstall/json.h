/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * json.h: writes JSON to a stream as it goes: commas and indentation are its business, the order
 * of the calls is the caller's. KEY is NULL inside arrays.
 */
#ifndef KVSTALL_JSON_H
#define KVSTALL_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json {
    FILE *out;      /* (ref) */
    unsigned depth; /* open objects and arrays */
    bool first;     /* nothing was written in the innermost one yet */
};

/* Opens an object with '{', an array with '['. */
void json_open(struct json *j, const char *key, char bracket);

/* Closes with '}' or ']'. */
void json_close(struct json *j, char bracket);

/* NULL is written as null. */
void json_string(struct json *j, const char *key, const char *text);

void json_integer(struct json *j, const char *key, int64_t number);
void json_bool(struct json *j, const char *key, bool value);

/* A time as milliseconds with three decimals. */
void json_ms(struct json *j, const char *key, int64_t ns);

#endif
