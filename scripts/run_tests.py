"""./test [OPTION ...] [PART ...]: installs what is missing (with REPRISE_INSTALL=no nothing), builds and tests.

    ./test                 what to run before a commit: all parts marked * below, each with its quick share
    ./test plan chain      only these parts, and only what they need is built; ./test torch/traps is a folder of one
    ./test --all           everything: all parts, all of each
    ./test --all torch     all of that part
    ./test -R REGEX        the tests whose names match, of the parts that are named or of all marked *; with --all of more
    ./test --list          the parts, and how long each took the last time

    --long                 multiplies random cases, and adds what takes hours; implies --all
    --libtorch VERSION|FOLDER [--quick]   the LibTorch side with another LibTorch; writes a row of docs/versions.md.
                           --quick: no tests, but the rest of the row: a build, `reprise doctor`, what a budget costs
    --cuda                 sessions on CUDA without a GPU (tests/cuda), with the newest LibTorch or that of --libtorch

Parts:
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
import traceback
from enum import Enum
from pathlib import Path
from typing import Callable, NamedTuple

import build
import needs
import summary
from needs import BUILD, PYTHON_HOME, ROOT, Failure, LibTorch

SKIPPED = summary.SKIPPED
RESULTS = BUILD / "results"
TIMES = BUILD / "times.json"  # of parts, the last time


class Skip(Exception):
    """Raised when a part is left out; the sentence says what is not tested, and why."""


class Run(NamedTuple):
    """The arguments of this call of ./test."""

    all: bool
    regex: str
    torch: LibTorch | None

    @property
    def is_long(self) -> bool:
        return "REPRISE_LONG" in os.environ


# ---- parts -----------------------------------------------------------------------------------------------------------


class Torch(Enum):
    UNUSED = 0   # the part is built without LibTorch, unless it is there already
    USED = 1     # where it cannot be had, the rest of the part is tested
    NEEDED = 2


class Part(NamedTuple):
    name: str
    subject: str
    is_quick: bool               # a share of it is in ./test
    torch: Torch
    run: Callable[[Run], None]   # raises Failure or Skip


def ctest(part: str, folder: str, run: Run, *selection: str) -> None:
    """Runs tests of build/FOLDER. Runs a test that fails once more, alone: if it passes then, the summary names it as unstable."""
    shutil.rmtree(BUILD / folder / "tests/suites", ignore_errors=True)  # what single tests of suites reported the last time
    common = ["ctest", "--test-dir", BUILD / folder, "--output-on-failure", "--no-label-summary",
              "--timeout", "36000" if run.is_long else "600"]
    if sys.stdout.isatty():
        common.append("--progress")
    chosen = ["-R", run.regex] if run.regex else []
    report = RESULTS / f"{part.replace('/', '-')}.xml"
    first = subprocess.run([*common, "--parallel", build.JOBS, "--no-tests=ignore", "--output-junit", report, *selection, *chosen])
    collect_suites(report, folder)
    if first.returncode == 0:
        return
    print(f"== {part}, what failed once more", flush=True)
    again = report.with_suffix(".again.xml")
    if subprocess.run([*common, "--rerun-failed", "--output-junit", again]).returncode != 0:
        raise Failure(f"tests of {part} failed")


def collect_suites(report: Path, folder: str) -> None:
    """Keeps what GoogleTest wrote of single tests, where a test of ctest is a whole suite, beside the report of this part."""
    suites = BUILD / folder / "tests/suites"
    if suites.exists():
        shutil.copytree(suites, report.with_suffix(""), dirs_exist_ok=True)


def part_of(name: str) -> Part:
    """Returns the part itself, or that of a folder."""
    return PARTS[name.partition("/")[0]]


def is_whole(name: str, run: Run) -> bool:
    """Returns whether all of the part is run: one with no share in the plain ./test is never run in part."""
    return run.all or not part_of(name).is_quick


def of_release(part: str) -> Callable[[Run], None]:
    def test(run: Run) -> None:
        share = [] if is_whole(part, run) else ["-LE", "^all$"]
        ctest(part, "release", run, "-L", f"^{re.escape(part)}$", *share)
    return test


def check_format(run: Run) -> None:
    """Prints the files that are not formatted; `clang-format -i FILE` formats one."""
    program = needs.tool("clang-format")
    if not program:
        raise Skip("THE FORMAT OF THE SOURCES, because clang-format cannot be had; see build/clang-format.log")
    files = [path for folder in ("src", "include", "tests", "tools", "benchmarks", "examples", "python")
             for path in (ROOT / folder).rglob("*") if path.suffix in (".cpp", ".h")]
    found = subprocess.run([program, "--dry-run", "--Werror", *files], stderr=subprocess.PIPE, text=True)
    for name in sorted(set(re.findall(r"^([^ :\n]+):\d+:.* error: ", found.stderr, re.MULTILINE))):
        print(f"not formatted: {Path(name).relative_to(ROOT)}")
    if found.returncode != 0:
        raise Failure("clang-format -i FILE formats a file")


def check_mistakes(run: Run) -> None:
    """What .clang-tidy names, in what release compiled: several files as one, so that headers are read once for all of them. The
    LibTorch side, whose headers take longest, is for --long."""
    program = needs.tool("clang-tidy")
    if not program:
        raise Skip("THE SEARCH FOR MISTAKES IN src/, because clang-tidy cannot be had; see build/clang-tidy.log")
    build.make("release", ["help"], ("REPRISE_TESTS", "REPRISE_UNITY_TESTS"), run.torch)  # it is configured, at least
    libraries = "reprise(_torch)?_objects" if run.is_long and run.torch else "reprise_objects"
    units = [unit["file"] for unit in json.loads((BUILD / "release/compile_commands.json").read_text())
             if re.search(rf" -o CMakeFiles/{libraries}\.dir/", unit["command"])]
    # -w: warnings are for the compiler that is used.
    tidy = ["xargs", "-0", "-n", "1", "-P", build.JOBS, program, "-p", BUILD / "release", "--quiet", "--extra-arg=-w"]
    if subprocess.run(tidy, input="\0".join(units), text=True, stderr=subprocess.DEVNULL).returncode != 0:
        raise Failure("clang-tidy found mistakes")


def build_python(run: Run) -> None:
    """For the quick share, the module is built beside the release. All tests are run with an installed wheel."""
    with needs.one_at_a_time():
        is_there = needs.has_python_home(run.torch, companions=run.all)
    if is_there and run.all:
        build.make("release", ["reprise_accelerator_module"], options_of(run), run.torch)
        build.install_wheel(run.torch)
    elif is_there:
        build.make_python_module(run.torch)


def test_python(run: Run) -> None:
    python = PYTHON_HOME / "bin/python"
    if not python.exists():
        raise Skip("ALL TESTS OF THE PYTHON PACKAGE (python/tests), because its packages cannot be had; see build/python.log")
    environment = dict(os.environ)
    selection = ["-k", run.regex] if run.regex else []
    accelerator = BUILD / "release/tests/libreprise_accelerator_module.so"
    if accelerator.exists():
        environment["REPRISE_ACCELERATOR"] = str(accelerator)
    if not run.all:
        environment["PYTHONPATH"] = str(build.MODULE_FOLDER)
        selection += ["-m", "not slow", "-n", build.JOBS]
    elif subprocess.run([python, "-m", "mypy", "--config-file", ROOT / "pyproject.toml", "-p", "reprise"], cwd=BUILD).returncode != 0:
        raise Failure("mypy found mistakes")
    tests = [python, "-m", "pytest", "-q", "--rootdir", ROOT, "-o", f"cache_dir={RESULTS}/pytest", *selection, ROOT / "python/tests"]
    no_tests = 5
    code = subprocess.run([*tests, "--junitxml", RESULTS / "python.xml"], cwd=BUILD, env=environment).returncode
    if code in (0, no_tests):
        return
    print("== python, what failed once more", flush=True)
    again = [*tests, "--last-failed", "--junitxml", RESULTS / "python.again.xml"]
    if subprocess.run(again, cwd=BUILD, env=environment).returncode != 0:
        raise Failure("tests of python failed")


def options_of(run: Run) -> tuple[str, ...]:
    return "REPRISE_TESTS", "REPRISE_UNITY_TESTS", *(("REPRISE_LONG_TESTS", "REPRISE_TOOLS", "REPRISE_CHECK_NAMES") if run.is_long else ())


def of_preset(preset: str) -> Callable[[Run], None]:
    def test(run: Run) -> None:
        if preset == "thread" and not thread_sanitizer_works():
            raise Skip("THE THREAD SANITIZER, which does not work on this machine")
        build.make(preset, ["all"], options_of(run), run.torch)
        ctest(preset, preset, run)
    return test


def test_fuzz(run: Run) -> None:
    """With clang's libFuzzer, which looks for inputs that reach new code. Without it, inputs are made by chance."""
    clang = shutil.which("clang++")
    has_fuzzer = clang and subprocess.run(
        [clang, "-fsanitize=fuzzer,address,undefined", "-x", "c++", "-o", RESULTS / "probe", "-"], text=True, stderr=subprocess.DEVNULL,
        input='extern "C" int LLVMFuzzerTestOneInput(const char*, unsigned long) { return 0; }').returncode == 0
    folder, compiler = ("fuzz", [f"CMAKE_CXX_COMPILER:STRING={clang}"]) if has_fuzzer else ("fuzz_by_chance", [])
    build.make(folder, ["part_fuzz"], (*options_of(run), *compiler), preset="fuzz")
    ctest("fuzz", folder, run, "-L", "^fuzz$")


