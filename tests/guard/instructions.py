#!/usr/bin/env python3
"""Counts the instructions of one GET and one PUT of 100 bytes, and fails when they have grown by more than 5 %.

    instructions.py [--accept] KVGATE

valgrind's callgrind counts, so a busy machine makes no difference. One worker, one connection, memcached (meta)
behind it; a connection_buffer of 4 KB, since libmicrohttpd clears it for each request, which would be half of all. Two runs with different numbers of requests: what is left of their difference is the requests' own.
The accepted numbers are in instructions.txt; --accept writes those of this build there.
"""
import http.client
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ACCEPTED = os.path.join(HERE, "instructions.txt")
FEW, MANY = 200, 1200
TOLERANCE = 1.05
# glibc chooses its string functions by the processor; these choose the same ones on all.
PLAIN = "glibc.cpu.hwcaps=-AVX2,-AVX,-AVX512F,-AVX512VL,-AVX512BW,-ERMS,-FSRM,-BMI2,-SSE4_2,-SSE4_1,-SSSE3,-MOVBE"
TRIES = 4  # a request whose answer comes in two turns of the loop takes some more; the least counts


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def connect(port, process):
    end = time.monotonic() + 60
    while time.monotonic() < end and process.poll() is None:
        try:
            c = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
            c.connect()
            return c
        except OSError:
            time.sleep(0.02)
    raise SystemExit("kvgate does not start under valgrind")


def exchange(c, method, body=None):
    c.request(method, "/key", body)
    answer = c.getresponse()
    answer.read()
    assert answer.status in (200, 201, 204), answer.status


def run(kvgate, memcached, method, count, directory):
    """All instructions of a kvgate that answers COUNT requests."""
    port, out = free_port(), os.path.join(directory, f"{method}{count}")
    command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", kvgate]
    config = os.path.join(directory, "kvgate.conf")
    with open(config, "w") as f:
        f.write("[server]\nworkers = 1\nconnection_buffer = 4KB\n[store main]\ntype = memcached\n")
        f.write(f"dialect = meta\nservers = 127.0.0.1:{memcached}\n")
    command += ["-l", f"127.0.0.1:{port}", "-c", config]
    with open(out + ".log", "w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=os.environ | {"GLIBC_TUNABLES": PLAIN})
    try:
        c = connect(port, process)
        exchange(c, "PUT", b"v" * 100)
        for _ in range(count):
            exchange(c, method, b"v" * 100 if method == "PUT" else None)
        c.close()
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)
    with open(out) as f:
        return int(re.search(r"^(?:summary|totals): (\d+)", f.read(), re.M).group(1))


def count(kvgate):
    port, directory = free_port(), tempfile.mkdtemp(prefix="kvgate-guard-")
    user = ["-u", "nobody"] if os.geteuid() == 0 else []
    memcached = subprocess.Popen(["memcached", "-l", "127.0.0.1", "-p", str(port), "-U", "0", "-t", "1", *user])
    try:
        return {
            method: (run(kvgate, port, method, MANY, directory) - run(kvgate, port, method, FEW, directory)) // (MANY - FEW)
            for method in ("GET", "PUT")
        }
    finally:
        memcached.terminate()
        memcached.wait()
        shutil.rmtree(directory, ignore_errors=True)


def least(a, b):
    return {method: min(a[method], b[method]) for method in a}


def over(seen, accepted):
    return any(n > accepted[method] * TOLERANCE for method, n in seen.items())


def main():
    kvgate = os.path.abspath([a for a in sys.argv[1:] if not a.startswith("--")][0])
    if shutil.which("valgrind") is None:
        print("instructions: SKIPPED, there is no valgrind")
        return 0
    seen = count(kvgate)
    if "--accept" in sys.argv:
        for _ in range(TRIES - 1):
            seen = least(seen, count(kvgate))
        with open(ACCEPTED, "w") as f:
            f.writelines(f"{method} {n}\n" for method, n in seen.items())
    with open(ACCEPTED) as f:
        accepted = {method: int(n) for method, n in (line.split() for line in f)}
    for _ in range(TRIES - 1):
        if over(seen, accepted):
            seen = least(seen, count(kvgate))
    for method, n in seen.items():
        print(f"instructions: {method} {n}, accepted {accepted[method]} ({n / accepted[method]:.3f})")
    if over(seen, accepted):
        print("instructions: a request has become more than 5 % dearer. If it has to be: make accept-instructions")
        return 1
    return 0


sys.exit(main())
