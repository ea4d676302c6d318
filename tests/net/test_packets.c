/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_packets.c: that no request waits for a delayed ACK, by the packets themselves: MTU 1500,
 * the gateway in one network namespace and the client in another. What is structure (what is in
 * which segment, what comes without an acknowledgement) must be so every time; what is time is
 * judged by the median.
 */
#include "net_scene.h"

#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "clock.h"
#include "silent_client.h"

/* A half request is to be acknowledged at once: 0.1 ms here, 40 ms with a delayed ACK. */
#define ACK_LIMIT_NS (10 * 1000000LL)

#define SMALL_ROUNDS 20

static struct net_scene scene;

static int
setup(void **state)
{
    (void)state;
    if (!net_scene_open(&scene)) {
        return -1;
    }
    return scene.pair.fd[NET_CLIENT] == -1 || net_scene_start(&scene, NULL) ? 0 : -1;
}

static int
teardown(void **state)
{
    (void)state;
    return net_scene_stop(&scene) ? 0 : -1;
}

static void
connect_client(struct http_client *c, bool nagle)
{
    assert_true(net_scene_connect(c, NET_PAIR_GATEWAY_ADDRESS, NET_PAIR_PORT, nagle));
}

/* A target in the route of STORE, in a buffer of its own that lives until the next call but one. */
static const char *
target(const char *store, size_t len)
{
    static char text[2][64];
    static int turn;

    turn = !turn;
    snprintf(text[turn], sizeof(text[turn]), "/%s/p%zu", store, len);
    return text[turn];
}

/* Takes in what has passed; whatever was asserted about a lossy record would mean nothing. */
static void
read_capture(struct net_capture *c)
{
    assert_true(net_capture_read(c));
}

/* The gateway's data segments to PORT in the record; *PURE: those without data. */
static size_t
count_answer(uint16_t port, size_t *pure)
{
    size_t count = 0;

    *pure = 0;
    for (size_t i = 0; i < scene.front.count; i++) {
        if (scene.front.segments[i].to == port) {
            count += net_capture_is_data(&scene.front, i, port);
            *pure += scene.front.segments[i].len == 0;
        }
    }
    return count;
}

/* ---- small answers --------------------------------------------------------------------------- */

/* One exchange, whose answer must be one segment. */
static void
exchange_small(struct http_client *c, const char *store, const char *method, const char *path,
               int status, const char *body)
{
    size_t pure;

    net_capture_begin(&scene.front, net_scene_port(c));
    assert_request(c, method, path, NULL, body, body == NULL ? 0 : strlen(body), status);
    read_capture(&scene.front);
    net_scene_check(count_answer(net_scene_port(c), &pure) == 1, &scene.front,
                    "more than one segment", store, c->body_len);
}

static void
test_small_answer_is_one_segment(void **state)
{
    (void)state;
    net_scene_require_pair(&scene);
    for (const char *const *store = net_scene_stores; *store != NULL; store++) {
        struct http_client c;

        connect_client(&c, true);
        for (int i = 0; i < SMALL_ROUNDS; i++) {
            exchange_small(&c, *store, "PUT", target(*store, 1), GATEWAY_STORED, "hello");
            exchange_small(&c, *store, "GET", target(*store, 1), 200, NULL);
            exchange_small(&c, *store, "HEAD", target(*store, 1), 200, NULL);
            exchange_small(&c, *store, "DELETE", target(*store, 1), 204, NULL);
            exchange_small(&c, *store, "GET", target(*store, 1), 404, NULL);
        }
        http_client_close(&c);
    }
}

/* ---- answers of every size ------------------------------------------------------------------- */

/* The longest pause between two of the gateway's data segments in the record. */
static int64_t
longest_gap(uint16_t port)
{
    int64_t last = 0, longest = 0;

    for (size_t i = 0; i < scene.front.count; i++) {
        const struct net_segment *s = &scene.front.segments[i];
        if (net_capture_is_data(&scene.front, i, port)) {
            if (last != 0 && s->time_ns - last > longest) {
                longest = s->time_ns - last;
            }
            last = s->time_ns;
        }
    }
    return longest;
}

/* Header and first bytes of the body share the first segment, and it is as full as it can be. */
static bool
begins_well(uint16_t port, const struct http_client *c)
{
    size_t total = c->head_len + c->body_len;
    size_t first = total < NET_PAIR_SEGMENT ? total : NET_PAIR_SEGMENT;

    for (size_t i = 0; i < scene.front.count; i++) {
        const struct net_segment *s = &scene.front.segments[i];
        if (net_capture_is_data(&scene.front, i, port)) {
            return s->len == first && first > c->head_len && memcmp(s->payload, "HTTP/", 5) == 0;
        }
    }
    return false;
}

