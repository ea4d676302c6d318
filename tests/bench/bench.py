#!/usr/bin/env python3
"""kvgate beside others, on this machine: make bench, make bench-quick.

    bench.py [--quick] KVGATE FLOOR OUTPUT-DIRECTORY

Every cell (operation, size, connections) is measured in rounds, peer after peer, A B C A B C: what the machine
does besides hits all of them. wrk has one thread; the server and its store share the rest. CPU is the server's
whole process tree, its store not counted. One key is asked for, so that kvgate's GETs profit from sharing an
answer; MIX does without that: 90 GETs and 10 PUTs of 100 bytes over 10,000 keys by Zipf's law.

Environment, each a list with blanks: BENCH_SIZES, BENCH_CONNECTIONS, BENCH_OPS (GET PUT MIX MISS), BENCH_PEERS (text
in a peer's name, such as "tuned meta floor"); and BENCH_ROUNDS, BENCH_SECONDS.
"""
import http.client
import os
import re
import socket
import subprocess
import sys
import time

from figures import Figures, size_name, write_csv
from peers import HERE, Peers, versions

SIZES = [100, 1024, 4096, 16384, 65536, 307200]


def setting(name, default, convert=str):
    text = os.environ.get("BENCH_" + name)
    return default if text is None else [convert(word) for word in text.split()]


def unit(text):
    """Microseconds of wrk's 1.23ms."""
    number, name = re.match(r"([\d.]+)(us|ms|s|m|h)", text).groups()
    return float(number) * {"us": 1, "ms": 1e3, "s": 1e6, "m": 6e7, "h": 3.6e9}[name]


def wrk(peer, target, seconds, connections, script=(), args=()):
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--latency", *script]
    command += [f"http://127.0.0.1:{peer.port}{target}", *(["--", *args] if args else [])]
    before = peer.cpu()
    out = subprocess.run(command, capture_output=True, text=True).stdout
    used = peer.cpu() - before
    count = int(re.search(r"(\d+) requests in", out).group(1))
    errors = re.search(r"Non-2xx or 3xx responses: (\d+)", out)
    broken = re.search(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)", out)
    latency = re.search(r"Latency +\S+ +\S+ +(\S+)", out).group(1)
    return {
        "rps": float(re.search(r"Requests/sec: +([\d.]+)", out).group(1)),
        "cpu_us": used / max(count, 1) * 1e6,
        "p50_us": unit(re.search(r"50% +(\S+)", out).group(1)),
        "p99_us": unit(re.search(r"99% +(\S+)", out).group(1)),
        "max_us": unit(latency),
        "errors": int(errors.group(1)) if errors else 0,
    } | ({"errors": sum(map(int, broken.groups()))} if broken else {})


