/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fake_memcached.c: the thread and the sockets of the fake memcached.
 *
 *   thread:  poll -> (unlocked until here) -> carry out requests of the test -> accept
 *                 -> per connection: receive, record, play steps or behave, send -> tell the test
 *
 * The thread alone touches sockets. The test asks through `request` and looks at the records;
 * both under the lock, which the thread gives up only while it polls.
 */
#include "fake_memcached.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "fake_priv.h"

/* ---- sockets ---- */

static int
bound_socket(uint16_t port)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons(port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int on = 1;
    int status;

    assert(fd >= 0);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    status = bind(fd, (struct sockaddr *)&address, sizeof(address));
    assert(status == 0);
    (void)status;
    return fd;
}

static void
start_listening(struct fake *fake)
{
    int status;

    if (fake->listen_fd < 0) {
        fake->listen_fd = bound_socket(fake->port);
        status = listen(fake->listen_fd, 512);
        assert(status == 0);
        (void)status;
    }
}

void
fake_close(struct fake_connection *c, bool reset)
{
    struct linger linger = { .l_onoff = 1, .l_linger = 0 };

    if (c->fd < 0) {
        return;
    }
    if (reset) {
        setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
    }
    close(c->fd);
    c->fd = -1;
    c->holding = false;
}

static void
drop_all(struct fake *fake)
{
    for (size_t i = 0; i < fake->accepted; i++) {
        fake_close(fake->connections[i], false);
    }
}

static void
accept_all(struct fake *fake)
{
    int on = 1;

    while (fake->listen_fd >= 0 && fake->accepted < FAKE_CONNECTIONS_MAX) {
        struct fake_connection *c;
        int fd = accept4(fake->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) {
            return;
        }
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        c = calloc(1, sizeof(*c));
        assert(c != NULL);
        c->fd = fd;
        c->script = fake->script_next < fake->script_count ? fake->scripts[fake->script_next++]
                                                           : fake->every;
        fake->connections[fake->accepted++] = c;
        fake_play(fake, c);
    }
}

/* One read, so that the record shows how the bytes came. */
static void
receive(struct fake *fake, size_t index)
{
    struct fake_connection *c = fake->connections[index];
    ssize_t n = recv(c->fd, fake->receive, sizeof(fake->receive), 0);

    if (n > 0) {
        fake_record(fake, index, fake->receive, (size_t)n);
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        c->client_gone = true;
    }
}

void
fake_send_some(struct fake_connection *c)
{
    ssize_t n = 0;

    if (c->fd >= 0 && c->out.len > 0) {
        n = send(c->fd, c->out.ptr, c->out.len, MSG_NOSIGNAL);
        if (n > 0) {
            fake_bytes_drop(&c->out, (size_t)n);
        } else if (errno != EAGAIN && errno != EINTR) {
            fake_close(c, false);
        }
    }
}

/* ---- the thread ---- */

static int
poll_timeout(const struct fake *fake)
{
    int64_t now_ms = clock_monotonic_ms();
    int64_t timeout = 1000;

    for (size_t i = 0; i < fake->accepted; i++) {
        const struct fake_connection *c = fake->connections[i];
        if (c->fd >= 0 && c->due_ms != 0 && c->due_ms - now_ms < timeout) {
            timeout = c->due_ms > now_ms ? c->due_ms - now_ms : 0;
        }
    }
    return (int)timeout;
}

static void
answer_request(struct fake *fake)
{
    uint64_t count;

    if (read(fake->wake_fd, &count, sizeof(count)) < 0) {
        return;
    }
    switch (fake->request) {
    case FAKE_REQUEST_STOP:
        if (fake->listen_fd >= 0) {
            close(fake->listen_fd);
            fake->listen_fd = -1;
        }
        drop_all(fake);
        break;
    case FAKE_REQUEST_START:
        start_listening(fake);
        break;
    case FAKE_REQUEST_DROP:
        accept_all(fake);
        drop_all(fake);
        break;
    default:
        break;
    }
    if (fake->release) {
        for (size_t i = 0; i < fake->accepted; i++) {
            struct fake_connection *c = fake->connections[i];
            if (c->holding) {
                c->holding = false;
                fake_next_step(fake, c);
                fake_play(fake, c);
            }
        }
        fake->release = false;
    }
    if (fake->request != FAKE_REQUEST_END) {
        fake->request = FAKE_REQUEST_NONE;
    }
    pthread_cond_broadcast(&fake->answered);
}

/* Fills FDS, and in WHO the connection of each; the first two are wake and listen. */
static nfds_t
fill_poll(const struct fake *fake, struct pollfd *fds, size_t *who)
{
    nfds_t n = 2;

    fds[0] = (struct pollfd){ .fd = fake->wake_fd, .events = POLLIN };
    fds[1] = (struct pollfd){ .fd = fake->listen_fd, .events = POLLIN };
    for (size_t i = 0; i < fake->accepted; i++) {
        const struct fake_connection *c = fake->connections[i];
        int events = c->out.len > 0 ? POLLOUT : 0;
        if (c->fd >= 0) {
            if (!c->holding && !c->client_gone) {
                events |= POLLIN;
            } else if (!c->hung_up) {
                events |= POLLRDHUP;
            }
            fds[n] = (struct pollfd){ .fd = c->fd, .events = (short)events };
            who[n++] = i;
        }
    }
    return n;
}