static void
test_answer_has_no_pause(void **state)
{
    static const size_t sizes[] = { 100, 1448, 1449, 2896, 16000, 65483, 307200 };

    (void)state;
    net_scene_require_pair(&scene);
    for (const char *const *store = net_scene_stores; *store != NULL; store++) {
        for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
            const char *path = target(*store, sizes[k]);
            int64_t gaps[NET_REPEAT], median;
            struct http_client c;

            connect_client(&c, true);
            assert_true(net_scene_put(&c, path, sizes[k]));
            for (int i = 0; i < NET_REPEAT; i++) {
                net_capture_begin(&scene.front, net_scene_port(&c));
                assert_true(net_scene_get(&c, path, sizes[k]));
                read_capture(&scene.front);
                net_scene_check(begins_well(net_scene_port(&c), &c), &scene.front,
                                "a poor first segment", *store, sizes[k]);
                gaps[i] = longest_gap(net_scene_port(&c));
            }
            median = net_median(gaps, NET_REPEAT);
            print_message("GET %s %zu bytes: longest gap %.3f ms\n", *store, sizes[k],
                          (double)median / 1e6);
            net_scene_check(median < NET_STALL_NS, &scene.front, "a pause in the answer", *store,
                            sizes[k]);
            http_client_close(&c);
        }
    }
}

/* The data segments in the record of what went to the silent client. */
static size_t
count_silent(void)
{
    size_t count = 0;

    for (size_t i = 0; i < scene.front.count; i++) {
        count += scene.front.segments[i].from == NET_PAIR_PORT &&
                 net_capture_is_data(&scene.front, i, scene.front.port);
    }
    return count;
}

/*
 * The proof that needs no clock: the client acknowledges nothing, and the whole answer comes, as
 * far as the initial window goes, in as few segments as carry it.
 */
static void
check_silent_get(const char *store, size_t len)
{
    size_t total;
    ssize_t got = net_scene_silent_get(&scene, target(store, len), len, 1, &total);
    size_t segments = (total + NET_PAIR_PLAIN_SEGMENT - 1) / NET_PAIR_PLAIN_SEGMENT;

    net_scene_check(got == (ssize_t)total && count_silent() == segments, &scene.front,
                    "the answer waits for an acknowledgement", store, len);
}

static void
test_answer_needs_no_acknowledgement(void **state)
{
    static const size_t sizes[] = { 0,    1,    100,  1200, 1300, 1400, 1448,  1449,
                                    1460, 1461, 2000, 2896, 2921, 8192, 14000, 14200 };

    (void)state;
    net_scene_require_pair(&scene);
    for (const char *const *store = net_scene_stores; *store != NULL; store++) {
        for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
            check_silent_get(*store, sizes[k]);
        }
    }
}

/* Requests that come together: no answer waits for the acknowledgement of the one before. */
static void
test_pipelined_answers_need_no_acknowledgement(void **state)
{
    (void)state;
    net_scene_require_pair(&scene);
    for (const char *const *store = net_scene_stores; *store != NULL; store++) {
        size_t total;
        ssize_t got = net_scene_silent_get(&scene, target(*store, 5), 5, 4, &total);

        net_scene_check(got == (ssize_t)total, &scene.front, "an answer waits", *store, 5);
    }
}

/* ---- half requests --------------------------------------------------------------------------- */

struct half {
    const char *name; /* for the message */
    const char *half; /* what comes first; %s is the target */
    size_t half_body; /* bytes of body with it */
    const char *rest; /* what comes after the acknowledgement */
    size_t rest_body;
};

static const struct half halves[] = {
    { "request line alone", "PUT %s HTTP/1.1\r\n", 0, "Host: x\r\nContent-Length: 100\r\n\r\n",
      100 },
    { "request line of a GET", "GET %s HTTP/1.1\r\n", 0, "Host: x\r\n\r\n", 0 },
    { "some header lines", "PUT %s HTTP/1.1\r\nHost: x\r\n", 0, "Content-Length: 100\r\n\r\n",
      100 },
    { "a header line in the middle", "PUT %s HTTP/1.1\r\nHost: x\r\nContent-Le", 0,
      "ngth: 100\r\n\r\n", 100 },
    { "header without body", "PUT %s HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n", 0, "",
      100 },
    { "header and first byte", "PUT %s HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n", 1, "",
      99 },
    { "all but the last byte", "PUT %s HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n", 99, "",
      1 },
    { "header and 1000 of 1100", "PUT %s HTTP/1.1\r\nHost: x\r\nContent-Length: 1100\r\n\r\n", 1000,
      "", 100 },
    { "chunked, header", "PUT %s HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n", 0,
      "4\r\nabcd\r\n0\r\n\r\n", 0 },
    { "chunked, size line", "PUT %s HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n",
      0, "abcd\r\n0\r\n\r\n", 0 },
    { "chunked, one chunk",
      "PUT %s HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n", 0,
      "0\r\n\r\n", 0 },
};

/* FORMAT with PATH, and BODY bytes after it. */
static struct slice
compose(char *buffer, size_t size, const char *format, const char *path, size_t body)
{
    size_t len = (size_t)snprintf(buffer, size, format, path);

    assert_true(len + body < size);
    memset(buffer + len, 'b', body);
    return slice_of(buffer, len + body);
}

