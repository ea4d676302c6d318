/* SPDX-License-Identifier: BSD-2-Clause */
/* config_print.c: a configuration as the file from which config_load makes it again. */
#include "config_priv.h"

/* The directives of SECTION; of a store's, those that a store of TYPE has. */
static void
print_section(enum config_section section, const void *target, enum config_store_type type)
{
    const struct config_directive *rows;
    size_t count;

    rows = config_directives(&count);
    for (size_t i = 0; i < count; i++) {
        if (rows[i].section == section &&
            (rows[i].types == 0 || (rows[i].types & CONFIG_ONLY(type)) != 0)) {
            rows[i].kind->print(&rows[i], (const char *)target + rows[i].offset, stdout);
        }
    }
}

void
config_print(const struct config *config)
{
    puts("[server]");
    print_section(CONFIG_SECTION_SERVER, config, 0);
    for (size_t i = 0; i < config->store_count; i++) {
        printf("\n[store %s]\n", config->stores[i].name);
        print_section(CONFIG_SECTION_STORE, &config->stores[i], config->stores[i].type);
    }
    for (size_t i = 0; i < config->route_count; i++) {
        printf("\n[route %s]\n", config->routes[i].prefix);
        print_section(CONFIG_SECTION_ROUTE, &config->routes[i], 0);
    }
}
