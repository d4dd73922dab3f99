#!/usr/bin/env python3
"""Makes the part of docs/benchmarks.md about single trainings from the measurements of `./bench live`.

    live_page.py [JSON]                      prints that part
    live_page.py [JSON] --measure [GROUP...] runs `./bench live` for these groups (all if none is named) and writes them
                                             into JSON; a disk is a folder in build/

JSON is docs/live.json if not given. The groups: changing (models whose steps differ), disk (with a disk below the memory,
and without in the same run), online (without plans, and with them).

Exit codes: 0 done; 1 Reprise broke a promise (bits differ, or a peak passed its budget); 2 there are no measurements.
"""
import argparse
import datetime
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent

CHANGING = ("stochastic-depth", "lengths", "scheduled-sampling", "tree-lstm")
DISK = (("gpt", "0.2x"), ("gpt", "0.12x"), ("lstm", "0.1x"), ("lstm-long", "0.05x"))
ONLINE = (("gpt", "0.5x"), ("gpt", "0.208x"), ("lstm", "0.5x"), ("lstm", "0.208x"), ("resnet", "0.5x"), ("unet", "0.5x"),
          ("transformer", "0.5x"))  # fmt: skip

GROUPS = {
    "changing": [["--model", model, "--budget", "0.5x"] for model in CHANGING],
    "disk": [["--model", model, "--budget", budget, "--disk", "FOLDER"] for model, budget in DISK],
    "online": [
        ["--model", model, "--budget", budget, *more]
        for model, budget in ONLINE
        for more in ([], ["--planning-time", "0"])
    ],
}

METHOD = """
Ratios are to plain steps of the same run, on one thread of computation; bytes are above what is live before a step. Every row
is one run of the command that stands at its begin, after `./bench live`.
"""

CHANGING_TEXT = """
### Steps that differ

200 steps as in a training, each with another graph, within half of the largest plain peak: planning is in the times. *Process*
is the CPU time of all threads, *resident* how much the process grew in memory in these steps, as a share of the budget (in
brackets without pages of files).
"""

DISK_TEXT = """
### With a disk below the memory

CPU time of all threads, the disk's included, in steps that follow their plan; *without* is a session without the disk within
the same budget, in the same run.
"""

ONLINE_TEXT = """
### Without a plan

What the online policy takes, which has the first step of a program and those of a kind that never comes again, and what the plan does.
"""


def key_of(arguments):
    return " ".join(arguments).replace("--model ", "").replace("--budget ", "")


def is_kept(results):
    return all(
        row["bit_equal"] and row["peak_bytes"] <= row["budget_bytes"] for row in results["rows"].values() if "error" not in row
    )


def command(arguments):
    return f"`{' '.join(arguments)}`"


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    return "\n".join(lines + ["| " + " | ".join(cells) + " |" for cells in rows]) + "\n"


def warned(row, text):
    if not row["bit_equal"]:
        text += " **OTHER BITS**"
    if row["peak_bytes"] > row["budget_bytes"]:
        text += " **above the budget**"
    return text


def changing_row(arguments, row):
    def of_budget(name):
        return f"{row[name] / row['budget_bytes']:.2f}" if row[name] is not None else "?"

    return (
        command(arguments),
        f"{row['budget_bytes'] / 1e6:.0f} MB",
        warned(row, f"{row['thread_ratio']:.3f}"),
        f"{row['process_ratio']:.3f}",
        f"{row['wall_ratio']:.3f}",
        f"{of_budget('rss_growth_bytes')} ({of_budget('rss_anonymous_growth_bytes')})",
        f"{row['followed']} of {row['steps']}",
    )


def disk_row(arguments, row):
    without = row.get("without_disk_ratio")
    return (
        command(arguments),
        f"{row['budget_bytes'] / 1e6:.0f} MB",
        warned(row, f"{row['ratio']:.3f}"),
        f"{without:.3f}" if without is not None else "cannot be kept",
        f"{row['wall_ratio']:.3f}",
        f"{row['without_disk_wall_ratio']:.3f}" if without is not None else "",
        f"{row['disk_put_bytes'] / 1e6:.0f} MB",
    )


def online_row(arguments, online, planned):
    return (
        command(arguments),
        f"{online['budget_bytes'] / 1e6:.0f} MB",
        warned(online, f"{online['ratio']:.3f}"),
        warned(planned, f"{planned['ratio']:.3f}"),
        f"{planned['plain_again_ratio']:.3f}",
    )


def about(results):
    return (
        f"Written by `scripts/live_page.py --measure` on {results['date']}, on a machine with {results['cores']} cores "
        f"({results['processor']}), load average {results['load']:.1f} before the first run.\n"
    )


def section_of(results):
    """The part of the page; groups of which nothing was measured are left out."""
    rows = results["rows"]
    text = f"\n## One training at a time\n\n{about(results)}{METHOD}"
    measured = {group: [(a, rows[key_of(a)]) for a in runs if key_of(a) in rows] for group, runs in GROUPS.items()}
    if measured["changing"]:
        head = ("", "budget", "thread", "process", "wall time", "resident", "followed a plan")
        text += CHANGING_TEXT + "\n" + table(head, [changing_row(*one) for one in measured["changing"]])
    if measured["disk"]:
        head = ("", "budget", "with", "without", "wall time with", "without", "to disk in a step")
        text += DISK_TEXT + "\n" + table(head, [disk_row(*one) for one in measured["disk"]])
    pairs = [(a, rows[key_of(a + ["--planning-time", "0"])], row) for a, row in measured["online"]
             if key_of(a + ["--planning-time", "0"]) in rows]  # fmt: skip
    if pairs:
        head = ("", "budget", "online", "planned", "plain again")
        text += ONLINE_TEXT + "\n" + table(head, [online_row(*one) for one in pairs])
    return text


# ---- measuring -------------------------------------------------------------------------------------------------------


def processor():
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), "unknown")


def measure(path, groups):
    results = json.loads(path.read_text()) if path.exists() else {"rows": {}}
    results.update(
        {"date": str(datetime.date.today()), "processor": processor(), "cores": os.cpu_count(), "load": os.getloadavg()[0]}
    )
    (ROOT / "build").mkdir(exist_ok=True)
    for group in groups:
        for arguments in GROUPS[group]:
            with tempfile.TemporaryDirectory(dir=ROOT / "build") as folder:
                given = [folder if word == "FOLDER" else word for word in arguments]
                print(f"./bench live {' '.join(arguments)}", file=sys.stderr)
                done = subprocess.run([ROOT / "bench", "live", *given, "--json"], stdout=subprocess.PIPE, text=True)
            if done.returncode not in (0, 1):
                print(f"  ended with {done.returncode}: it has no row", file=sys.stderr)
                results["rows"].pop(key_of(arguments), None)
                continue
            results["rows"][key_of(arguments)] = json.loads(done.stdout)
            path.write_text(json.dumps(results, indent=1) + "\n")


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("json", nargs="?", type=pathlib.Path, default=ROOT / "docs/live.json")
    parser.add_argument("--measure", nargs="*", choices=list(GROUPS))
    options = parser.parse_args()
    if options.measure is not None:
        measure(options.json, options.measure or list(GROUPS))
    try:
        results = json.loads(options.json.read_text())
        print(section_of(results), end="")
    except (OSError, ValueError, KeyError) as error:
        print(f"{options.json} has no measurements of ./bench live: {error!r}", file=sys.stderr)
        return 2
    return 0 if is_kept(results) else 1


if __name__ == "__main__":
    sys.exit(main())
