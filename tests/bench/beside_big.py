#!/usr/bin/env python3
"""Small GETs on a kept-alive connection, alone and beside a stream of large values.

    beside_big.py NAME BASE_URL [ROUNDS [SECONDS]]

Both are paced, so that the processor is not what is measured: 400 small GETs a second, and beside them 60
sets and 60 gets of 300 KB a second, on two connections of another process. Rounds alternate; the figures
are medians over rounds.
"""
import multiprocessing
import socket
import statistics
import sys
import time
from urllib.parse import urlsplit

SMALL_PER_SECOND = 400
BIG_PER_SECOND = 60
BIG = 300 * 1024


class Client:
    def __init__(self, base):
        self.sock = socket.create_connection((base.hostname, base.port))
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.path = base.path

    def exchange(self, op, key, body=b""):
        head = f"{op} {self.path}{key} HTTP/1.1\r\nHost: x\r\n"
        if op == "PUT":
            head += f"Content-Length: {len(body)}\r\n"
        self.sock.sendall(head.encode() + b"\r\n" + body)
        data = b""
        while b"\r\n\r\n" not in data:
            data += self.sock.recv(1 << 20)
        answer, rest = data.split(b"\r\n\r\n", 1)
        assert answer.split(b" ")[1][:1] == b"2", answer
        lengths = [l for l in answer.lower().split(b"\r\n") if l.startswith(b"content-length:")]
        left = (int(lengths[0].split(b":")[1]) if lengths else 0) - len(rest)
        while left > 0:
            left -= len(self.sock.recv(1 << 20))


def stream(base, op, stop):
    client = Client(base)
    body = b"v" * BIG
    client.exchange("PUT", "big", body)
    at = time.monotonic()
    while not stop.is_set():
        client.exchange(op, "big", body if op == "PUT" else b"")
        at = max(at + 1 / BIG_PER_SECOND, time.monotonic() - 0.1)
        time.sleep(max(0, at - time.monotonic()))


def small(base, seconds):
    """Milliseconds of each GET."""
    client = Client(base)
    client.exchange("PUT", "small", b"v" * 100)
    times, at = [], time.monotonic()
    end = at + seconds
    while time.monotonic() < end:
        begin = time.perf_counter()
        client.exchange("GET", "small")
        times.append((time.perf_counter() - begin) * 1000)
        at += 1 / SMALL_PER_SECOND
        time.sleep(max(0, at - time.monotonic()))
    return sorted(times)


def percentile(times, p):
    return times[min(len(times) - 1, int(len(times) * p))]


def beside(base, seconds):
    stop = multiprocessing.Event()
    streams = [multiprocessing.Process(target=stream, args=(base, op, stop)) for op in ("PUT", "GET")]
    for s in streams:
        s.start()
    time.sleep(0.3)
    times = small(base, seconds)
    stop.set()
    for s in streams:
        s.join()
    return times


def main():
    name, base = sys.argv[1], urlsplit(sys.argv[2])
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 5
    seconds = float(sys.argv[4]) if len(sys.argv) > 4 else 3
    alone, with_big = [], []
    for _ in range(rounds):
        alone.append(small(base, seconds))
        with_big.append(beside(base, seconds))
    for what, runs in (("alone", alone), ("beside 300 KB", with_big)):
        figures = [statistics.median(percentile(r, p) for r in runs) for p in (0.5, 0.99, 0.999)]
        print(f"{name:24} {what:14} {figures[0]:7.3f} {figures[1]:7.3f} {figures[2]:7.3f} {max(r[-1] for r in runs):7.3f}")
    ratios = [percentile(b, 0.99) / percentile(a, 0.99) for a, b in zip(alone, with_big)]
    print(f"{name:24} p99 beside / alone: {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")


main()