static void *
run(void *arg)
{
    static _Thread_local struct pollfd fds[FAKE_CONNECTIONS_MAX + 2];
    static _Thread_local size_t who[FAKE_CONNECTIONS_MAX + 2];
    struct fake *fake = arg;

    pthread_mutex_lock(&fake->lock);
    while (fake->request != FAKE_REQUEST_END) {
        nfds_t n = fill_poll(fake, fds, who);
        int timeout = poll_timeout(fake);
        pthread_mutex_unlock(&fake->lock);
        poll(fds, n, timeout);
        pthread_mutex_lock(&fake->lock);
        for (nfds_t i = 2; i < n; i++) {
            struct fake_connection *c = fake->connections[who[i]];
            c->hung_up = c->hung_up || (fds[i].revents & POLLRDHUP) != 0;
            if ((fds[i].revents & POLLIN) != 0) {
                receive(fake, who[i]);
            } else if ((fds[i].revents & (POLLHUP | POLLERR)) != 0) {
                fake_close(c, false);
            }
            fake_play(fake, c);
        }
        accept_all(fake);
        answer_request(fake);
    }
    pthread_mutex_unlock(&fake->lock);
    return NULL;
}

static void
ask(struct fake *fake, enum fake_request request, bool release)
{
    uint64_t one = 1;
    ssize_t n;

    pthread_mutex_lock(&fake->lock);
    fake->request = request;
    fake->release = release;
    n = write(fake->wake_fd, &one, sizeof(one));
    assert(n == sizeof(one));
    (void)n;
    while (request != FAKE_REQUEST_END && (fake->request != FAKE_REQUEST_NONE || fake->release)) {
        pthread_cond_wait(&fake->answered, &fake->lock);
    }
    pthread_mutex_unlock(&fake->lock);
}

/* ---- for the test ---- */

struct fake *
fake_create(unsigned lacks)
{
    struct fake *fake = calloc(1, sizeof(*fake));
    struct sockaddr_in address;
    socklen_t len = sizeof(address);
    int status;

    assert(fake != NULL);
    pthread_mutex_init(&fake->lock, NULL);
    pthread_cond_init(&fake->answered, NULL);
    fake->lacks = lacks;
    fake->table = fake_table_create(lacks);
    fake->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    fake->keeper_fd = bound_socket(0);
    getsockname(fake->keeper_fd, (struct sockaddr *)&address, &len);
    fake->port = ntohs(address.sin_port);
    fake->listen_fd = -1;
    start_listening(fake);
    status = pthread_create(&fake->thread, NULL, run, fake);
    assert(status == 0);
    (void)status;
    return fake;
}

void
fake_destroy(struct fake *fake)
{
    if (fake == NULL) {
        return;
    }
    ask(fake, FAKE_REQUEST_END, false);
    pthread_join(fake->thread, NULL);
    drop_all(fake);
    fake_record_free(fake);
    if (fake->listen_fd >= 0) {
        close(fake->listen_fd);
    }
    close(fake->keeper_fd);
    close(fake->wake_fd);
    fake_table_destroy(fake->table);
    pthread_cond_destroy(&fake->answered);
    pthread_mutex_destroy(&fake->lock);
    free(fake);
}

uint16_t
fake_port(const struct fake *fake)
{
    return fake->port;
}

static void
set_script(struct fake_script *script, const struct fake_step *steps, size_t count)
{
    assert(count <= FAKE_STEPS_MAX);
    if (count > 0) {
        memcpy(script->steps, steps, count * sizeof(*steps));
    }
    script->count = count;
}

void
fake_script(struct fake *fake, const struct fake_step *steps, size_t count)
{
    pthread_mutex_lock(&fake->lock);
    assert(fake->script_count < FAKE_SCRIPTS_MAX);
    set_script(&fake->scripts[fake->script_count++], steps, count);
    pthread_mutex_unlock(&fake->lock);
}

void
fake_script_every(struct fake *fake, const struct fake_step *steps, size_t count)
{
    pthread_mutex_lock(&fake->lock);
    set_script(&fake->every, steps, count);
    pthread_mutex_unlock(&fake->lock);
}

void
fake_put(struct fake *fake, struct slice key, struct slice value, uint32_t flags)
{
    pthread_mutex_lock(&fake->lock);
    fake_table_put(fake->table, key, value)->flags = flags;
    pthread_mutex_unlock(&fake->lock);
}

void
fake_release(struct fake *fake)
{
    ask(fake, FAKE_REQUEST_NONE, true);
}

void
fake_stop(struct fake *fake)
{
    ask(fake, FAKE_REQUEST_STOP, false);
}

void
fake_start(struct fake *fake)
{
    ask(fake, FAKE_REQUEST_START, false);
}

void
fake_drop(struct fake *fake)
{
    ask(fake, FAKE_REQUEST_DROP, false);
}
