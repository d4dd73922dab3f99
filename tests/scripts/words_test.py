"""scripts/words.py: which words it finds, in which contexts it leaves them alone, and the code without them."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

import words  # noqa: E402


def found(source, path="src/plan/made.cpp"):
    """The places and words, without what would be better."""
    return [line.removeprefix(f"{path}:").rpartition(" -> ")[0] for line in words.found(path, source)]


class Names(unittest.TestCase):
    def test_are_found_as_whole_identifiers(self):
        self.assertEqual(found("void settle();\nint nobody_ = 0;\n"), ["1: settle", "2: nobody_"])
        self.assertEqual(found("int settlement = 0, nobodys = 1, far_away = 2;\n"), [])

    def test_of_one_room_are_free_in_others(self):
        self.assertEqual(found("Id place = 0;\n"), [])
        self.assertEqual(found("Id place = 0;\n", "src/torch/values/made.cpp"), ["1: place"])

    def test_come_with_a_better_one(self):
        self.assertEqual(list(words.found("src/made.h", "struct Likeness {};\n")), ["src/made.h:1: Likeness -> StructuralHash"])

    def test_of_python_are_found(self):
        self.assertEqual(found("def forget(value):\n    return value  # evicted\n", "python/made.py"), ["1: forget"])


class Phrases(unittest.TestCase):
    def test_are_found_in_comments_and_strings_but_not_in_code(self):
        self.assertEqual(found('int a;  // Nobody waits.\nfail("nobody waits");\n'), ["1: Nobody", "2: nobody"])
        self.assertEqual(found("int whoever;\n"), [])

    def test_are_found_across_lines_of_a_comment(self):
        self.assertEqual(found("// Takes so\n// many bytes.\nint a;\n"), ["1: so many"])
        self.assertEqual(found("int a;  // so\nint b;  // many\n"), [])

    def test_are_found_at_the_end_of_a_sentence(self):
        self.assertEqual(found("// Closes it, too.\n"), ["1: , too"])
        self.assertEqual(found("int a;  // closes it, too\n"), ["1: , too"])
        self.assertEqual(found("// Large, too large for a cache.\n"), [])

    def test_are_left_alone_in_allowed_contexts(self):
        self.assertEqual(found("// Names tell them apart.\n"), [])
        self.assertEqual(found("// Made by hand, and handled.\n"), [])
        self.assertEqual(found("// What takes place in place, in turn, in the right place.\n", "src/torch/api/made.cpp"), [])

    def test_are_found_in_docstrings(self):
        self.assertEqual(found('"""Runs.\n\nWhoever calls it waits.\n"""\n', "python/made.py"), ["3: Whoever"])

    def test_are_not_looked_for_behind_what_only_looks_like_a_comment(self):
        self.assertEqual(found('auto url = "http://x";\nchar quote = \'"\';\nint million = 1\'000\'000;\nint settle;\n'), ["4: settle"])


class Tree(unittest.TestCase):
    def test_is_clean_where_it_has_to_be(self):
        run = subprocess.run([sys.executable, ROOT / "scripts/words.py"], capture_output=True, text=True)
        self.assertEqual((run.returncode, run.stdout, run.stderr), (0, "", ""))

    def test_with_a_word_gives_its_place_and_exit_code_1(self):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "src").mkdir()
            (Path(folder) / "src/made.h").write_text("#pragma once\nvoid settle();\n")
            self.assertEqual(words.check(["src"], Path(folder)), ["src/made.h:2: settle -> drain_completed, or what it does"])

    def test_has_all_folders_that_have_to_be_clean(self):
        for name in (*words.CLEAN, *words.EVERYTHING, *words.EXEMPT):
            self.assertTrue((ROOT / name).exists(), name)


if __name__ == "__main__":
    unittest.main()
