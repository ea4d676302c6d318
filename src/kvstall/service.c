/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * service.c: reaches a service, and cleans up in it.
 */
#include "service.h"

#include <string.h>
#include <sysexits.h>

#include "interrupt.h"
#include "report.h"
#include "timing.h"

void
service_init(struct service *s)
{
    *s = (struct service){ .method = "PUT", .delete_method = "DELETE" };
}

/* Methods are tokens; capital letters are all that occur. */
static bool
is_method(const char *text)
{
    size_t len = strlen(text);

    return len > 0 && len < 20 && strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == len;
}

int
service_option(struct service *s, int letter, const char *value)
{
    switch (letter) {
    case 'm':
        if (strcmp(value, "PUT") != 0 && strcmp(value, "POST") != 0) {
            return report_usage("--method: neither PUT nor POST: %s", value);
        }
        s->method = value;
        return -1;
    case 'M':
        if (!is_method(value)) {
            return report_usage("--delete-method: no HTTP method: %s", value);
        }
        s->delete_method = value;
        return -1;
    case 'R':
    case 'D':
        if (!url_is_path(value)) {
            return report_usage("--%s-path: not a path that begins with '/': %s",
                                letter == 'R' ? "read" : "delete", value);
        }
        *(letter == 'R' ? &s->read_path : &s->delete_path) = value;
        return -1;
    default: /* getopt has said what is wrong */
        return report_hint();
    }
}

int
service_open(struct service *s, const char *url)
{
    const char *wrong = url_parse(url, &s->url), *reason = NULL;
    struct exchange_connection c = { .fd = -1 };

    if (wrong != NULL) {
        return report_usage("cannot use the URL %s: %s", url, wrong);
    }
    url_make_key(s->key);
    s->target.host = s->url.host;
    c.fd =
        net_dial(&s->url.name, timing_now_ns() + EXCHANGE_TIMEOUT_NS, &s->target.address, &reason);
    if (c.fd == -1) {
        report_error("cannot connect to %s: %s", s->url.host, reason);
        return EX_UNAVAILABLE;
    }
    exchange_close(&c);
    return EX_OK;
}

const char *
service_read_path(const struct service *s)
{
    return s->read_path != NULL ? s->read_path : s->url.path;
}

void
service_note_write(struct service *s, enum exchange_outcome outcome, int status)
{
    if (outcome == EXCHANGE_ANSWERED && status < 400) {
        s->stored = true;
    }
    /* A server error may come after the value was stored; 501 says that it cannot be. */
    if (outcome != EXCHANGE_UNREACHABLE &&
        (outcome != EXCHANGE_ANSWERED || status < 400 || (status >= 500 && status != 501))) {
        s->tried = true;
    }
}

void
service_remove(struct service *s)
{
    struct exchange_connection c = { .fd = -1, .nodelay = true, .quickack = true };
    const char *path = s->delete_path != NULL ? s->delete_path : s->url.path;
    struct exchange_request request = { 0 };
    struct exchange_result result = { 0 };
    enum exchange_outcome outcome = EXCHANGE_FAILED;

    if (!s->tried) {
        return;
    }
    interrupt_disarm();
    if (exchange_request_init(&request, s->delete_method, path, s->key, s->url.host, -1,
                              EXCHANGE_ONE_WRITE)) {
        outcome = exchange_play(&s->target, &c, &request, &result);
    }
    exchange_close(&c);
    exchange_request_deinit(&request);
    s->tried = false;
    if (!s->stored) {
        return;
    }
    if (outcome != EXCHANGE_ANSWERED) {
        report_error("cannot remove %s%s: %s", path, s->key, exchange_outcome_text(outcome));
    } else if (result.status >= 300 && result.status != 404 && result.status != 410) {
        report_error("cannot remove %s%s: %s was answered %d; --delete-method and --delete-path "
                     "say how it is done there",
                     path, s->key, s->delete_method, result.status);
    }
}
