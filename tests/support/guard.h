/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * guard.h: input that ends where readable memory ends.
 *
 * A parser that looks one byte past its input is stopped by the hardware, whatever the compiler
 * and the sanitizers think of it.
 */
#ifndef KVGATE_TESTS_GUARD_H
#define KVGATE_TESTS_GUARD_H

#include <stddef.h>

struct guard {
    char *base;  /* the mapping: `room` bytes, then one page without access */
    size_t room; /* bytes, whole pages */
    size_t page; /* bytes of a page */
};

/* Room for inputs of up to SIZE bytes. Ends the process when there is no memory. */
void guard_init(struct guard *g, size_t size);
void guard_deinit(struct guard *g);

/*
 * A copy of LEN bytes of DATA whose last byte is the last readable one; with LEN 0 a pointer that
 * must not be read at all. It stays until the next call. LEN is not more than init's SIZE.
 */
const char *guard_place(struct guard *g, const void *data, size_t len);

#endif
