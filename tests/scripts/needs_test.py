"""What the scripts need on a machine: the tables, and what is said where something cannot be had."""

import contextlib
import io
import os
import re
import subprocess
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

import needs  # noqa: E402
import run_tests as parts  # noqa: E402


class Tables(unittest.TestCase):
    def test_name_parts_of_the_tests_that_there_are(self):
        known = {needs.BUILDING, needs.TESTING, *parts.PARTS}
        self.assertEqual({row.used_by for row in needs.DEBIAN} - known, set())

    def test_have_a_reason_in_the_document_for_every_row(self):
        page = (ROOT / "docs/dependencies.md").read_text()
        compiler = {"g++", "cmake", "python3-pip"}  # the page has these in its text
        self.assertEqual([row.package for row in needs.DEBIAN if row.package not in compiler and f"`{row.package}`" not in page], [])
        self.assertEqual([name for name in needs.PYPI if name not in page], [])
        packages = [package.partition("==") for package in needs.PYTHON_PACKAGES + needs.PYTHON_COMPANIONS]
        imported_by_torch = {"typing_extensions", "sympy", "jinja2", "fsspec", "filelock", "setuptools"}
        self.assertEqual([name for name, _, _ in packages if name not in imported_by_torch and name not in page], [])


def choosing(choice):
    """An environment that has this REPRISE_INSTALL."""
    return mock.patch.dict(os.environ, {"REPRISE_INSTALL": choice})


