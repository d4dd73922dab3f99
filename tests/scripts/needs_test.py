"""What the scripts need on a machine: the tables, and what is said where something cannot be had."""

import contextlib
import io
import sys
import tempfile
import unittest
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
        imported_by_torch = {"typing_extensions", "sympy", "jinja2", "fsspec", "filelock"}
        self.assertEqual([name for name, _, _ in packages if name not in imported_by_torch and name not in page], [])


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
