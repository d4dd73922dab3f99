"""HuggingFace architectures from Python: Reprise within budgets, against plain steps and gradient checkpointing.

Each architecture is measured in a process of its own, all its sides in turns. What is measured goes into docs/zoo.json, in
the place of what was there for the same architecture, so that a run that was broken off can be continued with --only.
scripts/benchmarks_page.py makes the tables in docs/benchmarks.md from it.

Exit codes: 0 done; 1 Reprise broke a promise (bits differ, or a peak passed its budget), or something failed; 2 wrong
arguments.
"""
from __future__ import annotations

import argparse
import concurrent.futures
import json
import multiprocessing
import os
import pathlib
import platform
import sys

# Virtual machines exist that claim to have tiles, and plain torch ends with an illegal instruction there.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16")

import torch
import transformers
from zoo_measure import measure
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
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "docs/zoo.json", help="default: docs/zoo.json")
    given = parser.parse_args()
    given.only = given.only.split(",") if given.only else list(ARCHITECTURES)
    for name in given.only:
        if name not in ARCHITECTURES:
            parser.error(f"--only has '{name}': it must be one of {', '.join(ARCHITECTURES)}")
    if given.repetitions < 1:
        parser.error(f"--repetitions is {given.repetitions}: it must be at least 1")
    return given


def known(path: pathlib.Path) -> dict:
    """What the file has of earlier runs."""
    try:
        return json.loads(path.read_text())["architectures"]
    except (OSError, ValueError, KeyError):
        return {}


def main() -> int:
    options = arguments()
    results = known(options.output)
    about = {
        "processor": processor(),
        "cores": os.cpu_count(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "python": platform.python_version(),
    }
    failed = []
    for name in options.only:
        # A process for each: what one leaves behind is no part of the next one's memory.
        with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
            try:
                results[name] = process.submit(measure, name, options.repetitions, options.planning_time).result()
            except Exception as error:  # of any kind: the others are measured all the same
                print(f"{name} FAILED: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
                failed.append(name)
                continue
        results = {name: results[name] for name in ARCHITECTURES if name in results}
        options.output.write_text(json.dumps(about | {"architectures": results}, indent=1) + "\n")
    if not results:
        return 1
    print(zoo_page.section_of(about | {"architectures": results}), end="")
    if options.output == ROOT / "docs/zoo.json":
        benchmarks_page.write_page(ROOT / "docs/benchmarks.json", ROOT / "docs/benchmarks.md")
    return 0 if not failed and zoo_page.is_kept({"architectures": results}) else 1


if __name__ == "__main__":
    sys.exit(main())
