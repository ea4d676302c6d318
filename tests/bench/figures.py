"""From measurements to tables, files and pictures."""
import csv
import os
import statistics
import subprocess

FIELDS = ["op", "size", "connections", "peer", "round", "rps", "cpu_us", "p50_us", "p99_us", "max_us", "errors"]
TUNED, FLOOR = "nginx tuned", "floor"


def write_csv(path, rows):
    with open(path, "w", newline="") as f:
        out = csv.DictWriter(f, FIELDS)
        out.writeheader()
        out.writerows(rows)


class Figures:
    def __init__(self, rows):
        self.rows = rows
        self.cells = list(dict.fromkeys((r["op"], r["size"], r["connections"]) for r in rows))
        self.peers = list(dict.fromkeys(r["peer"] for r in rows))

    def values(self, cell, peer, field):
        return [r[field] for r in self.rows if (r["op"], r["size"], r["connections"], r["peer"]) == (*cell, peer)]

    def median(self, cell, peer, field):
        values = self.values(cell, peer, field)
        return statistics.median(values) if values else None

    def ratio(self, cell, peer, other, field):
        """The median of the rounds' ratios: what was noise in a round was so for both."""
        pairs = list(zip(self.values(cell, peer, field), self.values(cell, other, field)))
        return statistics.median(a / b for a, b in pairs if b > 0) if pairs else None

    def table(self):
        head = f"{'':28}{'r/s':>9}{'min':>9}{'max':>9}  {'CPU us':>7}  {'p50':>7}{'p99':>9}{'max us':>10}"
        lines = [head + f"  {'r/s':>6}{'CPU':>7} of nginx tuned {'CPU':>6} of floor"]
        for cell in self.cells:
            lines.append(f"{cell[0]} {size_name(cell[1])}, {cell[2]} connections")
            for peer in self.peers:
                rps = self.values(cell, peer, "rps")
                if rps:
                    lines.append(self.line(cell, peer, rps))
        return "\n".join(lines)

    def line(self, cell, peer, rps):
        m = lambda field: self.median(cell, peer, field)
        line = f"  {peer:26}{statistics.median(rps):9.0f}{min(rps):9.0f}{max(rps):9.0f}  {m('cpu_us'):7.1f}"
        line += f"  {m('p50_us'):7.0f}{m('p99_us'):9.0f}{max(self.values(cell, peer, 'max_us')):10.0f}"
        for other, field, width in ((TUNED, "rps", 8), (TUNED, "cpu_us", 7), (FLOOR, "cpu_us", 22)):
            ratio = self.ratio(cell, peer, other, field)
            line += f"{'-' if ratio is None else format(ratio, '.2f'):>{width}}"
        errors = sum(self.values(cell, peer, "errors"))
        return line + (f"   {errors} errors" if errors else "")

    def targets(self):
        """The rows of the goal, each with what was measured."""
        kv, embedded = "kvgate meta", "kvgate embedded"
        wanted = [
            ("GET 100 B, 32 connections: r/s of nginx tuned", ("GET", 100, 32), kv, TUNED, "rps", ">=", 1.7),
            ("   ... CPU of the floor", ("GET", 100, 32), kv, FLOOR, "cpu_us", "<=", 1.5),
            ("GET 100 B, 256 connections: r/s of nginx tuned", ("GET", 100, 256), kv, TUNED, "rps", ">=", 2.7),
            ("   ... CPU of the floor", ("GET", 100, 256), kv, FLOOR, "cpu_us", "<=", 1.35),
            ("PUT 100 B, 32 connections: r/s of nginx tuned", ("PUT", 100, 32), kv, TUNED, "rps", ">=", 1.5),
            ("PUT 4 KB, 32 connections: r/s of nginx tuned", ("PUT", 4096, 32), kv, TUNED, "rps", ">=", 1.5),
            ("GET 300 KB, 32 connections: r/s of nginx tuned", ("GET", 307200, 32), kv, TUNED, "rps", ">=", 1.0),
            ("PUT 300 KB, 32 connections: r/s of nginx tuned", ("PUT", 307200, 32), kv, TUNED, "rps", ">=", 1.0),
            ("GET 300 KB, 32: r/s of nginx as installed", ("GET", 307200, 32), kv, "nginx installed", "rps", ">=", 2.0),
            ("PUT 300 KB, 32: r/s of nginx as installed", ("PUT", 307200, 32), kv, "nginx installed", "rps", ">=", 2.0),
            ("GET 100 B embedded, 32: CPU of the floor", ("GET", 100, 32), embedded, FLOOR, "cpu_us", "<=", 1.3),
        ]
        lines = [f"{'target':52}{'wanted':>8}{'2 workers':>10}{'1 worker':>16}"]
        for name, cell, peer, other, field, sign, goal in wanted:
            seen = ""
            for who in (peer, peer + ", 1 worker"):
                ratio = self.ratio(cell, who, other, field)
                if ratio is not None:
                    met = ratio >= goal if sign == ">=" else ratio <= goal
                    seen += f"{ratio:8.2f} {'met' if met else 'MISSED':7}"
            if seen:
                lines.append(f"{name:52}{sign + ' ' + str(goal):>8}{seen}")
        return "\n".join(lines)

    def pictures(self, directory):
        for field, name, title in (("rps", "requests", "requests per second"), ("cpu_us", "cpu", "CPU microseconds a request")):
            for connections in sorted({c[2] for c in self.cells}):
                self.picture(directory, field, f"{name}-{connections}", f"{title}, {connections} connections", connections)

    def picture(self, directory, field, name, title, connections):
        cells = [c for c in self.cells if c[2] == connections]
        peers = [p for p in self.peers if any(self.values(c, p, field) for c in cells)]
        data = os.path.join(directory, name + ".dat")
        with open(data, "w") as f:
            f.write("cell " + " ".join(f'"{p}"' for p in peers) + "\n")
            for c in cells:
                values = [self.median(c, p, field) for p in peers]
                f.write(f'"{c[0]} {size_name(c[1])}" ' + " ".join("nan" if v is None else f"{v:.3f}" for v in values) + "\n")
        script = f"""
set terminal svg size 1100,420 dynamic background '#ffffff'
set output '{os.path.join(directory, name)}.svg'
set title '{title}'
set style data histogram
set style fill solid 0.8 border -1
set boxwidth 0.9
set logscale y
set grid ytics
set key outside right
plot for [i=2:{len(peers) + 1}] '{data}' using i:xtic(1) title columnheader(i)
"""
        subprocess.run(["gnuplot"], input=script, text=True, check=False)


def size_name(size):
    return "" if size == 0 else f"{size // 1024} KB" if size >= 1024 else f"{size} B"
