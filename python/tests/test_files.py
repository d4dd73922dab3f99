"""The package's own program and library: what tests/package/files_test.py asks of installed files."""
import subprocess
import sys
from pathlib import Path

import torch

import reprise

ROOT = Path(__file__).resolve().parents[2]


def test_are_hardened_and_name_no_folder_of_the_machine():
    libtorch = Path(torch.__file__).parent / "lib"
    command = [sys.executable, ROOT / "tests/package/files_test.py", "installed", "--unnamed", ROOT, "--libtorch", libtorch]
    checked = subprocess.run([*command, Path(reprise.__file__).parent], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr
