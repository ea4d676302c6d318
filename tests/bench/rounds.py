#!/usr/bin/env python3
"""Round trips of one kept-alive connection, header and body in one write: rounds.py NAME BASE_URL SECONDS."""
import socket
import sys
import time
from urllib.parse import urlsplit


def exchange(sock, request):
    """Sends REQUEST, reads the whole answer, returns milliseconds."""
    start = time.perf_counter()
    sock.sendall(request)
    data = b""
    while b"\r\n\r\n" not in data:
        data += sock.recv(1 << 20)
    head, body = data.split(b"\r\n\r\n", 1)
    lines = head.lower().split(b"\r\n")
    length = next((int(l.split(b":")[1]) for l in lines if l.startswith(b"content-length")), 0)
    left = length - len(body)
    while left > 0:
        left -= len(sock.recv(1 << 20))
    assert head.split(b" ")[1][:1] == b"2", head
    return (time.perf_counter() - start) * 1000


def request(base, op, size):
    path = f"{base.path}round{size}".encode()
    if op == "GET":
        return b"GET %s HTTP/1.1\r\nHost: x\r\n\r\n" % path
    return b"PUT %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (path, size) + b"v" * size


def measure(base, seconds, sizes=(100, 307200)):
    """For SECONDS a set and then a get, size after size: {(op, size): sorted milliseconds}."""
    base = urlsplit(base)
    times = {(op, size): [] for size in sizes for op in ("PUT", "GET")}
    requests = {cell: request(base, *cell) for cell in times}
    with socket.create_connection((base.hostname, base.port)) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for cell, list_ in times.items():
                list_.append(exchange(sock, requests[cell]))
    return {cell: sorted(list_) for cell, list_ in times.items()}


def percentile(times, p):
    return times[min(len(times) - 1, int(len(times) * p))]


def main():
    name, base, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
    for (op, size), times in measure(base, seconds).items():
        figures = " ".join(f"{percentile(times, p):7.3f}" for p in (0.5, 0.99, 0.999, 1))
        slow = sum(t > 20 for t in times)
        print(f"{name:22} {op:4} {size:7} {len(times):6} | {figures} | {slow}")


if __name__ == "__main__":
    main()
