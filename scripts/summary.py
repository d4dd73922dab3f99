"""The end of ./test: the ten slowest tests, what failed and how to run it again, and the count as the last line.

The folder it is given has parts.tsv (name, exit code, microseconds) and, for a part that is a run of ctest or pytest, NAME.xml.
A part without such a file counts as one test; a build only if it fails. Where a test of ctest is a whole suite of
GoogleTest, or a shard of one, the folder NAME has what GoogleTest wrote about its single tests; what ctest has in front of the suite's
name is in front of theirs, too ("on_device.": the same tests on the simulated device). NAME.again.xml is of a second run of what
failed: what passes there is unstable, and is named as such.
"""

import re
import xml.etree.ElementTree as xml
from pathlib import Path

SKIPPED = 77


def cases_of(report: Path):
    """Yields (suite, name, outcome, seconds) of every test in a file of ctest --output-junit or of GoogleTest."""
    for case in xml.parse(report).iter("testcase"):
        if case.find("failure") is not None or case.get("status") == "fail":
            outcome = "failed"
        elif case.find("skipped") is not None or case.get("status") in ("notrun", "disabled"):
            outcome = "skipped"
        else:
            outcome = "passed"
        yield case.get("classname"), case.get("name"), outcome, float(case.get("time", 0))


def report_of(folder: Path, part: str) -> Path:
    return folder / f"{part.replace('/', '-')}.xml"


def prefix_of(test: str, suite: str) -> str:
    """Returns what a test of ctest that is a suite or its shard has in front of the suite's name: "on_device.", or nothing."""
    whole = re.sub(r"[.]\d+of\d+$", "", test)
    return whole.removesuffix(suite) if whole.endswith(suite) else ""


def tests_of(report: Path):
    """Yields (name, outcome, seconds) of every single test."""
    suites = report.with_suffix("")
    again = report.with_suffix(".again.xml")
    passed_again = {name for _, name, outcome, _ in cases_of(again) if outcome == "passed"} if again.exists() else set()
    for _, name, outcome, seconds in cases_of(report):
        if outcome == "failed" and name in passed_again:
            yield name, "unstable", seconds
            continue
        suite = suites / f"{name.replace('/', '_')}.xml"
        tests = [(f"{prefix_of(name, of)}{of}.{test}", *rest) for of, test, *rest in cases_of(suite)] if suite.exists() else []
        yield from tests
        # A suite that ended badly without a test that failed: a crash, or what a sanitizer says at the end.
        if not tests or (outcome == "failed" and all(how != "failed" for _, how, _ in tests)):
            yield name, outcome, seconds


def main(folder: Path, command: str, part_command: str) -> int:
    """Returns the exit code. The commands are the one that was typed, and the one that runs a part whose name is behind it."""
    names = {"passed": [], "failed": [], "skipped": [], "unstable": []}
    seconds = []
    again = []
    for line in (folder / "parts.tsv").read_text().splitlines():
        part, code, microseconds = line.split("\t")
        code = int(code)
        report = report_of(folder, part)
        failed_before = len(names["failed"])
        if report.exists():
            for test, outcome, time in tests_of(report):
                names[outcome].append(f"{part}: {test}")
                seconds.append((time, f"{part}: {test}"))
        else:
            seconds.append((int(microseconds) / 1e6, part))
            if code in (0, SKIPPED) and not part.startswith("build "):
                names["skipped" if code else "passed"].append(part)
        if code not in (0, SKIPPED) and len(names["failed"]) == failed_before:
            names["failed"].append(part)
        if len(names["failed"]) > failed_before:
            again.append(command if part.startswith("build ") else f"{part_command} {part}")

    print("\nThe ten slowest tests:")
    for time, name in sorted(seconds, reverse=True)[:10]:
        print(f"  {time:8.2f} s  {name}")
    for outcome in ("skipped", "unstable", "failed"):
        if names[outcome]:
            print("\n" + ("Unstable, failed and passed when run once more:" if outcome == "unstable" else f"{outcome.capitalize()}:"))
            for name in names[outcome]:
                print(f"  {name}")

    if again:
        print("\nTo run only these parts again:")
        for line in again:
            print(f"  {line}")

    passed, failed, skipped = (len(names[outcome]) for outcome in ("passed", "failed", "skipped"))
    passed += len(names["unstable"])
    ran = passed + failed
    print(f"\n{100 * passed // max(ran, 1)}% tests passed, {failed} tests failed out of {ran}")
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or not passed else 0
