/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_proxy_cache.c: behind Debian's nginx with proxy_cache and kept-alive connections: what is
 * cached, for how long, and that an ETag saves the value. Skipped, saying so, without nginx.
 */
#include "gateway.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"

static struct gateway gateway;
static struct process nginx;
static uint16_t port; /* of nginx */
static struct http_client c;

static const char nginx_conf[] =
    "master_process off;\ndaemon off;\npid nginx.pid;\nerror_log stderr error;\n"
    "events { worker_connections 64; }\n"
    "http {\n"
    "  access_log off;\n"
    "  client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path f;\n"
    "  uwsgi_temp_path u; scgi_temp_path s;\n"
    "  proxy_cache_path cache keys_zone=k:1m;\n"
    "  upstream gateway { server 127.0.0.1:%u; keepalive 4; }\n"
    "  server {\n"
    "    listen 127.0.0.1:%u;\n"
    "    location / {\n"
    "      proxy_pass http://gateway; proxy_http_version 1.1; proxy_set_header Connection \"\";\n"
    "      proxy_cache k; proxy_cache_revalidate on; proxy_cache_methods GET HEAD;\n"
    "      add_header X-Cache $upstream_cache_status;\n"
    "    }\n"
    "  }\n"
    "}\n";

static uint16_t
free_port(void)
{
    struct sockaddr_in address = { .sin_family = AF_INET };
    socklen_t len = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, len), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    close(fd);
    return ntohs(address.sin_port);
}

static bool
start_nginx(void)
{
    int64_t give_up = clock_monotonic_ms() + GATEWAY_TIMEOUT_MS;
    char path[128];
    const char *const argv[] = {
        "nginx", "-p", gateway.directory, "-e", "stderr", "-c", path, NULL
    };
    FILE *file;

    port = free_port();
    snprintf(path, sizeof(path), "%s/nginx.conf", gateway.directory);
    file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, nginx_conf, (unsigned)gateway.port, (unsigned)port);
    fclose(file);
    if (!process_start(&nginx, gateway.directory, argv)) {
        return false;
    }
    while (!http_client_open(&c, port)) {
        if (!process_runs(&nginx) || clock_monotonic_ms() > give_up) {
            process_show_err(&nginx);
            return false;
        }
        usleep(5000);
    }
    return true;
}

static int
setup(void **state)
{
    (void)state;
    setenv("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", 1);
    if (!gateway_start_config(&gateway,
                              "[server]\nworkers = 1\nlog_level = error\n"
                              "[store main]\ntype = embedded\ndirectory = data\nsync = none\n"
                              "[route /]\n[route /ttl/]\nkey_prefix = t:\ncache_control = ttl\n"
                              "[route /second/]\nkey_prefix = s:\ncache_control = max-age=1\n")) {
        return -1;
    }
    return start_nginx() ? 0 : -1;
}

static int
teardown(void **state)
{
    (void)state;
    http_client_close(&c);
    process_stop(&nginx, SIGTERM, GATEWAY_TIMEOUT_MS);
    process_deinit(&nginx);
    return gateway_stop(&gateway, SIGTERM);
}

/* GET TARGET from nginx: this body, and this X-Cache. */
static void
expect(const char *target, const char *body, const char *cache)
{
    const char *told;

    assert_request(&c, "GET", target, NULL, NULL, 0, 200);
    assert_body(&c, body);
    assert_non_null(http_client_header(&c, "Date"));
    assert_non_null(http_client_header(&c, "ETag"));
    told = http_client_header(&c, "X-Cache");
    if (told == NULL || strcmp(told, cache) != 0) {
        fail_msg("%s: %s, not %s", target, told == NULL ? "no X-Cache" : told, cache);
    }
}

static void
put(const char *target, const char *body)
{
    struct http_client direct;

    assert_once(&direct, gateway.port, "PUT", target, NULL, body, strlen(body), GATEWAY_STORED);
    http_client_close(&direct);
}

