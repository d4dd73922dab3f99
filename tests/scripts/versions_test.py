"""The page of LibTorch's versions and what makes it; which torch a Python package is built for; and that only one file has a
condition on the version."""

import contextlib
import io
import json
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

import cuda_packages  # noqa: E402
import needs  # noqa: E402
import versions_page  # noqa: E402


class Page(unittest.TestCase):
    def test_has_the_rows_of_the_file(self):
        self.assertEqual(versions_page.main(["--check"]), 0)


class Row(unittest.TestCase):
    """What ./test --libtorch 9.8.7 leaves behind, and the page made of it."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.results = Path(folder.name) / "results"
        self.results.mkdir()
        self.rows, self.page = Path(folder.name) / "versions.json", Path(folder.name) / "versions.md"
        self.rows.write_text("[\n]\n")
        self.page.write_text("before\n<!-- rows -->\n<!-- end of rows -->\nafter\n")
        for name, path in (("ROWS", self.rows), ("PAGE", self.page)):
            patch = mock.patch.object(versions_page, name, path)
            patch.start()
            self.addCleanup(patch.stop)

    def leave_behind(self, version="9.8.7", doctor=0, tests=True):
        codes = {"build": 0, "doctor": doctor, "overhead": 0}
        name = f"libtorch-{version}"
        (self.results / "parts.tsv").write_text("".join(f"{part} {name}\t{code}\t1\n" for part, code in codes.items()))
        (self.results / "doctor.jsonl").write_text("".join(
            json.dumps({"what": what, "state": "good", "answer": "", "advice": ""}) + "\n"
            for what in ("LibTorch", "allocator", "session")))
        (self.results / "train.txt").write_text(
            "identical: yes, bit for bit (every loss)\n\n  overhead    12.0 %: 12 ms of replaying and packing beside 100 ms\n")
        if tests:
            (self.results / f"{name}.xml").write_text(
                '<testsuite><testcase name="A" classname="A" time="1" status="run"/>'
                '<testcase name="B" classname="B" time="1" status="fail"/></testsuite>')

    def make(self, version="9.8.7"):
        with contextlib.redirect_stderr(io.StringIO()):
            return versions_page.main([version, str(self.results)])

    def lines(self):
        return self.page.read_text().splitlines()

    def test_has_what_was_measured(self):
        self.leave_behind()
        self.assertEqual(self.make(), 0)
        self.assertIn("| 9.8.7 | yes | 1, 1, 0 | bit for bit | 12 % |", self.lines())
        self.assertEqual((self.lines()[0], self.lines()[-1]), ("before", "after"))

    def test_of_a_version_that_does_not_work_is_not_written(self):
        self.leave_behind(doctor=1)
        self.assertEqual(self.make(), 1)
        self.assertEqual(json.loads(self.rows.read_text()), [])

    def test_without_tests_says_so_and_never_takes_the_place_of_one_with_them(self):
        self.leave_behind(tests=False)
        self.make()
        self.assertIn("| 9.8.7 | yes | not run | bit for bit | 12 % |", self.lines())
        self.leave_behind()
        self.make()
        (self.results / "libtorch-9.8.7.xml").unlink()
        self.leave_behind(tests=False)
        self.make()
        self.assertIn("| 9.8.7 | yes | 1, 1, 0 | bit for bit | 12 % |", self.lines())

    def test_of_the_newest_comes_first(self):
        for version in ("9.8.7", "9.10.0", "9.9.0"):
            self.leave_behind(version)
            self.make(version)
        self.assertEqual([row["version"] for row in json.loads(self.rows.read_text())], ["9.10.0", "9.9.0", "9.8.7"])


class CudaPackages(unittest.TestCase):
    LACKING = ["libcudart.so.12", "libcupti.so.12"]

    def test_are_those_of_the_libraries_that_are_missing(self):
        asked = ["filelock", 'nvidia-cuda-nvrtc-cu12==12.8.93; platform_system == "Linux"',
                 'nvidia-cuda-runtime-cu12==12.8.90; platform_system == "Linux"', "nvidia-cuda-cupti-cu12==12.8.90"]
        self.assertEqual(list(cuda_packages.needed(asked, self.LACKING)),
                         ["nvidia-cuda-runtime-cu12==12.8.90", "nvidia-cuda-cupti-cu12==12.8.90"])

    def test_are_parts_of_the_toolkit_where_it_is_one_package(self):
        asked = ['cuda-toolkit[cublas,cudart,cupti,nvtx]==13.2.2; platform_system == "Linux"', "cuda-bindings<14,>=13.0.3"]
        self.assertEqual(list(cuda_packages.needed(asked, self.LACKING)), ["cuda-toolkit[cudart,cupti]==13.2.2"])


class TorchOfAnInterpreter(unittest.TestCase):
    """What `pip install .` says of the torch that is there, before it fetches or compiles anything."""

    def look(self, version=None):
        with tempfile.TemporaryDirectory() as folder:
            if version:
                package = Path(folder) / "torch"
                package.mkdir()
                (package / "__init__.py").touch()
                (package / "version.py").write_text(f"from typing import Optional\n__version__ = '{version}'\n")
            program = "import runpy, sys; sys.path.insert(0, sys.argv[2]); runpy.run_path(sys.argv[1], run_name='__main__')"
            script = ROOT / "python" / "build_backend" / "installed_torch.py"
            # Without what is installed, and without the environment.
            return subprocess.run([sys.executable, "-I", "-S", "-c", program, script, folder], capture_output=True, text=True,
                                  check=False)

    def test_is_named_if_it_is_the_one_that_reprise_works_with(self):
        looked = self.look("2.13.0+cpu")
        self.assertEqual((looked.returncode, Path(looked.stdout.strip()).name, looked.stderr), (0, "torch", ""))

    def test_of_another_version_is_an_error_of_one_sentence(self):
        for version in ("2.15.0+cu132", "2.1.3", "2.130.0"):
            looked = self.look(version)
            self.assertEqual((looked.returncode, looked.stdout, looked.stderr.count("\n")), (1, "", 1))
            self.assertIn(f"is torch {version.split('+')[0]}, and Reprise works with 2.13: first pip install", looked.stderr)

    def test_that_is_missing_is_an_error_of_one_sentence(self):
        looked = self.look()
        self.assertEqual((looked.returncode, looked.stdout, looked.stderr.count("\n")), (1, "", 1))
        self.assertIn("has no torch, and Reprise is built for the one that is installed: first pip install 'torch==2.13.*'",
                      looked.stderr)

    def test_is_the_default_version_in_pip_too(self):
        wanted = re.search(r'^WANTED = "(\S+)"', (ROOT / "python/build_backend/installed_torch.py").read_text(), re.MULTILINE).group(1)
        self.assertIn(f'"torch>={wanted},<', (ROOT / "pyproject.toml").read_text())


class DefaultVersion(unittest.TestCase):
    def test_is_the_same_in_the_scripts_and_in_cmake(self):
        cmake = (ROOT / "cmake/LibTorchSide.cmake").read_text()
        self.assertEqual(needs.PYPI["torch"].version, re.search(r"^set\(libtorch_of_tests (\S+)\)", cmake, re.MULTILINE).group(1))


class Conditions(unittest.TestCase):
    def test_on_the_version_are_in_one_file(self):
        condition = re.compile(r"^\s*#\s*(if|elif).*(TORCH_VERSION|LIBTORCH_FROM)", re.MULTILINE)
        files = [file for folder in ("include", "src", "tools", "python", "tests", "benchmarks", "examples")
                 for file in (ROOT / folder).rglob("*.*") if file.suffix in {".h", ".cpp"}]
        self.assertEqual([file.name for file in files if condition.search(file.read_text())], ["libtorch_versions.h"])


if __name__ == "__main__":
    unittest.main()
