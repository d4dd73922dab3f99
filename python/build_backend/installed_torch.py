"""The torch that the package is built for: that of the interpreter which runs this.

Prints its folder, or a sentence on stderr if there is none or another one than Reprise works with. CMake and
the backend run it.
"""
from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

WANTED = "2.13"  # whose insides the module knows


def folder() -> str:
    """Where torch is, without importing it, which takes long. Empty: there is none."""
    spec = importlib.util.find_spec("torch")
    return spec.submodule_search_locations[0] if spec and spec.submodule_search_locations else ""


def problem(found: str, version: str) -> str:
    """What is wrong with it, and what to do. Empty: nothing."""
    advice = f"pip install 'torch=={WANTED}.*'"
    if not found:
        return (f"[python] {sys.executable} has no torch, and Reprise is built for the one that is installed: first {advice} "
                "(if it is installed, something hides it from the build: pip install --no-build-isolation .)")
    if not version.startswith(f"{WANTED}."):
        return f"[python] {found} is torch {version or 'of an unknown version'}, and Reprise works with {WANTED}: first {advice}"
    return ""


def main() -> int:
    found = folder()
    # A build in isolation sees only what it asked for: pip says so by a PYTHONPATH, which -E takes away.
    if not found and not sys.flags.ignore_environment:
        return subprocess.run([sys.executable, "-E", __file__], check=False).returncode
    text = (Path(found) / "version.py").read_text() if found else ""
    version = re.search(r"^__version__\D*([0-9.]+)", text, re.MULTILINE)
    wrong = problem(found, version.group(1) if version else "")
    if wrong:
        print(wrong, file=sys.stderr)
        return 1
    print(found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
