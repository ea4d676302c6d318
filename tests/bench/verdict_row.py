#!/usr/bin/env python3
"""One row of the table of verdicts, from what `kvstall probe --json` printed: verdict_row.py NAME EXIT_CODE."""
import json
import sys

name, code = sys.argv[1], int(sys.argv[2])
try:
    report = json.load(sys.stdin)
except ValueError:
    print(f"| {name} | | | not probed (exit code {code}) |")
    sys.exit()

played = [c for c in report["clients"] if c["played"] and c["measure"] == "first-byte"]
good = min(c["good_median_ms"] for c in played)
worst = max(played, key=lambda c: c["median_ms"])
verdict = report["verdict"].replace("-", " ")
if report["findings"]:
    verdict = ", ".join(
        f if isinstance(f, str) else f.get("finding", f.get("name", "?")) for f in report["findings"]
    ).replace("-", " ")
if not report["writes_taken"]:
    verdict += " (reads only)"
label = worst["client"].replace("-", " ")
print(f"| {name} | {good:.2f} ms | {worst['median_ms']:.2f} ms ({label}) | {verdict} |")
