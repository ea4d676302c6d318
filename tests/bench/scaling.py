#!/usr/bin/env python3
"""How kvgate's cost per request changes with what there is of it: make bench-scaling.

    scaling.py KVGATE OUTPUT-DIRECTORY

Idle and active connections, requests that wait for a slow store, workers, servers; CPU microseconds a request, and
memory. Writes scaling.csv and scaling.svg.
"""
import csv
import os
import resource
import selectors
import socket
import statistics
import subprocess
import sys
import time

from bench import wrk
from peers import HERE, Peers, free_port

ROUNDS, SECONDS = 3, 2
rows = []


def note(series, x, figures, **more):
    """One point: medians of the rounds."""
    point = {"series": series, "x": x, "cpu_us": statistics.median(f["cpu_us"] for f in figures),
             "rps": statistics.median(f["rps"] for f in figures), "p99_us": statistics.median(f["p99_us"] for f in figures)}
    rows.append(point | more)
    print(f"{series:24}{x:>8}{point['cpu_us']:10.2f} us{point['rps']:10.0f} r/s  p99 {point['p99_us']:8.0f} us  "
          + " ".join(f"{k} {v}" for k, v in more.items()), flush=True)


def rounds(peer, target="/k", connections=32):
    return [wrk(peer, target, SECONDS, connections) for _ in range(ROUNDS)]


def put(peer, key="k", value=b"v" * 100):
    with socket.create_connection(("127.0.0.1", peer.port)) as s:
        s.sendall(b"PUT /%s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (key.encode(), len(value)) + value)
        assert s.recv(1000)[9:10] == b"2"


def open_many(peer, count, request=b""):
    sockets = []
    for _ in range(count):
        s = socket.create_connection(("127.0.0.1", peer.port))
        s.sendall(request)
        sockets.append(s)
    return sockets


def idle(peers, store):
    """Kept-alive connections that have had an answer each and are silent, beside 32 that work."""
    for count in (0, 100, 1000, 10000):
        peer = peers.kvgate("idle", store)
        put(peer)
        before = peer.memory("VmRSS")
        sockets = open_many(peer, count, b"GET /k HTTP/1.1\r\nHost: x\r\n\r\n")
        for s in sockets:
            s.recv(1000)
        grown = peer.memory("VmRSS") - before
        more = {"bytes_each": grown * 1024 // count, "grown_KB": grown} if count else {}
        note("idle connections", count, rounds(peer), **more)
        for s in sockets:
            s.close()


def active(peers, store):
    peer = peers.kvgate("active", store)
    put(peer)
    for count in (1, 10, 100, 1000, 10000):
        note("active connections", count, rounds(peer, connections=count))


def waiting(peers, store):
    """Requests that wait for a store which takes 100 ms, asked again and again, beside GETs of another store."""
    slow = free_port()
    process = peers.start(slow, sys.executable, os.path.join(HERE, "slow_store.py"), str(slow), "100")
    extra = f"\n[store slow]\ntype = memcached\ndialect = text\nservers = 127.0.0.1:{slow}\nop_timeout = 10s\nops_max = 100000\n[route /slow/]\nstore = slow\n"
    for count in (0, 1, 100, 1000, 10000):
        peer = peers.kvgate("waiting", store, extra=extra)
        put(peer)
        before = peer.memory("VmRSS")
        waiter = os.fork() if count else 0
        if count and waiter == 0:
            keep_waiting(peer, count)
        time.sleep(1.5 if count else 0)
        grown = peer.memory("VmRSS") - before
        more = {"bytes_each": grown * 1024 // count} if count else {}
        note("waiting requests", count, rounds(peer), **more)
        if count:
            os.kill(waiter, 9)
            os.waitpid(waiter, 0)
    process.terminate()


def keep_waiting(peer, count):
    """COUNT connections with a request under way all the time; never returns."""
    request = lambda i: b"GET /slow/%d HTTP/1.1\r\nHost: x\r\n\r\n" % i
    selector = selectors.EpollSelector()
    for i, s in enumerate(open_many(peer, count)):
        selector.register(s, selectors.EVENT_READ, i)
        s.sendall(request(i))
    while True:
        for key, _ in selector.select():
            if not key.fileobj.recv(4000):
                os._exit(1)
            key.fileobj.sendall(request(key.data))


def workers(peers, store):
    for count in (1, 2, 4):
        peer = peers.kvgate("workers", store, workers=count)
        put(peer)
        note("workers", count, rounds(peer, connections=64))


def servers(peers):
    """The keys of Zipf's law over more and more memcached."""
    ports = [peers.memcached("-m", "8") for _ in range(64)]
    for count in (1, 4, 16, 64):
        addresses = " ".join(f"127.0.0.1:{p}" for p in ports[:count])
        # a line of the configuration has its limit
        lines = "\n".join("servers = " + " ".join(addresses.split()[i : i + 8]) for i in range(0, count, 8))
        peer = peers.kvgate("servers", f"memcached\n{lines}\ndialect = meta")
        script = ["-s", os.path.join(HERE, "zipf.lua")]
        note("servers", count, [wrk(peer, "/", SECONDS, 64, script, ["/", "/"]) for _ in range(ROUNDS)])


def picture(directory):
    with open(os.path.join(directory, "scaling.csv"), "w", newline="") as f:
        out = csv.DictWriter(f, ["series", "x", "cpu_us", "rps", "p99_us", "bytes_each", "grown_KB"])
        out.writeheader()
        out.writerows(rows)
    names = list(dict.fromkeys(r["series"] for r in rows))
    plots = []
    for name in names:
        data = os.path.join(directory, f"scaling-{name.replace(' ', '-')}.dat")
        with open(data, "w") as f:
            f.writelines(f"{max(r['x'], 0.5)} {r['cpu_us']:.3f}\n" for r in rows if r["series"] == name)
        plots.append(f"'{data}' using 1:2 with linespoints title '{name}'")
    script = f"set terminal svg size 900,420 dynamic background '#ffffff'\nset output '{directory}/scaling.svg'\n"
    script += "set logscale x\nset yrange [0:]\nset grid\nset key outside right\nset ylabel 'CPU microseconds a request'\nplot " + ", ".join(plots) + "\n"
    subprocess.run(["gnuplot"], input=script, text=True, check=False)


def main():
    kvgate, directory = sys.argv[1:]
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if hard < 24000:
        print(f"the limit of open files is {hard}: 10,000 connections may not fit")
    os.makedirs(directory, exist_ok=True)
    peers = Peers(os.path.abspath(kvgate), "")
    try:
        store = f"memcached\nservers = 127.0.0.1:{peers.memcached()}\ndialect = meta"
        idle(peers, store)
        active(peers, store)
        waiting(peers, store)
        workers(peers, store)
        servers(peers)
    finally:
        peers.close()
    picture(directory)


if __name__ == "__main__":
    main()
