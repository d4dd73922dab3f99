"""What Reprise needs on a machine: where each thing comes from, how it is found, and what happens without it.

The two tables below are all there is: DEBIAN for packages of the system, PYPI for Python packages. Everything under them finds
and installs. Nothing here writes to stdout, which belongs to the command that is run in the end.

Python packages come in locked versions, whose files pip compares with the hashes in scripts/requirements (scripts/lock.py). The
environment variable REPRISE_INSTALL chooses: no (nothing is installed), unlocked (these versions, without hashes) or yes.
"""

import contextlib
import fcntl
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Callable, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
VENV = ROOT / ".venv"            # Python packages for the libraries and programs in them
PYTHON_HOME = BUILD / "python"   # where the Python package is tested: sees the LibTorch that was found
REQUIREMENTS = ROOT / "scripts/requirements"
NEWEST_TORCH = "2.15.0"          # what `./test newest` tries


# ---- how a thing is found: the file itself, however it was installed -------------------------------------------------


def prefixes() -> list[Path]:
    """Where CMake looks first."""
    return [Path(prefix) for prefix in re.split("[:;]", os.environ.get("CMAKE_PREFIX_PATH", "")) if prefix]


def command(*names: str) -> Callable[[], bool]:
    return lambda: any(shutil.which(name) for name in names)


def header(name: str) -> Callable[[], bool]:
    return lambda: any((prefix / "include" / name).exists() for prefix in [Path("/usr"), Path("/usr/local"), *prefixes()])


def file(pattern: str) -> Callable[[], bool]:
    return lambda: any(Path("/").glob(pattern))


def module(name: str) -> Callable[[], bool]:
    return lambda: importlib.util.find_spec(name) is not None


# ---- the tables ------------------------------------------------------------------------------------------------------

BUILDING = "build"  # for every build
TESTING = "test"    # for every test; other names are parts of ./test


class Debian(NamedTuple):
    package: str
    used_by: str
    purpose: str
    found: Callable[[], bool]
    optional: bool = False  # without it, something is slower or skipped


DEBIAN = [
    Debian("g++", BUILDING, "the compiler", command(os.environ.get("CXX", "g++"))),
    Debian("cmake", BUILDING, "the build system", command("cmake")),
    Debian("ninja-build", BUILDING, "runs the compiler", command("ninja", "make")),
    Debian("libfmt-dev", BUILDING, "formats numbers and messages", header("fmt/format.h")),
    Debian("nlohmann-json3-dev", BUILDING, "JSON results, and the tests of them", header("nlohmann/json.hpp")),
    Debian("libcli11-dev", BUILDING, "the command line of reprise", header("CLI/CLI.hpp")),
    Debian("libxxhash-dev", BUILDING, "fingerprints of values", header("xxhash.h")),
    Debian("libzstd-dev", BUILDING, "compresses stored values", header("zstd.h")),
    Debian("python3-pip", BUILDING, "installs LibTorch and HiGHS", module("pip"), optional=True),
    Debian("libgtest-dev", TESTING, "GoogleTest, for the tests", header("gtest/gtest.h")),
    Debian("ccache", TESTING, "what was compiled once is not compiled again", command("ccache"), optional=True),
    Debian("clang", "fuzz", "the compiler of libFuzzer", command("clang++"), optional=True),
    Debian("libclang-rt-dev", "fuzz", "libFuzzer, which looks for inputs that reach new code",
           file("usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.fuzzer-*.a"), optional=True),
    Debian("chromium", "report", "a real browser, for the tests of the report", command("chromium"), optional=True),
    Debian("openmpi-bin", "examples", "starts the example that trains on two ranks", command("mpirun"), optional=True),
    Debian("libopenmpi-dev", "examples", "MPI, for that example and two others", command("mpicxx"), optional=True),
    Debian("libpetsc-real-dev", "examples", "PETSc, for the example of a solver's adjoint",
           file("usr/lib/petscdir/petsc*/*/lib/pkgconfig/PETSc.pc"), optional=True),
    Debian("pkg-config", "package", "one of the ways to use Reprise that are tested", command("pkg-config"), optional=True),
    Debian("dpkg-dev", "package", "lists what the Debian package depends on", command("dpkg-shlibdeps"), optional=True),
]


class PyPI(NamedTuple):
    version: str
    purpose: str
    without: str


