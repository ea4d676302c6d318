#!/usr/bin/env python3
"""kvgate beside others, on this machine: make bench, make bench-quick.

    bench.py [--quick] KVGATE FLOOR OUTPUT-DIRECTORY

Every cell (operation, size, connections) is measured in rounds, peer after peer, A B C A B C: what the machine
does besides hits all of them. wrk has one thread; the server and its store share the rest. CPU is the server's
whole process tree, its store not counted. One key is asked for, so that kvgate's GETs profit from sharing an
answer; MIX does without that: 90 GETs and 10 PUTs of 100 bytes over 10,000 keys by Zipf's law. MISS is a GET of
a key that is not there.

The peers: nginx tuned (memcached_pass for GET, memc for PUT; nginx.conf), kvgate in front of memcached (text and
meta dialect) and with the embedded store (sync = none), each with two workers and some with one (kvgate.conf),
and the floor, a bare epoll responder (floor.c) with one thread and with two. At 32 connections only: nginx as installed, nginx's
memc for GET, webdis and redis. At 256 only: nginx with fewer kept connections to memcached than there are clients.

Environment, each a list with blanks: BENCH_SIZES (bytes), BENCH_CONNECTIONS, BENCH_OPS (GET PUT MIX MISS),
BENCH_PEERS (parts of peers' names; blanks in a name as _: "nginx_tuned meta floor"); numbers: BENCH_ROUNDS,
BENCH_SECONDS (whole ones: of one measurement). BENCH_CROWD=no leaves out the 10,000 connections at the end.
"""
import http.client
import os
import socket
import statistics
import sys
import time

import crowd
from figures import Figures, size_name, write_csv
from load import wrk
from peers import HERE, Peers, versions
from rounds import measure as round_trips

SIZES = [100, 1024, 4096, 16384, 65536, 307200]
KEYS = 10000  # of zipf.lua
CROWD = 10000


def setting(name, default, convert=str):
    text = os.environ.get("BENCH_" + name)
    return default if text is None else [convert(word) for word in text.split()]


def memcached_set(port, names):
    """Each (NAME, SIZE) as the peers in front of this memcached ask for it."""
    with socket.create_connection(("127.0.0.1", port)) as s:
        for prefix in ("/get/", "/set/", "get/"):
            for name, n in names:
                s.sendall(b"set %s%s 0 0 %d\r\n" % (prefix.encode(), name.encode(), n) + b"v" * n + b"\r\n")
                got = b""
                while not got.endswith(b"\r\n"):
                    got += s.recv(100)
                assert got == b"STORED\r\n", got


def http_set(port, prefix, names):
    connection = http.client.HTTPConnection("127.0.0.1", port)
    for name, n in names:
        connection.request("PUT", prefix + name, b"v" * n)
        answer = connection.getresponse()
        answer.read()
        assert answer.status < 300, (prefix + name, answer.status)
    connection.close()


