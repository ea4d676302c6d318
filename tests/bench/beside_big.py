#!/usr/bin/env python3
"""Small GETs, alone and beside a stream of large values.

    beside_big.py NAME BASE_URL [ROUNDS [SECONDS]]

Four connections get 100 bytes, 500 times a second in all. Beside them two connections set and two get
300 KB, 60 and 60 times a second. Each is a process of its own, waits for its answer before it asks again,
and asks at uneven times, so that no two fall into step. The rates leave the processor idle for most of the
time: it is not what is measured. Rounds alternate; percentiles are medians over the rounds, the maximum is
that of all.
"""
import multiprocessing
import random
import socket
import statistics
import sys
import time
from urllib.parse import urlsplit

SMALL, SMALL_CONNECTIONS, SMALL_PER_SECOND = 100, 4, 500
BIG, BIG_CONNECTIONS, BIG_PER_SECOND = 300 * 1024, 2, 60
WARM_UP = 0.3  # seconds before the first GET that counts: connections and lanes are open then


class Client:
    def __init__(self, base):
        self.sock = socket.create_connection((base.hostname, base.port), timeout=10)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.path = base.path

    def receive(self):
        data = self.sock.recv(1 << 20)
        if not data:
            raise ConnectionError("the server closed")
        return data

    def exchange(self, op, key, body=b""):
        """The length of the answer's body."""
        head = f"{op} {self.path}{key} HTTP/1.1\r\nHost: x\r\n"
        if op == "PUT":
            head += f"Content-Length: {len(body)}\r\n"
        self.sock.sendall(head.encode() + b"\r\n" + body)
        data = b""
        while b"\r\n\r\n" not in data:
            data += self.receive()
        answer, rest = data.split(b"\r\n\r\n", 1)
        if answer.split(b" ")[1][:1] != b"2":
            raise RuntimeError(answer)
        lengths = [l for l in answer.lower().split(b"\r\n") if l.startswith(b"content-length:")]
        length = int(lengths[0].split(b":")[1]) if lengths else 0
        left = length - len(rest)
        while left > 0:
            left -= len(self.receive())
        return length


def paced(per_second, end):
    """Yields PER_SECOND times a second on average until END; does not catch up after a long pause."""
    at = time.monotonic()
    while True:
        at = max(at + random.uniform(0.5, 1.5) / per_second, time.monotonic() - 0.1)
        time.sleep(max(0, at - time.monotonic()))
        if time.monotonic() >= end:
            return
        yield


def stream(base, op, key, end, out):
    client, body, count = Client(base), b"v" * BIG, 0
    client.exchange("PUT", key, body)
    for _ in paced(BIG_PER_SECOND / BIG_CONNECTIONS, end):
        length = client.exchange(op, key, body if op == "PUT" else b"")
        assert op == "PUT" or length == BIG, length
        count += 1
    out.send(count)


def small(base, end, begin, out):
    """Sends the milliseconds of each GET from BEGIN on."""
    client, times = Client(base), []
    for _ in paced(SMALL_PER_SECOND / SMALL_CONNECTIONS, end):
        start = time.perf_counter()
        length = client.exchange("GET", "small")
        took = time.perf_counter() - start
        assert length == SMALL, length
        if time.monotonic() >= begin:
            times.append(took * 1000)
    out.send(times)


def run(tasks):
    """Each (FUNCTION, ARGUMENTS...) in a process; what they sent. One that fails ends the program."""
    started = []
    for function, *arguments in tasks:
        here, there = multiprocessing.Pipe(duplex=False)
        process = multiprocessing.Process(target=function, args=(*arguments, there), daemon=True)
        process.start()
        there.close()
        started.append((process, here))
    results = []
    for process, here in started:
        try:
            results.append(here.recv())
        except EOFError:
            sys.exit("a client failed")
        process.join()
    return results


def measure(base, seconds, with_big):
    """The sorted times of the small GETs, and the big values moved per second."""
    begin = time.monotonic() + WARM_UP
    end = begin + seconds
    tasks = [(small, base, end, begin)] * SMALL_CONNECTIONS
    if with_big:
        tasks += [(stream, base, op, f"big{i}", end) for op in ("PUT", "GET") for i in range(BIG_CONNECTIONS)]
    results = run(tasks)
    times = sorted(t for r in results[:SMALL_CONNECTIONS] for t in r)
    return times, sum(results[SMALL_CONNECTIONS:]) / (seconds + WARM_UP)


def percentile(times, p):
    return times[min(len(times) - 1, int(len(times) * p))]


def main():
    name, base = sys.argv[1], urlsplit(sys.argv[2])
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 5
    seconds = float(sys.argv[4]) if len(sys.argv) > 4 else 3
    Client(base).exchange("PUT", "small", b"v" * SMALL)
    alone, beside, moved = [], [], []
    for _ in range(rounds):
        alone.append(measure(base, seconds, False)[0])
        times, rate = measure(base, seconds, True)
        beside.append(times)
        moved.append(rate)
    for what, runs in (("alone", alone), ("beside 300 KB", beside)):
        figures = [statistics.median(percentile(r, p) for r in runs) for p in (0.5, 0.99, 0.999)]
        figures.append(max(r[-1] for r in runs))
        print(f"{name:20} {what:14} " + " ".join(f"{f:7.3f}" for f in figures))
    ratios = [percentile(b, 0.99) / percentile(a, 0.99) for a, b in zip(alone, beside)]
    print(
        f"{name:20} p99 beside / alone: {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}); "
        f"{sum(map(len, alone)) / rounds / seconds:.0f} and {sum(map(len, beside)) / rounds / seconds:.0f} small GETs/s, "
        f"{statistics.median(moved):.0f} big values/s"
    )


if __name__ == "__main__":
    main()