/* Nothing invites nginx to keep a value, so nobody gets an old one. */
static void
test_not_cached_by_default(void **state)
{
    (void)state;
    put("/k?ttl=60", "one");
    expect("/k", "one", "MISS");
    expect("/k", "one", "MISS");
    put("/k", "two");
    expect("/k", "two", "MISS");
}

static void
test_cached_for_its_ttl(void **state)
{
    (void)state;
    put("/ttl/k?ttl=60", "one");
    expect("/ttl/k", "one", "MISS");
    expect("/ttl/k", "one", "HIT");
    put("/ttl/forever", "one");
    expect("/ttl/forever", "one", "MISS");
    expect("/ttl/forever", "one", "MISS");
}

/* Once its copy is a second old, nginx asks with the ETag: 304, or the new value. */
static void
test_revalidated(void **state)
{
    int64_t give_up = clock_monotonic_ms() + GATEWAY_TIMEOUT_MS;
    const char *told;

    (void)state;
    put("/second/k", "one");
    expect("/second/k", "one", "MISS");
    do {
        assert_request(&c, "GET", "/second/k", NULL, NULL, 0, 200);
        assert_body(&c, "one");
        told = http_client_header(&c, "X-Cache");
        assert_non_null(told);
        assert_true(clock_monotonic_ms() < give_up);
        usleep(20000);
    } while (strcmp(told, "HIT") == 0);
    assert_string_equal(told, "REVALIDATED");
    put("/second/k", "two");
    do {
        assert_request(&c, "GET", "/second/k", NULL, NULL, 0, 200);
        told = http_client_header(&c, "X-Cache");
        assert_true(clock_monotonic_ms() < give_up);
        usleep(20000);
    } while (strcmp(told, "HIT") == 0);
    assert_string_equal(told, "EXPIRED");
    assert_body(&c, "two");
}

/* A client's own condition is answered by the cache, or through it. */
static void
test_conditions_pass(void **state)
{
    char headers[128];

    (void)state;
    put("/k", "one");
    assert_request(&c, "GET", "/k", NULL, NULL, 0, 200);
    snprintf(headers, sizeof(headers), "If-None-Match: %s\r\n", http_client_header(&c, "ETag"));
    assert_request(&c, "GET", "/k", headers, NULL, 0, 304);
    put("/k", "two");
    assert_request(&c, "GET", "/k", headers, NULL, 0, 200);
    assert_body(&c, "two");
}

/* The gateway's sockets, as one text. */
static void
sockets_of_gateway(char *out, size_t size)
{
    char path[64], name[320], target[64];
    struct dirent *entry;
    size_t len = 0;
    DIR *dir;

    snprintf(path, sizeof(path), "/proc/%d/fd", (int)gateway.process.pid);
    dir = opendir(path);
    assert_non_null(dir);
    while ((entry = readdir(dir)) != NULL) {
        snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
        ssize_t n = readlink(name, target, sizeof(target) - 1);
        if (n > 7 && strncmp(target, "socket:", 7) == 0) {
            target[n] = '\0';
            len += (size_t)snprintf(out + len, size - len, "%s ", target);
        }
    }
    closedir(dir);
}

static void
test_nginx_keeps_its_connection(void **state)
{
    static char before[4096], after[4096];

    (void)state;
    put("/k", "one");
    expect("/k", "one", "MISS");
    sockets_of_gateway(before, sizeof(before));
    for (int i = 0; i < 50; i++) {
        expect("/k", "one", "MISS");
        assert_request(&c, "GET", "/nothing", NULL, NULL, 0, 404);
        assert_request(&c, "PUT", "/k", NULL, "one", 3, 204);
    }
    sockets_of_gateway(after, sizeof(after));
    assert_string_equal(before, after);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_not_cached_by_default),
        cmocka_unit_test(test_cached_for_its_ttl),
        cmocka_unit_test(test_revalidated),
        cmocka_unit_test(test_conditions_pass),
        cmocka_unit_test(test_nginx_keeps_its_connection),
    };

    if (system("PATH=$PATH:/usr/sbin command -v nginx >/dev/null") != 0) {
        printf("SKIP: there is no nginx\n");
        return 0;
    }
    return cmocka_run_group_tests(tests, setup, teardown);
}
