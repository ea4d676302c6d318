/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * net_pair.c: makes namespaces and devices by the kernel's own interfaces, so that no package is
 * needed. What goes over them is others' business.
 */
#include "net_pair.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <linux/veth.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

static const char *const device_name[2] = {
    [NET_CLIENT] = "kvclient", [NET_GATEWAY] = "kvgateway"
};

/* ---- the pair of devices, by netlink --------------------------------------------------------- */

struct link_message {
    struct nlmsghdr header;
    char rest[512]; /* struct ifinfomsg, then attributes */
};

/* Appends an attribute of LEN bytes, which the caller may widen later by close_nest. */
static struct rtattr *
put(struct link_message *m, unsigned short type, const void *data, size_t len)
{
    struct rtattr *a = (struct rtattr *)((char *)m + NLMSG_ALIGN(m->header.nlmsg_len));

    a->rta_type = type;
    a->rta_len = (unsigned short)RTA_LENGTH(len);
    memcpy(RTA_DATA(a), data, len);
    m->header.nlmsg_len = (uint32_t)(NLMSG_ALIGN(m->header.nlmsg_len) + RTA_ALIGN(a->rta_len));
    return a;
}

static void
close_nest(struct link_message *m, struct rtattr *nest)
{
    nest->rta_len = (unsigned short)((char *)m + m->header.nlmsg_len - (char *)nest);
}

/* Makes the client's device here and its peer in the namespace PEER_NAMESPACE. */
static bool
make_devices(int peer_namespace)
{
    struct ifinfomsg any = { .ifi_family = AF_UNSPEC };
    struct link_message m = { .header = { .nlmsg_len = NLMSG_LENGTH(sizeof(any)),
                                          .nlmsg_type = RTM_NEWLINK,
                                          .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE |
                                                         NLM_F_EXCL } };
    struct rtattr *info, *data, *peer;
    struct {
        struct nlmsghdr header;
        struct nlmsgerr error;
        char echo[1024];
    } reply;
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    bool ok;

    put(&m, IFLA_IFNAME, device_name[NET_CLIENT], strlen(device_name[NET_CLIENT]) + 1);
    info = put(&m, IFLA_LINKINFO, "", 0);
    put(&m, IFLA_INFO_KIND, "veth", 4);
    data = put(&m, IFLA_INFO_DATA, "", 0);
    peer = put(&m, VETH_INFO_PEER, &any, sizeof(any));
    put(&m, IFLA_IFNAME, device_name[NET_GATEWAY], strlen(device_name[NET_GATEWAY]) + 1);
    put(&m, IFLA_NET_NS_FD, &peer_namespace, sizeof(peer_namespace));
    close_nest(&m, peer);
    close_nest(&m, data);
    close_nest(&m, info);
    ok = fd != -1 && send(fd, &m, m.header.nlmsg_len, 0) == (ssize_t)m.header.nlmsg_len &&
         recv(fd, &reply, sizeof(reply), 0) > 0;
    if (fd != -1) {
        close(fd);
    }
    if (ok && reply.header.nlmsg_type == NLMSG_ERROR && reply.error.error != 0) {
        errno = -reply.error.error;
        ok = false;
    }
    return ok;
}

/* ---- one device, by ioctl -------------------------------------------------------------------- */

static struct ifreq
request_for(const char *name)
{
    struct ifreq request = { .ifr_flags = 0 };

    memcpy(request.ifr_name, name, strlen(name) + 1);
    return request;
}

static bool
bring_up(int fd, const char *name)
{
    struct ifreq request = request_for(name);

    if (ioctl(fd, SIOCGIFFLAGS, &request) != 0) {
        return false;
    }
    request.ifr_flags = (short)(request.ifr_flags | IFF_UP);
    return ioctl(fd, SIOCSIFFLAGS, &request) == 0;
}

/*
 * Segmentation by the device and joining on receipt go off; packets are then on the device as on a
 * wire. Whoever cannot switch one of them off does not have it.
 */
static void
switch_offloads_off(int fd, const char *name)
{
    static const uint32_t commands[] = { ETHTOOL_STSO, ETHTOOL_SGSO, ETHTOOL_SGRO };

    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        struct ethtool_value value = { .cmd = commands[i], .data = 0 };
        struct ifreq request = request_for(name);

        request.ifr_data = (char *)&value;
        ioctl(fd, SIOCETHTOOL, &request);
    }
}

static bool
set_address(int fd, const char *name, unsigned long command, const char *address)
{
    struct ifreq request = request_for(name);
    struct sockaddr_in in = net_pair_address(address, 0);

    memcpy(&request.ifr_addr, &in, sizeof(in));
    return ioctl(fd, command, &request) == 0;
}

static bool
set_mtu(int fd, const char *name, int mtu)
{
    struct ifreq request = request_for(name);

    request.ifr_mtu = mtu;
    return ioctl(fd, SIOCSIFMTU, &request) == 0;
}

/* BBR paces, so gaps between packets would not be the program's; cubic does not. Where it is not
   to be had, the tests still hold, since no pause of pacing comes near that of a delayed ACK. */
static void
choose_congestion_control(void)
{
    int fd = open("/proc/sys/net/ipv4/tcp_congestion_control", O_WRONLY | O_CLOEXEC);

    if (fd != -1) {
        ssize_t n = write(fd, "cubic", 5);
        if (n < 0) {
            n = write(fd, "reno", 4);
        }
        close(fd);
    }
}

