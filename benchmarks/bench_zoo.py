"""HuggingFace architectures from Python: Reprise within budgets, against plain steps and gradient checkpointing.

Each architecture is measured in a process of its own, all its sides in turns. What is measured goes into docs/zoo.json at
once, in the place of what was there for the same architecture, and from there into the tables of docs/benchmarks.md
(scripts/benchmarks_page.py). So a run that was broken off can be continued with --only. An architecture that fails is named,
and the others are measured all the same.

Exit codes: 0 done; 1 Reprise broke a promise (bits differ, or a peak passed its budget), or something failed; 2 wrong
arguments.
"""
from __future__ import annotations

import argparse
import json
import os
import pathlib
import platform
import subprocess
import sys
from typing import Any

import torch
import transformers
from zoo_models import ARCHITECTURES

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "scripts"))

import benchmarks_page
import zoo_page


def processor() -> str:
    for text in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if text.startswith("model name"):
            return text.split(":", 1)[1].strip()
    return platform.machine()


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./bench zoo", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", metavar="NAME,...", help=f"some of {', '.join(ARCHITECTURES)}; default: all")
    parser.add_argument("--repetitions", type=int, default=5, help="of one step of each side; default: 5")
    parser.add_argument("--planning-time", type=float, default=3.0, metavar="SECONDS", help="for each plan; default: 3")
    parser.add_argument("--limit", type=float, default=75.0, metavar="SECONDS",
                        help="for each architecture, after which nothing is begun that can be left out; default: 75")  # fmt: skip
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "docs/zoo.json", help="default: docs/zoo.json")
    given = parser.parse_args()
    given.only = given.only.split(",") if given.only else list(ARCHITECTURES)
    for name in given.only:
        if name not in ARCHITECTURES:
            parser.error(f"--only has '{name}': it must be one of {', '.join(ARCHITECTURES)}")
    if given.repetitions < 1:
        parser.error(f"--repetitions is {given.repetitions}: it must be at least 1")
    if not given.limit > 0:
        parser.error(f"--limit is {given.limit:g}: it must be more than 0")
    return given


def known(path: pathlib.Path) -> dict:
    """What the file has of earlier runs."""
    try:
        return json.loads(path.read_text())["architectures"]
    except (OSError, ValueError, KeyError):
        return {}


def measured(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """One architecture, measured in a process of its own: what one leaves behind is no part of the next one's memory, and
    one that crashes or hangs is no end of the others."""
    command = [sys.executable, str(ROOT / "benchmarks/zoo_measure.py"), name]
    command += [str(number) for number in (options.repetitions, options.planning_time, options.limit)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=60 + 3 * options.limit)
    result: dict[str, Any] = json.loads(done.stdout.strip().rpartition("\n")[2])  # whatever else was printed
    return result


def save(results: dict[str, Any], output: pathlib.Path) -> None:
    """Writes the measurements, and the page that shows them if they are those of the documentation."""
    part = output.with_suffix(".part")
    part.write_text(json.dumps(results, indent=1) + "\n")
    part.replace(output)
    if output == ROOT / "docs/zoo.json":
        benchmarks_page.write_page(ROOT / "docs/benchmarks.json", ROOT / "docs/benchmarks.md")


def main() -> int:
    options = arguments()
    about = {
        "processor": processor(),
        "cores": os.cpu_count(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "python": platform.python_version(),
    }
    architectures, failed = known(options.output), False
    for name in options.only:
        try:
            architectures[name] = measured(name, options)
        except (subprocess.SubprocessError, ValueError) as error:
            print(f"{name} FAILED: {error}", file=sys.stderr, flush=True)
            failed = True
            continue
        architectures = {name: architectures[name] for name in ARCHITECTURES if name in architectures}
        save(about | {"architectures": architectures}, options.output)
    if not architectures:
        return 1
    results = about | {"architectures": architectures}
    print(zoo_page.section_of(results), end="")
    return 0 if not failed and zoo_page.is_kept(results) else 1


if __name__ == "__main__":
    sys.exit(main())
