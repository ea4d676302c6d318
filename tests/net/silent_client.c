/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * silent_client.c: as much of TCP as it takes to ask a question: no options but the segment size,
 * no retransmission (the pair loses nothing), no window.
 */
#include "silent_client.h"

#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <netinet/ip.h>
#define __FAVOR_BSD
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"

/* How long it waits for anything: longer than the gateway's kernel waits to repeat. */
#define SILENCE_MS 5000

static const unsigned char segment_size_option[4] = { TCPOPT_MAXSEG, TCPOLEN_MAXSEG,
                                                      NET_PAIR_PLAIN_SEGMENT >> 8,
                                                      NET_PAIR_PLAIN_SEGMENT & 255 };

/* The Internet checksum's sum of DATA, unfolded, added to SUM. */
static uint32_t
add_up(uint32_t sum, const unsigned char *data, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        sum += (i & 1) != 0 ? data[i] : (uint32_t)data[i] << 8;
    }
    return sum;
}

static uint16_t
fold(uint32_t sum)
{
    while (sum > 0xffff) {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    return htons((uint16_t)~sum);
}

/* Sends one packet of FLAGS with LEN bytes of DATA; a SYN has its option. */
static bool
send_packet(struct silent_client *c, uint8_t flags, const void *data, size_t len)
{
    unsigned char packet[1500] = { 0 };
    size_t option = (flags & TH_SYN) != 0 ? sizeof(segment_size_option) : 0;
    size_t tcp_len = sizeof(struct tcphdr) + option + len;
    struct ip ip = { .ip_v = 4, .ip_hl = 5, .ip_ttl = 64, .ip_p = IPPROTO_TCP };
    struct tcphdr tcp = { .th_sport = htons(c->port), .th_dport = htons(NET_PAIR_PORT) };
    struct sockaddr_ll to = { .sll_family = AF_PACKET,
                              .sll_protocol = htons(ETH_P_IP),
                              .sll_ifindex = c->pair->device[NET_CLIENT],
                              .sll_halen = 6 };
    unsigned char *at = packet + sizeof(ip);
    uint32_t sum = IPPROTO_TCP + (uint32_t)tcp_len;

    ip.ip_len = htons((uint16_t)(sizeof(ip) + tcp_len));
    ip.ip_src = net_pair_address(NET_PAIR_SILENT_ADDRESS, 0).sin_addr;
    ip.ip_dst = net_pair_address(NET_PAIR_GATEWAY_ADDRESS, 0).sin_addr;
    ip.ip_sum = fold(add_up(0, (const unsigned char *)&ip, sizeof(ip)));
    memcpy(packet, &ip, sizeof(ip));
    tcp.th_seq = htonl(c->seq);
    tcp.th_ack = htonl(c->ack);
    tcp.th_off = (5 + option / 4) & 15;
    tcp.th_flags = flags;
    tcp.th_win = htons(65535);
    memcpy(at, &tcp, sizeof(tcp));
    memcpy(at + sizeof(tcp), segment_size_option, option);
    if (len > 0) {
        memcpy(at + sizeof(tcp) + option, data, len);
    }
    sum = add_up(sum, (const unsigned char *)&ip.ip_src, 8); /* both addresses */
    tcp.th_sum = fold(add_up(sum, at, tcp_len));
    memcpy(at, &tcp, sizeof(tcp));
    memcpy(to.sll_addr, c->pair->mac[NET_GATEWAY], 6);
    return sendto(c->fd, packet, sizeof(ip) + tcp_len, 0, (struct sockaddr *)&to, sizeof(to)) > 0;
}

/* Waits for the segment that follows those seen. NULL: none. */
static const struct net_segment *
next_segment(struct silent_client *c, size_t *seen)
{
    int64_t deadline = clock_monotonic_ms() + SILENCE_MS;

    for (;;) {
        while (*seen < c->capture->count) {
            const struct net_segment *s = &c->capture->segments[(*seen)++];
            if (s->to == c->port) {
                return s;
            }
        }
        if (clock_monotonic_ms() >= deadline || !net_capture_wait(c->capture, 100)) {
            return NULL;
        }
    }
}

bool
silent_client_open(struct silent_client *c, const struct net_pair *pair,
                   struct net_capture *capture)
{
    static uint16_t last_port =
        20000; /* one after the other, so that none meets an old one's remains */
    const struct net_segment *answer;
    size_t seen = 0;

    *c = (struct silent_client){ .pair = pair, .capture = capture, .port = ++last_port, .seq = 1 };
    c->fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (c->fd == -1) {
        return false;
    }
    net_capture_begin(capture, c->port);
    if (!send_packet(c, TH_SYN, NULL, 0)) {
        return false;
    }
    answer = next_segment(c, &seen);
    if (answer == NULL || answer->flags != (TH_SYN | TH_ACK)) {
        return false;
    }
    c->seq++;
    c->ack = answer->seq + 1;
    return send_packet(c, TH_ACK, NULL, 0);
}

bool
silent_client_send(struct silent_client *c, const void *data, size_t len)
{
    net_capture_begin(c->capture, c->port);
    if (len > NET_PAIR_PLAIN_SEGMENT || !send_packet(c, TH_PUSH | TH_ACK, data, len)) {
        return false;
    }
    c->seq += (uint32_t)len;
    return true;
}

void
silent_client_receive(struct silent_client *c, size_t len)
{
    size_t seen = 0;

    while (c->received < len && !c->repeated) {
        const struct net_segment *s = next_segment(c, &seen);
        if (s == NULL) {
            return;
        }
        if (s->len == 0) {
            continue;
        }
        if (s->seq != c->ack + (uint32_t)c->received) {
            c->repeated = true;
        } else {
            c->received += s->len;
        }
    }
}

void
silent_client_close(struct silent_client *c)
{
    if (c->fd > 2) {
        send_packet(c, TH_RST | TH_ACK, NULL, 0);
        close(c->fd);
    }
    c->fd = -1;
}
