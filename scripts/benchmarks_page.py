#!/usr/bin/env python3
"""Makes the page of the benchmarks and its picture from the measurements of `./bench compare`.

    benchmarks_page.py [JSON] [--output PAGE]

JSON is docs/benchmarks.json if not given, and the page has the same name with .md; its picture, for which matplotlib is
needed, gets the name of the page with .svg. If there is a zoo.json beside JSON, of `./bench zoo`, the page has that as well, and likewise a live.json, of `scripts/live_page.py --measure`.
Prints the claims of the page and how they hold.

Exit codes: 0 done; 1 Reprise broke a promise (bits differ, or a peak passed its budget); 2 there are no measurements,
or no picture because there is no matplotlib.

`ratios`, `again` and `seconds` of the measurements are lists of numbers. Where only the least, the median and the most
of them are known, or the median alone, they are an object with these names instead, and then `clearly_faster` has the
count that needs quartiles.
"""
import argparse
import dataclasses
import json
import pathlib
import sys

import live_page
import zoo_page

ROOT = pathlib.Path(__file__).resolve().parent.parent
LARGEST_ROUNDING = 1e-4  # of a gradient, relative

METHOD = """
## How it is measured

- The measured work is one training step, forward and backward, on one fixed batch, on one thread.
  Times are CPU time of the process. The models are those of `./bench live`; the Python models are
  the same, word for word.
- Every two steps of any side stand between two plain steps of the same engine: C++ sides between
  plain LibTorch steps, Python sides between plain PyTorch steps. A time is the ratio to the mean of
  these two, so that interpreter overhead cancels out. Tables show the median of the repetitions,
  and the smallest and the largest in brackets. All sides take turns in one run, and their order is
  reversed every other repetition.
- A peak is counted above the level at the start of the step, when parameters exist and gradients do
  not, and is given as a share of the plain peak of the same engine. In C++ it counts the bytes of
  LibTorch's CPU allocator; in Python it counts all bytes of the heap (by a library in front of
  `malloc`), which include the scratch memory of oneDNN and MKL.
- *Reprise within that peak* is a session whose budget is the rival's share of plain's peak less
  0.001, or up to 0.01 less than that where one session serves several rivals. *Reprise in that
  time* is the lowest of its measured peaks that can be reached from there without a slower one than
  the rival in between.
- Freed memory stays with the process on both sides, and numbers too small for a normal float count
  as zero.
- Sessions had 5 seconds for a plan (1 with `--quick`). The times include neither planning nor the
  compilation of `torch.compile`.
- *bit-equal* means that all gradients and buffers equal those of a plain step of the same engine
  from the same seed.
- The line above each table compares plain steps with plain steps, as if they were a rival's, to
  show the noise. *Clearly* faster means that the quartiles of the two times do not overlap.
"""


# ---- what the measurements say about each rival ----------------------------------------------------------------------


@dataclasses.dataclass
class Spread:
    least: float
    low: float  # a quartile, like `high`
    median: float
    high: float
    most: float

    def __str__(self):
        return f"{self.median:.2f} ({self.least:.2f}..{self.most:.2f})"


def spread_of(values):
    if isinstance(values, dict):  # the quartiles are unknown, but not outside of the ends
        median = values["median"]
        least, most = values.get("least", median), values.get("most", median)
        return Spread(least, least, median, most, most)
    ordered = sorted(values)

    def at(part):
        place = part * (len(ordered) - 1)
        below = int(place)
        above = min(below + 1, len(ordered) - 1)
        return ordered[below] + (place - below) * (ordered[above] - ordered[below])

    return Spread(ordered[0], at(0.25), at(0.5), at(0.75), ordered[-1])


def time_of(side):
    return spread_of(side["ratios"]).median


def are_apart(one, other):
    """Whether the middle halves of the two times have nothing in common."""
    a, b = spread_of(one["ratios"]), spread_of(other["ratios"])
    return a.high < b.low or b.high < a.low


def has_wrong_gradients(side):
    return side["gradient_error"] is not None and side["gradient_error"] > LARGEST_ROUNDING


def is_wrong(side):
    return has_wrong_gradients(side) or not side["buffers_equal"]


def kept_its_promises(point):
    return point["peak"] <= point["budget"] and point["gradient_error"] is None and point["buffers_equal"]


