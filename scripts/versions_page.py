"""A row of docs/versions.md from what ./test --libtorch has left behind.

versions_page.py VERSION RESULTS: RESULTS is the folder of the tests, with parts.tsv, doctor.jsonl, train.txt and, unless it
was quick, libtorch-VERSION.xml. The row goes into docs/versions.json, and all rows into the table of docs/versions.md. A
version that does not build, or with which a session does not work, gets none; nor does a quick run take the place of a whole one.

versions_page.py --check: whether the table is that of the rows.
"""

import json
import re
import sys
from pathlib import Path

from summary import tests_of

ROOT = Path(__file__).resolve().parent.parent
ROWS = ROOT / "docs" / "versions.json"
PAGE = ROOT / "docs" / "versions.md"
TABLE = re.compile(r"(?<=<!-- rows -->\n).*?(?=<!-- end of rows -->)", re.DOTALL)


def tests_in(version: str, results: Path):
    """Returns how many tests passed, failed and were skipped; None if they were not run."""
    name = f"libtorch-{version}"
    report = results / f"{name}.xml"
    if not report.exists():
        return None
    outcomes = [outcome for _, outcome, _ in tests_of(report)]
    return {
        "passed": outcomes.count("passed") + outcomes.count("unstable"),
        "failed": outcomes.count("failed"),
        "skipped": outcomes.count("skipped"),
    }


def row_of(version: str, results: Path):
    """Returns the row, or None after a sentence on stderr."""
    parts = dict(line.split("\t")[:2] for line in (results / "parts.tsv").read_text().splitlines())
    for part in ("build", "doctor", "overhead"):
        if parts.get(f"{part} libtorch-{version}") != "0":
            print(f"versions_page.py: no row for {version}, because of the part '{part}'", file=sys.stderr)
            return None
    findings = {}
    for line in (results / "doctor.jsonl").read_text().splitlines():
        finding = json.loads(line)
        findings[finding["what"]] = finding["state"]
    training = (results / "train.txt").read_text()
    percent = re.search(r"^ *overhead +(\d+\.\d+) %", training, re.MULTILINE)  # CPU time, by the summary of the session
    return {
        "version": version,
        "tests": tests_in(version, results),
        "doctor": {name: findings[name] for name in ("allocator", "session")},
        "identical": "identical: yes" in training,
        "overhead": round(float(percent.group(1)) / 100, 3),
    }


def table_of(rows) -> str:
    if not rows:
        return "No row has been measured yet.\n"
    lines = ["| LibTorch | builds | tests passed, failed, skipped | exactness | overhead |", "|---|---|---|---|---|"]
    for row in rows:
        tests = row["tests"]
        counts = f"{tests['passed']}, {tests['failed']}, {tests['skipped']}" if tests else "not run"
        exact = row["identical"] and all(state == "good" for state in row["doctor"].values())
        lines.append(f"| {row['version']} | yes | {counts} | {'bit for bit' if exact else 'NO'} | {100 * row['overhead']:.0f} % |")
    return "\n".join(lines) + "\n"


def page_with(rows) -> str:
    return TABLE.sub(lambda _: table_of(rows), PAGE.read_text())


def main(arguments) -> int:
    rows = json.loads(ROWS.read_text())
    if arguments == ["--check"]:
        if page_with(rows) == PAGE.read_text():
            return 0
        print("docs/versions.md does not have the rows of docs/versions.json: python3 scripts/versions_page.py", file=sys.stderr)
        return 1
    if arguments:
        row = row_of(arguments[0], Path(arguments[1]).resolve())
        if row is None:
            return 1
        (Path(arguments[1]) / "versions.json").write_text(json.dumps(row, indent=1) + "\n")
        before = next((other for other in rows if other["version"] == row["version"]), None)
        if before and before["tests"] and not row["tests"]:
            print(f"versions_page.py: the row of {row['version']} stays, which has its tests", file=sys.stderr)
            return 0
        rows = [other for other in rows if other is not before] + [row]
        rows.sort(key=lambda one: [int(number) for number in one["version"].split(".")], reverse=True)
        ROWS.write_text("[\n" + ",\n".join(" " + json.dumps(one) for one in rows) + "\n]\n")
    PAGE.write_text(page_with(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
