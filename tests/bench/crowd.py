"""Many connections at once: idle ones, and ones whose request waits for a slow store."""
import contextlib
import mmap
import os
import resource
import selectors
import signal
import socket
import struct
import sys
import time

from peers import HERE, free_port

SPARE = 200  # descriptors that are no connection


def room_for(count):
    """Raises the limit of open files; COUNT, or how many connections of COUNT a process may have."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if hard - SPARE < count:
        print(f"{hard} files may be open: {hard - SPARE} connections instead of {count}", file=sys.stderr)
    return min(count, hard - SPARE)


def put(peer, key="k", value=b"v" * 100):
    with socket.create_connection(("127.0.0.1", peer.port)) as s:
        s.sendall(b"PUT /%s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (key.encode(), len(value)) + value)
        assert s.recv(1000)[9:10] == b"2"


def get(key):
    return b"GET /%s HTTP/1.1\r\nHost: x\r\n\r\n" % key.encode()


@contextlib.contextmanager
def idle(peer, count):
    """COUNT kept-alive connections which have had an answer each and have been silent for some seconds. Gives the
    kilobytes by which PEER has grown."""
    before, sockets = peer.memory("VmRSS"), []
    for _ in range(count):
        s = socket.create_connection(("127.0.0.1", peer.port))
        sockets.append(s)
        s.sendall(get("k"))
    for s in sockets:
        assert s.recv(1000)[9:12] == b"200"
    if count:
        settle(peer)
    yield peer.memory("VmRSS") - before
    for s in sockets:
        s.close()


def settle(peer, seconds=15):
    """Waits until PEER has not changed its memory for two seconds."""
    last, since, end = peer.memory("VmRSS"), time.monotonic(), time.monotonic() + seconds
    while time.monotonic() < min(since + 2, end):
        time.sleep(0.1)
        now = peer.memory("VmRSS")
        if now != last:
            last, since = now, time.monotonic()


class Slow:
    """A store that answers after MILLISECONDS; `route` is for a kvgate's settings: /slow/ leads to it."""

    def __init__(self, peers, milliseconds):
        port = free_port()
        peers.start(port, sys.executable, os.path.join(HERE, "slow_store.py"), str(port), str(milliseconds))
        self.route = f"""
[store slow]
type = memcached
dialect = text
servers = 127.0.0.1:{port}
op_timeout = {milliseconds // 1000 + 60}s
ops_max = 100000
[route /slow/]
store = slow
"""


class Waiting:
    """COUNT connections, each with a request for a slow store under way all the time; they have a process of their
    own. `grown`: kilobytes by which PEER has grown."""

    def __init__(self, peer, count):
        before = peer.memory("VmRSS")
        self.shared = mmap.mmap(-1, 16)  # answers, whether all have asked
        self.pid = os.fork()
        if self.pid == 0:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            try:
                self.ask(peer, count)
            finally:
                os._exit(1)
        while self.number(1) == 0:
            if os.waitpid(self.pid, os.WNOHANG)[0]:
                raise SystemExit(f"{count} connections do not fit")
            time.sleep(0.02)
        settle(peer, 4)
        self.grown = peer.memory("VmRSS") - before

    def number(self, index):
        return struct.unpack_from("q", self.shared, index * 8)[0]

    def answers(self):
        """How many of them have been answered so far."""
        return self.number(0)

    def ask(self, peer, count):
        selector, answers = selectors.EpollSelector(), 0
        for i in range(count):
            s = socket.create_connection(("127.0.0.1", peer.port))
            s.sendall(get(f"slow/{i}"))
            selector.register(s, selectors.EVENT_READ, get(f"slow/{i}"))
        struct.pack_into("q", self.shared, 8, 1)
        while True:
            for key, _ in selector.select():
                if not key.fileobj.recv(4000):
                    return
                key.fileobj.sendall(key.data)
                answers += 1
            struct.pack_into("q", self.shared, 0, answers)

    def close(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
