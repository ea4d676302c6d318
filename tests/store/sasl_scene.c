/* SPDX-License-Identifier: BSD-2-Clause */
/* sasl_scene.c: the password file of a memcached -S, and what the tests of the binary store share. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "log.h"
#include "sasl_scene.h"

const char *const sasl_args[] = { "-S", NULL };
struct memcached_process sasl_server;

static char directory[] = "/tmp/kvgate-sasl-XXXXXX";

static void
path_of(char path[128], const char *name)
{
    snprintf(path, 128, "%s/%s", directory, name);
}

bool
sasl_make_passwords(void)
{
    char path[128], command[512];
    FILE *file;

    if (mkdtemp(directory) == NULL) {
        return false;
    }
    path_of(path, "memcached.conf");
    file = fopen(path, "w");
    if (file == NULL) {
        return false;
    }
    fprintf(file, "mech_list: plain\nsasldb_path: %s/db\nlog_level: 0\n", directory);
    fclose(file);
    snprintf(
        command, sizeof(command),
        "PATH=$PATH:/usr/sbin; echo '%s' | saslpasswd2 -p -c -a memcached -f %s/db -u kvgate alice",
        SASL_PASSWORD, directory);
    return system(command) == 0 && setenv("SASL_CONF_PATH", directory, 1) == 0;
}

void
sasl_remove_passwords(void)
{
    char path[128];

    path_of(path, "memcached.conf");
    unlink(path);
    path_of(path, "db");
    unlink(path);
    rmdir(directory);
}

int
sasl_setup(void **state)
{
    (void)state;
    log_set_level(LOG_ERROR);
    return memcached_process_start(&sasl_server, sasl_args) ? 0 : -1;
}

int
sasl_teardown(void **state)
{
    (void)state;
    memcached_process_kill(&sasl_server);
    return 0;
}

void
sasl_configure(struct rig *rig, const char *user, const char *password)
{
    rig_config(rig, CONFIG_DIALECT_BINARY, sasl_server.port);
    rig->config.lanes = 2;
    strcpy(rig->config.username, user);
    strcpy(rig->config.password, password);
}

enum store_status
sasl_set(struct rig *rig)
{
    struct call call;

    rig_prepare(rig, &call, STORE_SET, "k");
    call.op.value = SLICE("v");
    return rig_do(&call);
}
