"""./bench NAME [ARGUMENT ...]: builds and runs what benchmarks/bench_NAME.cpp measures, or bench_NAME.py with the Python package.

Without a name: which there are. Installing and building are reported on stderr; stdout has the benchmark's output and nothing
else.
"""

import os
import re
import sys

import build
import needs
from needs import BUILD, ROOT, Failure

BENCHMARKS = {path.stem.removeprefix("bench_"): path for path in sorted((ROOT / "benchmarks").glob("bench_*.*"))}
TRAINING = ("live", "compare")  # one program, as in benchmarks/CMakeLists.txt


def listed() -> str:
    """Returns a line for each, with the first line of its opening comment."""
    return "\n".join(f"  {name:16} " + re.sub(r'^(// *|""")', "", path.read_text().partition("\n")[0]) for name, path in BENCHMARKS.items())


def is_on_simulated_device(arguments: list[str]) -> bool:
    return "--device=sim" in arguments or ("--device", "sim") in zip(arguments, arguments[1:])


def main(name: str, arguments: list[str]) -> None:
    if name not in BENCHMARKS:
        raise Failure(f"there is no benchmark '{name}', only:\n{listed()}")
    on_device = name in TRAINING and is_on_simulated_device(arguments)
    needs.install_debian(needs.BUILDING, *([needs.TESTING] if on_device else []))
    if BENCHMARKS[name].suffix == ".py":
        python = build.make_python_ready()
        os.execv(python, [python, BENCHMARKS[name], *arguments])

    target, options, torch = f"bench_{name}", ["REPRISE_BENCHMARKS"], None
    if name in TRAINING:
        arguments = [name, *arguments]
        target = "bench_training_on_device" if on_device else "bench_training"
        if on_device:  # the accelerator is one of the tests
            options += ["REPRISE_TESTS", "REPRISE_UNITY_TESTS"]
        with needs.one_at_a_time():
            torch = needs.torch()
            if name == "compare":
                needs.has_matplotlib()
        if not torch:
            raise Failure(f"'{name}' is about LibTorch, which cannot be had (see build/torch.log)")
    build.make("release", [target], tuple(options), torch)
    program = BUILD / "release/benchmarks" / target
    os.execv(program, [program, *arguments])


if __name__ == "__main__":
    if len(sys.argv) == 1:
        print(f"usage: ./bench NAME [ARGUMENT ...]\n{listed()}")
        sys.exit()
    try:
        main(sys.argv[1], sys.argv[2:])
    except Failure as failure:
        needs.say(str(failure))
        sys.exit(2)