class Bench:
    def __init__(self, peers, quick):
        self.peers, self.quick = peers, quick
        self.memcached = peers.memcached()
        store = f"memcached\nservers = 127.0.0.1:{self.memcached}\ndialect = "
        self.wide = [
            peers.nginx("nginx tuned", "nginx.conf", self.memcached),
            peers.kvgate("kvgate meta", store + "meta"),
            peers.kvgate("kvgate embedded", "embedded\ndirectory = data\nsync = none"),
            peers.kvgate("kvgate meta, 1 worker", store + "meta", workers=1),
        ]
        self.narrow = []
        if not quick:
            self.wide.insert(1, peers.kvgate("kvgate text", store + "text"))
            self.wide.append(peers.kvgate("kvgate embedded, 1 worker", "embedded\ndirectory = data1\nsync = none", workers=1))
            self.narrow = [peers.nginx("nginx installed", "nginx-installed.conf", self.memcached), peers.webdis()]
        words = setting("PEERS", None)
        if words:
            self.wide = [p for p in self.wide if any(w in p.name for w in words)]
            self.narrow = [p for p in self.narrow if any(w in p.name for w in words)]
        self.with_floor = not words or "floor" in words

    def prime(self):
        """Every peer finds the keys that it will be asked for."""
        with socket.create_connection(("127.0.0.1", self.memcached)) as s:
            names = [(f"size{n}", n) for n in SIZES] + [(f"zipf{i}", 100) for i in range(1, 10001)]
            for prefix in ("/get/", "get/"):
                for name, n in names:
                    s.sendall(b"set %s%s 0 0 %d\r\n" % (prefix.encode(), name.encode(), n) + b"v" * n + b"\r\n")
                    got = b""
                    while not got.endswith(b"\r\n"):
                        got += s.recv(100)
                    assert got == b"STORED\r\n", got
        for peer in self.wide + self.narrow:
            if "embedded" in peer.name or "webdis" in peer.name:
                connection = http.client.HTTPConnection("127.0.0.1", peer.port)
                # webdis names the key after the command; the others have it under the prefix of reads
                prefix = peer.put if "webdis" in peer.name else peer.get
                for name, n in names if "embedded" in peer.name else names[: len(SIZES)]:
                    connection.request("PUT", prefix + name, b"v" * n)
                    connection.getresponse().read()
                connection.close()

    def cells(self):
        sizes = setting("SIZES", [100, 307200] if self.quick else SIZES, int)
        connections = setting("CONNECTIONS", [32] if self.quick else [1, 32, 256], int)
        ops = setting("OPS", ["GET", "PUT"] if self.quick else ["GET", "PUT", "MIX", "MISS"])
        for c in connections:
            for op in ops:
                for size in sizes if op in ("GET", "PUT") else [0]:
                    yield op, size, c

    def contenders(self, op, size, connections):
        peers = list(self.wide)
        if self.quick and (op, size) != ("GET", 100):
            peers = [p for p in peers if "embedded" not in p.name]
        if connections == 32 and op in ("GET", "PUT"):
            peers += self.narrow
        if self.with_floor and op != "MISS":
            peers.append(self.peers.floor(size if op == "GET" else 100 if op == "MIX" else 0))
        return peers

    def measure(self, peer, op, size, connections, seconds):
        if op == "GET":
            return wrk(peer, f"{peer.get}size{size}", seconds, connections)
        if op == "PUT":
            script = ["-s", os.path.join(HERE, "put.lua")]
            return wrk(peer, f"{peer.put}put{size}", seconds, connections, script, [str(size)])
        if op == "MIX":
            script = ["-s", os.path.join(HERE, "zipf.lua")]
            return wrk(peer, "/", seconds, connections, script, [peer.get, peer.put if peer.name.startswith("nginx") else peer.get])
        result = wrk(peer, f"{peer.get}nothing", seconds, connections)
        return result | {"errors": 0}  # a miss is no error here

    def run(self, rounds, seconds):
        rows, cells = [], list(self.cells())
        for number, (op, size, connections) in enumerate(cells):
            for round_ in range(rounds):
                for peer in self.contenders(op, size, connections):
                    if sys.stderr.isatty():
                        print(f"\r{number + 1} of {len(cells)}: {op} {size_name(size)}, {connections} connections, "
                              f"round {round_ + 1}, {peer.name}          ", end="", file=sys.stderr)
                    figures = self.measure(peer, op, size, connections, seconds)
                    rows.append({"op": op, "size": size, "connections": connections, "peer": peer.name, "round": round_ + 1} | figures)
        print(file=sys.stderr)
        return rows


def main():
    quick = "--quick" in sys.argv
    kvgate, floor, directory = [a for a in sys.argv[1:] if not a.startswith("--")]
    rounds = setting("ROUNDS", [3 if quick else 5], int)[0]
    seconds = setting("SECONDS", [2 if quick else 1], int)[0]
    os.makedirs(directory, exist_ok=True)
    peers = Peers(os.path.abspath(kvgate), os.path.abspath(floor))
    try:
        bench = Bench(peers, quick)
        bench.prime()
        print("\n".join(versions()) + f"\n{os.cpu_count()} processors; {rounds} rounds of {seconds} s; settings: {HERE}/*.conf, *.json")
        rows = bench.run(rounds, seconds)
        figures = Figures(rows)
        memory = {p.name: p.memory() for p in bench.wide + bench.narrow}
    finally:
        peers.close()
    write_csv(os.path.join(directory, "bench-quick.csv" if quick else "bench.csv"), rows)
    print(figures.table())
    print("peak memory: " + ", ".join(f"{name} {kb / 1024:.1f} MB" for name, kb in memory.items()))
    print(figures.targets())
    figures.pictures(directory)


if __name__ == "__main__":
    begin = time.monotonic()
    main()
    print(f"{time.monotonic() - begin:.0f} s")
