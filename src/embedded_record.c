/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * embedded_record.c: the verbs of the embedded store as pure functions: the old record and the
 * operation in, the new record out. It behaves as memcached does where store.h leaves a choice.
 */
#include "embedded_record.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Where each field lies in a record. */
enum { AT_CAS = 0, AT_EXPIRY = 8, AT_FLAGS = 16, AT_ZERO = 20 };

bool
embedded_record_decode(struct slice bytes, struct embedded_record *record)
{
    if (bytes.len < EMBEDDED_HEADER) {
        return false;
    }
    memcpy(&record->cas, bytes.ptr + AT_CAS, sizeof(record->cas));
    memcpy(&record->expiry_ms, bytes.ptr + AT_EXPIRY, sizeof(record->expiry_ms));
    memcpy(&record->flags, bytes.ptr + AT_FLAGS, sizeof(record->flags));
    record->value = slice_of(bytes.ptr + EMBEDDED_HEADER, bytes.len - EMBEDDED_HEADER);
    return true;
}

void
embedded_record_encode(const struct embedded_record *record, char out[EMBEDDED_HEADER])
{
    memcpy(out + AT_CAS, &record->cas, sizeof(record->cas));
    memcpy(out + AT_EXPIRY, &record->expiry_ms, sizeof(record->expiry_ms));
    memcpy(out + AT_FLAGS, &record->flags, sizeof(record->flags));
    memset(out + AT_ZERO, 0, EMBEDDED_HEADER - AT_ZERO);
}

int64_t
embedded_record_ttl(const struct embedded_record *record, int64_t now_ms)
{
    if (record->expiry_ms == 0) {
        return STORE_TTL_NEVER;
    }
    return (record->expiry_ms - now_ms + 999) / 1000;
}

static int64_t
expiry_of(uint64_t ttl_s, int64_t now_ms)
{
    if (ttl_s == 0) {
        return 0;
    }
    if (ttl_s > STORE_TTL_MAX) {
        ttl_s = STORE_TTL_MAX;
    }
    return now_ms + (int64_t)ttl_s * 1000;
}

/* The new value is the op's own. */
static enum store_status
plan_store(const struct store_op *op, int64_t now_ms, struct embedded_change *change)
{
    if (op->value.len > EMBEDDED_VALUE_MAX) {
        return STORE_TOO_LARGE;
    }
    change->flags = op->flags;
    change->expiry_ms = expiry_of(op->ttl_s, now_ms);
    change->parts[0] = op->value;
    return STORE_OK;
}

/* The new value is the old one and the op's, in the order that the verb says. */
static enum store_status
plan_join(const struct store_op *op, const struct embedded_record *old,
          struct embedded_change *change)
{
    if (op->value.len > EMBEDDED_VALUE_MAX || old->value.len > EMBEDDED_VALUE_MAX - op->value.len) {
        return STORE_TOO_LARGE;
    }
    change->old_part = op->verb == STORE_APPEND ? 0 : 1;
    change->parts[change->old_part] = old->value;
    change->parts[1 - change->old_part] = op->value;
    return STORE_OK;
}

/* A number may be followed by white space, as memcached has it: `echo 5 | curl -T -` counts. */
static bool
parse_counter(struct slice value, uint64_t *number)
{
    while (value.len > 0 && strchr(" \t\r\n", value.ptr[value.len - 1]) != NULL &&
           value.ptr[value.len - 1] != '\0') {
        value.len--;
    }
    return slice_to_u64(value, number);
}

static enum store_status
plan_count(struct store_op *op, const struct embedded_record *old, int64_t now_ms,
           struct embedded_change *change)
{
    uint64_t number;
    int len;

    if (old == NULL && !op->create) {
        return STORE_MISS;
    }
    if (old == NULL) {
        number = op->initial;
        change->expiry_ms = expiry_of(op->ttl_s, now_ms);
    } else if (!parse_counter(old->value, &number)) {
        return STORE_BAD_VALUE;
    } else if (op->verb == STORE_INCR) {
        number += op->delta;
    } else {
        number = number > op->delta ? number - op->delta : 0;
    }
    op->number = number;
    len = snprintf(change->digits, sizeof(change->digits), "%" PRIu64, number);
    change->parts[0] = slice_of(change->digits, (size_t)len);
    return STORE_OK;
}

static enum store_status
plan_touch(const struct store_op *op, const struct embedded_record *old, int64_t now_ms,
           struct embedded_change *change)
{
    change->expiry_ms = expiry_of(op->ttl_s, now_ms);
    change->keep_cas = true;
    change->old_part = 0;
    change->parts[0] = old->value;
    return STORE_OK;
}

enum store_status
embedded_plan(struct store_op *op, const struct embedded_record *old, int64_t now_ms,
              struct embedded_change *change)
{
    /* Whatever a verb does not set stays as it was. */
    *change = (struct embedded_change){ .old_part = -1 };
    if (old != NULL) {
        change->flags = old->flags;
        change->expiry_ms = old->expiry_ms;
    }
    switch (op->verb) {
    case STORE_SET:
        return plan_store(op, now_ms, change);
    case STORE_ADD:
        return old != NULL ? STORE_NOT_STORED : plan_store(op, now_ms, change);
    case STORE_REPLACE:
        return old == NULL ? STORE_NOT_STORED : plan_store(op, now_ms, change);
    case STORE_CAS:
        if (old == NULL) {
            return STORE_MISS;
        }
        return old->cas != op->cas ? STORE_EXISTS : plan_store(op, now_ms, change);
    case STORE_APPEND:
    case STORE_PREPEND:
        return old == NULL ? STORE_NOT_STORED : plan_join(op, old, change);
    case STORE_DELETE:
        change->remove = true;
        if (old == NULL) {
            return STORE_MISS;
        }
        return op->cas != 0 && old->cas != op->cas ? STORE_EXISTS : STORE_OK;
    case STORE_INCR:
    case STORE_DECR:
        return plan_count(op, old, now_ms, change);
    case STORE_TOUCH:
        return old == NULL ? STORE_MISS : plan_touch(op, old, now_ms, change);
    case STORE_GET:
    case STORE_HEAD:
    case STORE_VERB_COUNT:
        break;
    }
    assert(op->verb == STORE_SET); /* a read is no write */
    return STORE_UNSUPPORTED;
}