def measured(sides):
    return [side for side in sides if side["ratios"]]


def share_of(side, model):
    """The peak of a rival or of Reprise as a share of the plain peak of the same engine."""
    return side["peak"] / model["python" if side.get("engine") == "Python" else "cpp"]["peak"]


@dataclasses.dataclass
class Finding:
    """One rival against Reprise."""

    model: str
    rival: dict
    share: float
    time: float
    at_peak: dict | None = None  # Reprise with the largest peak within the rival's
    # With the smallest peak down to which, from `at_peak` on, all are no slower than the rival.
    at_time: dict | None = None
    is_faster: bool = False  # at the rival's peak
    is_clear: bool = False
    needs_less: bool = False  # in the rival's time


def findings_of(model):
    """Of the rivals that were measured, largest peak first."""
    points = sorted(measured(model["reprise"]), key=lambda point: -point["peak"])
    findings = []
    for rival in measured(model["rivals"]):
        finding = Finding(model["model"], rival, share_of(rival, model), time_of(rival))
        for point in points:
            if share_of(point, model) > finding.share:
                continue
            finding.at_peak = finding.at_peak or point
            if time_of(point) > finding.time:
                break
            finding.at_time = point
        if finding.at_peak:
            finding.is_faster = time_of(finding.at_peak) < finding.time
            finding.is_clear = are_apart(finding.at_peak, rival)
        finding.needs_less = finding.at_time is not None and share_of(finding.at_time, model) < finding.share
        findings.append(finding)
    return sorted(findings, key=lambda finding: -finding.share)


def points_of(results):
    return [point for model in results["models"] for point in measured(model["reprise"])]


# ---- the page --------------------------------------------------------------------------------------------------------


def exception(finding):
    """Where a claim fails, and how."""
    reasons = []
    if not finding.is_faster and not finding.at_peak:
        reasons.append("Reprise kept no budget within that peak")
    elif not finding.is_faster:
        overlap = "" if finding.is_clear else " (the quartiles overlap)"
        reasons.append(f"Reprise takes {time_of(finding.at_peak):.3f} within that peak{overlap}")
    if not finding.needs_less:
        reasons.append("it does not need less in that time")
    return (
        f"\n- {finding.model}, {finding.rival['label']}, peak {finding.share:.3f}, time {finding.time:.3f}: "
        + ", and ".join(reasons)
        + "."
    )


def exceptions(findings):
    lines = [exception(f) for f in findings if not (f.is_faster and f.needs_less)]
    return " The exceptions:\n" + "".join(lines) if lines else ""


def verdict(results):
    """The claims, counted: where they hold and, one by one, where they do not."""
    findings = [finding for model in results["models"] for finding in findings_of(model)]
    right = [f for f in findings if not is_wrong(f.rival)]
    wrong = [f for f in findings if is_wrong(f.rival)]

    def faster(some):
        return f"{sum(f.is_faster for f in some)} of {len(some)}"

    def less(some):
        return f"{sum(f.needs_less for f in some)} of {len(some)}"

    text = ""
    if right:
        clearly = results.get("clearly_faster", sum(f.is_faster and f.is_clear for f in right))
        text += (
            f"**At the peak of {faster(right)} rivals with right results Reprise is faster** (at {clearly} of them "
            f"clearly), **and in the time of {less(right)} it needs less.**{exceptions(right)}\n\n"
        )
    if wrong:
        gradients = sum(has_wrong_gradients(f.rival) for f in wrong)
        text += (
            f"**Rivals with wrong results, without an error or a warning: {len(wrong)}**, {gradients} in their "
            f"gradients, {len(wrong) - gradients} in BatchNorm's statistics. Reprise is faster at the peak of "
            f"{faster(wrong)} and needs less in the time of {less(wrong)}.{exceptions(wrong)}\n\n"
        )
    points = points_of(results)
    broken = sum(not kept_its_promises(point) for point in points)
    if broken:
        return text + (
            f"**Of {len(points)} budgets Reprise broke {broken}: a peak above the budget, or other bits than a plain "
            "step's. See the tables.**\n"
        )
    return text + (
        f"Reprise was measured at {len(points)} budgets. Every step was within its budget, and every bit of gradients "
        "and buffers was that of a plain step.\n"
    )


