"""./test: what its arguments mean."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

import run_tests as parts  # noqa: E402
from needs import Failure, LibTorch  # noqa: E402


def run(*words):
    return subprocess.run([ROOT / "test", *words], capture_output=True, text=True)


class CommandLine(unittest.TestCase):
    def test_lists_every_part_with_how_long_it_took(self):
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(parts, "TIMES", Path(folder) / "times.json"):
            parts.TIMES.write_text('{"plan": 12, "--all plan": 34}')
            self.assertRegex(parts.list_parts(), r"\n\* plan +12 s +34 s  ")
            for name in parts.PARTS:
                self.assertRegex(parts.list_parts(), rf"\n[* ] {name} ")

    def test_help_says_what_there_is(self):
        for word in ("--all", "--list", "--libtorch", "-R REGEX", "* torch"):
            self.assertIn(word, run("--help").stdout)

    def test_refuses_a_part_that_is_not_there_and_names_those_that_are(self):
        refused = run("plann")
        self.assertEqual((refused.returncode, refused.stdout), (2, ""))
        self.assertIn("there is no part 'plann', only: format scripts trace", refused.stderr)


class Selection(unittest.TestCase):
    """Which targets are built, and which tests are run."""

    def selected(self, names, everything=False, torch=LibTorch(Path("/torch"))):
        built, tested = [], []
        with tempfile.TemporaryDirectory() as folder, mock.patch.multiple(
                parts, RESULTS=Path(folder), TIMES=Path(folder) / "times.json",
                ctest=lambda part, folder, run, *selection: tested.append((folder, *selection))), \
                mock.patch.object(parts.build, "make", lambda name, targets, *_: built.append((name, *targets))):
            parts.run_parts(names, parts.Run(everything, "", torch))
        return built, tested

    def test_of_a_room_builds_and_runs_its_share_and_nothing_else(self):
        self.assertEqual(self.selected(["plan"]),
                         ([("release", "part_plan")], [("release", "-L", "^plan$", "-LE", "^all$")]))

    def test_with_all_takes_all_of_it(self):
        self.assertEqual(self.selected(["plan"], everything=True),
                         ([("release", "part_plan_all")], [("release", "-L", "^plan$")]))

    def test_of_a_part_that_is_not_in_the_plain_run_takes_all_of_it(self):
        self.assertEqual(self.selected(["examples"]), ([("release", "part_examples_all")], [("release", "-L", "^examples$")]))

    def test_of_a_folder_takes_that_folder(self):
        self.assertEqual(self.selected(["torch/traps"]),
                         ([("release", "part_torch_traps")], [("release", "-L", "^torch/traps$", "-LE", "^all$")]))

    def test_builds_several_rooms_at_once(self):
        self.assertEqual(self.selected(["store", "chain"])[0], [("release", "part_store", "part_chain")])

    def test_leaves_out_what_needs_libtorch_where_it_cannot_be_had(self):
        self.assertEqual(self.selected(["torch", "trace"], torch=None),
                         ([("release", "part_trace")], [("release", "-L", "^trace$", "-LE", "^all$")]))

    def test_of_a_sanitizer_has_a_build_of_its_own(self):
        self.assertEqual(self.selected(["sanitize"]), ([("sanitize", "all")], [("sanitize",)]))


class Failures(unittest.TestCase):
    def test_of_one_part_do_not_keep_others_from_running(self):
        with tempfile.TemporaryDirectory() as folder, mock.patch.multiple(parts, RESULTS=Path(folder), TIMES=Path(folder) / "times"):
            results = parts.Parts(parts.Run(False, "", None))

            def fail():
                raise Failure("a reason")
            self.assertFalse(results.test("plan", fail))
            self.assertTrue(results.test("store", lambda: None))
            self.assertRegex((Path(folder) / "parts.tsv").read_text(), r"^plan\t1\t\d+\nstore\t0\t\d+\n$")


if __name__ == "__main__":
    unittest.main()
