"""The servers that are compared: each is started on a free port of loopback, and all end with the run."""
import ctypes
import os
import platform
import pwd
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
import textwrap
import time

HERE = os.path.dirname(os.path.abspath(__file__))
CLOCK = os.sysconf("SC_CLK_TCK")
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)


class Peer:
    """A server: its process, and the prefixes under which it gets and puts a key. PRIME: under which it stores what
    it gets, or None when that is done in memcached itself."""

    def __init__(self, name, process, port, get="/get/", put="/set/", prime=None):
        self.name, self.process, self.port = name, process, port
        self.get, self.put, self.prime = get, put, prime

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

    def forget_peak(self):
        """The next VmHWM counts from now on; where that is not allowed, it is the peak so far."""
        for pid in self.tree():
            try:
                with open(f"/proc/{pid}/clear_refs", "w") as f:
                    f.write("5")
            except OSError:
                pass


class Peers:
    def __init__(self, kvgate, floor=""):
        self.kvgate_path, self.floor_path = kvgate, floor
        self.dir = tempfile.mkdtemp(prefix="kvgate-bench-")
        os.chmod(self.dir, 0o755)
        self.processes, self.floors = [], {}
        self.settings = {}  # by peer: its command, the text of its settings
        signal.signal(signal.SIGTERM, lambda *_: exit(143))  # so that `finally` ends what was started

    def close(self):
        for p in reversed(self.processes):
            stop(p)
        shutil.rmtree(self.dir, ignore_errors=True)

    def start(self, port, *argv, **who):
        log = os.path.join(self.dir, f"out.{len(self.processes)}")
        with open(log, "w") as out:
            die_too = lambda: LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
            process = subprocess.Popen(argv, stdout=out, stderr=out, cwd=self.dir, preexec_fn=die_too, **who)
        self.processes.append(process)
        for _ in range(400):
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                return process
            except OSError:
                if process.poll() is not None:
                    break
                time.sleep(0.02)
        with open(log) as out:
            raise SystemExit(f"{argv[0]} does not start: {out.read()[-500:]}")

    def end(self, peer):
        stop(peer.process)
        self.processes.remove(peer.process)

    def fill_in(self, name, **words):
        """The settings file NAME with its @WORDS@ replaced: its new path and its text."""
        with open(os.path.join(HERE, name)) as f:
            text = f.read()
        for word, value in words.items():
            text = text.replace(f"@{word}@", str(value))
        path = os.path.join(self.dir, f"{time.monotonic_ns()}-{name}")
        with open(path, "w") as f:
            f.write(text)
        return path, text

    def run(self, name, port, argv, text="", **prefixes):
        """Starts a peer, whose settings will be told."""
        self.settings[name] = (shlex.join(argv), text)
        return Peer(name, self.start(port, *argv), port, **prefixes)

    def memcached(self, *more):
        """Returns its port."""
        port, who = free_port(), {}
        if os.geteuid() == 0:  # not by its -u: a process that changes its user outlives its parent
            nobody = pwd.getpwnam("nobody")
            who = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
        argv = ["memcached", "-l", "127.0.0.1", "-p", str(port), "-U", "0", "-t", "1", "-m", "256", "-c", "4096", *more]
        self.settings["memcached"] = (shlex.join(argv), "")
        self.start(port, *argv, **who)
        return port

    def nginx(self, name, conf, memcached, pool=512, **prefixes):
        port = free_port()
        path, text = self.fill_in(conf, DIR=self.dir, PORT=port, MEMCACHED=memcached, POOL=pool)
        return self.run(name, port, ["nginx", "-c", path, "-e", os.path.join(self.dir, "nginx.err")], text, **prefixes)

    def kvgate(self, name, store, workers=2, extra="", server=""):
        """STORE is the type and, in lines of their own, the directives of the store of all keys; SERVER a directive of
        the server."""
        port = free_port()
        kind, *directives = store.split("\n")
        words = {"PORT": port, "WORKERS": workers, "TYPE": kind, "STORE": "\n".join(directives), "EXTRA": extra, "SERVER": server}
        path, text = self.fill_in("kvgate.conf", **words)
        prime = "/get/" if kind == "embedded" else None
        return self.run(name, port, [self.kvgate_path, "-c", path], text, prime=prime)

    def webdis(self):
        redis, port = free_port(), free_port()
        options = ["--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
        self.run("redis", redis, ["redis-server", "--port", str(redis), *options])
        path, text = self.fill_in("webdis.json", REDIS=redis, PORT=port, DIR=self.dir)
        return self.run("webdis, redis", port, ["webdis", path], text, get="/GET/", put="/SET/", prime="/SET/")

    def floor(self, size, threads=1):
        """The bare responder whose answers have SIZE bytes."""
        if (size, threads) not in self.floors:
            port, name = free_port(), "floor" if threads == 1 else f"floor, {threads} threads"
            argv = [self.floor_path, str(port), str(size), str(threads)]
            self.floors[size, threads] = self.run(name, port, argv)
        return self.floors[size, threads]

    def describe(self):
        """A paragraph for each server: its command and what its settings say, without comments and paths."""
        paragraphs = []
        for name, (command, text) in self.settings.items():
            lines = [l.strip() for l in text.split("\n")]
            told = [l for l in lines if l and l[0] != "#" and "_temp_path" not in l and not l.startswith(("pid", "error_log"))]
            text = " | ".join(l for l in told if l not in "{}")
            paragraphs.append(textwrap.fill(f"{name}: {command}" + (f" | {text}" if text else ""), 118, subsequent_indent="    "))
        return "\n".join(paragraphs).replace(self.dir, "DIR")


def stop(process):
    process.terminate()
    try:
        process.wait(15)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def first_line(*argv):
    out = subprocess.run(argv, capture_output=True, text=True)
    return (out.stdout + out.stderr).strip().split("\n")[0]


def versions(kvgate):
    """A line for the machine and for each program that takes part."""
    with open("/proc/cpuinfo") as f:
        model = next((l.split(":")[1].strip() for l in f if l.startswith("model name")), "processors")
    lines = [f"{os.cpu_count()} x {model}, Linux {platform.release()}", first_line(kvgate, "-V")]
    for program, option in (("nginx", "-v"), ("memcached", "-V"), ("redis-server", "--version"), ("wrk", "-v")):
        lines.append(first_line(program, option))
    for package in ("libnginx-mod-http-memc", "webdis"):
        lines.append(first_line("dpkg-query", "-W", "-f", "${Package} ${Version}", package))
    return lines
