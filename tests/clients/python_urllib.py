#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Python's urllib.request: python_urllib.py URL ROUNDS. It opens a connection for each request."""
import itertools
import sys
import time
import urllib.error
import urllib.request

url, rounds = sys.argv[1], int(sys.argv[2])


def value(size, round_number):
    """Numbered lines that say whose they are, cut to size bytes."""
    text = bytearray()
    for line in itertools.count():
        if len(text) >= size:
            return bytes(text[:size])
        text += b"python-urllib %d %d %d\n" % (size, round_number, line)


def request(method, size, body=None):
    start = time.monotonic_ns()
    asked = urllib.request.Request(url + "python-urllib-%d" % size, body, method=method)
    try:
        with urllib.request.urlopen(asked, timeout=10) as response:
            content = response.read()
            return response.status, content, (time.monotonic_ns() - start) // 1000
    except urllib.error.HTTPError as error:
        return error.code, b"", 0


for number in range(rounds + 1):  # round 0 is for warming up
    for length in 307200, 100:
        wanted = value(length, number)
        status, _, post_us = request("POST", length, wanted)
        if status not in (201, 204):
            sys.exit("round %d: post answered %d" % (number, status))
        status, got, get_us = request("GET", length)
        if status != 200 or got != wanted:
            sys.exit("round %d: get answered %d, %d bytes" % (number, status, len(got)))
        if number > 0:
            print("post", length, post_us)
            print("get", length, get_us)
