"""The servers that are compared: each is started on a free port of loopback, and all end with the run."""
import os
import shutil
import socket
import subprocess
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
CLOCK = os.sysconf("SC_CLK_TCK")


class Peer:
    """A server: its process, and what GET and PUT of a key are called. None: it has no such thing."""

    def __init__(self, name, process, port, get="/get/", put="/set/"):
        self.name, self.process, self.port, self.get, self.put = name, process, port, get, put

    def tree(self):
        """Its process and the processes below it."""
        pids, found = [self.process.pid], [self.process.pid]
        while found:
            pid = found.pop()
            try:
                with open(f"/proc/{pid}/task/{pid}/children") as f:
                    found += [int(p) for p in f.read().split()]
            except OSError:
                continue
            pids += found
        return sorted(set(pids))

    def cpu(self):
        """Seconds of processor time, user and system, so far."""
        ticks = 0
        for pid in self.tree():
            with open(f"/proc/{pid}/stat") as f:
                fields = f.read().rsplit(")", 1)[1].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / CLOCK

    def memory(self, what="VmHWM"):
        """Kilobytes: VmHWM is the peak, VmRSS what there is now."""
        total = 0
        for pid in self.tree():
            with open(f"/proc/{pid}/status") as f:
                total += sum(int(l.split()[1]) for l in f if l.startswith(what + ":"))
        return total


class Peers:
    def __init__(self, kvgate, floor):
        self.kvgate_path, self.floor_path = kvgate, floor
        self.dir = tempfile.mkdtemp(prefix="kvgate-bench-")
        os.chmod(self.dir, 0o755)
        self.processes, self.floors = [], {}

    def close(self):
        for p in reversed(self.processes):
            p.terminate()
        for p in self.processes:
            p.wait()
        shutil.rmtree(self.dir, ignore_errors=True)

    def start(self, port, *argv):
        log = open(os.path.join(self.dir, f"out.{len(self.processes)}"), "w")
        process = subprocess.Popen(argv, stdout=log, stderr=log, cwd=self.dir)
        self.processes.append(process)
        for _ in range(400):
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                return process
            except OSError:
                if process.poll() is not None:
                    break
                time.sleep(0.02)
        raise SystemExit(f"{argv[0]} does not start; see {log.name}: {open(log.name).read()[-500:]}")

    def fill_in(self, name, **words):
        """The settings file NAME with its @WORDS@ replaced; returns its path."""
        with open(os.path.join(HERE, name)) as f:
            text = f.read()
        for word, value in words.items():
            text = text.replace(f"@{word}@", str(value))
        path = os.path.join(self.dir, f"{len(self.processes)}-{name}")
        with open(path, "w") as f:
            f.write(text)
        return path

    def memcached(self, *more):
        port = free_port()
        user = ["-u", "nobody"] if os.geteuid() == 0 else []
        args = ["-l", "127.0.0.1", "-p", str(port), "-U", "0", "-t", "1", "-m", "256", "-c", "4096"]
        self.start(port, "memcached", *args, *user, *more)
        return port

    def nginx(self, name, conf, memcached):
        port = free_port()
        path = self.fill_in(conf, DIR=self.dir, PORT=port, MEMCACHED=memcached)
        return Peer(name, self.start(port, "nginx", "-c", path, "-e", os.path.join(self.dir, "nginx.err")), port)

    def kvgate(self, name, store, workers=2, extra=""):
        port = free_port()
        path = self.fill_in("kvgate.conf", PORT=port, TYPE=store.split("\n")[0], STORE="\n".join(store.split("\n")[1:]))
        with open(path, "a") as f:
            f.write(extra)
        process = self.start(port, self.kvgate_path, "-c", path, "-w", str(workers))
        return Peer(name, process, port)

    def webdis(self):
        redis, port = free_port(), free_port()
        self.start(redis, "redis-server", "--port", str(redis), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no")
        path = self.fill_in("webdis.json", REDIS=redis, PORT=port, DIR=self.dir)
        return Peer("webdis, redis", self.start(port, "webdis", path), port, "/GET/", "/SET/")

    def floor(self, size):
        """The bare responder whose answers have SIZE bytes."""
        if size not in self.floors:
            port = free_port()
            process = self.start(port, self.floor_path, str(port), str(size))
            self.floors[size] = Peer("floor", process, port)
        return self.floors[size]


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def versions():
    """A line for each program that takes part."""
    wanted = [("nginx", "-v"), ("memcached", "-V"), ("redis-server", "--version"), ("wrk", "-v")]
    lines = []
    for program, option in wanted:
        out = subprocess.run([program, option], capture_output=True, text=True)
        lines.append((out.stdout + out.stderr).strip().split("\n")[0])
    package = subprocess.run(["dpkg-query", "-W", "-f", "webdis ${Version}", "webdis"], capture_output=True, text=True)
    return lines + [package.stdout.strip()]
