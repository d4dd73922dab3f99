#!/usr/bin/env python3
"""What scripts/benchmarks_page.py, zoo_page.py and live_page.py say about measurements, and that docs/benchmarks.md
follows from them.

    page_test.py            everything but the picture, which needs nothing but Python
    page_test.py --picture  the picture; exit code 77 if there is no matplotlib
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SCRIPT = ROOT / "scripts/benchmarks_page.py"
SKIPPED = 77

sys.path.insert(0, str(SCRIPT.parent))
import benchmarks_page as page  # noqa: E402
import live_page  # noqa: E402
import zoo_page  # noqa: E402


def side(peak, ratios, **more):
    return {"peak": peak, "ratios": ratios, "gradient_error": None, "buffers_equal": True, "failure": "", **more}


def rival(label, peak, ratios, **more):
    return side(peak, ratios, engine="C++", way="every 1", label=label, mark=label, **more)


def point(budget, ratio):
    return side(budget, [ratio], budget=budget)


def model_with(*rivals):
    """A plain peak of 1000 bytes, and Reprise at three budgets."""
    return {
        "model": "gpt",
        "title": "GPT",
        "cpp": {"peak": 1000, "seconds": [1.0], "again": [0.98, 1.0, 1.02]},
        "python": None,
        "rivals": list(rivals),
        "reprise": [point(700, 1.02), point(400, 1.10), point(200, 1.30)],
    }


def results_of(*models, asked=("gpt",)):
    return {
        "date": "2026-01-31", "options": "", "processor": "a processor", "cores": 1, "load": 0.0, "libtorch": "2.13.0",
        "python_torch": "", "no_python": "no torch", "repetitions": 1, "quick": False, "asked": list(asked),
        "models": list(models),
    }  # fmt: skip


class Findings(unittest.TestCase):
    def test_are_sorted_by_peak_and_leave_out_what_was_not_measured(self):
        model = model_with(rival("small", 300, [1.5]), rival("failed", 0, []), rival("large", 800, [1.1]))
        self.assertEqual([f.rival["label"] for f in page.findings_of(model)], ["large", "small"])

    def test_compare_with_the_largest_budget_within_the_peak_and_the_smallest_that_is_no_slower(self):
        (finding,) = page.findings_of(model_with(rival("rival", 450, [1.2, 1.1, 1.4])))
        self.assertEqual(finding.time, 1.2)
        self.assertEqual(finding.at_peak["budget"], 400)
        self.assertEqual(finding.at_time["budget"], 400)
        self.assertTrue(finding.is_faster and finding.needs_less)

    def test_a_lucky_budget_below_a_slower_one_does_not_count(self):
        model = model_with(rival("rival", 450, [1.2]))
        model["reprise"].append(point(100, 1.05))
        self.assertEqual(page.findings_of(model)[0].at_time["budget"], 400)

    def test_a_rival_below_all_budgets_has_nothing_at_its_peak(self):
        (finding,) = page.findings_of(model_with(rival("rival", 100, [1.5])))
        self.assertIsNone(finding.at_peak)
        self.assertFalse(finding.needs_less)

    def test_tell_rounding_from_wrong_gradients_and_wrong_state(self):
        measured = rival("rival", 450, [1.2])
        self.assertEqual(page.exactness(measured), "bit-equal")
        measured["gradient_error"] = 3e-7
        self.assertEqual(page.exactness(measured), "rounded otherwise (3.0e-07)")
        self.assertFalse(page.is_wrong(measured))
        measured["buffers_equal"] = False
        self.assertEqual(page.exactness(measured), "rounded otherwise (3.0e-07), **BatchNorm state wrong**")
        self.assertTrue(page.is_wrong(measured))
        measured["gradient_error"] = 0.8
        self.assertIn("**WRONG GRADIENTS** (relative error up to 0.8)", page.exactness(measured))


class Verdict(unittest.TestCase):
    def test_counts_where_the_claims_hold_and_names_the_exceptions(self):
        text = page.verdict(results_of(model_with(rival("beaten", 450, [1.2]), rival("quicker", 750, [1.01]))))
        self.assertIn("At the peak of 1 of 2 rivals with right results Reprise is faster", text)
        self.assertIn("in the time of 1 of 2 it needs less", text)
        self.assertIn("gpt, quicker, peak 0.750, time 1.010: Reprise takes 1.020 within that peak", text)
        self.assertNotIn("beaten", text)

    def test_calls_clear_only_what_is_apart(self):
        model = model_with(rival("far away", 450, [1.19, 1.2, 1.21]), rival("spread out", 450, [1.0, 1.2, 1.4]))
        self.assertIn("At the peak of 2 of 2 rivals with right results Reprise is faster** (at 1 of them clearly)",
                      page.verdict(results_of(model)))  # fmt: skip

    def test_counts_rivals_with_wrong_results_apart(self):
        model = model_with(rival("beaten", 450, [1.2]), rival("wrong", 450, [1.05], gradient_error=0.9))
        text = page.verdict(results_of(model))
        self.assertIn("At the peak of 1 of 1 rivals with right results", text)
        self.assertIn("wrong results, without an error or a warning: 1**, 1 in their gradients, 0 in", text)

    def test_says_when_reprise_passed_a_budget(self):
        model = model_with()
        self.assertNotIn("broke", page.verdict(results_of(model)))
        model["reprise"][0]["peak"] += 1
        self.assertIn("Of 3 budgets Reprise broke 1", page.verdict(results_of(model)))


class Page(unittest.TestCase):
    def test_names_the_models_that_a_run_did_not_come_to(self):
        self.assertNotIn("broken off", page.page_of(results_of(model_with()), "p.svg"))
        text = page.page_of(results_of(model_with(), asked=("gpt", "resnet", "lstm")), "p.svg")
        self.assertIn("The run was broken off. Not measured:** resnet, lstm.", text)

    def test_says_what_could_not_be_measured_and_kept(self):
        model = model_with(rival("failed", 0, [], failure="no torch"))
        model["reprise"].append(side(0, [], budget=100))
        text = page.page_of(results_of(model), "p.svg")
        self.assertIn("| | failed | not measured: no torch | | | |", text)
        self.assertIn("| 0.100 | | cannot be kept | |", text)

    def test_of_the_documentation_follows_from_its_measurements(self):
        measurements = ROOT / "docs/benchmarks.json"
        others = (page.beside(measurements, name) for name in ("zoo.json", "live.json"))
        text = page.page_of(json.loads(measurements.read_text()), "benchmarks.svg", *others)
        self.assertEqual(text.splitlines(), (ROOT / "docs/benchmarks.md").read_text().splitlines())
        self.assertTrue((ROOT / "docs/benchmarks.svg").is_file())


def architecture(checkpoint=1.4, at_its_peak=1.1, **broken):
    """A plain peak of 1000 bytes, gradient checkpointing at 300, and Reprise at that peak and at three budgets."""

    def side(label, budget, *ratios, **more):
        return {"label": label, "budget": budget, "peak": budget or 1000, "equal": True, "ratios": list(ratios), **more}

    rival = side("gradient checkpointing", None, *([checkpoint] if checkpoint else []))
    return {
        "title": "GPT-2", "date": "2026-01-31", "load": 0.0, "repetitions": 1,
        "plain": side("plain", None, 0.99, 1.01, seconds=[0.2]),
        "checkpoint": rival | {"peak": 300},
        "reprise": [side("checkpoint's peak", 300, at_its_peak), side("0.6x", 600, 1.02), side("0.4x", 400, 1.05),
                    side("smallest", 200, 1.5) | broken],
    }  # fmt: skip


def zoo_of(*models):
    return {"processor": "a processor", "cores": 2, "torch": "2.13.0", "transformers": "5.22.2", "python": "3.11",
            "architectures": {str(index): model for index, model in enumerate(models)}}  # fmt: skip


class Zoo(unittest.TestCase):
    def test_compares_the_overheads_at_the_same_peak(self):
        text = zoo_page.verdict(zoo_of(architecture(1.4, 1.1), architecture(1.5, 1.2), architecture(1.4, 1.12)))
        self.assertIn("has 30% of its overhead** (median of 3 architectures, 25% to 40%)", text)
        self.assertIn("measured at 12 budgets on 3 architectures. Every step was within its budget", text)

    def test_names_the_aim_where_it_is_missed(self):
        self.assertIn("the aim is 45%", zoo_page.verdict(zoo_of(architecture(1.4, 1.3))))

    def test_an_architecture_without_checkpointing_has_its_budgets_all_the_same(self):
        results = zoo_of(architecture(checkpoint=None))
        self.assertNotIn("overhead", zoo_page.verdict(results))
        self.assertIn("| it has none | 1.10 | | 1.02 | 1.05 | 0.200, 1.50 |", zoo_page.section_of(results))

    def test_says_when_a_promise_was_broken(self):
        for broken, words in ({"equal": False}, "**OTHER BITS**"), ({"peak": 201}, "**above the budget**"):
            results = zoo_of(architecture(**broken))
            self.assertFalse(zoo_page.is_kept(results))
            self.assertIn("It broke 1 of them", zoo_page.verdict(results))
            self.assertIn(words, zoo_page.section_of(results))

    def test_a_budget_that_cannot_be_kept_is_no_broken_promise(self):
        results = zoo_of(architecture(ratios=[]))
        self.assertTrue(zoo_page.is_kept(results))
        self.assertIn("| 1.05 | cannot be kept |", zoo_page.section_of(results))


def live_of(**rows):
    """Rows by the number of their run in its group."""
    results = {"date": "2026-01-31", "processor": "a processor", "cores": 2, "load": 0.0, "rows": {}}
    for name, row in rows.items():
        group, number = name.rsplit("_", 1)
        key = live_page.key_of(live_page.GROUPS[group][int(number)])
        results["rows"][key] = {"bit_equal": True, "budget_bytes": 50_000_000, "peak_bytes": 49_000_000, **row}
    return results


def changing(**more):
    return {"thread_ratio": 1.05, "process_ratio": 1.12, "wall_ratio": 1.07, "rss_growth_bytes": 60_000_000,
            "rss_anonymous_growth_bytes": 55_000_000, "followed": 40, "steps": 200, **more}  # fmt: skip


class Live(unittest.TestCase):
    def test_has_what_was_measured_and_nothing_else(self):
        text = live_page.section_of(live_of(changing_1=changing()))
        self.assertIn("| `--model lengths --budget 0.5x` | 50 MB | 1.050 | 1.120 | 1.070 | 1.20 (1.10) | 40 of 200 |", text)
        self.assertNotIn("tree-lstm", text)
        self.assertNotIn("With a disk", text)
        self.assertNotIn("Without a plan", text)

    def test_a_budget_that_needs_the_disk_has_no_time_without(self):
        row = {"ratio": 1.28, "wall_ratio": 1.27, "disk_put_bytes": 170_000_000}
        text = live_page.section_of(live_of(disk_1=row))
        self.assertIn("| 1.280 | cannot be kept | 1.270 |  | 170 MB |", text)

    def test_puts_the_online_policy_beside_the_plan(self):
        rows = {"ratio": 1.04, "plain_again_ratio": 1.0}, {"ratio": 1.08, "plain_again_ratio": 1.0}
        text = live_page.section_of(live_of(online_0=rows[0], online_1=rows[1]))
        self.assertIn("| `--model gpt --budget 0.5x` | 50 MB | 1.080 | 1.040 | 1.000 |", text)

    def test_says_when_a_promise_was_broken(self):
        for broken, words in ({"bit_equal": False}, "**OTHER BITS**"), ({"peak_bytes": 50_000_001}, "**above the budget**"):
            results = live_of(changing_0=changing(**broken))
            self.assertFalse(live_page.is_kept(results))
            self.assertIn(words, live_page.section_of(results))


def test_picture():
    """Draws that of the documentation again, with the Python that ./bench compare would take."""
    python = ROOT / ".venv/bin/python"
    command = [str(python) if python.exists() else sys.executable, str(SCRIPT), "--output"]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(command + [f"{folder}/page.md"], capture_output=True, text=True)
        if "No module named 'matplotlib'" in done.stderr:
            print("skipped: THE PICTURE OF docs/benchmarks.md IS NOT DRAWN, because there is no matplotlib")
            print("(./bench compare installs it into .venv)")
            return SKIPPED
        picture = pathlib.Path(folder, "page.svg").read_text() if done.returncode == 0 else ""
    titles = [model["title"] for model in json.loads((ROOT / "docs/benchmarks.json").read_text())["models"]]
    missing = [title for title in titles if title not in picture]
    if done.returncode != 0 or missing:
        print(done.stderr, f"exit code {done.returncode}, panels that are missing: {missing}")
        return 1
    return 0


if __name__ == "__main__":
    if "--picture" in sys.argv:
        sys.exit(test_picture())
    unittest.main()