PYPI = {
    "torch": PyPI("2.13.0", "LibTorch, which Reprise trains with (200 MB and more to download)", "nothing is trained"),
    "highsbox": PyPI("1.15.1", "HiGHS, the solver behind the lower bounds", "planning works, bounds are weaker"),
    "matplotlib": PyPI("3.11.2", "draws the picture of ./bench compare", "the page gets no new picture"),
    # As in Debian 12: other versions format the same style in other ways.
    "clang-format": PyPI("14.0.6", "checks the format of the sources", "the format is not checked"),
    "clang-tidy": PyPI("18.1.8", "looks for mistakes in src/", "they are not looked for"),
}

# What has a file in scripts/requirements: these packages and all that they need, with the hashes of all files of these versions.
# LibTorch has none: which build of a version it is, for CUDA or without, is a choice of the machine's index.
def locked_groups() -> dict[str, list[str]]:
    single = {name: [f"{name}=={row.version}"] for name, row in PYPI.items() if name != "torch"}
    return {**single, "python": PYTHON_PACKAGES, "companions": PYTHON_COMPANIONS}


# Of PYTHON_HOME: what torch imports, and what builds and tests the Python package.
PYTHON_PACKAGES = ["numpy==2.4.6", "typing_extensions==4.16.0", "sympy==1.14.0", "networkx==3.6.1", "jinja2==3.1.6",
                   "fsspec==2026.9.0", "filelock==4.2.10", "setuptools==84.2.1", "scikit-build-core==1.1.1",
                   "pytest==9.2.0", "pytest-xdist==3.8.0", "mypy==2.4.1"]
# Trainers and models of other projects, for `./test --all`. Without them, their tests are skipped.
PYTHON_COMPANIONS = ["transformers==5.22.2", "accelerate==1.15.0", "lightning==2.6.6"]


# ---- installing ------------------------------------------------------------------------------------------------------


class Failure(Exception):
    """Raised when the script cannot go on; the sentence says why."""


def say(text: str) -> None:
    print(f"reprise: {text}", file=sys.stderr, flush=True)


@contextlib.contextmanager
def one_at_a_time():
    """Keeps other scripts of this checkout from installing and building meanwhile."""
    BUILD.mkdir(exist_ok=True)
    with open(BUILD / "lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another build to end")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def install_choice() -> str:
    choice = os.environ.get("REPRISE_INSTALL") or "yes"
    if choice not in ("yes", "no", "unlocked"):
        raise Failure(f"REPRISE_INSTALL is '{choice}'; it can be yes, no or unlocked")
    return choice


def apt_get(*arguments: str) -> bool:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    return subprocess.run(["apt-get", *arguments], env=environment, stdin=subprocess.DEVNULL, stdout=sys.stderr).returncode == 0


def install_debian(*used_by: str) -> None:
    """Installs the missing packages of the table. Fails, with the command to type, if a required one cannot be installed."""
    missing = [row for row in DEBIAN if row.used_by in used_by and not row.found()]
    is_refused = install_choice() == "no"
    can_install = os.geteuid() == 0 and shutil.which("apt-get") is not None and not is_refused
    needed = [row for row in missing if not row.optional]
    if needed and not can_install:
        say("these packages are missing (names as in Debian):")
        for row in needed:
            print(f"  {row.package:20} {row.purpose}", file=sys.stderr)
        reason = "REPRISE_INSTALL=no, so they are not installed" if is_refused else "only root can install them"
        raise Failure(f"{reason}; type:  sudo apt-get install {' '.join(row.package for row in needed)}")
    if missing and is_refused:
        say(f"REPRISE_INSTALL=no, so these are done without: {' '.join(row.package for row in missing)}")
    if not missing or not can_install:
        return
    say("as root, packages of the system are installed with apt-get (REPRISE_INSTALL=no: they are not)")
    for row in missing:
        say(f"installing {row.package}: {row.purpose}")
    if not apt_get("update", "-qq"):
        say("the list of packages could not be updated; trying with the old one")
    install = "install", "-y", "-qq", "--no-install-recommends"
    if apt_get(*install, *(row.package for row in missing)):
        return
    if needed and not apt_get(*install, *(row.package for row in needed)):
        raise Failure(f"could not install: {' '.join(row.package for row in needed)}")
    for row in missing:
        if row.optional and not apt_get(*install, row.package):
            say(f"could not install {row.package}; going on without it")


