/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * net_scene.c: starts what the network tests need, and measures. What is good it leaves to the
 * tests.
 */
#include "net_scene.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <net/if.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "silent_client.h"

const char *const net_scene_stores[] = { "embedded", "text", "meta", NULL };

/* sync = none: what is judged is the network, and a flush of the disk takes as long as a stall. */
static const char config_format[] = "[server]\nworkers = 1\n"
                                    "[store embedded]\ntype = embedded\nsync = none\n"
                                    "[store text]\ntype = memcached\ndialect = text\n"
                                    "servers = 127.0.0.1:%u\nop_timeout = 5s\n"
                                    "[store meta]\ntype = memcached\ndialect = meta\n"
                                    "servers = 127.0.0.1:%u\nop_timeout = 5s\n"
                                    "[route /embedded/]\nstore = embedded\n"
                                    "[route /text/]\nstore = text\nkey_prefix = text:\n"
                                    "[route /meta/]\nstore = meta\nkey_prefix = meta:\n";

bool
net_scene_open(struct net_scene *scene)
{
    bool ok;

    if (!net_pair_open(&scene->pair)) {
        return true;
    }
    ok = net_pair_narrow_loopback(&scene->pair) &&
         net_capture_open(&scene->front, scene->pair.device[NET_CLIENT], false) &&
         net_pair_enter(&scene->pair, NET_GATEWAY) &&
         net_capture_open(&scene->wire, (int)if_nametoindex("lo"), true);
    return net_pair_enter(&scene->pair, NET_CLIENT) && ok;
}

void
net_scene_require_pair(const struct net_scene *scene)
{
    if (scene->pair.fd[NET_CLIENT] == -1) {
        printf("SKIP: %s\n", scene->pair.why_not);
        skip();
    }
}

void
net_scene_check(bool ok, const struct net_capture *record, const char *what, const char *store,
                size_t len)
{
    if (!ok) {
        net_capture_show(record);
        fail_msg("%s: %s, %zu bytes", what, store, len);
    }
}

bool
net_scene_find_switch(char *path, size_t size)
{
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

    if (n <= 0) {
        return false;
    }
    self[n] = '\0';
    snprintf(path, size, "%s/switch_off.so", dirname(self));
    return access(path, R_OK) == 0;
}

/* The sanitizers of the program must bear with a library that is loaded before their own. */
static bool
launch(struct gateway *g, bool has_pair, const char *switched_off)
{
    char library[PATH_MAX], preload[PATH_MAX + 16], rule[64];
    const char *const argv[] = { "env",
                                 preload,
                                 rule,
                                 "ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0",
                                 gateway_program(),
                                 "-l",
                                 "127.0.0.1:0",
                                 "-l",
                                 has_pair ? NET_PAIR_GATEWAY_ADDRESS ":8085" : "127.0.0.1:0",
                                 "-c",
                                 "kvgate.conf",
                                 NULL };

    if (switched_off == NULL) {
        return gateway_launch(g, argv + 4);
    }
    if (!net_scene_find_switch(library, sizeof(library))) {
        return false;
    }
    snprintf(preload, sizeof(preload), "LD_PRELOAD=%s", library);
    snprintf(rule, sizeof(rule), "SWITCH_OFF=%s", switched_off);
    return gateway_launch(g, argv);
}

static bool
enter(const struct net_scene *scene, enum net_side side)
{
    return scene->pair.fd[side] == -1 || net_pair_enter(&scene->pair, side);
}

bool
net_scene_start(struct net_scene *scene, const char *switched_off)
{
    char text[2048];
    bool ok;

    if (switched_off == NULL) {
        switched_off = getenv("KVGATE_SWITCH_OFF");
    }
    if (!enter(scene, NET_GATEWAY) ||
        (scene->memcached.pid == 0 && !memcached_process_start(&scene->memcached, NULL))) {
        return false;
    }
    snprintf(text, sizeof(text), config_format, (unsigned)scene->memcached.port,
             (unsigned)scene->memcached.port);
    ok = gateway_prepare(&scene->gateway, text) &&
         launch(&scene->gateway, scene->pair.fd[NET_GATEWAY] != -1, switched_off);
    return enter(scene, NET_CLIENT) && ok;
}

