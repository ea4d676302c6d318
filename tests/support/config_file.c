/* SPDX-License-Identifier: BSD-2-Clause */
/* config_file.c: configurations from text. The file is one per test, in /tmp, and gone after it. */
#include "config_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

/* The file that the test at hand wrote last. */
static char path[64];

int
config_file_setup(void **state)
{
    int fd;

    snprintf(path, sizeof(path), "/tmp/kvgate-config-XXXXXX");
    fd = mkstemp(path);
    if (fd < 0) {
        return -1;
    }
    close(fd);
    *state = config_create();
    return *state == NULL ? -1 : 0;
}

int
config_file_teardown(void **state)
{
    unlink(path);
    config_destroy(*state);
    return 0;
}

bool
config_file_load_bytes(struct config *config, const char *text, size_t len,
                       char error[CONFIG_ERROR_MAX])
{
    struct config *fresh = config_create();
    FILE *file = fopen(path, "w");

    assert_non_null(fresh);
    assert_non_null(file);
    *config = *fresh;
    config_destroy(fresh);
    assert_int_equal(fwrite(text, 1, len, file), len);
    assert_int_equal(fclose(file), 0);
    return config_load(config, path, error);
}

bool
config_file_load(struct config *config, const char *text, char error[CONFIG_ERROR_MAX])
{
    return config_file_load_bytes(config, text, strlen(text), error);
}

void
config_file_must_load(struct config *config, const char *text)
{
    char error[CONFIG_ERROR_MAX];

    if (!config_file_load(config, text, error)) {
        fail_msg("%s\nin\n%s", error, text);
    }
}

void
config_file_must_finish(struct config *config)
{
    char error[CONFIG_ERROR_MAX];

    if (!config_finish(config, error)) {
        fail_msg("%s", error);
    }
}

void
config_file_must_say(struct config *config, const char *text, unsigned line, const char *message)
{
    char error[CONFIG_ERROR_MAX] = "", wanted[CONFIG_ERROR_MAX * 2];

    snprintf(wanted, sizeof(wanted), "%s:%u: %s", path, line, message);
    if (config_file_load(config, text, error)) {
        fail_msg("was taken:\n%s", text);
    }
    assert_string_equal(error, wanted);
}

char *
config_file_read(const char *name)
{
    char *text = calloc(1, CONFIG_FILE_MAX);
    FILE *file = fopen(name, "r");

    assert_non_null(text);
    if (file == NULL) {
        fail_msg("cannot open %s: the tests run in the root of the repository", name);
    }
    assert_true(fread(text, 1, CONFIG_FILE_MAX - 1, file) > 0);
    fclose(file);
    return text;
}

char *
config_file_printed(const struct config *config)
{
    char *text = calloc(1, CONFIG_FILE_MAX);
    FILE *file = tmpfile();
    int real = dup(STDOUT_FILENO);

    assert_non_null(text);
    assert_non_null(file);
    fflush(stdout);
    dup2(fileno(file), STDOUT_FILENO);
    config_print(config);
    fflush(stdout);
    dup2(real, STDOUT_FILENO);
    close(real);
    rewind(file);
    assert_true(fread(text, 1, CONFIG_FILE_MAX - 1, file) > 0);
    fclose(file);
    return text;
}
