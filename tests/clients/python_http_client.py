#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Python's http.client on one connection: python_http_client.py URL ROUNDS nodelay|nagle

http.client sends the header and the body in two writes. "nodelay" is how it comes; "nagle" turns Nagle's
algorithm on again, as it was before Python 3.6 and is in many a client: then a server that does not
acknowledge the header at once makes each request wait for a delayed ACK.
"""
import http.client
import itertools
import socket
import sys
import time
import urllib.parse

base = urllib.parse.urlsplit(sys.argv[1])
rounds = int(sys.argv[2])
mode = sys.argv[3]
name = "python-http-client-" + mode


def value(size, round_number):
    """Numbered lines that say whose they are, cut to size bytes."""
    text = bytearray()
    for line in itertools.count():
        if len(text) >= size:
            return bytes(text[:size])
        text += b"%s %d %d %d\n" % (name.encode(), size, round_number, line)


def request(connection, method, size, body=None):
    start = time.monotonic_ns()
    connection.request(method, base.path + name + "-%d" % size, body)
    response = connection.getresponse()
    content = response.read()
    return response.status, content, (time.monotonic_ns() - start) // 1000


def main():
    connection = http.client.HTTPConnection(base.hostname, base.port, timeout=10)
    connection.connect()
    if mode == "nagle":
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 0)
    for round_number in range(rounds + 1):  # round 0 is for warming up
        for size in 307200, 100:
            body = value(size, round_number)
            status, _, put_us = request(connection, "PUT", size, body)
            if status not in (201, 204):
                sys.exit("round %d: put answered %d" % (round_number, status))
            status, content, get_us = request(connection, "GET", size)
            if status != 200 or content != body:
                sys.exit("round %d: get answered %d, %d bytes" % (round_number, status, len(content)))
            if round_number > 0:
                print("put", size, put_us)
                print("get", size, get_us)


main()
