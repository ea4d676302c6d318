/* SPDX-License-Identifier: BSD-2-Clause */
/* fault_load.c: see fault_load.h. */
#include "fault_load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"

bool
fault_load_open(struct fault_load *load, uint16_t port, size_t count, size_t value_len)
{
    *load = (struct fault_load){ .count = count, .value_len = value_len };
    load->clients = calloc(count, sizeof(*load->clients));
    if (load->clients == NULL) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        load->clients[i].http.fd = -1;
    }
    for (size_t i = 0; i < count; i++) {
        snprintf(load->clients[i].target, sizeof(load->clients[i].target), "/key-%zu", i);
        if (!http_client_open(&load->clients[i].http, port)) {
            return false;
        }
    }
    return true;
}

void
fault_load_close(struct fault_load *load)
{
    for (size_t i = 0; load->clients != NULL && i < load->count; i++) {
        http_client_close(&load->clients[i].http);
    }
    free(load->clients);
    load->clients = NULL;
}

void
fault_load_reset(struct fault_load *load)
{
    load->rounds = load->requests = load->hangs = load->wrong = load->unretried = 0;
    load->longest_ms = 0;
    memset(load->by_status, 0, sizeof(load->by_status));
}

/* "TARGET SERIAL LENGTH " and filler, LEN bytes in all. */
static void
make_value(char *to, size_t len, const char *target, unsigned serial)
{
    char head[80];
    size_t head_len = (size_t)snprintf(head, sizeof(head), "%s %u %zu ", target, serial, len);

    memset(to, 'a' + (int)(serial % 26), len);
    memcpy(to, head, head_len < len ? head_len : len);
}

/* The serial of a value of CLIENT; 0: it is none. */
static unsigned
check_value(const struct fault_client *client, const char *body, size_t len)
{
    static char wanted[FAULT_VALUE_MAX];
    char head[80] = "", target[40] = "";
    unsigned serial = 0;
    size_t told = 0;

    memcpy(head, body, len < sizeof(head) - 1 ? len : sizeof(head) - 1);
    if (sscanf(head, "%39s %u %zu", target, &serial, &told) != 3 || told != len ||
        len > FAULT_VALUE_MAX || strcmp(target, client->target) != 0) {
        return 0;
    }
    make_value(wanted, len, target, serial);
    return memcmp(wanted, body, len) == 0 ? serial : 0;
}

static bool
send_request(struct fault_load *load, struct fault_client *client)
{
    static char text[FAULT_VALUE_MAX + 200];
    size_t len;

    client->writes = !load->only_reads && (client->certain == 0 || load->rounds % 2 == 0);
    if (client->writes) {
        client->serial++;
        client->kills = load->kills;
        len =
            (size_t)snprintf(text, 200, "PUT %s HTTP/1.1\r\nHost: t\r\nContent-Length: %zu\r\n\r\n",
                             client->target, load->value_len);
        make_value(text + len, load->value_len, client->target, client->serial);
        len += load->value_len;
    } else {
        len = (size_t)snprintf(text, 200, "GET %s HTTP/1.1\r\nHost: t\r\n\r\n", client->target);
    }
    client->sent_ms = clock_monotonic_ms();
    return http_client_send(&client->http, text, len);
}

/* Whether the write of SERIAL was answered 504. */
static bool
is_in_doubt(const struct fault_client *client, unsigned serial)
{
    size_t count = client->doubt_count < FAULT_DOUBTS ? client->doubt_count : FAULT_DOUBTS;

    for (size_t i = 0; i < count; i++) {
        if (client->doubts[i] == serial) {
            return true;
        }
    }
    return false;
}

/* What a read brought: the last value that is certain, or one whose write was in doubt. */
static bool
is_right(const struct fault_load *load, const struct fault_client *client)
{
    unsigned serial;

    if (load->only_reads) {
        return client->http.status != 404 || load->kills > 0;
    }
    if (client->http.status == 404) {
        return load->kills != client->kills || client->certain == 0 || client->may_be_gone;
    }
    serial = check_value(client, client->http.body, client->http.body_len);
    return serial > 0 &&
           ((serial >= client->certain && serial <= client->serial) || is_in_doubt(client, serial));
}

