/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sasl_scene.h: a real memcached that wants a password, with one user who has one, and a store with
 * `dialect = binary` for it. One server at a time; needs saslpasswd2.
 */
#ifndef KVGATE_TESTS_SASL_SCENE_H
#define KVGATE_TESTS_SASL_SCENE_H

#include <stdbool.h>

#include "memcached_process.h"
#include "store.h"
#include "store_rig.h"

#define SASL_USER     "alice@kvgate"
#define SASL_PASSWORD "correct horse"

/* Arguments of a memcached that wants a password. */
extern const char *const sasl_args[];

/* The server of the test. */
extern struct memcached_process sasl_server;

/* Before and after all tests: the password file, which every memcached started in between uses. */
bool sasl_make_passwords(void);
void sasl_remove_passwords(void);

/* cmocka's setup and teardown: starts the server, and kills it. The log is for errors only. */
int sasl_setup(void **state);
int sasl_teardown(void **state);

/* A store of two threads on the server; an empty USER for none. */
void sasl_configure(struct rig *rig, const char *user, const char *password);

/* Sets "k" to "v". */
enum store_status sasl_set(struct rig *rig);

#endif