def exactness(side):
    error = side["gradient_error"]
    parts = []
    if error is not None:
        number = f"{error:.1e}" if error < 0.01 else f"{error:.1f}"
        wrong = f"**WRONG GRADIENTS** (relative error up to {number})"
        parts.append(wrong if has_wrong_gradients(side) else f"rounded otherwise ({number})")
    if not side["buffers_equal"]:
        parts.append("**BatchNorm state wrong**")
    return ", ".join(parts) or "bit-equal"


def row(*cells):
    return "|" + "|".join(f" {cell} " if cell else " " for cell in cells) + "|\n"


def rivals_table(model):
    text = row("peak, of plain's", "rival", "time, of plain's", "results", "Reprise within that peak",
               "Reprise in that time") + "|---" * 6 + "|\n"  # fmt: skip
    for finding in findings_of(model):
        at_peak, at_time = finding.at_peak, finding.at_time
        text += row(
            f"{finding.share:.3f}",
            finding.rival["label"],
            spread_of(finding.rival["ratios"]),
            exactness(finding.rival),
            spread_of(at_peak["ratios"]) if at_peak else "no budget was kept",
            f"peak {share_of(at_time, model):.3f}" if at_time else "none as fast",
        )
    for rival in model["rivals"]:
        if not rival["ratios"]:
            text += row("", rival["label"], f"not measured: {rival['failure']}", "", "", "")
    return text


def reprise_table(model):
    text = row("Reprise's budget, of plain's peak", "peak", "time, of plain's", "results") + "|---" * 4 + "|\n"
    for point in model["reprise"]:
        budget = f"{point['budget'] / model['cpp']['peak']:.3f}"
        if not point["ratios"]:
            text += row(budget, "", "cannot be kept", "")
            continue
        above = " **above the budget**" if point["peak"] > point["budget"] else ""
        text += row(budget, f"{share_of(point, model):.3f}{above}", spread_of(point["ratios"]), exactness(point))
    return text


def plain_line(who, plain):
    seconds = spread_of(plain["seconds"]).median
    peak, again = plain["peak"] / 1e6, spread_of(plain["again"])
    return f"{who}: {peak:.1f} MB, {seconds:.3f} s of CPU a step, against itself {again}"


def model_section(model):
    cpp, python = model["cpp"], model["python"]
    text = f"\n## {model['title']} (`{model['model']}`)\n\n{plain_line('Plain LibTorch', cpp)}."
    if python:
        slower = spread_of(python["seconds"]).median / spread_of(cpp["seconds"]).median
        text += f" {plain_line('Plain PyTorch', python)}; {slower:.2f} times LibTorch's time."
    return text + f"\n\n{rivals_table(model)}\n{reprise_table(model)}"


def number_of(count, what):
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def about_the_run(results):
    python = f"rivals in Python with {results['python_torch']}"
    if not results["python_torch"]:
        python = f"no Python with torch, so that PyTorch's own ways were not measured ({results['no_python']})"
    text = (
        f"Written by `./bench compare{results['options']}` on {results['date']}, "
        f"{number_of(results['repetitions'], 'repetition')}, on a machine with {number_of(results['cores'], 'core')} "
        f"({results['processor']}), load average {results['load']:.1f} at the start. LibTorch {results['libtorch']}; "
        f"{python}. Running it again writes this page and its picture anew.\n"
    )
    if results["quick"]:
        text += "\nA quick run, to see that it works: these numbers mean little.\n"
    missing = results["asked"][len(results["models"]) :]
    if missing:  # a page of half a run must not look like one of a whole one
        text += f"\n**The run was broken off. Not measured:** {', '.join(missing)}.\n"
    return text


def page_of(results, picture, zoo=None, live=None):
    return (
        f"# Against what people use\n\n{about_the_run(results)}\n"
        f"![Time against peak of Reprise and of its rivals, one panel for each model]({picture})\n\n"
        f"{verdict(results)}{METHOD}{''.join(model_section(model) for model in results['models'])}"
        f"{zoo_page.section_of(zoo) if zoo else ''}{live_page.section_of(live) if live else ''}"
    )


