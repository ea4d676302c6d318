"""One run of wrk, and what it cost the server."""
import re
import subprocess

UNITS = {"us": 1, "ms": 1e3, "s": 1e6, "m": 6e7, "h": 3.6e9}


def microseconds(text):
    """Of wrk's 1.23ms."""
    number, unit = re.match(r"([\d.]+)(us|ms|s|m|h)", text).groups()
    return float(number) * UNITS[unit]


def count_errors(out, misses):
    """Answers that were none, and those that were not 2xx; with MISSES, each answer is to be a 404."""
    refused = re.search(r"Non-2xx or 3xx responses: (\d+)", out)
    refused = int(refused.group(1)) if refused else 0
    broken = re.search(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)", out)
    broken = sum(map(int, broken.groups())) if broken else 0
    if misses:
        refused = int(re.search(r"(\d+) requests in", out).group(1)) - refused
    return refused + broken


def wrk(peer, target, seconds, connections, script=(), args=(), misses=False):
    """PEER under the load of one thread of wrk. Times in microseconds, unless the name says otherwise."""
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--latency", *script]
    command += [f"http://127.0.0.1:{peer.port}{target}", *(["--", *args] if args else [])]
    peer.forget_peak()
    before = peer.cpu()
    done = subprocess.run(command, capture_output=True, text=True)
    used, out = peer.cpu() - before, done.stdout
    if done.returncode != 0 or "requests in" not in out:
        raise SystemExit(f"{' '.join(command)}: {out}{done.stderr}")
    count = int(re.search(r"(\d+) requests in", out).group(1))
    return {
        "requests": count,
        "rps": float(re.search(r"Requests/sec: +([\d.]+)", out).group(1)),
        "cpu_s": used,
        "cpu_us": used / max(count, 1) * 1e6,
        "p50_us": microseconds(re.search(r"50% +(\S+)", out).group(1)),
        "p99_us": microseconds(re.search(r"99% +(\S+)", out).group(1)),
        "max_us": microseconds(re.search(r"Latency +\S+ +\S+ +(\S+)", out).group(1)),
        "peak_kb": peer.memory(),
        "errors": count_errors(out, misses),
    }
