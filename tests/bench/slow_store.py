#!/usr/bin/env python3
"""A memcached that answers each get after a while, pipelined: slow_store.py PORT MILLISECONDS. Dialects text and
meta; every key is a miss, but for the time that takes."""
import asyncio
import sys

DELAY = int(sys.argv[2]) / 1000
ANSWERS = {b"get": b"END\r\n", b"gets": b"END\r\n", b"mg": b"EN\r\n", b"mn": b"MN\r\n", b"version": b"VERSION 1.6.18\r\n"}


class Slow(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport, self.rest, self.waiting = transport, b"", 0

    def data_received(self, data):
        lines = (self.rest + data).split(b"\r\n")
        self.rest = lines.pop()
        verbs = [line.split(b" ", 1)[0] for line in lines]
        answers = b"".join(ANSWERS.get(verb, b"ERROR\r\n") for verb in verbs)
        # a greeting asks for the version and is answered at once, unless that would overtake what is waiting
        slow = b"version" not in verbs and any(verb in (b"get", b"gets", b"mg") for verb in verbs)
        if self.waiting or slow:
            self.waiting += 1
            asyncio.get_running_loop().call_later(DELAY, self.answer, answers)
        else:
            self.transport.write(answers)

    def answer(self, answers):
        self.waiting -= 1
        self.transport.write(answers)


async def main():
    server = await asyncio.get_running_loop().create_server(Slow, "127.0.0.1", int(sys.argv[1]))
    await server.serve_forever()


asyncio.run(main())