bool
net_scene_stop_gateway(struct net_scene *scene)
{
    return scene->gateway.directory[0] == '\0' || gateway_stop(&scene->gateway, SIGTERM) == 0;
}

bool
net_scene_stop(struct net_scene *scene)
{
    bool ok = net_scene_stop_gateway(scene);

    memcached_process_kill(&scene->memcached);
    net_capture_close(&scene->front);
    net_capture_close(&scene->wire);
    net_pair_close(&scene->pair);
    return ok;
}

bool
net_scene_connect(struct http_client *c, const char *address, uint16_t port, bool nagle)
{
    struct sockaddr_in to = net_pair_address(address, port);
    int no_delay = !nagle;

    *c = (struct http_client){ .timeout_ms = HTTP_CLIENT_TIMEOUT_MS };
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c->fd == -1) {
        return false;
    }
    if (connect(c->fd, (struct sockaddr *)&to, sizeof(to)) == -1) {
        http_client_close(c);
        return false;
    }
    setsockopt(c->fd, IPPROTO_TCP, 1 /* TCP_NODELAY */, &no_delay, sizeof(no_delay));
    fcntl(c->fd, F_SETFL, fcntl(c->fd, F_GETFL) | O_NONBLOCK);
    return true;
}

uint16_t
net_scene_port(const struct http_client *c)
{
    struct sockaddr_in own;
    socklen_t len = sizeof(own);

    return getsockname(c->fd, (struct sockaddr *)&own, &len) == 0 ? ntohs(own.sin_port) : 0;
}

bool
net_scene_put(struct http_client *c, const char *target, size_t len)
{
    char *body = malloc(len + 1);
    int status;

    if (body == NULL) {
        abort();
    }
    gateway_fill(body, len, 1);
    status = http_client_request(c, "PUT", target, NULL, body, len);
    free(body);
    return status == 201 || status == 204;
}

bool
net_scene_get(struct http_client *c, const char *target, size_t len)
{
    return http_client_request(c, "GET", target, NULL, NULL, 0) == 200 && c->body_len == len;
}

bool
net_scene_settle(struct http_client *c, const char *target)
{
    for (int i = 0; i < 4; i++) {
        if (!net_scene_put(c, target, 100) || !net_scene_get(c, target, 100)) {
            return false;
        }
    }
    return true;
}

/*
 * When the client's last data segment passed, and, in *END, the sequence number after it. 0: none.
 */
static int64_t
last_sent(const struct net_capture *capture, uint16_t port, size_t len, uint32_t *end)
{
    int64_t time = 0;
    size_t sum = 0;

    for (size_t i = 0; i < capture->count; i++) {
        const struct net_segment *s = &capture->segments[i];
        if (s->from == port && s->len > 0) {
            time = s->time_ns;
            *end = s->seq + (uint32_t)s->len;
            sum += s->len;
        }
    }
    return sum == len ? time : 0;
}

/* When the gateway acknowledged END, with a segment of no data. 0: it has not; -1: it sent data. */
static int64_t
acknowledged(const struct net_capture *capture, uint16_t port, uint32_t end)
{
    for (size_t i = 0; i < capture->count; i++) {
        const struct net_segment *s = &capture->segments[i];
        if (s->to == port && s->len > 0) {
            return -1;
        }
        if (s->to == port && s->ack == end) {
            return s->time_ns;
        }
    }
    return 0;
}

