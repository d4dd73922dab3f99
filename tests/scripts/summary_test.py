"""The end of ./test: what it counts, and what it names."""

import contextlib
import io
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

import summary  # noqa: E402


def case(name, suite, status="run", inside=""):
    return f'<testcase name="{name}" classname="{suite}" time="1" status="{status}">{inside}</testcase>'


class Summary(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.results = Path(folder.name) / "results"
        self.suites = self.results / "torch"
        self.suites.mkdir(parents=True)

    def printed(self, code=0, part="torch"):
        (self.results / "parts.tsv").write_text(f"{part}\t{code}\t1000000\n")
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            self.code = summary.main(self.results, "./test --all torch", "./test --all")
        return output.getvalue()

    @staticmethod
    def write(path, *cases):
        path.write_text("<testsuites>" + "".join(cases) + "</testsuites>")

    def test_names_the_place_of_what_runs_on_the_device_too(self):
        self.write(self.results / "torch.xml", case("Trap", "Trap"), case("on_device.Trap", "on_device.Trap"))
        skipped = case("Company", "Trap", inside="<skipped/>")
        self.write(self.suites / "Trap.xml", case("Plain", "Trap"), case("Company", "Trap"))
        self.write(self.suites / "on_device.Trap.xml", case("Plain", "Trap"), skipped)
        printed = self.printed()
        self.assertIn("Skipped:\n  torch: on_device.Trap.Company\n", printed)
        self.assertEqual(printed.splitlines()[-1], "3 passed, 0 failed, 1 skipped")
        self.assertEqual(self.code, 0)

    def test_counts_the_tests_of_every_shard_of_a_suite(self):
        self.write(self.results / "torch.xml", case("on_device.Trap.0of2", ""), case("on_device.Trap.1of2", ""))
        self.write(self.suites / "on_device.Trap.0of2.xml", case("Plain", "Trap", inside="<failure/>"))
        self.write(self.suites / "on_device.Trap.1of2.xml", case("Company", "Trap"))
        printed = self.printed()
        self.assertIn("Failed:\n  torch: on_device.Trap.Plain\n", printed)
        self.assertEqual(printed.splitlines()[-1], "1 passed, 1 failed, 0 skipped")

    def test_says_how_to_run_a_part_again_that_failed(self):
        self.assertIn("To run only these parts again:\n  ./test --all sanitize\n", self.printed(code=1, part="sanitize"))
        self.assertIn("To run only these parts again:\n  ./test --all torch\n", self.printed(code=1, part="build release"))
        self.assertNotIn("again", self.printed(part="format"))

    def test_names_suites_with_parameters_as_they_are(self):
        self.write(self.results / "torch.xml", case("on_device.All/Trap", "on_device.All/Trap", "fail"))
        self.write(self.suites / "on_device.All_Trap.xml", case("Is/0", "All/Trap", inside="<failure/>"))
        self.assertIn("Failed:\n  torch: on_device.All/Trap.Is/0\n", self.printed(code=1))
        self.assertEqual(self.code, 1)

    def test_names_a_program_of_many_suites_by_its_tests(self):
        self.write(self.results / "torch.xml", case("chain", "chain"))
        self.write(self.suites / "chain.xml", case("Goes", "Loop", inside="<skipped/>"), case("Goes", "Chain"))
        self.assertIn("Skipped:\n  torch: Loop.Goes\n", self.printed())

    def test_a_suite_that_crashed_has_failed(self):
        self.write(self.results / "torch.xml", case("on_device.Trap", "on_device.Trap", "fail"))
        self.write(self.suites / "on_device.Trap.xml", case("Plain", "Trap"))
        self.assertIn("Failed:\n  torch: on_device.Trap\n", self.printed(code=1))

    def test_what_passes_when_it_is_run_once_more_is_unstable(self):
        self.write(self.results / "torch.xml", case("on_device.Trap", "on_device.Trap", "fail"))
        self.write(self.results / "torch.again.xml", case("on_device.Trap", "on_device.Trap"))
        printed = self.printed()
        self.assertIn("Unstable, failed and passed when run once more:\n  torch: on_device.Trap\n", printed)
        self.assertEqual(self.code, 0)


if __name__ == "__main__":
    unittest.main()