def pip_install(environment: Path, log, *arguments: str, seconds: float | None = None) -> bool:
    """Installs into a virtual environment. It has no pip of its own but is filled by the machine's: no python3-venv is needed."""
    if not (environment / "bin/python").exists():
        made = subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], stdout=log, stderr=log)
        if made.returncode != 0:
            return False
    pip = [sys.executable, "-m", "pip", "--python", environment / "bin/python", "install", "--retries", "1",
           "--only-binary", ":all:", *arguments]
    variables = {"PIP_DEFAULT_TIMEOUT": "20", **os.environ}
    try:
        return subprocess.run(pip, env=variables, stdout=log, stderr=log, timeout=seconds).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def locked(group: str) -> list[str]:
    """Returns what pip is to install for a group: exactly the packages of its file, each one of the files whose hashes it has."""
    file = REQUIREMENTS / f"{group}.txt"
    if install_choice() == "yes":
        return ["--no-deps", "--require-hashes", "--requirement", str(file)]
    say(f"REPRISE_INSTALL=unlocked: files of {group} are not compared with their hashes")
    return ["--no-deps", *re.findall(r"^(\w.*?) \\$", file.read_text(), re.MULTILINE)]


def attempt(name: str, announcement: str, install: Callable) -> bool:
    """Calls install(log). If that fails, build/NAME.log says why, and for a day it is not tried again: every call would be slow."""
    log = BUILD / f"{name}.log"
    if install_choice() == "no":
        say(f"REPRISE_INSTALL=no, so this is left out: {announcement}")
        log.write_text("REPRISE_INSTALL=no: it was not installed\n")
        os.utime(log, (0, 0))  # it is tried as soon as that is allowed
        return False
    if log.exists() and time.time() - log.stat().st_mtime < 86400:
        return False
    say(announcement)
    part = log.with_suffix(".part")
    with open(part, "wb") as output:
        succeeded = install(output)
    if succeeded:
        part.unlink()
        log.unlink(missing_ok=True)
    else:
        part.rename(log)
    return succeeded


def installed(package: str, path: str) -> Path | None:
    """Returns a file of the version that the table names, in .venv."""
    version = PYPI[package].version
    for site in VENV.glob("lib/python3*/site-packages"):
        if (site / f"{package.replace('-', '_')}-{version}.dist-info").exists() and (site / path).exists():
            return site / path
    return None


def install_pypi(package: str) -> bool:
    row = PYPI[package]
    announcement = f"installing {package} {row.version} into .venv: {row.purpose}"
    if attempt(package, announcement, lambda log: pip_install(VENV, log, *(
            locked(package) if package in locked_groups() else ["--no-deps", f"{package}=={row.version}"]))):
        return True
    say(f"{package} cannot be had (see build/{package}.log): {row.without}")
    return False


# ---- what is in the Python packages ----------------------------------------------------------------------------------


def highs() -> Path | None:
    """Returns libhighs.so, installed if it is missing. None if it cannot be installed, or REPRISE_HIGHS names one at run time."""
    def find():
        return installed("highsbox", "highsbox/highs_dist/lib/libhighs.so")
    if os.environ.get("REPRISE_HIGHS"):
        return None
    return find() or (find() if install_pypi("highsbox") else None)


def has_matplotlib() -> bool:
    return installed("matplotlib", "matplotlib") is not None or install_pypi("matplotlib")


def tool(name: str) -> str | None:
    """Returns clang-format or clang-tidy, of the machine or installed, with the major version that the table names."""
    major = PYPI[name].version.split(".")[0]

    def find():
        for candidate in (f"{name}-{major}", name, str(VENV / "bin" / name)):
            with contextlib.suppress(OSError):
                shown = subprocess.run([candidate, "--version"], capture_output=True, text=True).stdout
                if f"version {major}." in shown:
                    return candidate
        return None
    return find() or (find() if install_pypi(name) else None)


# ---- LibTorch --------------------------------------------------------------------------------------------------------

TORCH_PACKAGE = "share/cmake/Torch/TorchConfig.cmake"


class LibTorch(NamedTuple):
    folder: Path  # with include, lib and share/cmake

    @property
    def version(self) -> str:
        for name in ("headeronly/version.h", "csrc/api/include/torch/version.h"):
            path = self.folder / "include/torch" / name
            if path.exists():
                return ".".join(re.findall(r"^#define TORCH_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", path.read_text(), re.MULTILINE))
        return "unknown"

    def missing_libraries(self) -> list[str]:
        """Returns what libtorch_cpu.so needs and the loader does not find."""
        shown = subprocess.run(["ldd", self.folder / "lib/libtorch_cpu.so"], capture_output=True, text=True).stdout
        return re.findall(r"^\s*(\S+) => not found", shown, re.MULTILINE)