static void
take_answer(struct fault_load *load, struct fault_client *client, bool *well)
{
    int status;
    int64_t took;

    if (http_client_receive(&client->http, false) != HTTP_RESPONSE) {
        load->hangs++;
        *well = false;
        return;
    }
    status = client->http.status;
    took = clock_monotonic_ms() - client->sent_ms;
    load->longest_ms = took > load->longest_ms ? took : load->longest_ms;
    load->by_status[status < 600 ? status : 599]++;
    *well &= status == 200 || status == 201 || status == 204;
    load->unretried += status == 503 && http_client_header(&client->http, "Retry-After") == NULL;
    if (client->writes) {
        bool stored = status == 201 || status == 204;
        client->certain = stored ? client->serial : client->certain;
        if (status == 504) {
            client->doubts[client->doubt_count++ % FAULT_DOUBTS] = client->serial;
        }
        client->may_be_gone |= !stored; /* a refused `set` may cost the old value */
        if (stored) {
            client->may_be_gone = false;
        }
    } else if (status == 200 || status == 404) {
        bool right = is_right(load, client);
        load->wrong += !right;
        if (!right) {
            printf("wrong: %s: status %d, serial %u certain %u\n", client->target, status,
                   client->serial, client->certain);
        }
    }
}

bool
fault_load_round(struct fault_load *load)
{
    bool well = true;

    for (size_t i = 0; i < load->count; i++) {
        if (!send_request(load, &load->clients[i])) {
            load->hangs++;
            return false;
        }
    }
    for (size_t i = 0; i < load->count; i++) {
        take_answer(load, &load->clients[i], &well);
    }
    load->rounds++;
    load->requests += (unsigned)load->count;
    return well;
}

void
fault_load_run(struct fault_load *load, int64_t ms)
{
    int64_t end = clock_monotonic_ms() + ms;

    while (clock_monotonic_ms() < end && load->hangs == 0) {
        fault_load_round(load);
    }
}

int64_t
fault_load_recover(struct fault_load *load, int64_t limit_ms)
{
    int64_t begin = clock_monotonic_ms();

    while (!fault_load_round(load)) {
        if (clock_monotonic_ms() > begin + limit_ms || load->hangs > 0) {
            return -1;
        }
    }
    return clock_monotonic_ms() - begin;
}

void
fault_load_print(const struct fault_load *load, const char *name, int64_t recovered_ms)
{
    char statuses[200] = "";
    size_t len = 0;

    for (int status = 100; status < 600; status++) {
        if (load->by_status[status] > 0 && len < sizeof(statuses) - 24) {
            len += (size_t)snprintf(statuses + len, sizeof(statuses) - len, " %d:%u", status,
                                    load->by_status[status]);
        }
    }
    printf("%-34s %7u  %-38s %6lld ms  ", name, load->requests, statuses,
           (long long)load->longest_ms);
    if (recovered_ms < 0) {
        printf("     -\n");
    } else {
        printf("%6lld ms\n", (long long)recovered_ms);
    }
    fflush(stdout);
}

void
fault_load_break_off(uint16_t port)
{
    static const char *const texts[] = {
        "PUT /broken HTTP/1.1\r\nHost: t\r\nContent-Length: 100000\r\n\r\nbegun",
        "GET /broken HTTP/1.1\r\nHost: t\r\n\r\n",
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct http_client c;
        if (http_client_open(&c, port)) {
            http_client_send_text(&c, texts[i]);
        }
        http_client_abort(&c);
    }
}

void
fault_load_add(struct fault_load *to, const struct fault_load *from)
{
    to->requests += from->requests;
    to->hangs += from->hangs;
    to->wrong += from->wrong;
    to->unretried += from->unretried;
    to->longest_ms = from->longest_ms > to->longest_ms ? from->longest_ms : to->longest_ms;
    for (size_t i = 0; i < sizeof(to->by_status) / sizeof(to->by_status[0]); i++) {
        to->by_status[i] += from->by_status[i];
    }
}
