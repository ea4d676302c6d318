#!/usr/bin/env python3
"""How kvgate's cost per request changes with what there is of it: make bench-scaling.

    scaling.py KVGATE OUTPUT-DIRECTORY

Idle connections beside 32 that work; active connections; requests that wait, for a store that takes ten minutes
(held) and for one that takes 100 ms and is asked again at once (100 ms), beside 32 connections that get from the
embedded store; workers; servers. CPU is that of the whole kvgate, divided by all its answers, those of the slow
store included. With 100 ms, the clients that wait and their store want the processors too: what the others lose
there is not kvgate's doing alone, and beyond some ten thousand answers a second they are what is measured.
Bytes each: by how much the resident memory grows, the connection included.

Writes scaling.csv, scaling.svg (cost) and scaling-memory.svg. Environment: BENCH_SERIES, names with blanks
(idle active held 100ms workers servers), BENCH_ROUNDS and BENCH_SECONDS, both of one point.
"""
import csv
import os
import statistics
import sys

import crowd
from bench import KEYS, http_set
from figures import draw, target_table
from load import wrk
from peers import HERE, Peers

FIELDS = ["series", "x", "cpu_us", "rps", "p50_us", "p99_us", "errors", "beside_rps", "bytes_each", "rss_kb"]
MANY = 10000