def test_debug(run: Run) -> None:
    """In a folder of its own, with less for a debugger than the preset has: that takes a third of the compiler's time."""
    folder = "debug_tests"
    build.make(folder, ["reprise_debug_tests"], (*options_of(run), "CMAKE_CXX_FLAGS_DEBUG:STRING=-g1"), run.torch, "debug")
    ctest("debug", folder, run, "-L", "^(chain|torch|library)$")


def thread_sanitizer_works() -> bool:
    """That of g++ 12 does not start where a kernel spreads addresses wider than it knows."""
    program = RESULTS / "probe"
    compiler = os.environ.get("CXX", "g++")
    built = subprocess.run([compiler, "-fsanitize=thread", "-x", "c++", "-o", program, "-"], input="int main() {}", text=True,
                           stderr=subprocess.DEVNULL)
    return built.returncode == 0 and all(subprocess.run([program], stderr=subprocess.DEVNULL).returncode == 0 for _ in range(5))


def try_newest_torch(run: Run) -> None:
    """Nothing of this is worth a failure where the network or the disk is what is missing."""
    what = f"LIBTORCH {needs.NEWEST_TORCH}, THE NEWEST"
    needed, free = 6, shutil.disk_usage(ROOT).free >> 30
    if free < needed:
        raise Skip(f"{what}, because it needs {needed} GB of disk and {free} GB are free")
    try:
        with needs.one_at_a_time():
            newest = needs.chosen_torch(needs.NEWEST_TORCH, seconds=300)
    except Failure as failure:
        raise Skip(f"{what}: {failure}") from None
    name = f"libtorch-{newest.version}"
    build.make(name, ["reprise_torch_command"], torch=newest, preset="release")
    doctor_of(name)


