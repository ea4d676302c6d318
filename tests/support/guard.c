/* SPDX-License-Identifier: BSD-2-Clause */
/* guard.c: places bytes right before a page without access. */
#include "guard.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void
guard_init(struct guard *g, size_t size)
{
    void *base;

    g->page = (size_t)sysconf(_SC_PAGESIZE);
    g->room = (size / g->page + 1) * g->page;
    base =
        mmap(NULL, g->room + g->page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED || mprotect((char *)base + g->room, g->page, PROT_NONE) < 0) {
        perror("guard");
        abort();
    }
    g->base = base;
}

void
guard_deinit(struct guard *g)
{
    munmap(g->base, g->room + g->page);
    g->base = NULL;
}

const char *
guard_place(struct guard *g, const void *data, size_t len)
{
    char *place = g->base + g->room - len;

    assert(len <= g->room);
    if (len > 0) {
        memcpy(place, data, len);
    }
    return place;
}