class Scaling:
    def __init__(self, peers, rounds, seconds):
        self.peers, self.rounds, self.seconds, self.points = peers, rounds, seconds, []
        self.many = crowd.room_for(MANY)
        self.meta = f"memcached\nservers = 127.0.0.1:{peers.memcached('-c', '16384')}\ndialect = meta"

    def start(self, store, **more):
        peer = self.peers.kvgate("kvgate", store, **more)
        crowd.put(peer)
        return peer

    def measure(self, series, x, peer, connections=32, waiting=None, target="/k", script=(), args=(), **more):
        """One point: medians of the rounds."""
        rounds = []
        for _ in range(self.rounds):
            before = waiting.answers() if waiting else 0
            found = wrk(peer, target, self.seconds, connections, script, args)
            beside = waiting.answers() - before if waiting else 0
            found["beside_rps"] = beside / self.seconds
            found["cpu_us"] = found["cpu_s"] * 1e6 / max(found["requests"] + beside, 1)
            rounds.append(found)
        point = {f: statistics.median(r[f] for r in rounds) for f in ("cpu_us", "rps", "p50_us", "p99_us", "beside_rps")}
        point |= {"series": series, "x": x, "errors": sum(r["errors"] for r in rounds)} | more
        self.points.append(point)
        text = f"{series:26}{x:>7}{point['cpu_us']:9.1f} us{point['rps']:10.0f} r/s  p99 {point['p99_us']:8.0f} us"
        text += f"  {point['beside_rps']:.0f} r/s of those that wait" if waiting else ""
        text += f"  {point['bytes_each']} bytes each" if "bytes_each" in point else ""
        print(text + (f"  {point['errors']} errors" if point["errors"] else ""), flush=True)

    def idle(self):
        for count in (0, 1, 10, 100, 1000, self.many):
            peer = self.start(self.meta)
            with crowd.idle(peer, count) as grown:
                more = {"rss_kb": peer.memory("VmRSS")} | ({"bytes_each": grown * 1024 // count} if count > 10 else {})
                self.measure("idle connections", count, peer, **more)
            self.peers.end(peer)

    def active(self):
        peer = self.start(self.meta)
        for count in (1, 10, 32, 100, 1000, self.many):
            self.measure("active connections", count, peer, connections=count)
        self.peers.end(peer)

    def waiting(self, series, milliseconds):
        slow = crowd.Slow(self.peers, milliseconds)
        for count in (0, 1, 10, 100, 1000, self.many):
            directory = f"waiting-{milliseconds}-{count}"
            peer = self.start(f"embedded\nsync = none\ndirectory = {directory}", extra=slow.route)
            if count == 0:
                self.measure(series, 0, peer)
            else:
                waiting = crowd.Waiting(peer, count)
                more = {"bytes_each": waiting.grown * 1024 // count} if count > 10 else {}
                self.measure(series, count, peer, waiting=waiting, **more)
                waiting.close()
            self.peers.end(peer)

    def held(self):
        self.waiting("waiting held", 600000)

    def a_while(self):
        self.waiting("waiting 100 ms", 100)

    def workers(self):
        for count in (1, 2, 3, 4):
            peer = self.start(self.meta, workers=count)
            self.measure("workers", count, peer, connections=64)
            self.peers.end(peer)

    def servers(self):
        """The keys of Zipf's law over more and more memcached."""
        addresses = [f"127.0.0.1:{self.peers.memcached('-m', '8')}" for _ in range(64)]
        for count in (1, 2, 4, 8, 16, 32, 64):
            # a line of the settings has its limit
            lines = "\n".join("servers = " + " ".join(addresses[i : min(i + 8, count)]) for i in range(0, count, 8))
            peer = self.start(f"memcached\n{lines}\ndialect = meta")
            http_set(peer.port, "/", [(f"zipf{i}", 100) for i in range(1, KEYS + 1)])
            script = ["-s", os.path.join(HERE, "zipf.lua")]
            self.measure("servers", count, peer, connections=64, target="/", script=script, args=["/", "/"])
            self.peers.end(peer)

    def value(self, series, x, field):
        return next((p.get(field) for p in self.points if (p["series"], p["x"]) == (series, x)), None)

    def targets(self):
        idle = self.value("idle connections", self.many, "rss_kb")
        rows = [(f"MB with {self.many} idle connections", "<=", 40, [idle and idle / 1024])]
        for series in ("waiting held", "waiting 100 ms"):
            before, beside = self.value(series, 0, "rps"), self.value(series, self.many, "rps")
            name = f"GETs beside {self.many} {series}: share of their speed"
            rows.append((name, ">=", 0.5, [before and beside and beside / before]))
        return target_table(rows)

    def write(self, directory):
        with open(os.path.join(directory, "scaling.csv"), "w", newline="") as f:
            out = csv.DictWriter(f, FIELDS)
            out.writeheader()
            out.writerows(self.points)
        self.picture(directory, "scaling", "cpu_us", "CPU microseconds a request", "set yrange [0:]")
        self.picture(directory, "scaling-memory", "bytes_each", "resident bytes of each", "set yrange [0:]")

    def picture(self, directory, name, field, label, more):
        plots = []
        for series in dict.fromkeys(p["series"] for p in self.points if field in p):
            data = os.path.join(directory, f"{name}-{series.replace(' ', '-')}.dat")
            with open(data, "w") as f:
                # none of it is drawn at a half: the axis is logarithmic
                f.writelines(f"{p['x'] or 0.5} {p[field]:.3f}\n" for p in self.points if p["series"] == series and field in p)
            plots.append(f"'{data}' using 1:2 with linespoints title '{series}'")
        if plots:
            draw(f"set terminal svg size 900,420 dynamic background '#ffffff'\nset output '{directory}/{name}.svg'\n"
                 f"set logscale x\nset grid\nset key outside right\nset xlabel 'how many'\nset ylabel '{label}'\n{more}\n"
                 f"plot {', '.join(plots)}\n")


def main():
    kvgate, directory = [os.path.abspath(a) for a in sys.argv[1:]]
    os.makedirs(directory, exist_ok=True)
    rounds, seconds = int(os.environ.get("BENCH_ROUNDS", 3)), int(os.environ.get("BENCH_SECONDS", 2))
    peers = Peers(kvgate)
    try:
        scaling = Scaling(peers, rounds, seconds)
        series = {"idle": scaling.idle, "active": scaling.active, "held": scaling.held, "100ms": scaling.a_while,
                  "workers": scaling.workers, "servers": scaling.servers}
        for name in os.environ.get("BENCH_SERIES", " ".join(series)).split():
            series[name]()
    finally:
        peers.close()
    scaling.write(directory)
    print(scaling.targets())


if __name__ == "__main__":
    main()
