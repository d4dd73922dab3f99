"""The end of ./test: what it counts, and what it names."""

import contextlib
import io
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

import summary  # noqa: E402


def case(name, suite, status="run", inside=""):
    return f'<testcase name="{name}" classname="{suite}" time="1" status="{status}">{inside}</testcase>'


class Summary(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.results = Path(folder.name) / "results"
        self.suites = Path(folder.name) / "release" / "tests" / "suites"
        self.results.mkdir()
        self.suites.mkdir(parents=True)

    def told(self, code=0):
        (self.results / "parts.tsv").write_text(f"release\t{code}\t1000000\n")
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            self.code = summary.main(self.results)
        return said.getvalue()

    @staticmethod
    def write(path, *cases):
        path.write_text("<testsuites>" + "".join(cases) + "</testsuites>")

    def test_names_the_place_of_what_runs_on_the_device_too(self):
        self.write(self.results / "release.xml", case("Trap", "Trap"), case("on_device.Trap", "on_device.Trap"))
        skipped = case("Company", "Trap", inside="<skipped/>")
        self.write(self.suites / "Trap.xml", case("Plain", "Trap"), case("Company", "Trap"))
        self.write(self.suites / "on_device.Trap.xml", case("Plain", "Trap"), skipped)
        told = self.told()
        self.assertIn("Skipped:\n  release: on_device.Trap.Company\n", told)
        self.assertEqual(told.splitlines()[-1], "3 passed, 0 failed, 1 skipped")
        self.assertEqual(self.code, 0)

    def test_names_suites_with_parameters_as_they_are(self):
        self.write(self.results / "release.xml", case("on_device.All/Trap", "on_device.All/Trap", "fail"))
        self.write(self.suites / "on_device.All_Trap.xml", case("Is/0", "All/Trap", inside="<failure/>"))
        self.assertIn("Failed:\n  release: on_device.All/Trap.Is/0\n", self.told(code=1))
        self.assertEqual(self.code, 1)

    def test_names_a_program_of_many_suites_by_its_tests(self):
        self.write(self.results / "release.xml", case("chain", "chain"))
        self.write(self.suites / "chain.xml", case("Goes", "Loop", inside="<skipped/>"), case("Goes", "Chain"))
        self.assertIn("Skipped:\n  release: Loop.Goes\n", self.told())

    def test_a_suite_that_crashed_has_failed(self):
        self.write(self.results / "release.xml", case("on_device.Trap", "on_device.Trap", "fail"))
        self.write(self.suites / "on_device.Trap.xml", case("Plain", "Trap"))
        self.assertIn("Failed:\n  release: on_device.Trap\n", self.told(code=1))

    def test_what_passes_when_it_is_run_once_more_is_unstable(self):
        self.write(self.results / "release.xml", case("on_device.Trap", "on_device.Trap", "fail"))
        self.write(self.results / "release.again.xml", case("on_device.Trap", "on_device.Trap"))
        told = self.told()
        self.assertIn("Unstable, failed and passed when run once more:\n  release: on_device.Trap\n", told)
        self.assertEqual(self.code, 0)


if __name__ == "__main__":
    unittest.main()