def beside(measurements, name):
    """What others measured, if they did."""
    path = measurements.with_name(name)
    return json.loads(path.read_text()) if path.exists() else None


def write_page(measurements, page):
    """Writes the page, without its picture, and returns what was measured."""
    results = json.loads(measurements.read_text())
    others = (beside(measurements, name) for name in ("zoo.json", "live.json"))
    page.write_text(page_of(results, page.with_suffix(".svg").name, *others))
    print(f"wrote {page}", file=sys.stderr)
    return results


# ---- the picture -----------------------------------------------------------------------------------------------------

INK, SOFT, GRID, WRONG = "#1f2328", "#59636e", "#e1e5ea", "#a40e26"
PLAIN = {"marker": "o", "markersize": 6, "color": SOFT}
REPRISE = {"marker": "o", "markersize": 5, "color": "#0072B2", "linewidth": 2.2}
CROSS = {"marker": "x", "markersize": 13, "markeredgewidth": 1.3, "color": WRONG, "linestyle": ""}


def of_rival(shape, size, colour):
    return {"marker": shape, "markersize": size, "color": colour, "markeredgecolor": "white", "linestyle": ""}


# Colours that people with any kind of colour vision can distinguish (Okabe and Ito); shapes say the same.
KINDS = {
    "re-running in C++": of_rival("s", 8, "#D55E00"),
    "PyTorch's checkpoint": of_rival("o", 9, "#009E73"),
    "PyTorch's selective checkpoint (SAC)": of_rival("D", 8, "#CC79A7"),
    "torch.compile with a memory budget": of_rival("^", 10, "#E69F00"),
}
STYLE = {
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "reprise",  # the same measurements, the same file
    "font.family": ["DejaVu Sans", "sans-serif"],
    "font.size": 10,
    "text.color": SOFT,
    "axes.labelcolor": SOFT,
    "axes.edgecolor": SOFT,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
}


def kind_of(rival):
    if rival["engine"] == "C++":
        return "re-running in C++"
    words = {"selective": "PyTorch's selective checkpoint (SAC)", "budget": "torch.compile with a memory budget"}
    return words.get(rival["way"].split()[0], "PyTorch's checkpoint")


class Labels:
    """Finds room for labels beside the marks of one panel: each goes where it covers least of what is there already."""

    DIRECTIONS = ((1, 0), (-1, 0), (0.8, 0.6), (-0.8, 0.6), (0.8, -0.6), (-0.8, -0.6), (0, 1), (0, -1))
    DISTANCES = (9, 17, 27, 39, 53, 69, 87)  # in points; from the second on with a line to the mark
    LINE = {"arrowstyle": "-", "color": "#b6bfc9", "linewidth": 0.8, "shrinkA": 1, "shrinkB": 5}

    def __init__(self, axes, marks, curve):
        self.axes = axes
        self.frame = axes.get_window_extent()
        self.taken = [square(*axes.transData.transform(mark), 10) for mark in marks]
        line = [axes.transData.transform(point) for point in curve]
        for (x, y), (to_x, to_y) in zip(line, line[1:]):
            parts = 1 + int(max(abs(to_x - x), abs(to_y - y)) / 6)
            self.taken += [square(x + (to_x - x) * i / parts, y + (to_y - y) * i / parts, 4) for i in range(parts + 1)]

    def place(self, x, y, text, **style):
        best, least = None, None
        for distance in self.DISTANCES:
            for across, up in self.DIRECTIONS:
                label = self.axes.annotate(
                    text,
                    (x, y),
                    xytext=(across * distance, up * distance),
                    textcoords="offset points",
                    horizontalalignment={0: "center"}.get(across, "left" if across > 0 else "right"),
                    verticalalignment={1: "bottom", -1: "top"}.get(up, "center"),
                    arrowprops=self.LINE if distance > self.DISTANCES[0] else None,
                    **style,
                )
                cost = self.covered(text_box(label)) + distance
                if best is None or cost < least:
                    best, label, least = label, best, cost
                if label:
                    label.remove()
        self.taken.append(text_box(best))

    def covered(self, box):
        """The area that is not free for it, in pixels; outside of the panel it counts ten times."""
        outside = box.width * box.height - common_area(box, self.frame)
        return 10 * outside + sum(common_area(box, other) for other in self.taken)