class LockedVersions(unittest.TestCase):
    def test_are_those_of_the_tables_and_have_hashes(self):
        for group, packages in needs.locked_groups().items():
            text = (needs.REQUIREMENTS / f"{group}.txt").read_text()
            names = re.findall(r"^(\S+==[^ ]+) ", text, re.MULTILINE)
            self.assertEqual([name for name in packages if name.replace("_", "-") not in names], [], group)
            lines = text.replace("\\\n", " ").splitlines()
            self.assertEqual([line for line in lines if not line.startswith("#") and "--hash=sha256:" not in line], [], group)

    def test_are_one_for_what_two_groups_of_an_environment_need(self):
        versions = {}
        for group in ("python", "companions"):
            for name, version in re.findall(r"^(\S+)==(\S+)", (needs.REQUIREMENTS / f"{group}.txt").read_text(), re.MULTILINE):
                self.assertEqual(versions.setdefault(name, version), version, name)

    def test_are_compared_by_pip_unless_it_is_chosen_otherwise(self):
        with choosing(""):
            self.assertIn("--require-hashes", needs.locked("python"))
        with choosing("unlocked"), contextlib.redirect_stderr(io.StringIO()) as stderr:
            arguments = needs.locked("companions")
        self.assertEqual([argument for argument in arguments if "hash" in argument], [])
        self.assertIn("accelerate==1.15.0", arguments)
        self.assertIn("files of companions are not compared with their hashes", stderr.getvalue())
        with choosing("perhaps"), self.assertRaisesRegex(needs.Failure, "'perhaps'; it can be yes, no or unlocked"):
            needs.locked("python")

    def test_refuse_another_file_of_the_same_version(self):
        with tempfile.TemporaryDirectory() as name, mock.patch.object(needs, "REQUIREMENTS", Path(name)), choosing(""):
            folder = Path(name)
            with zipfile.ZipFile(folder / "thing-1.0-py3-none-any.whl", "w") as wheel:
                wheel.writestr("thing.py", "")
                wheel.writestr("thing-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: thing\nVersion: 1.0\n")
                wheel.writestr("thing-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
                wheel.writestr("thing-1.0.dist-info/RECORD", "")
            (folder / "thing.txt").write_text(f"thing==1.0 \\\n    --hash=sha256:{'0' * 64}\n")
            with open(folder / "log", "w+") as log:
                offline = "--no-index", "--find-links", name
                self.assertFalse(needs.pip_install(folder / "environment", log, *offline, *needs.locked("thing")))
                log.seek(0)
                self.assertIn("DO NOT MATCH THE HASHES", log.read())
            with open(folder / "log", "w") as log, choosing("unlocked"), contextlib.redirect_stderr(io.StringIO()):
                self.assertTrue(needs.pip_install(folder / "environment", log, *offline, *needs.locked("thing")))


class MissingPackages(unittest.TestCase):
    def installed(self, *rows, user=0, succeeds=True):
        """What apt-get was asked to install."""
        asked = []

        def apt_get(*arguments):
            asked.append(arguments)
            return arguments[0] == "update" or succeeds
        with mock.patch.multiple(needs, DEBIAN=list(rows), apt_get=apt_get), mock.patch("os.geteuid", lambda: user), \
                mock.patch("shutil.which", lambda name: f"/usr/bin/{name}"), contextlib.redirect_stderr(io.StringIO()) as stderr:
            try:
                needs.install_debian(needs.BUILDING, "report")
            finally:
                self.stderr = stderr.getvalue()
        return [arguments[-1] for arguments in asked if arguments[0] == "install"]

    @staticmethod
    def row(package, used_by=needs.BUILDING, found=False, optional=False):
        return needs.Debian(package, used_by, "a purpose", lambda: found, optional)

    def test_are_installed_by_root_and_others_are_not(self):
        self.assertEqual(self.installed(self.row("a"), self.row("there", found=True), self.row("b", "another part")), ["a"])
        self.assertIn("reprise: installing a: a purpose\n", self.stderr)

    def test_are_announced_before_root_installs_them(self):
        self.installed(self.row("a"))
        self.assertTrue(self.stderr.startswith("reprise: as root, packages of the system are installed with apt-get"), self.stderr)

    def test_are_named_and_not_installed_if_root_refuses(self):
        with choosing("no"):
            self.assertEqual(self.installed(self.row("optional", optional=True)), [])
            self.assertIn("REPRISE_INSTALL=no, so these are done without: optional\n", self.stderr)
            with self.assertRaisesRegex(needs.Failure, "REPRISE_INSTALL=no, so .* not installed; type:  sudo apt-get install a$"):
                self.installed(self.row("a"))
            self.assertRegex(self.stderr, "a +a purpose")

    def test_include_python_itself(self):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "apt-get").write_text(f"#!/bin/sh\necho \"$@\" >> {folder}/asked\n")
            (folder / "apt-get").chmod(0o755)

            def call(choice):
                command = ["/bin/bash", str(ROOT / "scripts/python"), "run.py"]
                return subprocess.run(command, env={"PATH": name, "REPRISE_INSTALL": choice}, capture_output=True, text=True)
            refused = call("no")
            self.assertEqual(refused.returncode, 2)
            self.assertIn("Python 3 is missing; type:  sudo apt-get install python3", refused.stderr)
            self.assertFalse((folder / "asked").exists())
            if os.geteuid() == 0:
                self.assertIn("as root, packages of the system are installed with apt-get", call("").stderr)
                self.assertIn("install -y", (folder / "asked").read_text())

    def test_are_named_with_the_command_to_type_if_only_root_can_install_them(self):
        with self.assertRaisesRegex(needs.Failure, "only root can install them; type:  sudo apt-get install a$"):
            self.installed(self.row("a"), self.row("optional", optional=True), user=1000)
        self.assertRegex(self.stderr, "a +a purpose")

    def test_that_are_optional_are_done_without(self):
        self.installed(self.row("optional", "report", optional=True), succeeds=False)
        self.assertIn("could not install optional; going on without it", self.stderr)
        self.assertEqual(self.installed(self.row("optional", optional=True), user=1000), [])

    def test_that_cannot_be_installed_end_the_script(self):
        with self.assertRaisesRegex(needs.Failure, "could not install: a$"):
            self.installed(self.row("a"), succeeds=False)


class Attempts(unittest.TestCase):
    def test_are_not_made_where_nothing_is_to_be_installed(self):
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(needs, "BUILD", Path(folder)), \
                contextlib.redirect_stderr(io.StringIO()) as stderr:
            tries = []
            for choice in ("no", "yes"):  # and are made as soon as they may be
                with choosing(choice):
                    needs.attempt("thing", "installing a thing", lambda log: tries.append(choice) or True)
            self.assertEqual(tries, ["yes"])
            self.assertIn("REPRISE_INSTALL=no, so this is left out: installing a thing", stderr.getvalue())

    def test_that_fail_leave_a_log_and_are_not_repeated_for_a_day(self):
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(needs, "BUILD", Path(folder)), \
                contextlib.redirect_stderr(io.StringIO()):
            tries = []

            def install(log):
                tries.append(log.write(b"no network"))
                return False
            self.assertFalse(needs.attempt("thing", "installing a thing", install))
            self.assertFalse(needs.attempt("thing", "installing a thing", install))
            self.assertEqual(len(tries), 1)
            self.assertEqual((Path(folder) / "thing.log").read_text(), "no network")


if __name__ == "__main__":
    unittest.main()