PARTS = {part.name: part for part in [
    Part("format", "clang-format over all sources", True, Torch.UNUSED, check_format),
    Part("scripts", "what may include what, and the scripts themselves", True, Torch.UNUSED, of_release("scripts")),
    *(Part(room, f"tests/{room}", True, Torch.UNUSED, of_release(room))
      for room in ("trace", "simulate", "plan", "store", "chain", "report")),
    Part("benchmarks", "how benchmarks count, and the page of their results", True, Torch.UNUSED, of_release("benchmarks")),
    Part("tools", "the reprise command; all: on an accelerator as well", True, Torch.USED, of_release("tools")),
    Part("snippets", "the programs of the README and the guide; all: the rows of coming-from.md", True, Torch.USED, of_release("snippets")),
    Part("torch", "the LibTorch side: torch/unit, torch/session, torch/traps, torch/random; all: every regime", True, Torch.NEEDED,
         of_release("torch")),
    Part("python", "the Python package; all: an installed wheel, mypy, trainers, several processes", True, Torch.NEEDED, test_python),
    Part("examples", "examples/", False, Torch.USED, of_release("examples")),
    Part("devices", "sessions on the simulated accelerator, and most of tests/torch there", False, Torch.NEEDED, of_release("devices")),
    Part("package", "installed, as a subdirectory, with pkg-config, shared, as a Debian package, as an archive", False, Torch.USED,
         of_release("package")),
    Part("tidy", "clang-tidy over src/", False, Torch.UNUSED, check_mistakes),
    Part("debug", "both libraries without optimization, with checks of locks and of the standard library", False, Torch.USED,
         test_debug),
    Part("sanitize", "address and undefined-behaviour sanitizers", False, Torch.USED, of_preset("sanitize")),
    Part("fuzz", "what an attacker may have written into files, for seconds; --long: for an hour", False, Torch.UNUSED, test_fuzz),
    Part("thread", "the thread sanitizer", False, Torch.USED, of_preset("thread")),
    Part("newest", f"builds with LibTorch {needs.NEWEST_TORCH}, the newest, and runs its doctor", False, Torch.UNUSED, try_newest_torch),
]}
FOLDERS = ("torch/unit", "torch/session", "torch/traps", "torch/random")
IN_RELEASE = [name for name, part in PARTS.items() if part.run.__qualname__.startswith("of_release")]


