/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * floor.c: the least that an HTTP server can do on epoll: it reads until a request is complete, by
 * its Content-Length, looks at nothing else, and answers the same bytes. What others cost above
 * it is what they do.
 *
 *     floor PORT BYTES-OF-BODY [THREADS]
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define FDS_MAX 65536
#define IN_MAX  (1 << 20)

static uint16_t port;
static char *answer;
static size_t answer_len;
static size_t left[FDS_MAX]; /* bytes of the request that are still to come, by fd */

/* What follows in other reads of a request whose first N bytes are in IN. */
static size_t
rest_of_request(const char *in, size_t n)
{
    const char *end = memmem(in, n, "\r\n\r\n", 4), *length;

    if (end == NULL) {
        return 0;
    }
    length = memmem(in, (size_t)(end - in), "Content-Length: ", 16);
    return length == NULL ? 0 : strtoul(length + 16, NULL, 10) + (size_t)(end + 4 - in) - n;
}

static void
serve(int fd, char *in)
{
    ssize_t n = recv(fd, in, IN_MAX - 1, MSG_DONTWAIT);

    if (n == 0) {
        close(fd);
    }
    if (n <= 0) {
        return;
    }
    in[n] = '\0';
    left[fd] = left[fd] > 0 ? left[fd] - (size_t)n : rest_of_request(in, (size_t)n);
    for (size_t sent = 0; left[fd] == 0 && sent < answer_len;) {
        ssize_t out = send(fd, answer + sent, answer_len - sent, MSG_NOSIGNAL);
        if (out < 0) {
            close(fd);
            return;
        }
        sent += (size_t)out;
    }
}

/* A thread: its own listening socket on the port, its own epoll. */
static void *
run(void *arg)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port) };
    int listener = socket(AF_INET, SOCK_STREAM, 0), epoll = epoll_create1(0), on = 1;
    struct epoll_event events[256], event = { .events = EPOLLIN, .data.fd = listener };
    char *in = malloc(IN_MAX);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(listener, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on));
    if (in == NULL || bind(listener, (struct sockaddr *)&address, sizeof(address)) < 0 ||
        listen(listener, 4096) < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event) < 0) {
        perror("floor");
        exit(1);
    }
    for (;;) {
        int count = epoll_wait(epoll, events, 256, -1);
        for (int i = 0; i < count; i++) {
            int fd = events[i].data.fd;
            if (fd != listener) {
                serve(fd, in);
                continue;
            }
            fd = accept(listener, NULL, NULL);
            if (fd >= 0 && fd < FDS_MAX) {
                event.data.fd = fd;
                left[fd] = 0;
                setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
                epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
            }
        }
    }
    return arg;
}

int
main(int argc, char **argv)
{
    size_t body = argc > 2 ? strtoul(argv[2], NULL, 10) : 0, head;
    pthread_t thread;

    port = (uint16_t)(argc > 1 ? atoi(argv[1]) : 0);
    answer = calloc(1, body + 200);
    head = (size_t)sprintf(answer, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", body);
    memset(answer + head, 'v', body);
    answer_len = head + body;
    for (int i = 1; i < (argc > 3 ? atoi(argv[3]) : 1); i++) {
        pthread_create(&thread, NULL, run, NULL);
    }
    run(NULL);
}
