/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * url.c: takes http URLs apart. Decodes nothing: the path goes out as it was given.
 */
#include "url.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <unistd.h>

#include "timing.h"

bool
url_is_path(const char *text)
{
    if (text[0] != '/' || strlen(text) >= URL_PATH_MAX) {
        return false;
    }
    for (const char *at = text; *at != '\0'; at++) {
        if ((unsigned char)*at <= ' ' || *at == 0x7f || *at == '?' || *at == '#') {
            return false;
        }
    }
    return true;
}

const char *
url_parse(const char *text, struct url *url)
{
    static const char scheme[] = "http://";
    const char *host, *path;

    if (strncasecmp(text, "https://", 8) == 0) {
        return "https is not supported: probe the server behind the TLS end";
    }
    if (strncasecmp(text, scheme, sizeof(scheme) - 1) != 0) {
        return "it must begin with http://";
    }
    host = text + sizeof(scheme) - 1;
    path = host + strcspn(host, "/?#");
    if (memchr(host, '@', (size_t)(path - host)) != NULL) {
        return "user names are not supported";
    }
    if (!net_split(host, (size_t)(path - host), "80", &url->name)) {
        return "no host and port in it";
    }
    if (strpbrk(url->name.host, " \t\r\n") != NULL) {
        return "no host and port in it";
    }
    if (*path != '\0' && !url_is_path(path)) {
        return "its path is a prefix for keys: no query, no fragment, no spaces, 1023 bytes at "
               "most";
    }
    snprintf(url->host, sizeof(url->host), "%.*s", (int)(path - host), host);
    snprintf(url->path, sizeof(url->path), "%s", *path == '\0' ? "/" : path);
    return NULL;
}

void
url_make_key(char key[URL_KEY_MAX])
{
    uint64_t random = 0;

    if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random)) {
        random = (uint64_t)timing_now_ns() << 20 ^ (uint64_t)getpid();
    }
    snprintf(key, URL_KEY_MAX, "kvstall-%016" PRIx64, random);
}