class Bench:
    def __init__(self, peers, quick):
        self.peers, self.quick = peers, quick
        self.memcached = peers.memcached()
        words = [w.replace("_", " ") for w in setting("PEERS", [""])]
        self.chosen = lambda name: any(w in name for w in words)
        meta, text, embedded = self.store("meta"), self.store("text"), "embedded\nsync = none\ndirectory = "
        self.wide = self.start(
            ("nginx tuned", lambda name: peers.nginx(name, "nginx.conf", self.memcached)),
            ("kvgate text", None if quick else lambda name: peers.kvgate(name, text)),
            ("kvgate meta", lambda name: peers.kvgate(name, meta)),
            ("kvgate embedded", lambda name: peers.kvgate(name, embedded + "data")),
            ("kvgate meta, 1 worker", lambda name: peers.kvgate(name, meta, workers=1)),
            ("kvgate embedded, 1 worker", None if quick else lambda name: peers.kvgate(name, embedded + "data1", workers=1)),
        )
        # where they say something: as installed, and memc where memcached_pass is the usual way
        self.at_32 = [] if quick else self.start(
            ("nginx installed", lambda name: peers.nginx(name, "nginx-installed.conf", self.memcached)),
            ("nginx memc", lambda name: peers.nginx(name, "nginx.conf", self.memcached, get="/set/")),
            ("webdis, redis", lambda name: peers.webdis()),
        )
        self.at_256 = [] if quick else self.start(
            ("nginx tuned, pool of 64", lambda name: peers.nginx(name, "nginx.conf", self.memcached, pool=64)),
        )

    def store(self, dialect):
        return f"memcached\nservers = 127.0.0.1:{self.memcached}\ndialect = {dialect}"

    def start(self, *peers):
        return [start(name) for name, start in peers if start and self.chosen(name)]

    def all(self):
        return self.wide + self.at_32 + self.at_256

    def prime(self):
        """Every peer finds the keys that it will be asked for."""
        sizes = [(f"size{n}", n) for n in sorted({*SIZES, *setting("SIZES", [], int)})]
        zipf = [(f"zipf{i}", 100) for i in range(1, KEYS + 1)] if "MIX" in self.ops() else []
        memcached_set(self.memcached, sizes + zipf)
        for peer in self.all():
            if peer.prime:
                http_set(peer.port, peer.prime, sizes + (zipf if peer in self.wide else []))

    def ops(self):
        return setting("OPS", ["GET", "PUT"] if self.quick else ["GET", "PUT", "MIX", "MISS"])

    def cells(self):
        sizes = setting("SIZES", [100, 307200] if self.quick else SIZES, int)
        for connections in setting("CONNECTIONS", [32] if self.quick else [1, 32, 256], int):
            for op in self.ops():
                for size in sizes if op in ("GET", "PUT") else [0]:
                    yield op, size, connections

    def contenders(self, op, size, connections):
        peers = list(self.wide)
        if self.quick and (op, size) != ("GET", 100):
            peers = [p for p in peers if "embedded" not in p.name]
        if op in ("GET", "PUT"):
            peers += self.at_32 if connections == 32 else self.at_256 if connections == 256 else []
        if op == "PUT":
            peers = [p for p in peers if p.name != "nginx memc"]  # nginx tuned does just that
        if op != "MISS" and self.chosen("floor"):
            bytes_ = size if op == "GET" else 100 if op == "MIX" else 0
            peers += [self.peers.floor(bytes_)] + ([] if self.quick else [self.peers.floor(bytes_, 2)])
        return peers

    def measure(self, peer, op, size, connections, seconds):
        if op == "GET":
            return wrk(peer, f"{peer.get}size{size}", seconds, connections)
        if op == "MISS":
            return wrk(peer, f"{peer.get}nothing", seconds, connections, misses=True)
        script = ["-s", os.path.join(HERE, "put.lua" if op == "PUT" else "zipf.lua")]
        if op == "PUT":
            return wrk(peer, f"{peer.put}put{size}", seconds, connections, script, [str(size)])
        # kvgate reads the keys that it writes; nginx has a location for each
        return wrk(peer, "/", seconds, connections, script, [peer.get, peer.put if "nginx" in peer.name else peer.get])

    def run(self, rounds, seconds):
        plan = [(cell, round_, peer) for cell in self.cells() for round_ in range(rounds) for peer in self.contenders(*cell)]
        rows, begin = [], time.monotonic()
        for number, ((op, size, connections), round_, peer) in enumerate(plan):
            spent = time.monotonic() - begin
            left = f"{spent / number * (len(plan) - number) / 60:.0f} min left" if number > 9 else ""
            cell = f"{op} {size_name(size)}, {connections} connections, round {round_ + 1}, {peer.name}"
            progress(f"{number + 1} of {len(plan)}: {cell}  {left}")
            found = self.measure(peer, op, size, connections, seconds)
            rows.append({"op": op, "size": size, "connections": connections, "peer": peer.name, "round": round_ + 1} | found)
        progress("")
        return rows

    def alone(self):
        """Milliseconds of a set and of a get of 300 KB on one connection: (median, maximum) by peer."""
        found = {}
        for peer in self.wide:
            if "kvgate meta" in peer.name:
                times = round_trips(f"http://127.0.0.1:{peer.port}{peer.get}", 2, [307200])
                found[peer.name] = [(t[len(t) // 2], t[-1]) for t in times.values()]
        return found


def progress(text):
    if sys.stderr.isatty():
        print(f"\r{text:110}"[:111] + ("" if text else "\r"), end="", file=sys.stderr, flush=True)


def crowded(peers, store):
    """What 10,000 others cost: megabytes with that many idle connections, and the share of its speed that a kvgate
    keeps while that many requests wait."""
    count = crowd.room_for(CROWD)
    megabytes, shares = [], []
    for buffer in ("16KB", "4KB"):
        peer = peers.kvgate("idle", store, server=f"connection_buffer = {buffer}")
        crowd.put(peer)
        progress(f"{count} idle connections")
        with crowd.idle(peer, count):
            megabytes.append(peer.memory("VmRSS") / 1024)
        peers.end(peer)
    slow = crowd.Slow(peers, 600000)
    for round_ in range(3):
        progress(f"{count} waiting requests, round {round_ + 1}")
        peer = peers.kvgate("waiting", f"embedded\nsync = none\ndirectory = waiting{round_}", extra=slow.route)
        crowd.put(peer)
        before = wrk(peer, "/k", 2, 32)["rps"]
        waiting = crowd.Waiting(peer, count)
        shares.append(wrk(peer, "/k", 2, 32)["rps"] / before)
        waiting.close()
        peers.end(peer)
    progress("")
    return {"idle_mb": megabytes[0], "idle_small_mb": megabytes[1], "waiting_share": statistics.median(shares)}


def main():
    quick = "--quick" in sys.argv
    kvgate, floor, directory = [os.path.abspath(a) for a in sys.argv[1:] if not a.startswith("--")]
    rounds = setting("ROUNDS", [3 if quick else 5], int)[0]
    seconds = setting("SECONDS", [2 if quick else 1], int)[0]
    os.makedirs(directory, exist_ok=True)
    peers = Peers(kvgate, floor)
    try:
        bench = Bench(peers, quick)
        bench.prime()
        print("\n".join(versions(kvgate)))
        print(f"{rounds} rounds of {seconds} s. Settings are in {os.path.relpath(HERE)}; in use (DIR is a temporary one):")
        print(peers.describe() + "\n", flush=True)
        figures = Figures(bench.run(rounds, seconds))
        others = {"alone": bench.alone()}
        if not quick and setting("CROWD", ["yes"]) != ["no"]:
            others |= crowded(peers, bench.store("meta"))
    finally:
        peers.close()
    write_csv(os.path.join(directory, "bench-quick.csv" if quick else "bench.csv"), figures.rows)
    print(figures.table())
    print("\n" + figures.targets(others))
    with open(os.path.join(directory, "bench-quick.md" if quick else "bench.md"), "w") as f:
        f.write(figures.markdown())
    figures.pictures(directory, "quick-" if quick else "")


if __name__ == "__main__":
    start = time.monotonic()
    main()
    print(f"{time.monotonic() - start:.0f} s")
