"""Operators of LibTorch that leave a part of what they make unwritten: found by running all of them.

    unwritten.py                        sweeps, and writes src/torch/recipes/unwritten.inc and docs/unwritten.md
    unwritten.py --check [NAME...]      fails unless what the table says about these operators is found again, with the
                                        samples of unwritten_samples.py: in seconds; without names for all in the table
    unwritten.py --only NAME...         sweeps these entries of PyTorch's operator database, and prints what it finds;
                                        aten::NAME: with guessed arguments

It wants the Python package of LibTorch, and what its test database imports (numpy, expecttest, scipy); without them it
ends with code 77, which is "skipped" for ctest.

Below autograd, each operator that a sample calls is called three times more with the same arguments and the same state
of the generator: twice on fresh memory of zeros and once on fresh memory of junk. LibTorch's own allocator fills it, by
two flags that people set who look for reads of such memory. What differs between the first two is not deterministic;
what differs only in the third follows what was in memory before. Samples are those of the operator database
and the module database, forward, backward and twice backward, and those of unwritten_samples.py. An operator whose
variant with `out` takes the same arguments is called in that variant, too. What is left gets arguments that are guessed
(unwritten_guesses.py). They may be invalid, so what they show is on the page and not in the table; whoever finds it
real writes a sample.

Three kinds are told apart. A *result* in which zeros and junk show as they are has elements that nobody wrote, and
there is nothing that could be compared. An *argument* that the variant with `out` leaves partly unwritten keeps what
was there before, so it is not overwritten but changed. An operator whose result differs in any other way has *computed*
with what it found in memory: nobody can replay it.
"""

import argparse
import collections
import re
import sys
import warnings
from pathlib import Path

try:
    import torch

    import unwritten_database as database
except ImportError as error:
    print(f"skipped: PyTorch's operator database cannot be imported ({error})")
    sys.exit(77)

from unwritten_sweep import MOST_CALLS, Sweep, replayable_operators, schema_of

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "src/torch/recipes/unwritten.inc"
PAGE = ROOT / "docs/unwritten.md"
VERSION = torch.__version__.split("+")[0]


def places(found, kind) -> list:
    return sorted(index for what, index in found if what == kind)


def table(unwritten) -> str:
    text = f"""\
// Written by scripts/unwritten.py with LibTorch {VERSION}: results and arguments with unwritten elements, and
// whether it computes with what it found in memory.
"""
    for name in sorted(unwritten):
        results, arguments, computed = (", ".join(map(str, places(unwritten[name], kind)))
                                        for kind in ("result", "argument", "computed"))
        text += f'{{"{name}", {{{results}}}, {{{arguments}}}, {"true" if computed else "false"}}},\n'
    return text


def listed() -> dict:
    """What the table of the repository says."""
    found = {}
    row = re.compile(r'^\{"(.+?)", \{(.*?)\}, \{(.*?)\}, (true|false)\},$', re.MULTILINE)
    for name, results, arguments, computed in row.findall(TABLE.read_text()):
        found[name] = {(kind, int(one)) for kind, text in (("result", results), ("argument", arguments))
                       for one in text.split(", ") if one}
        found[name] |= {("computed", 0)} if computed == "true" else set()
    return found


def page(sweep) -> str:
    every = replayable_operators()
    reached = [name for name in every if sweep.calls[name]]
    missing = [name for name in every if not sweep.calls[name]]
    suspected = ", ".join(f"`{name}`" for name, found in sorted(sweep.guessed.items()) if found)
    unsteady = ", ".join(f"`{name}`" for name in sorted(sweep.nondeterministic))

    def row(name):
        schema, found = schema_of(name), sweep.unwritten[name]
        parts = [f"result {index}{' `' + schema.returns[index].name + '`' if schema.returns[index].name else ''}"
                 for index in places(found, "result")]
        parts += [f"argument `{schema.arguments[index].name}`" for index in places(found, "argument")]
        parts += ["computed with what was in memory"] * len(places(found, "computed"))
        return f"| `{name}` | {', '.join(parts)} |\n"

    text = f"""\
# Unwritten elements

Written by `scripts/unwritten.py` with LibTorch {VERSION}; the tool says how it finds them. These operators leave
elements unwritten: of a result, so that nothing of it is compared when it is rebuilt; or of an argument in their
variant with `out`, which then keeps what was there. Some compute with what they find in fresh memory, so that their
results are kept. What operators of others leave unwritten is found while training: `src/torch/recipes/unwritten.h` says how.

| operator | what has unwritten elements |
|---|---|
{''.join(row(name) for name in sorted(sweep.unwritten))}
## How far the sweep reaches

The dispatcher has {len(every)} operators that Reprise may replay. {len(reached)} of them are reached, with
{sum(sweep.calls.values())} different calls, at most {MOST_CALLS} of each; {len(sweep.guessed)} of them only with
arguments that were guessed.
Not the same bits twice, on memory of the same contents: {unsteady or 'none'}.
Unwritten elements only with guessed arguments, and so not in the table: {suspected or 'none'}.

Not reached ({len(missing)}):
"""
    groups = collections.defaultdict(list)
    for name in missing:
        base, _, overload = name.removeprefix("aten::").partition(".")
        groups[base].append(overload or "(default)")
    return text + "".join(f"- `{base}`: {', '.join(overloads)}\n" for base, overloads in sorted(groups.items()))


def check(names) -> int:
    """Whether the table is right about these operators; one that nothing reaches is not."""
    said = listed()
    names = set(names or said)
    sweep = Sweep(only=names)
    database.sample_by_hand(sweep)
    wrong = 0
    for name in sorted(names):
        expected, found = said.get(name, set()), sweep.unwritten.get(name, set())
        if expected == found and sweep.calls[name]:
            continue
        wrong += 1
        print(f"{name}: the table says {sorted(expected)}; {sweep.calls[name]} calls show {sorted(found)}")
    print(f"{len(names)} operators were looked at, {wrong} of them are not as the table says")
    return 1 if wrong else 0


def main() -> int:
    parser = argparse.ArgumentParser(description="Finds operators that leave a part of what they make unwritten.")
    parser.add_argument("--check", nargs="*", metavar="NAME")
    parser.add_argument("--only", nargs="+", metavar="NAME")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    if options.check is not None:
        return check(options.check)
    sweep = Sweep()
    database.sample_by_hand(sweep)
    if options.only:
        database.sample_operators(sweep, [entry for entry in database.every_entry() if entry.name in options.only])
        for name in filter(lambda one: "::" in one, options.only):
            database.guess(sweep, name)
            print(name, sweep.calls[name], "calls with guessed arguments:", sorted(sweep.guessed.get(name, ())))
        print(table(sweep.unwritten), end="")
        return 0
    database.sample_modules(sweep)
    database.sample_operators(sweep, database.every_entry())
    database.guess_the_rest(sweep)
    print(file=sys.stderr)
    TABLE.write_text(table(sweep.unwritten))
    PAGE.write_text(page(sweep))
    return 0


if __name__ == "__main__":
    sys.exit(main())