def square(x, y, radius):
    from matplotlib.transforms import Bbox

    return Bbox.from_extents(x - radius, y - radius, x + radius, y + radius)


def text_box(label):
    from matplotlib.text import Text

    label.update_positions(label.axes.figure.canvas.get_renderer())
    return Text.get_window_extent(label).padded(1)  # of the words, without the line to the mark


def common_area(one, other):
    width = min(one.x1, other.x1) - max(one.x0, other.x0)
    height = min(one.y1, other.y1) - max(one.y0, other.y0)
    return max(width, 0) * max(height, 0)


def draw_panel(axes, model):
    findings = findings_of(model)
    curve = [(share_of(point, model), time_of(point)) for point in measured(model["reprise"])]
    marks = [(finding.share, finding.time) for finding in findings]
    times = [1, 1.1] + [time for _, time in curve + marks]
    room = 0.1 * (max(times) - min(times))
    axes.set(xlim=(0, 1.06), ylim=(min(times) - room, max(times) + room))
    axes.set(xlabel="peak, as a share of plain's", ylabel="time, of plain's", xticks=[i / 10 for i in range(11)])
    axes.set_title(model["title"], loc="left", color=INK, fontsize=13, fontweight="bold")
    axes.grid(axis="y", color=GRID)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.plot(1, 1, **PLAIN)
    if curve:
        axes.plot(*zip(*curve), **REPRISE)
    for finding in findings:
        axes.plot(finding.share, finding.time, **KINDS[kind_of(finding.rival)])
        if is_wrong(finding.rival):
            axes.plot(finding.share, finding.time, **CROSS)
    labels = Labels(axes, marks + [(1, 1)], curve)
    labels.place(1, 1, "plain", color=SOFT)
    for finding in findings:
        colour = WRONG if is_wrong(finding.rival) else INK
        labels.place(finding.share, finding.time, finding.rival["mark"], color=colour)


def draw(results, path):
    """One panel for each model: peak to the right, time upwards. Rivals whose results are wrong are crossed out."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot
    from matplotlib.lines import Line2D

    width, head, below, above = 10, 1.1, 0.65, 0.4  # in inches; the last two around the axes of a panel
    heights = [4.2 if len(model["rivals"]) > 8 else 2.7 for model in results["models"]]
    height = head + sum(heights) + (below + above) * len(heights)
    with pyplot.rc_context(STYLE):
        figure = pyplot.figure(figsize=(width, height))
        figure.text(0.02, 1 - 0.35 / height, "Time of a training step against its peak; left and low is better",
                    color=INK, fontsize=14, fontweight="bold")  # fmt: skip
        entries = [Line2D([], [], label="Reprise", **REPRISE)]
        entries += [Line2D([], [], label=kind, **marker) for kind, marker in KINDS.items()]
        entries += [Line2D([], [], label="wrong results", **CROSS)]
        corner = (0.012, 1 - 0.42 / height)
        figure.legend(handles=entries, loc="upper left", bbox_to_anchor=corner, ncols=3, frameon=False)
        top = height - head
        for model, size in zip(results["models"], heights):
            top -= above + size
            draw_panel(figure.add_axes((0.075, top / height, 0.905, size / height)), model)
            top -= below
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
        pyplot.close(figure)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("json", nargs="?", type=pathlib.Path, default=ROOT / "docs/benchmarks.json")
    parser.add_argument("--output", type=pathlib.Path, help="the page; if not given, JSON's name with .md")
    arguments = parser.parse_args()
    page = arguments.output or arguments.json.with_suffix(".md")
    picture = page.with_suffix(".svg")
    try:
        results = write_page(arguments.json, page)
    except (OSError, ValueError, KeyError) as error:
        parser.error(f"{arguments.json} has no measurements of ./bench compare: {error!r}")
    print(verdict(results), end="")
    code = 0 if all(kept_its_promises(point) for point in points_of(results)) else 1
    try:
        draw(results, picture)
        print(f"wrote {picture}", file=sys.stderr)
    except ModuleNotFoundError as error:
        print(f"NO PICTURE: {error}. {picture} is not that of this page", file=sys.stderr)
        code = code or 2
    return code


if __name__ == "__main__":
    sys.exit(main())