int64_t
net_scene_half(struct net_scene *scene, struct http_client *c, struct slice half, struct slice rest)
{
    struct net_capture *capture = &scene->front;
    uint16_t port = net_scene_port(c);
    int64_t deadline = clock_monotonic_ms() + HTTP_CLIENT_TIMEOUT_MS;
    int64_t sent = 0, acked = 0;
    uint32_t end = 0;
    enum http_result result;

    net_capture_begin(capture, port);
    if (!http_client_send(c, half.ptr, half.len)) {
        return -1;
    }
    while (acked == 0 && clock_monotonic_ms() < deadline && net_capture_wait(capture, 100)) {
        sent = last_sent(capture, port, half.len, &end);
        acked = sent == 0 ? 0 : acknowledged(capture, port, end);
    }
    if (acked <= 0 || !http_client_send(c, rest.ptr, rest.len)) {
        return -1;
    }
    do {
        result = http_client_receive(c, false);
    } while (result == HTTP_RESPONSE && c->status == 100);
    return result == HTTP_RESPONSE && c->status / 100 == 2 ? acked - sent : -1;
}

/* Waits for COUNT segments with data to PORT; the last of them, or NULL. */
static const struct net_segment *
await_data(struct net_capture *wire, uint16_t port, size_t count)
{
    int64_t deadline = clock_monotonic_ms() + HTTP_CLIENT_TIMEOUT_MS;

    do {
        size_t found = 0;
        for (size_t i = 0; i < wire->count; i++) {
            found += net_capture_is_data(wire, i, port);
            if (found == count) {
                return &wire->segments[i];
            }
        }
    } while (net_capture_wait(wire, 100) && clock_monotonic_ms() < deadline);
    return NULL;
}

int64_t
net_scene_second_command(struct net_scene *scene, const char *store)
{
    struct net_capture *wire = &scene->wire;
    uint16_t port = scene->memcached.port;
    const struct net_segment *first, *second;
    int64_t gap = -1, time;
    struct http_client c[2];
    char target[32], request[128];
    bool ok = true;

    snprintf(target, sizeof(target), "/%s/second", store);
    snprintf(request, sizeof(request),
             "PUT %s HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello", target);
    for (int i = 0; i < 2; i++) {
        ok = net_scene_connect(&c[i], NET_PAIR_GATEWAY_ADDRESS, NET_PAIR_PORT, false) && ok &&
             net_scene_settle(&c[i], target);
    }
    memcached_process_pause(&scene->memcached);
    net_capture_begin(wire, port);
    first = ok && http_client_send_text(&c[0], request) ? await_data(wire, port, 1) : NULL;
    if (first != NULL) {
        time = first->time_ns; /* the record may move */
        second = http_client_send_text(&c[1], request) ? await_data(wire, port, 2) : NULL;
        gap = second == NULL ? -1 : second->time_ns - time;
    }
    memcached_process_resume(&scene->memcached);
    for (int i = 0; i < 2; i++) {
        ok = ok && gateway_receive(&c[i], false) / 100 == 2;
        http_client_close(&c[i]);
    }
    return ok ? gap : -1;
}

ssize_t
net_scene_silent_get(struct net_scene *scene, const char *target, size_t len, int count,
                     size_t *total)
{
    struct silent_client silent;
    struct http_client c;
    char requests[NET_PAIR_PLAIN_SEGMENT];
    size_t used = 0;
    bool ok = net_scene_connect(&c, NET_PAIR_GATEWAY_ADDRESS, NET_PAIR_PORT, true) &&
              net_scene_put(&c, target, len) && net_scene_get(&c, target, len);

    *total = (c.head_len + len) * (size_t)count;
    http_client_close(&c);
    if (!ok || *total > SILENT_CLIENT_MAX ||
        !silent_client_open(&silent, &scene->pair, &scene->front)) {
        return -1;
    }
    for (int i = 0; i < count; i++) {
        used += (size_t)snprintf(requests + used, sizeof(requests) - used,
                                 "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", target);
    }
    ok = silent_client_send(&silent, requests, used);
    silent_client_receive(&silent, *total);
    silent_client_close(&silent);
    return ok ? (ssize_t)silent.received : -1;
}

static int
compare_numbers(const void *a, const void *b)
{
    int64_t x, y;

    memcpy(&x, a, sizeof(x));
    memcpy(&y, b, sizeof(y));
    return (x > y) - (x < y);
}

int64_t
net_median(int64_t *numbers, size_t count)
{
    qsort(numbers, count, sizeof(*numbers), compare_numbers);
    return numbers[count / 2];
}
