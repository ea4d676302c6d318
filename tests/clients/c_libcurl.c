/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libcurl's easy interface on one handle, and so one connection: c_libcurl URL ROUNDS
 *
 * With CURLOPT_UPLOAD libcurl waits for "100 Continue" by itself.
 *
 * Prints a line "op size microseconds" for each request; ends with 1 at a wrong value or status. It is a
 * client, not a test binary: tests/clients/run builds and starts it.
 */
#include <curl/curl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define VALUE_MAX 307200 /* bytes; the larger of the two sizes */
#define TEXT_MAX  64     /* bytes of one line of a value, with its NUL */

/* What is sent, and how far; or what was received. */
struct value {
    char bytes[VALUE_MAX + TEXT_MAX]; /* a last line may reach over the end while it is written */
    size_t length;                    /* bytes that count */
    size_t sent;                      /* of them, handed to libcurl */
};

static struct value wanted;
static struct value received;

/* Numbered lines that say whose they are, cut to SIZE bytes. */
static void
value_fill(struct value *v, size_t size, long round)
{
    size_t used = 0;

    for (unsigned line = 0; used < size; line++) {
        used += (size_t)snprintf(v->bytes + used, TEXT_MAX, "c-libcurl %zu %ld %u\n", size, round,
                                 line);
    }
    v->length = size;
    v->sent = 0;
}

static size_t
on_read(char *to, size_t size, size_t count, void *arg)
{
    struct value *v = arg;
    size_t n = v->length - v->sent;

    if (n > size * count) {
        n = size * count;
    }
    memcpy(to, v->bytes + v->sent, n);
    v->sent += n;
    return n;
}

/* Returning less than what came makes the transfer fail. */
static size_t
on_write(char *from, size_t size, size_t count, void *arg)
{
    struct value *v = arg;

    if (size * count > VALUE_MAX - v->length) {
        return 0;
    }
    memcpy(v->bytes + v->length, from, size * count);
    v->length += size * count;
    return size * count;
}

static long
now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (long)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* One request; returns its status, 0 when there was none. The options stay with the handle. */
static long
request(CURL *curl, const char *url, bool put, long *us)
{
    long start = now_us();
    long status = 0;
    CURLcode result;

    received.length = 0;
    curl_easy_setopt(curl, CURLOPT_URL, url);
    if (put) {
        curl_easy_setopt(curl, CURLOPT_UPLOAD, 1L);
        curl_easy_setopt(curl, CURLOPT_INFILESIZE_LARGE, (curl_off_t)wanted.length);
    } else {
        curl_easy_setopt(curl, CURLOPT_HTTPGET, 1L);
    }
    result = curl_easy_perform(curl);
    *us = now_us() - start;
    if (result != CURLE_OK) {
        fprintf(stderr, "%s\n", curl_easy_strerror(result));
        return 0;
    }
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    return status;
}

/* A set and a get of SIZE bytes. Round 0 is for warming up. */
static bool
set_and_get(CURL *curl, const char *base, size_t size, long round)
{
    char url[512];
    long put_us;
    long get_us;
    long status;

    snprintf(url, sizeof(url), "%sc-libcurl-%zu", base, size);
    value_fill(&wanted, size, round);
    status = request(curl, url, true, &put_us);
    if (status != 201 && status != 204) {
        fprintf(stderr, "round %ld: put answered %ld\n", round, status);
        return false;
    }
    status = request(curl, url, false, &get_us);
    if (status != 200 || received.length != size ||
        memcmp(received.bytes, wanted.bytes, size) != 0) {
        fprintf(stderr, "round %ld: get answered %ld, %zu bytes\n", round, status, received.length);
        return false;
    }
    if (round > 0) {
        printf("put %zu %ld\nget %zu %ld\n", size, put_us, size, get_us);
    }
    return true;
}

int
main(int argc, char **argv)
{
    CURL *curl;
    bool good = true;
    long rounds;

    if (argc != 3) {
        fprintf(stderr, "usage: c_libcurl URL ROUNDS\n");
        return 64;
    }
    rounds = strtol(argv[2], NULL, 10);
    curl_global_init(CURL_GLOBAL_DEFAULT);
    curl = curl_easy_init();
    if (curl == NULL) {
        return 1;
    }
    curl_easy_setopt(curl, CURLOPT_TIMEOUT, 10L);
    curl_easy_setopt(curl, CURLOPT_READFUNCTION, on_read);
    curl_easy_setopt(curl, CURLOPT_READDATA, &wanted);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_write);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &received);
    for (long round = 0; good && round <= rounds; round++) {
        good =
            set_and_get(curl, argv[1], VALUE_MAX, round) && set_and_get(curl, argv[1], 100, round);
    }
    curl_easy_cleanup(curl);
    curl_global_cleanup();
    return good ? 0 : 1;
}