def find_torch() -> LibTorch | None:
    """In this order: where CMake would look, the torch package of this Python (not imported, which is slow), .venv."""
    spec = importlib.util.find_spec("torch")
    packages = [Path(folder) for folder in (spec.submodule_search_locations or [])] if spec else []
    for folder in [*prefixes(), *packages, *VENV.glob("lib/python3*/site-packages/torch")]:
        if (folder / TORCH_PACKAGE).exists():
            return LibTorch(folder)
    return None


def torch() -> LibTorch | None:
    """Returns the LibTorch to build with, installed if there is none. None if it cannot be installed; everything else works without."""
    found = find_torch()
    wanted = PYPI["torch"].version
    if found:
        tried = (ROOT / "docs/versions.json").read_text()
        if found.version != wanted and f'"version": "{found.version}"' not in tried:
            say(f"LibTorch in {found.folder} is version {found.version}, which was not tried: docs/versions.md has those that were")
        return found
    # The library is in the package itself. What it depends on is for Python, except where it was built for CUDA.
    if not install_pypi("torch") or not (found := find_torch()):
        return None
    if found.missing_libraries():
        with open(BUILD / "torch_dependencies.log", "wb") as log:
            pip_install(VENV, log, f"torch=={wanted}")
    return found


def chosen_torch(choice: str, seconds: float | None = None) -> LibTorch:
    """Returns the LibTorch of a folder, or of a version, which is installed into an environment of its own with nothing else."""
    if (Path(choice) / TORCH_PACKAGE).exists():
        return LibTorch(Path(choice).resolve())
    if not re.fullmatch(r"\d+(\.\d+)+", choice):
        raise Failure(f"{choice} is neither a version nor a folder with {TORCH_PACKAGE} in it")
    home = BUILD / "environments" / f"libtorch-{choice}"
    complete = home / "complete"

    def install(log) -> bool:
        shutil.rmtree(home, ignore_errors=True)
        home.parent.mkdir(parents=True, exist_ok=True)
        if not pip_install(home, log, "--no-deps", "--no-compile", f"torch=={choice}", seconds=seconds):
            return False
        # One built for CUDA, as most are, does not load without a few small packages of CUDA's, whether it is used or not.
        found = LibTorch(next(home.glob("lib/python3*/site-packages/torch")))
        if missing := found.missing_libraries():
            wanted = subprocess.run([sys.executable, ROOT / "scripts/cuda_packages.py", found.folder.parent, *missing],
                                    stdout=subprocess.PIPE, stderr=log, text=True, check=True).stdout.split()
            if not pip_install(home, log, *wanted, seconds=seconds) or found.missing_libraries():
                return False
        complete.touch()
        return True

    announcement = (f"installing torch {choice} into {home.relative_to(ROOT)}: nothing but LibTorch "
                    "(500 to 900 MB to download if it is built for CUDA)")
    if not complete.exists() and not attempt(f"libtorch-{choice}", announcement, install):
        raise Failure(f"LibTorch {choice} cannot be had; see build/libtorch-{choice}.log")
    return LibTorch(next(home.glob("lib/python3*/site-packages/torch")))


# ---- the environment of the Python package -----------------------------------------------------------------------------


def has_python_home(found: LibTorch, companions: bool) -> bool:
    """Makes PYTHON_HOME, an environment that sees this torch. Returns False if a package cannot be installed."""
    stamp = PYTHON_HOME / "packages"
    wanted = f"{found.folder} {' '.join(PYTHON_PACKAGES)}"
    with_companions = f"{wanted} {' '.join(PYTHON_COMPANIONS)}"
    present = stamp.read_text() if stamp.exists() else ""

    def install(log) -> bool:
        shutil.rmtree(PYTHON_HOME, ignore_errors=True)
        if not pip_install(PYTHON_HOME, log, *locked("python")):
            return False
        site = next(PYTHON_HOME.glob("lib/python3*/site-packages"))
        (site / "torch.pth").write_text(f"{found.folder.parent}\n")
        imported = subprocess.run([PYTHON_HOME / "bin/python", "-c", "import torch"], stdout=log, stderr=log)
        if imported.returncode != 0:
            return False
        stamp.write_text(wanted)
        return True

    if present not in (wanted, with_companions) and not attempt(
            "python", f"installing {' '.join(PYTHON_PACKAGES)} into build/python: for the Python package", install):
        return False
    if companions and present != with_companions:
        if attempt("companions", f"installing {' '.join(PYTHON_COMPANIONS)} into build/python: trainers and models, for tests",
                   lambda log: pip_install(PYTHON_HOME, log, *locked("companions"))):
            stamp.write_text(with_companions)
        else:
            say("trainers and models of other projects cannot be had (see build/companions.log): their tests are skipped")
    return True
