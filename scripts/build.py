"""From sources to built targets: configures and builds a preset of CMakePresets.json, and the Python package."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import needs
from needs import BUILD, PYTHON_HOME, ROOT, Failure, LibTorch, say

JOBS = os.environ.setdefault("CMAKE_BUILD_PARALLEL_LEVEL", str(len(os.sched_getaffinity(0))))
if "CMAKE_GENERATOR" not in os.environ and shutil.which("ninja"):
    os.environ["CMAKE_GENERATOR"] = "Ninja"
# What ccache has from one checkout is valid for another one in another folder.
os.environ.setdefault("CCACHE_BASEDIR", str(ROOT))
os.environ.setdefault("CCACHE_NOHASHDIR", "1")


def run_logged(log: Path, *commands: list) -> None:
    """Runs commands, whose output goes to a log, and to stderr if one fails."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with open(log, "wb") as output:
        for command in commands:
            if subprocess.run(command, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT).returncode != 0:
                sys.stderr.write(log.read_text(errors="replace"))
                raise Failure(f"failed: {' '.join(map(str, command))}")


def configure(name: str, options: tuple[str, ...], torch: LibTorch | None, preset: str = "") -> None:
    """Configures build/NAME unless it is configured with these options on, or, where one has a value ("NAME:STRING=..."), with
    that. The build itself sees later changes of CMake files."""
    folder = BUILD / name
    cache, stamp = folder / "CMakeCache.txt", folder / "configured"
    cached = cache.read_text().splitlines() if cache.exists() else []
    settings = [option if "=" in option else f"{option}:BOOL=ON" for option in options]
    if torch:
        settings += ["REPRISE_TORCH:BOOL=ON", f"Torch_DIR:PATH={torch.folder}/share/cmake/Torch"]
    elif "REPRISE_TORCH:BOOL=ON" in cached:
        known = next((line.partition("=")[2] for line in cached if line.startswith("Torch_DIR:PATH=")), "")
        if not Path(known).exists():
            settings.append("REPRISE_TORCH:BOOL=OFF")  # it is gone
    is_new = stamp.exists() and stamp.stat().st_mtime > (ROOT / "CMakePresets.json").stat().st_mtime
    if is_new and all(setting in cached for setting in settings):
        return
    # What is not asked for is not built, so that ./run needs neither GoogleTest nor LibTorch.
    for option in ("REPRISE_TESTS", "REPRISE_TORCH"):
        if not any(line.startswith(f"{option}:") for line in cached):
            settings.insert(0, f"{option}:BOOL=OFF")
    run_logged(folder / "configure.log", ["cmake", "-S", ROOT, "-B", folder, "--preset", preset or name, "--log-level=NOTICE",
                                          *(f"-D{setting}" for setting in settings)])
    stamp.touch()


UNINTERESTING = re.compile(r"^ninja: no work to do|Re-checking globbed|Built target|[Cc]onsolidate compiler|^ninja: Entering")
SHORTER = [(re.compile(r"Building CXX object (.*)CMakeFiles/[^/]*\.dir/(.*)\.o$"), r"\1\2"),
           (re.compile(r"Linking CXX (executable|static library|shared library) "), "link ")]


def compile_targets(name: str, *targets: str) -> None:
    """Builds targets in build/NAME: one line for each file on stderr, nothing if there is nothing to do."""
    command = ["cmake", "--build", BUILD / name, "--target", *targets]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace") as process:
        for line in process.stdout:
            if UNINTERESTING.search(line):
                continue
            for pattern, replacement in SHORTER:
                line = pattern.sub(replacement, line)
            sys.stderr.write(line)
            sys.stderr.flush()
    if process.returncode != 0:
        raise Failure(f"build/{name} could not be built")


def make(name: str, targets: list[str], options: tuple[str, ...] = (), torch: LibTorch | None = None, preset: str = "") -> None:
    with needs.one_at_a_time():
        if highs := needs.highs():
            os.environ["REPRISE_HIGHS"] = str(highs)  # for what is run in the end: nothing that is built names a folder
        configure(name, options, torch, preset)
        compile_targets(name, *targets)


# ---- the Python package: its module is built for the libraries of build/release, which are not compiled again ----------

MODULE = "release_python"
MODULE_FOLDER = BUILD / MODULE / "python"  # has the package, to be imported as it is


def make_release_for_python(torch: LibTorch) -> None:
    make("release", ["reprise_command", "reprise_torch"], torch=torch)  # the package has the command inside


def make_python_module(torch: LibTorch) -> None:
    """Builds the package of MODULE_FOLDER."""
    make_release_for_python(torch)
    folder = BUILD / MODULE
    with needs.one_at_a_time():
        if not (folder / "configured").exists():
            run_logged(folder / "configure.log", [
                "cmake", "-S", ROOT, "-B", folder, "--log-level=NOTICE", "-DCMAKE_BUILD_TYPE=Release",
                f"-DPython_EXECUTABLE={PYTHON_HOME}/bin/python", "-DREPRISE_PYTHON=ON", "-DREPRISE_TORCH=ON",
                "-DREPRISE_TESTS=OFF", "-DREPRISE_INSTALL=OFF", f"-DREPRISE_BUILT={BUILD}/release"])
            (folder / "configured").touch()
        compile_targets(MODULE, "reprise_package")


def install_wheel(torch: LibTorch) -> None:
    """Installs the package as people get it: a source distribution, and a wheel made from that."""
    make_release_for_python(torch)
    wheels = BUILD / "wheel"
    python = PYTHON_HOME / "bin/python"
    pip = [sys.executable, "-m", "pip", "--python", python]
    with needs.one_at_a_time():
        shutil.rmtree(wheels, ignore_errors=True)
        run_logged(BUILD / "wheel.log",
                   [python, "-c", "import sys, scikit_build_core.build as b; b.build_sdist(sys.argv[1])", wheels])
        source, = wheels.glob("*.tar.gz")
        run_logged(BUILD / "wheel.log",
                   [*pip, "wheel", source, "--no-build-isolation", "--no-deps", "--wheel-dir", wheels,
                    "-C", f"build-dir={BUILD}/wheel_build", "-C", f"cmake.define.REPRISE_BUILT={BUILD}/release"])
        wheel, = wheels.glob("*.whl")
        run_logged(BUILD / "wheel.log", [*pip, "install", "--no-deps", "--force-reinstall", wheel])


def make_python_ready() -> Path:
    """Returns the interpreter with the Python package installed, for ./run and ./bench."""
    with needs.one_at_a_time():
        torch = needs.torch()
        if not torch or not needs.has_python_home(torch, companions=True):
            raise Failure("torch, or what the Python package needs beside it, cannot be had: see build/torch.log and build/python.log")
    install_wheel(torch)
    return PYTHON_HOME / "bin/python"
