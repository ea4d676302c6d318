"""From measurements to tables, files and pictures."""
import csv
import os
import shutil
import statistics
import subprocess

FIELDS = ["op", "size", "connections", "peer", "round", "rps", "cpu_us", "p50_us", "p99_us", "max_us",
          "peak_kb", "errors"]
TUNED, FLOOR, FLOOR_2, SMALL_POOL = "nginx tuned", "floor", "floor, 2 threads", "nginx tuned, pool of 64"
WORKERS = ("", ", 1 worker")  # what is after a kvgate's name


def write_csv(path, rows):
    with open(path, "w", newline="") as f:
        out = csv.DictWriter(f, FIELDS, extrasaction="ignore")
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
        head = f"{'':28}{'r/s':>9}{'min':>9}{'max':>9}{'CPU us':>9}{'min':>7}{'max':>7}{'p50 us':>9}{'p99':>8}{'max':>9}{'peak MB':>9}"
        lines = [head + "   of nginx tuned: r/s, CPU; of the floor: CPU"]
        for cell in self.cells:
            lines.append(f"{cell[0]} {size_name(cell[1])}".rstrip() + f", {cell[2]} connections")
            lines += [self.line(cell, peer) for peer in self.peers if self.values(cell, peer, "rps")]
        return "\n".join(lines)

    def line(self, cell, peer):
        """Medians of the rounds; of requests and processor time the least and the most, too."""
        of = lambda field: self.values(cell, peer, field)
        rps, cpu = of("rps"), of("cpu_us")
        line = f"  {peer:26}{statistics.median(rps):9.0f}{min(rps):9.0f}{max(rps):9.0f}"
        line += f"{statistics.median(cpu):9.1f}{min(cpu):7.1f}{max(cpu):7.1f}"
        line += f"{statistics.median(of('p50_us')):9.0f}{statistics.median(of('p99_us')):8.0f}{max(of('max_us')):9.0f}"
        line += f"{max(of('peak_kb')) / 1024:9.1f}"
        for other, field, width in ((TUNED, "rps", 13), (TUNED, "cpu_us", 7), (FLOOR, "cpu_us", 12)):
            ratio = self.ratio(cell, peer, other, field)
            line += f"{'-' if ratio is None else format(ratio, '.2f'):>{width}}"
        errors = sum(of("errors"))
        return line + (f"   {errors} errors" if errors else "")

    def targets(self, others):
        """The rows of the goal, each with what was measured. OTHERS: what is no cell (alone, idle_mb, waiting_share)."""
        meta, embedded, at_32 = "kvgate meta", "kvgate embedded", "32 connections: "
        wanted = [
            ("GET 100 B, " + at_32 + "r/s of nginx tuned", ("GET", 100, 32), meta, TUNED, "rps", ">=", 1.7),
            ("   CPU of the floor", ("GET", 100, 32), meta, FLOOR, "cpu_us", "<=", 1.5),
            ("   CPU of a floor with two threads", ("GET", 100, 32), meta, FLOOR_2, "cpu_us", "<=", 1.5),
            ("GET 100 B, 256 connections: r/s of nginx tuned", ("GET", 100, 256), meta, TUNED, "rps", ">=", 2.7),
            ("   r/s of nginx tuned, but with a pool of 64", ("GET", 100, 256), meta, SMALL_POOL, "rps", ">=", 2.7),
            ("   CPU of the floor", ("GET", 100, 256), meta, FLOOR, "cpu_us", "<=", 1.35),
            ("   CPU of a floor with two threads", ("GET", 100, 256), meta, FLOOR_2, "cpu_us", "<=", 1.35),
            ("PUT 100 B, " + at_32 + "r/s of nginx tuned", ("PUT", 100, 32), meta, TUNED, "rps", ">=", 1.5),
            ("PUT 4 KB, " + at_32 + "r/s of nginx tuned", ("PUT", 4096, 32), meta, TUNED, "rps", ">=", 1.5),
            ("GET 300 KB, " + at_32 + "r/s of nginx tuned", ("GET", 307200, 32), meta, TUNED, "rps", ">=", 1.0),
            ("   r/s of nginx as installed", ("GET", 307200, 32), meta, "nginx installed", "rps", ">=", 2.0),
            ("PUT 300 KB, " + at_32 + "r/s of nginx tuned", ("PUT", 307200, 32), meta, TUNED, "rps", ">=", 1.0),
            ("   r/s of nginx as installed", ("PUT", 307200, 32), meta, "nginx installed", "rps", ">=", 2.0),
            ("GET 100 B embedded, " + at_32 + "CPU of the floor", ("GET", 100, 32), embedded, FLOOR, "cpu_us", "<=", 1.3),
            ("   CPU of a floor with two threads", ("GET", 100, 32), embedded, FLOOR_2, "cpu_us", "<=", 1.3),
        ]
        rows = []
        for name, cell, peer, other, field, sign, goal in wanted:
            workers = WORKERS[:1] if other == FLOOR_2 else WORKERS
            rows.append((name, sign, goal, [self.ratio(cell, peer + more, other, field) for more in workers]))
        for op, number in (("set", 0), ("get", 1)):
            alone = [others.get("alone", {}).get(meta + more) for more in WORKERS]
            for index, what, goal in ((0, "median", 1), (1, "maximum", 5)):
                seen = [a and a[number][index] for a in alone]
                rows.append((f"{op} of 300 KB, one connection alone: {what}, ms", "<", goal, seen))
        rows.append(("MB with 10,000 idle connections", "<=", 40, [others.get("idle_mb")]))
        rows.append(("   with connection_buffer = 4KB", "<=", 40, [others.get("idle_small_mb")]))
        rows.append(("GETs beside 10,000 waiting: share of their speed", ">=", 0.5, [others.get("waiting_share")]))
        return target_table(rows)

    def markdown(self):
        """The table and the picture of the README."""
        kv, one = "kvgate meta", "kvgate meta, 1 worker"
        lines = ["| | conns | nginx tuned, r/s | kvgate meta | of nginx | 1 worker | CPU of nginx | 1 worker | CPU of the floor | 1 worker | p99 ms, nginx / kvgate |",
                 "|" + " --- |" * 11]
        text = lambda value, digits=2: "-" if value is None else f"{value:.{digits}f}"
        ms = lambda value: "-" if value is None else f"{value / 1000:.1f}"
        for cell in self.cells:
            if cell[2] == 1 and cell[1] not in (100, 307200):
                continue
            columns = [f"{cell[0]} {size_name(cell[1])}".rstrip(), str(cell[2])]
            columns += [text(self.median(cell, peer, "rps"), 0) for peer in (TUNED, kv)]
            for other, field in ((TUNED, "rps"), (TUNED, "cpu_us"), (FLOOR, "cpu_us")):
                columns += [text(self.ratio(cell, peer, other, field)) for peer in (kv, one)]
            columns.append(" / ".join(ms(self.median(cell, peer, "p99_us")) for peer in (TUNED, kv)))
            lines.append("| " + " | ".join(columns) + " |")
        return "\n".join(lines) + "\n\n```\n" + self.bars(32, kv, one) + "\n```\n"

    def bars(self, connections, *peers):
        """Requests a second, as a picture of text: nginx tuned has 20 marks."""
        lines = [f"requests a second, {connections} connections   nginx tuned = {'#' * 20}"]
        for cell in self.cells:
            if cell[2] != connections or cell[0] not in ("GET", "PUT"):
                continue
            for peer, label in zip(peers, ("kvgate", "1 worker")):
                ratio = self.ratio(cell, peer, TUNED, "rps")
                if ratio is not None:
                    name = f"{cell[0]} {size_name(cell[1])}" if peer == peers[0] else ""
                    lines.append(f"{name:11} {label:9} {'#' * round(ratio * 20)} {ratio:.2f}")
        return "\n".join(lines)

    def pictures(self, directory, prefix):
        for field, name, title in (("rps", "requests", "requests per second"), ("cpu_us", "cpu", "CPU microseconds a request")):
            for connections in sorted({c[2] for c in self.cells}):
                self.picture(directory, field, f"{prefix}{name}-{connections}", f"{title}, {connections} connections", connections)

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
        draw(script)


def target_table(rows):
    """ROWS: (name, sign, goal, [with 2 workers, with 1]); None was not measured."""
    lines = [f"{'targets of the design':56}{'wanted':>9}{'2 workers':>12}{'1 worker':>17}"]
    for name, sign, goal, seen in rows:
        if all(value is None for value in seen):
            continue
        line = f"{name:56}{f'{sign} {goal}':>9}"
        for value in seen:
            met = value is not None and {"<": value < goal, "<=": value <= goal, ">=": value >= goal}[sign]
            line += f"{'-':>17}" if value is None else f"{value:10.2f} {'met' if met else 'MISSED':6}"
        lines.append(line.rstrip())
    return "\n".join(lines)


def draw(script):
    if shutil.which("gnuplot"):
        subprocess.run(["gnuplot"], input=script, text=True, check=False)


def size_name(size):
    return "" if size == 0 else f"{size // 1024} KB" if size >= 1024 else f"{size} B"
