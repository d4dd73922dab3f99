#!/usr/bin/env python3
"""Which libraries the loader looks for where, and what installed files say about the machine that built them.

    files_test.py build FOLDER                   no program or library of FOLDER looks for libraries in the current directory
    files_test.py installed [--libtorch LIBRARIES] [--unnamed UNNAMED]... FOLDER
                                                 nor in any folder but LibTorch's; all are hardened; no file names UNNAMED
    files_test.py attack COMPILER PROGRAM...     a library in the current directory is not loaded

LIBRARIES is LibTorch's folder of libraries, which whoever configured the build has chosen: an installed program looks there, and
an installed file may name LibTorch's folder.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

# Other projects, built and unpacked by other tests at the same time; and what Python compiles where it is installed.
PASSED_OVER = re.compile(r"/tests/(consumer|package)_|/__pycache__/")


def files_of(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.rglob("*"))
            if path.is_file() and not path.is_symlink() and not PASSED_OVER.search(f"/{path.relative_to(folder)}")]


def is_loaded(path: Path) -> bool:
    """Whether it is a program or a shared library, not an object file."""
    with open(path, "rb") as file:
        start = file.read(18)
    return start[:4] == b"\x7fELF" and int.from_bytes(start[16:18], sys.byteorder) in (2, 3)


def readelf(path: Path, *options: str) -> str:
    return subprocess.run(["readelf", "-W", *options, path], env={**os.environ, "LC_ALL": "C"}, stdout=subprocess.PIPE, text=True,
                          check=True).stdout


def search_path(path: Path) -> list[str]:
    return [folder for entry in re.findall(r"\((?:RUNPATH|RPATH)\).*: \[(.*)\]$", readelf(path, "-d"), re.MULTILINE)
            for folder in entry.split(":")]


def search_problems(path: Path) -> list[str]:
    """What is wrong with its search path wherever it is: the loader takes an empty entry for the current directory."""
    return [f"looks for libraries in '{folder}', which depends on the current directory" for folder in search_path(path)
            if not re.match(r"/|\$ORIGIN(/|$)", folder)]


def hardening_problems(path: Path) -> list[str]:
    dynamic, segments, symbols = readelf(path, "-d"), readelf(path, "-l"), readelf(path, "--dyn-syms")
    is_program = "INTERP" in segments
    expected = {
        "is position-independent": not is_program or re.search(r"\(FLAGS_1\).*\bPIE\b", dynamic),
        "has a read-only relocation segment (RELRO)": "GNU_RELRO" in segments,
        "is bound when it is loaded (BIND_NOW)": re.search(r"BIND_NOW|\(FLAGS_1\).*\bNOW\b", dynamic),
        "has a stack that is not executable": re.search(r"GNU_STACK.* RW ", segments),
        "has no text relocations": "TEXTREL" not in dynamic,
        "has a stack protector": "__stack_chk_fail" in symbols,
        "has checks of _FORTIFY_SOURCE": re.search(r"__(mem|str|v?sn?printf|f?printf|read)\w*_chk", symbols),
    }
    return [f"does not hold: {what}" for what, holds in expected.items() if not holds]


def naming_problems(path: Path, unnamed: list[Path], libtorch: Path | None) -> list[str]:
    content = path.read_bytes()
    if libtorch:
        content = content.replace(os.fsencode(libtorch.parent), b"(LibTorch)")
    return [f"names {folder}: {found[0].decode(errors='replace')}" for folder in unnamed
            for found in [re.search(rb"(?<![\w.])" + re.escape(os.fsencode(folder)) + rb"(?![\w.-])[^\0\n]{0,80}", content)] if found]


def check_build(folder: Path) -> list[str]:
    programs = [path for path in files_of(folder) if is_loaded(path)]
    assert programs, f"there is no program in {folder}"
    print(f"{len(programs)} programs and libraries")
    return [f"{path}: {problem}" for path in programs for problem in search_problems(path)]


def check_installed(folder: Path, libtorch: Path | None, unnamed: list[Path]) -> list[str]:
    files, problems = files_of(folder), []
    assert any(is_loaded(path) for path in files), f"there is no program in {folder}"
    for path in files:
        found = naming_problems(path, unnamed, libtorch)
        if is_loaded(path):
            found += search_problems(path) + hardening_problems(path)
            found += [f"looks for libraries in {entry}" for entry in search_path(path)
                      if entry.startswith("/") and entry != str(libtorch)]
        problems += [f"{path}: {problem}" for problem in found]
    print(f"{len(files)} files")
    return problems


def check_attack(compiler: str, programs: list[Path]) -> list[str]:
    """Runs each program where libraries of the names that it needs write a file when they are loaded."""
    problems = []
    for program in programs:
        with tempfile.TemporaryDirectory(prefix="reprise-attack-") as name:
            folder = Path(name)
            (folder / "fake.cpp").write_text("#include <cstdio>\n__attribute__((constructor)) static void run() "
                                             "{ if (FILE* file = std::fopen(\"was_run\", \"w\")) std::fclose(file); }\n")
            needed = re.findall(r"\(NEEDED\).*\[(.*)\]", readelf(program, "-d"))
            assert needed, f"{program} needs no library"
            subprocess.run([compiler, "-shared", "-fPIC", "fake.cpp", "-o", "fake.so"], cwd=folder, check=True)
            for library in needed:
                (folder / library).symlink_to("fake.so")
            done = subprocess.run([program.resolve(), "--version"], cwd=folder, capture_output=True, text=True)
            if done.returncode != 0 or (folder / "was_run").exists():
                problems.append(f"{program} loads a library from the current directory: {''.join(done.stderr.splitlines()[-1:])}")
    return problems


def main() -> int:
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(dest="command", required=True)
    build = commands.add_parser("build")
    build.add_argument("folder", type=Path)
    installed = commands.add_parser("installed")
    installed.add_argument("folder", type=Path)
    installed.add_argument("--libtorch", type=Path)
    installed.add_argument("--unnamed", type=Path, action="append", default=[])
    attack = commands.add_parser("attack")
    attack.add_argument("compiler")
    attack.add_argument("programs", type=Path, nargs="+")
    given = parser.parse_args()
    if given.command == "build":
        problems = check_build(given.folder)
    elif given.command == "installed":
        problems = check_installed(given.folder, given.libtorch, given.unnamed)
    else:
        problems = check_attack(given.compiler, given.programs)
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
