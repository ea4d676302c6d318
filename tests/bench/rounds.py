#!/usr/bin/env python3
"""Round trips of one kept-alive connection, header and body in one write: rounds.py NAME BASE_URL SECONDS."""
import socket
import sys
import time
from urllib.parse import urlsplit

name, base, seconds = sys.argv[1], urlsplit(sys.argv[2]), float(sys.argv[3])
sock = socket.create_connection((base.hostname, base.port))
sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def exchange(request):
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


def request(op, size):
    path = f"{base.path}round{size}".encode()
    if op == "GET":
        return b"GET %s HTTP/1.1\r\nHost: x\r\n\r\n" % path
    return b"PUT %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (path, size) + b"v" * size


times = {(op, size): [] for size in (100, 307200) for op in ("PUT", "GET")}
end = time.monotonic() + seconds
while time.monotonic() < end:
    for (op, size), list_ in times.items():
        list_.append(exchange(request(op, size)))
for (op, size), list_ in times.items():
    list_.sort()
    at = lambda p: list_[min(len(list_) - 1, int(len(list_) * p))]
    slow = sum(t > 20 for t in list_)
    print(f"{name:22} {op:4} {size:7} {len(list_):6} | {at(.5):7.3f} {at(.99):7.3f} {at(.999):7.3f} {list_[-1]:7.3f} | {slow}")
