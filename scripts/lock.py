"""Writes scripts/requirements: for each group of Python packages in needs.py, all packages that it needs, for any version of
Python that they support, and the hashes of all files of these versions that the index has.

    scripts/python lock.py [GROUP ...]

To be run when a version in needs.py changes. Other packages keep the versions that they are locked at.
"""

import subprocess
import sys
from pathlib import Path

import needs

UV = "uv==0.13.8"
OLDEST_PYTHON = "3.11"  # numpy's; what has no other packages is the same for older ones


def lock(uv: Path, group: str, packages: list[str]) -> None:
    file = needs.REQUIREMENTS / f"{group}.txt"
    # In two groups of one environment, a package has one version.
    constraints = ["--constraint", needs.REQUIREMENTS / "python.txt"] if group == "companions" else []
    # LibTorch is there already: see needs.locked_groups().
    without_torch = needs.BUILD / "without_torch.txt"
    without_torch.write_text("torch ; python_version < '3'\n")
    subprocess.run([uv, "pip", "compile", "-", "--quiet", "--universal", "--generate-hashes", "--only-binary", ":all:",
                    "--python-version", OLDEST_PYTHON, "--override", without_torch, *constraints, "--no-annotate",
                    "--custom-compile-command", f"scripts/python lock.py {group}", "--output-file", file],
                   input="\n".join(packages), text=True, check=True, cwd=needs.ROOT)


def main(groups: list[str]) -> None:
    environment = needs.BUILD / "environments/lock"
    if not needs.attempt("lock", f"installing {UV} into {environment.relative_to(needs.ROOT)}: locks versions",
                         lambda log: needs.pip_install(environment, log, UV)):
        raise needs.Failure("uv cannot be had; see build/lock.log")
    needs.REQUIREMENTS.mkdir(exist_ok=True)
    for group, packages in needs.locked_groups().items():
        if not groups or group in groups:
            lock(environment / "bin/uv", group, packages)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except needs.Failure as failure:
        needs.say(str(failure))
        sys.exit(2)