def read_times() -> dict[str, int]:
    return json.loads(TIMES.read_text()) if TIMES.exists() else {}


# ---- running parts ---------------------------------------------------------------------------------------------------


class Parts:
    """Runs parts one after the other, and remembers how they went."""

    def __init__(self, run: Run):
        self.run = run

    def test(self, name: str, action: Callable[[], None]) -> bool:
        """Returns false if the part failed."""
        print(f"== {name}", flush=True)
        start, code = time.monotonic(), 0
        try:
            action()
        except Skip as skip:
            print(f"skipped: {skip}")
            code = SKIPPED
        except Failure as failure:
            print(f"failed: {failure}", flush=True)
            code = 1
        except Exception:  # other parts are still worth running
            traceback.print_exc()
            code = 1
        seconds = time.monotonic() - start
        with open(RESULTS / "parts.tsv", "a") as parts:
            parts.write(f"{name}\t{code}\t{int(seconds * 1e6)}\n")
        if code == 0 and not self.run.regex:
            times = read_times()
            times[f"--all {name}" if self.run.all and name in PARTS else name] = round(seconds)
            TIMES.write_text(json.dumps(times, indent=1))
        return code != 1

    def test_part(self, name: str) -> None:
        def action():
            if part_of(name).torch is Torch.NEEDED and not self.run.torch:
                raise Skip(f"ALL OF {name}, because LibTorch cannot be had; see build/torch.log")
            (of_release(name) if name in FOLDERS else PARTS[name].run)(self.run)
        self.test(name, action)


class Beside:
    """A process that does something while this one goes on. Its output is printed in the end."""

    def __init__(self, action: Callable[[], None]):
        sys.stdout.flush()
        self.log = RESULTS / "beside.log"
        self.process = os.fork()
        if self.process == 0:
            with open(self.log, "wb") as output:
                os.dup2(output.fileno(), 1)
                os.dup2(output.fileno(), 2)
            action()
            sys.stdout.flush()
            os._exit(0)

    def join(self) -> None:
        os.waitpid(self.process, 0)
        print(self.log.read_text(errors="replace"), end="", flush=True)


def run_parts(names: list[str], run: Run) -> None:
    parts = Parts(run)
    in_release = [name for name in names if part_of(name).name in IN_RELEASE]
    if "format" in names:
        parts.test_part("format")
    is_built = True
    if in_release:
        targets = [f"part_{name.replace('/', '_')}{'_all' * is_whole(name, run)}" for name in in_release
                   if run.torch or part_of(name).torch is not Torch.NEEDED]
        is_built = parts.test("build release", lambda: build.make("release", targets, options_of(run), run.torch))
    for name in in_release if is_built else []:
        parts.test_part(name)
    # What is left is built and run by itself. The Python tests leave a core to the compiler of the others.
    others = [name for name in names if name not in in_release and name != "format"]
    if "python" in others and run.torch and not (is_built and parts.test("build python", lambda: build_python(run))):
        others.remove("python")
    is_beside = "python" in others and len(others) > 1 and int(build.JOBS) > 1
    if is_beside:
        others.remove("python")
        beside = Beside(lambda: parts.test_part("python"))
    for name in others:
        parts.test_part(name)
    if is_beside:
        beside.join()


# ---- other LibTorches ------------------------------------------------------------------------------------------------


def doctor_of(name: str) -> None:
    """Runs `reprise doctor` of build/NAME. The output is kept for docs/versions.md."""
    found = subprocess.run([BUILD / name / "tools/reprise-torch", "doctor", "--json"], stdout=subprocess.PIPE, text=True)
    (RESULTS / "doctor.jsonl").write_text(found.stdout)
    print(found.stdout, end="", flush=True)
    if found.returncode != 0:
        raise Failure("doctor found a problem")


def overhead_of(name: str) -> None:
    """What a budget of six tenths costs, and whether the training in it is the plain one."""
    found = subprocess.run([BUILD / name / "tools/reprise-torch", "train", "--compare", "--budget", "0.6x", "--threads", "1"],
                           stdout=subprocess.PIPE, text=True)
    (RESULTS / "train.txt").write_text(found.stdout)
    print(found.stdout, end="", flush=True)
    if found.returncode != 0:
        raise Failure("the training failed")


