"""docs/exactness.md from the tests themselves: what is compared, bit for bit, with plain LibTorch, and how.

    exactness.py           writes the page, from the programs in build/release/tests that `./test torch` builds
    exactness.py --check PROGRAM ...   fails if the page is not what it would write

What is on the page is run by `./test --all torch`; a row cannot be there without its tests.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/exactness.md"

# Suites of traps, and what each is for.
REGIMES = {
    "RecordedTrap": "no budget",
    "PlannedTrap": "moderate budget",
    "DiskTrap": "with a disk",
    "TightTrap": "tightest budget",
    "ForcedTrap": "all evicted",
    "InterruptedTrap": "interrupted",
    "CompanyTrap": "in company",
}

# Other files that compare bits, in this order.
OTHERS = [
    "checkpoint", "policy", "follow_segments", "random_program", "random_shapes", "run_step", "session", "session_plan", "lasting_plans",
    "session_thread", "fault", "disk", "limits", "uninitialized_bytes", "random_tape", "changing_steps", "budget_error", "exit", "fork", "planning_queue", "company_traps",
    "overlap_thread", "soak", "soak_thread",
]

INTRODUCTION = """\
# Exactness

`scripts/exactness.py` writes this page from the tests of `tests/torch`; `./test` fails if it is out
of date. Each row of the tables is run plainly, and then in every regime that has a mark. Outputs,
gradients, buffers, the state of the generator and the text of errors have to be the same **bits**,
live bytes have to stay within the budget, and nothing may be left afterwards.

- *no budget*: a session that only records.
- *moderate budget*: 0.75 of the bytes that the plain run needs above those that were live before
  it, with several steps and a plan in between. Where no plan fits, a `BudgetError` is allowed, and
  the bytes still have to stay within the budget.
- *with a disk*: 0.75 and 0.5 of these bytes, with a disk below the memory that everything goes to
  that would be evicted; without a plan in the first step, and with one in the others.
- *tightest budget*: down from 0.95 in steps of 0.1, until nothing lower is feasible; with packing
  and without. No plans.
- *all evicted*: every value that can be recomputed is evicted as soon as it is saved, and recomputed
  from the leaves even if it is still alive. A second suite does the same with the model built
  inside the step.
- *interrupted*: several times in one session, an allocation fails somewhere in the steps and
  everything is released; then the steps run undisturbed. This happens with everything evicted
  and, where there is a mark under *moderate budget*, also under that budget with plans.
- *in company*: another thread draws from the default generator, allocates and trains at the same
  time. The draws of a trap then depend on the draws of the others, so a tape of its draws is
  recorded, and the plain run that it is compared with gets the same ones; the generator itself is
  not compared. This happens with everything evicted, and under a budget.
- *on a device*: all of these but *with a disk* once more on the simulated accelerator of
  `tests/accelerator`, whose bytes the budgets are then about; or why the row is no trap there. Not
  *in company*, if an operator draws that is given no generator: others disturb it there.
  [devices.md](devices.md) says what else was tried on it.

## Guarantees in company

Training is rarely alone in its process. In each of the following cases, gradients have the plain
bits and the budget holds, or there is an error that explains what happened. Nothing is silently
wrong, and nothing grows without a bound.

- **Other threads draw** from any generator, the default one included (loaders that augment,
  samplers, other training). Each stream is the one that it would be without Reprise. A replay draws
  what the operator drew, and touches no generator that the program can see; a replay that would
  draw anything else is a `MismatchError`. An operator of the user's that draws without LibTorch's
  operators is kept if it is tagged `nondeterministic_seeded`; if it is not tagged, `Verify` finds
  it.
- **Other threads allocate.** Their bytes count, and their allocations may make this thread's steps
  evict. The thread that asks for more than there is gets the `BudgetError`.
- **Other threads train**, in sessions of their own, in the same one, or without any. While two
  steps are open, the smaller budget holds, and each follows a plan for its share of it.
- **Locks of others** (a generator's, Python's, or a pool's that the deleter of a tensor's memory
  takes) may be held around any call of LibTorch: Reprise never waits for one while it holds its
  own. `src/torch/memory/arbiter.h` states the order, and debug builds check it.
- **Forward here, backward there**: graphs that are freed on other threads, threads that end with
  graphs or steps, a thread for each step.
- **Hooks and functions of the user's** may write buffers in backward, also through `data()`: the
  values that recipes need are copied first.
- **Errors** may come from any operator, hook or allocation, in forward or backward, caught or not;
  and the process may end after them, with graphs and sessions in global objects.
- **fork()** may come at any time, also while other threads train, plan or write to disk. The child
  may exit, train and plan, in sessions of its own and in copies of its parent's. A step that is
  open on the thread that forks goes on in both processes; steps of other threads are not open in
  the child. A store is copied as well: the child reads what was in memory, and what is on disk as long
  as its parent keeps it; it never changes or removes a file of its parent's. What LibTorch and
  OpenMP cannot do after a fork (more than one thread inside of an operator, a generator that
  another thread held), they cannot do here either. A child that was forked in the middle of a solve
  plans without HiGHS: its bounds are weaker, and its plans are proven as ever.