static void
check_half(struct http_client *c, const char *store, const struct half *h)
{
    static char half[2048], rest[2048];
    struct slice a = compose(half, sizeof(half), h->half, target(store, 1), h->half_body);
    struct slice b = compose(rest, sizeof(rest), h->rest, "", h->rest_body);
    int64_t times[NET_REPEAT], median;

    for (int i = 0; i < NET_REPEAT; i++) {
        assert_true(net_scene_settle(c, target(store, 1)));
        times[i] = net_scene_half(&scene, c, a, b);
        net_scene_check(times[i] >= 0, &scene.front, h->name, store, h->half_body);
    }
    median = net_median(times, NET_REPEAT);
    print_message("%s, %s: acknowledged after %.3f ms (longest %.3f)\n", store, h->name,
                  (double)median / 1e6, (double)times[NET_REPEAT - 1] / 1e6);
    net_scene_check(median < ACK_LIMIT_NS, &scene.front, h->name, store, h->half_body);
}

static void
test_half_request_is_acknowledged(void **state)
{
    (void)state;
    net_scene_require_pair(&scene);
    for (const char *const *store = net_scene_stores; *store != NULL; store++) {
        for (size_t k = 0; k < sizeof(halves) / sizeof(halves[0]); k++) {
            struct http_client c;

            connect_client(&c, false);
            check_half(&c, *store, &halves[k]);
            http_client_close(&c);
        }
    }
}

/*
 * A request in one piece pays nothing for the rule: its acknowledgement rides on the answer. Only
 * on the embedded store, and not every time: an answer that a busy machine delays for 40 ms is
 * overtaken by the delayed ACK.
 */
static void
test_whole_request_has_no_acknowledgement_of_its_own(void **state)
{
    struct http_client c;
    size_t with_one = 0;

    (void)state;
    net_scene_require_pair(&scene);
    connect_client(&c, false);
    assert_true(net_scene_settle(&c, "/embedded/p1"));
    for (int i = 0; i < SMALL_ROUNDS; i++) {
        size_t pure;

        net_capture_begin(&scene.front, net_scene_port(&c));
        assert_true(i % 2 == 0 ? net_scene_get(&c, "/embedded/p1", 100)
                               : net_scene_put(&c, "/embedded/p1", 100));
        read_capture(&scene.front);
        assert_int_equal(count_answer(net_scene_port(&c), &pure), 1);
        with_one += pure > 0;
    }
    print_message("%zu of %d whole requests had an ACK of their own\n", with_one, SMALL_ROUNDS);
    net_scene_check(with_one <= SMALL_ROUNDS / 5, &scene.front, "acknowledged twice", "embedded",
                    100);
    http_client_close(&c);
}

/* ---- 100 Continue ---------------------------------------------------------------------------- */

static void
test_100_continue_leaves_alone_and_at_once(void **state)
{
    static const char head[] = "PUT /text/p1 HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n"
                               "Expect: 100-continue\r\n\r\n";
    int64_t times[NET_REPEAT], median;
    struct http_client c;

    (void)state;
    net_scene_require_pair(&scene);
    connect_client(&c, true);
    assert_true(net_scene_settle(&c, "/text/p1"));
    for (int i = 0; i < NET_REPEAT; i++) {
        const struct net_segment *s = NULL;
        size_t pure;

        net_capture_begin(&scene.front, net_scene_port(&c));
        assert_true(http_client_send_text(&c, head));
        assert_response(&c, false, 100);
        read_capture(&scene.front);
        assert_int_equal(count_answer(net_scene_port(&c), &pure), 1);
        for (size_t k = 0; k < scene.front.count; k++) {
            s = net_capture_is_data(&scene.front, k, net_scene_port(&c)) ? &scene.front.segments[k]
                                                                         : s;
        }
        assert_non_null(s);
        assert_int_equal(s->len, strlen("HTTP/1.1 100 Continue\r\n\r\n"));
        times[i] = s->time_ns - scene.front.segments[0].time_ns;
        assert_true(http_client_send_text(&c, "12345"));
        assert_response(&c, false, GATEWAY_STORED);
    }
    median = net_median(times, NET_REPEAT);
    print_message("100 Continue after %.3f ms\n", (double)median / 1e6);
    net_scene_check(median < ACK_LIMIT_NS, &scene.front, "100 Continue is late", "text", 0);
    http_client_close(&c);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small_answer_is_one_segment),
        cmocka_unit_test(test_answer_has_no_pause),
        cmocka_unit_test(test_answer_needs_no_acknowledgement),
        cmocka_unit_test(test_pipelined_answers_need_no_acknowledgement),
        cmocka_unit_test(test_half_request_is_acknowledged),
        cmocka_unit_test(test_whole_request_has_no_acknowledgement_of_its_own),
        cmocka_unit_test(test_100_continue_leaves_alone_and_at_once),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
