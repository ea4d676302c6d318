/* SPDX-License-Identifier: BSD-2-Clause */
/* net_capture.c: reads a packet socket. IPv4 and TCP only; what it means is the test's business. */
#include "net_capture.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <netinet/ip.h>
#define __FAVOR_BSD
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Room for some megabytes of answers in segments, each with the kernel's own overhead. */
#define RECEIVE_BUFFER (32 * 1024 * 1024)

bool
net_capture_open(struct net_capture *capture, int device, bool is_loopback)
{
    struct sockaddr_ll address = { .sll_family = AF_PACKET,
                                   .sll_protocol = htons(ETH_P_ALL),
                                   .sll_ifindex = device };
    int room = RECEIVE_BUFFER, on = 1;

    *capture = (struct net_capture){ .is_loopback = is_loopback };
    /* SOCK_DGRAM: without the Ethernet header. Protocol 0: nothing comes before it is bound. */
    capture->fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (capture->fd == -1) {
        return false;
    }
    if (setsockopt(capture->fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)) == -1) {
        setsockopt(capture->fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
    }
    if (setsockopt(capture->fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof(on)) == -1 ||
        bind(capture->fd, (struct sockaddr *)&address, sizeof(address)) == -1) {
        net_capture_close(capture);
        return false;
    }
    return true;
}

void
net_capture_close(struct net_capture *capture)
{
    if (capture->fd > 2) {
        close(capture->fd);
    }
    capture->fd = -1;
    free(capture->segments);
    capture->segments = NULL;
    capture->count = capture->cap = 0;
}

/* Cuts PACKET into a segment. False: it is of no interest. */
static bool
dissect(const struct net_capture *capture, const unsigned char *packet, size_t len,
        struct net_segment *s)
{
    struct ip ip;
    struct tcphdr tcp;
    size_t ip_len, tcp_len, total;

    if (len < sizeof(ip)) {
        return false;
    }
    memcpy(&ip, packet, sizeof(ip));
    ip_len = ip.ip_hl * 4U;
    total = ntohs(ip.ip_len);
    if (ip.ip_v != 4 || ip.ip_p != IPPROTO_TCP || total > len || total < ip_len + sizeof(tcp)) {
        return false;
    }
    memcpy(&tcp, packet + ip_len, sizeof(tcp));
    tcp_len = tcp.th_off * 4U;
    if (total < ip_len + tcp_len) {
        return false;
    }
    s->from = ntohs(tcp.th_sport);
    s->to = ntohs(tcp.th_dport);
    s->seq = ntohl(tcp.th_seq);
    s->ack = ntohl(tcp.th_ack);
    s->flags = tcp.th_flags;
    s->len = total - ip_len - tcp_len;
    memcpy(s->payload, packet + ip_len + tcp_len,
           s->len < NET_CAPTURE_PAYLOAD ? s->len : NET_CAPTURE_PAYLOAD);
    return capture->port == 0 || s->from == capture->port || s->to == capture->port;
}

static int64_t
time_of(struct msghdr *message)
{
    struct timespec t = { 0 };

    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c != NULL; c = CMSG_NXTHDR(message, c)) {
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_TIMESTAMPNS) {
            memcpy(&t, CMSG_DATA(c), sizeof(t));
        }
    }
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static struct net_segment *
next_free(struct net_capture *capture)
{
    if (capture->count == capture->cap) {
        capture->cap = capture->cap * 2 + 64;
        capture->segments = realloc(capture->segments, capture->cap * sizeof(struct net_segment));
        if (capture->segments == NULL) {
            abort();
        }
    }
    return &capture->segments[capture->count];
}

/* One packet. False: there is none. */
static bool
read_one(struct net_capture *capture)
{
    unsigned char packet[2048];
    char control[256];
    struct sockaddr_ll from;
    struct iovec piece = { packet, sizeof(packet) };
    struct msghdr message = { .msg_name = &from,
                              .msg_namelen = sizeof(from),
                              .msg_iov = &piece,
                              .msg_iovlen = 1,
                              .msg_control = control,
                              .msg_controllen = sizeof(control) };
    struct net_segment *s = next_free(capture);
    ssize_t n = recvmsg(capture->fd, &message, 0);

    if (n < 0) {
        return errno == EINTR;
    }
    if ((!capture->is_loopback || from.sll_pkttype != PACKET_OUTGOING) &&
        dissect(capture, packet, (size_t)n, s)) {
        s->time_ns = time_of(&message);
        capture->count++;
    }
    return true;
}

void
net_capture_begin(struct net_capture *capture, uint16_t port)
{
    net_capture_read(capture);
    capture->count = 0;
    capture->port = port;
}

bool
net_capture_read(struct net_capture *capture)
{
    struct tpacket_stats lost = { 0 };
    socklen_t len = sizeof(lost);

    while (read_one(capture)) {
    }
    getsockopt(capture->fd, SOL_PACKET, PACKET_STATISTICS, &lost, &len);
    return lost.tp_drops == 0;
}

bool
net_capture_wait(struct net_capture *capture, int timeout_ms)
{
    struct pollfd readable = { .fd = capture->fd, .events = POLLIN };

    poll(&readable, 1, timeout_ms);
    return net_capture_read(capture);
}

bool
net_capture_is_data(const struct net_capture *capture, size_t i, uint16_t port)
{
    const struct net_segment *s = &capture->segments[i];
    uint32_t end = s->seq + (uint32_t)s->len;

    if (s->to != port || s->len == 0) {
        return false;
    }
    for (size_t k = 0; k < i; k++) {
        const struct net_segment *old = &capture->segments[k];
        if (old->from == s->from && old->to == port && old->len > 0 &&
            (int32_t)(old->seq + (uint32_t)old->len - end) >= 0) {
            return false;
        }
    }
    return true;
}

void
net_capture_show(const struct net_capture *capture)
{
    for (size_t i = 0; i < capture->count; i++) {
        const struct net_segment *s = &capture->segments[i];
        int line = (int)strcspn(s->len > 0 ? s->payload : "", "\r\n");

        fprintf(stderr,
                "  %9.3f ms  %5u > %-5u  seq %10u  ack %10u  flags %02x  %4zu bytes  %.*s\n",
                (double)(s->time_ns - capture->segments[0].time_ns) / 1e6, s->from, s->to, s->seq,
                s->ack, s->flags, s->len, s->len > 0 ? (line < 40 ? line : 40) : 0, s->payload);
    }
}