- **Steps that change**: shapes, branches and lengths may change. The memory of a session about its
  steps is bounded (4 MiB and a thirty-second of the budget, 256 traces), and the least used trace
  goes first. Where many steps in a row are new, only traces that come again are planned.
- **`reprise run`**: threads that train one after another share a session. A graph that the program
  keeps for ever does not prevent steps from ending.
"""

REMAINS = """\
## Known limits

- Reprise cannot see writes through raw pointers. `Verify::always` detects them, and
  `Verify::first_time` detects them on the first use of a recipe, with a `MismatchError` that names
  the operator. To avoid the error, call `session.touched(tensor)` after such a write.
- A value with elements that its operator leaves uninitialized is not compared. Operators that read
  uninitialized memory (`linalg_lstsq`; plain LibTorch does not give the same bits twice there) are
  never replayed: their results are kept. Those of LibTorch are in a table,
  `src/torch/recipes/uninitialized.cpp`; others are found when a replayed value differs.
- If an input of an evicted value is written while nothing is recorded, recomputing the value is a
  `ChangedInputError` that names the operator and the argument. Plain LibTorch would accept the
  write.
- Hooks that are set by hand on a single saved tensor are refused inside a step, as LibTorch does
  wherever default hooks are set.
- The interpreter of TorchScript wraps a `BudgetError` of an operator in an error of its own, which
  contains the text. In Python it is a `BudgetError` again when the step ends.
- With a disk, or with memory of the host below an accelerator, the gradient of a parameter may wait
  there until backward is over. Code that runs inside of backward finds no `grad` there then, as if
  backward had not come so far; a hook that runs when the gradient is complete keeps it in `grad`.
- If another library has put its CPU allocator in front of Reprise's, only sessions without a budget
  work.
- The default type of numbers belongs to the whole process. An operator on whole numbers alone, or
  on no tensor at all, that was recorded under another default type is replayed under that type, and
  other threads see it meanwhile.
"""


def words(name: str) -> str:
    """ "DropoutMasks" as "Dropout masks"."""
    parts = re.findall(r"[A-Z][a-z0-9]*", name)
    text = " ".join([parts[0]] + [part.lower() for part in parts[1:]])
    return text.replace("lib torchs", "LibTorch's").replace("lib torch", "LibTorch")


def comment_of(file: Path) -> str:
    """The opening comment, as one line."""
    lines = []
    for line in file.read_text().splitlines():
        if not line.startswith("// "):
            break
        lines.append(line[3:])
    return re.split(r"(?<=[.]) ", " ".join(lines) + " ")[0].strip().rstrip(".:")


def tests_of(programs: list[str]) -> dict[str, set[str]]:
    """Names by suite."""
    listed = "".join(subprocess.run([program, "--gtest_list_tests"], check=True, capture_output=True, text=True).stdout
                     for program in programs)
    suites, suite = {}, None
    for line in listed.splitlines():
        if line.startswith("  "):
            suites[suite].add(line.split("#")[0].strip())
        elif line.endswith("."):
            suite = line[:-1]
            suites.setdefault(suite, set())
    return suites


def traps_of(file: Path) -> dict[str, str]:
    """Names, with the reason why one is no trap of an accelerator; empty: it is one."""
    parts = re.split(r'^ +\{"(\w+)",', file.read_text(), flags=re.MULTILINE)[1:]
    reason = re.compile(r'^ +\d, (?:true|false), (?:true|false), "(.*)"\},$', re.MULTILINE)
    return {name: (reason.findall(body) or [""])[0] for name, body in zip(parts[::2], parts[1::2])}


def page(programs: list[str]) -> str:
    suites = tests_of(programs)
    text = INTRODUCTION
    listed = set()
    for file in sorted((ROOT / "tests/torch/traps").glob("*_traps_test.cpp")):
        columns = [*REGIMES.values(), "on a device"]
        text += f"\n## {comment_of(file)}\n\n| | {' | '.join(columns)} |\n|---|{'---|' * len(columns)}\n"
        for name, cpu_only in traps_of(file).items():
            listed.add(name)
            marks = ["✓" if name in suites.get(suite, ()) else "" for suite in REGIMES]
            marks.append(cpu_only or "✓")
            text += f"| {words(name)} | {' | '.join(marks)} |\n"
    missing = suites["ForcedTrap"] - listed
    if missing:
        sys.exit(f"these traps are in no file that was looked at: {', '.join(sorted(missing))}")
    text += "\n# Other tests\n"
    for name in OTHERS:
        file = next((ROOT / "tests/torch").glob(f"*/{name}_test.cpp"))
        tests = re.findall(r"^TEST\w*\((\w+),\s*(\w+)\)", file.read_text(), re.MULTILINE)
        text += f"\n## {comment_of(file)}\n\n"
        text += "".join(f"- {words(suite)}: {words(test)[0].lower() + words(test)[1:]}\n" for suite, test in tests if not test.startswith("DISABLED_"))
    return text + "\n" + REMAINS


def main() -> None:
    if sys.argv[1:2] != ["--check"]:
        PAGE.write_text(page(sorted((ROOT / "build/release/tests").glob("reprise_torch_*_tests"))))
    elif not PAGE.exists() or PAGE.read_text() != page(sys.argv[2:]):
        sys.exit("docs/exactness.md is out of date: python3 scripts/exactness.py writes it")


main()
