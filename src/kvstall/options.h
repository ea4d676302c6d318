/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * options.h: the values of options, read strictly. What is wrong is said on stderr, with the name
 * of the option.
 */
#ifndef KVSTALL_OPTIONS_H
#define KVSTALL_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The whole of TEXT as a number from LEAST to MOST. False: a message was printed. */
bool option_number(const char *name, const char *text, uint64_t least, uint64_t most,
                   uint64_t *number);

/*
 * Numbers apart by commas, each from LEAST to MOST, at most MAX of them, into LIST. Returns how
 * many; 0: a message was printed.
 */
size_t option_list(const char *name, const char *text, uint64_t least, uint64_t most,
                   uint64_t *list, size_t max);

#endif
