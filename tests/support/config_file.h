/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * config_file.h: configurations from text, for tests of the config module. Each function fails
 * the test that called it when it cannot do what it says.
 */
#ifndef KVGATE_TESTS_CONFIG_FILE_H
#define KVGATE_TESTS_CONFIG_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "config.h"

/* Room for every text that these functions return. */
#define CONFIG_FILE_MAX (256 * 1024)

/* For cmocka: *STATE is a new configuration, and there is a file to write texts into. */
int config_file_setup(void **state);
int config_file_teardown(void **state);

/* Writes TEXT to the file, makes CONFIG as new, and returns what config_load says. */
bool config_file_load(struct config *config, const char *text, char error[CONFIG_ERROR_MAX]);
bool config_file_load_bytes(struct config *config, const char *text, size_t len,
                            char error[CONFIG_ERROR_MAX]);

/* The same for a text that is good. */
void config_file_must_load(struct config *config, const char *text);

/* The same for a text that is not: config_load says "FILE:LINE: MESSAGE", and not a byte else. */
void config_file_must_say(struct config *config, const char *text, unsigned line,
                          const char *message);

/* config_finish of a configuration that is good. */
void config_file_must_finish(struct config *config);

/* The text of a file of the repository. The caller frees. */
char *config_file_read(const char *name);

/* What config_print prints. The caller frees. */
char *config_file_printed(const struct config *config);

#endif
