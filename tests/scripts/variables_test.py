#!/usr/bin/env python3
"""Every variable REPRISE_... of the environment that code reads is one that `reprise run` knows."""
import re
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TABLE = (ROOT / "src/torch/api/option_table.h").read_text()
READS = re.compile(r"""(?:getenv|from_environment|environ(?:\.get|\.setdefault)?|environment)[(\[]\s*["'](REPRISE_\w+)["']""")


def known() -> set[str]:
    flags = re.findall(r'\.flag = "--(?:no-)?([a-z-]+)"', TABLE)
    others = TABLE[TABLE.index("other_variables = {"):]
    return {f"REPRISE_{flag.replace('-', '_').upper()}" for flag in flags} | set(re.findall(r'"(REPRISE_\w+)"', others[:others.index("};")]))


class Variables(unittest.TestCase):
    def test_those_that_code_reads_are_known(self):
        files = [path for folder in ("src", "tools", "tests", "scripts", "python", "benchmarks", "examples")
                 for path in (ROOT / folder).rglob("*") if path.suffix in {".cpp", ".h", ".py"} and path != Path(__file__)]
        read = {name: path for path in files for name in READS.findall(path.read_text())}
        self.assertIn("REPRISE_LONG", read)
        self.assertEqual({name: str(path) for name, path in read.items() if name not in known()}, {})


if __name__ == "__main__":
    unittest.main()
