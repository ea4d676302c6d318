#!/usr/bin/env python3
"""A memcached that answers each get after a while, pipelined: slow_store.py PORT MILLISECONDS. Text dialect; every
key is a miss, but for the time that takes."""
import asyncio
import sys


class Slow(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport, self.rest = transport, b""

    def data_received(self, data):
        lines = (self.rest + data).split(b"\r\n")
        self.rest = lines.pop()
        answers = b"".join(b"END\r\n" if line.startswith(b"get") else b"VERSION 1.4\r\n" if line == b"version" else b"ERROR\r\n" for line in lines)
        late = any(line.startswith(b"get") for line in lines)
        asyncio.get_running_loop().call_later(int(sys.argv[2]) / 1000 if late else 0, self.transport.write, answers)


async def main():
    server = await asyncio.get_running_loop().create_server(Slow, "127.0.0.1", int(sys.argv[1]))
    await server.serve_forever()


asyncio.run(main())