def test_chosen_torch(choice: str, quick: bool, run: Run) -> None:
    with needs.one_at_a_time():
        torch = needs.chosen_torch(choice)
    name = f"libtorch-{torch.version}"
    target = "reprise_torch_command" if quick else "reprise_libtorch_tests"
    parts = Parts(run)
    if parts.test(f"build {name}", lambda: build.make(name, [target], options_of(run), torch, "release")):
        parts.test(f"doctor {name}", lambda: doctor_of(name))
        parts.test(f"overhead {name}", lambda: overhead_of(name))
        if not quick:
            parts.test(name, lambda: ctest(name, name, run, "-L", "^(torch|tools|cuda)$"))
    if not run.regex:
        subprocess.run([sys.executable, ROOT / "scripts/versions_page.py", torch.version, RESULTS], check=True)


def test_cuda(choice: str, run: Run) -> None:
    with needs.one_at_a_time():
        torch = needs.chosen_torch(choice)
        if not (torch.folder / "lib/libtorch_cuda.so").exists():
            raise Failure(f"LibTorch in {torch.folder} has no CUDA")
        cuda = Path(os.environ.get("CUDA_PATH", "/usr/local/cuda"))
        if not any(torch.folder.parent.glob("nvidia/*/include/crt/host_defines.h")) and not (cuda / "include/crt/host_defines.h").exists():
            home = Path(str(torch.folder).partition("/lib/python3")[0])  # its environment
            needs.attempt("cuda-headers", "installing the headers of CUDA's runtime beside it", lambda log: needs.pip_install(
                home, log, "--no-deps", "nvidia-cuda-runtime", "nvidia-cuda-crt"))
    name = f"libtorch-{torch.version}"
    parts = Parts(run)
    if parts.test(f"build {name}", lambda: build.make(name, ["reprise_cuda_tests"], options_of(run), torch, "release")):
        parts.test(name, lambda: ctest(name, name, run, "-L", "^cuda$"))


# ---- the command line ------------------------------------------------------------------------------------------------


def list_parts() -> str:
    times = read_times()

    def seconds(name: str) -> str:
        return f"{times[name]} s" if name in times else ""
    lines = [f"  {'part':11}  {'quick':>7}  {'all':>7}"]
    for part in PARTS.values():
        mark = "*" if part.is_quick else " "
        quick = seconds(part.name) if part.is_quick else ""
        lines.append(f"{mark} {part.name:11}  {quick:>7}  {seconds(f'--all {part.name}'):>7}  {part.subject}")
    lines.append(f"  {'(building)':11}  {seconds('build release'):>7}")
    return "\n".join(lines)


def parse(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./test", add_help=False)
    parser.add_argument("parts", nargs="*")
    for flag in ("--all", "--long", "--list", "--quick", "--cuda", "-h", "--help"):
        parser.add_argument(flag, action="store_true")
    parser.add_argument("-R", default="", dest="regex", metavar="REGEX")
    parser.add_argument("--libtorch", metavar="VERSION|FOLDER")
    options = parser.parse_intermixed_args(words)
    if options.h or options.help or options.list:
        print((__doc__ if not options.list else "") + list_parts())
        sys.exit()
    unknown = [name for name in options.parts if name not in PARTS and name not in FOLDERS]
    if unknown:
        raise Failure(f"there is no part '{unknown[0]}', only: {' '.join([*PARTS, *FOLDERS])}")
    if options.quick and not options.libtorch:
        raise Failure("--quick is for --libtorch")
    if options.long:
        os.environ["REPRISE_LONG"] = "1"
        options.all = True
    return options


def main(words: list[str]) -> int:
    options = parse(words)
    # What waits in OpenMP's threads takes the processor from whatever is tested or compiled beside it.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    names = options.parts or [part.name for part in PARTS.values() if options.all or part.is_quick]
    if options.regex and not options.parts:
        names = [name for name in names if name in IN_RELEASE]
    other_torch = options.libtorch or (needs.NEWEST_TORCH if options.cuda else None)
    needs.install_debian(needs.BUILDING, needs.TESTING, *(() if other_torch else {part_of(name).name for name in names}))
    shutil.rmtree(RESULTS, ignore_errors=True)
    RESULTS.mkdir(parents=True)
    if other_torch:
        run = Run(True, options.regex, None)
        test_cuda(other_torch, run) if options.cuda else test_chosen_torch(other_torch, options.quick, run)
    else:
        with needs.one_at_a_time():
            torch = needs.torch() if any(part_of(name).torch is not Torch.UNUSED for name in names) else None
            if "benchmarks" in names:
                needs.has_matplotlib()
        run_parts(names, Run(options.all, options.regex, torch))
    return summary.main(RESULTS, " ".join(["./test", *words]), "./test --all" if options.all else "./test")


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Failure as failure:
        needs.say(str(failure))
        sys.exit(2)