static bool
set_up(struct net_pair *pair, enum net_side side, const char *address)
{
    const char *name = device_name[side];
    struct ifreq request = request_for(name);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool ok = fd != -1 && set_mtu(fd, name, 1500) && set_address(fd, name, SIOCSIFADDR, address) &&
              set_address(fd, name, SIOCSIFNETMASK, "255.255.255.0") && bring_up(fd, name) &&
              bring_up(fd, "lo") && ioctl(fd, SIOCGIFHWADDR, &request) == 0;

    if (ok) {
        switch_offloads_off(fd, name);
        choose_congestion_control();
        memcpy(pair->mac[side], request.ifr_hwaddr.sa_data, 6);
        pair->device[side] = (int)if_nametoindex(name);
    }
    if (fd != -1) {
        close(fd);
    }
    return ok;
}

/* Tells the gateway's kernel where NET_PAIR_SILENT_ADDRESS is: nobody answers for it. */
static bool
introduce_silent_client(const struct net_pair *pair)
{
    struct sockaddr_in in = net_pair_address(NET_PAIR_SILENT_ADDRESS, 0);
    struct arpreq request = { .arp_flags = ATF_COM | ATF_PERM };
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool ok;

    memcpy(&request.arp_pa, &in, sizeof(in));
    request.arp_ha.sa_family = ARPHRD_ETHER;
    memcpy(request.arp_ha.sa_data, pair->mac[NET_CLIENT], 6);
    memcpy(request.arp_dev, device_name[NET_GATEWAY], strlen(device_name[NET_GATEWAY]));
    ok = fd != -1 && ioctl(fd, SIOCSARP, &request) == 0;
    if (fd != -1) {
        close(fd);
    }
    return ok;
}

/* ---- namespaces ------------------------------------------------------------------------------ */

static bool
write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool ok = fd != -1 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

    if (fd != -1) {
        close(fd);
    }
    return ok;
}

/*
 * A user who is not root may be so in a user namespace of his own, if the machine's owner lets
 * him.
 */
static bool
become_root(void)
{
    char uid[64], gid[64];

    snprintf(uid, sizeof(uid), "0 %u 1", (unsigned)geteuid());
    snprintf(gid, sizeof(gid), "0 %u 1", (unsigned)getegid());
    return unshare(CLONE_NEWUSER) == 0 && write_text("/proc/self/setgroups", "deny") &&
           write_text("/proc/self/uid_map", uid) && write_text("/proc/self/gid_map", gid);
}

/* Moves into a new network namespace. -1 with errno. */
static int
new_namespace(void)
{
    return unshare(CLONE_NEWNET) == 0 ? open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC) : -1;
}

static bool
fail(struct net_pair *pair, const char *why)
{
    snprintf(pair->why_not, sizeof(pair->why_not), "%s: %s", why, strerror(errno));
    net_pair_close(pair);
    return false;
}

bool
net_pair_open(struct net_pair *pair)
{
    *pair = (struct net_pair){ .fd = { -1, -1 } };
    pair->fd[NET_GATEWAY] = new_namespace();
    if (pair->fd[NET_GATEWAY] == -1 && errno == EPERM && become_root()) {
        pair->fd[NET_GATEWAY] = new_namespace();
    }
    if (pair->fd[NET_GATEWAY] == -1) {
        return fail(pair, "needs root (network namespaces)");
    }
    pair->fd[NET_CLIENT] = new_namespace();
    if (pair->fd[NET_CLIENT] == -1) {
        return fail(pair, "needs root (network namespaces)");
    }
    if (!make_devices(pair->fd[NET_GATEWAY])) {
        return fail(pair, "needs virtual Ethernet devices (veth)");
    }
    if (!set_up(pair, NET_CLIENT, NET_PAIR_CLIENT_ADDRESS) || !net_pair_enter(pair, NET_GATEWAY) ||
        !set_up(pair, NET_GATEWAY, NET_PAIR_GATEWAY_ADDRESS) || !introduce_silent_client(pair) ||
        !net_pair_enter(pair, NET_CLIENT)) {
        return fail(pair, "cannot set up a network namespace");
    }
    return true;
}

bool
net_pair_enter(const struct net_pair *pair, enum net_side side)
{
    return setns(pair->fd[side], CLONE_NEWNET) == 0;
}

bool
net_pair_narrow_loopback(const struct net_pair *pair)
{
    int fd;
    bool ok;

    if (!net_pair_enter(pair, NET_GATEWAY)) {
        return false;
    }
    fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ok = fd != -1 && set_mtu(fd, "lo", 1500);
    if (ok) {
        switch_offloads_off(fd, "lo");
    }
    if (fd != -1) {
        close(fd);
    }
    return net_pair_enter(pair, NET_CLIENT) && ok;
}

void
net_pair_close(struct net_pair *pair)
{
    for (int side = 0; side < 2; side++) {
        if (pair->fd[side] > 2) {
            close(pair->fd[side]);
        }
        pair->fd[side] = -1;
    }
}

struct sockaddr_in
net_pair_address(const char *address, uint16_t port)
{
    struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port) };

    inet_pton(AF_INET, address, &in.sin_addr);
    return in;
}
