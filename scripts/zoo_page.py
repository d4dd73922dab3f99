"""Makes the part of docs/benchmarks.md about HuggingFace architectures from the measurements of `./bench zoo`."""
import statistics

AIM = 0.45  # of the overhead of gradient checkpointing, at its own peak

METHOD = """
The models are built from their configurations with random weights, about 192 wide and 6 layers deep
(`benchmarks/zoo_models.py`). A step is forward and backward on one thread, always from the same weights, buffers, batch and
random numbers; a time is CPU time of that thread, as a ratio to the mean of the plain steps right before and right after;
the table has medians of the repetitions. Peaks are bytes of torch's CPU allocator above what is live before the step, as a share of
plain's. *Equal* means that the loss, all gradients, all buffers and the state of the generator have the bits of a plain
step. `gradient_checkpointing_enable()` is used as it is. *Smallest* is the smallest budget for which the planner has a plan,
or the first of 1, 2, 4 and 8 % of plain's peak above it that was kept. Planning is not in the times.
"""


def kept_its_promises(side):
    return side["equal"] and side["peak"] <= side["budget"]


def measured(results):
    return [side for model in results["architectures"].values() for side in model["reprise"] if side["ratios"]]


def is_kept(results):
    return all(kept_its_promises(side) for side in measured(results))


def labelled(model, label):
    return next((side for side in model["reprise"] if side["label"] == label), None)


def overhead(side):
    return statistics.median(side["ratios"]) - 1


def share_of_overhead(model):
    """Returns Reprise's overhead over that of gradient checkpointing, at its peak; None if one was not measured."""
    checkpoint, side = model["checkpoint"], labelled(model, "checkpoint's peak")
    if not checkpoint["ratios"] or not side or not side["ratios"] or overhead(checkpoint) <= 0:
        return None
    return overhead(side) / overhead(checkpoint)


def verdict(results):
    points = measured(results)
    broken = [side for side in points if not kept_its_promises(side)]
    text = f"Reprise was measured at {len(points)} budgets on {len(results['architectures'])} architectures. "
    if broken:
        text += f"**It broke {len(broken)} of them: a peak above the budget, or other bits than a plain step's.** "
    else:
        text += "Every step was within its budget, and every bit was that of a plain step. "
    shares = [share for model in results["architectures"].values() if (share := share_of_overhead(model)) is not None]
    if shares:
        reached = "" if statistics.median(shares) <= AIM else f"; the aim is {AIM:.0%}"
        text += (
            f"**At the peak of gradient checkpointing Reprise has {statistics.median(shares):.0%} of its overhead** "
            f"(median of {len(shares)} architectures, {min(shares):.0%} to {max(shares):.0%}{reached})."
        )
    return text + "\n"


def cell(model, side):
    """Returns the time at one budget, with everything that is not as it should be."""
    if side is None or not side["ratios"]:
        return "cannot be kept" if side else ""
    text = f"{statistics.median(side['ratios']):.2f}"
    if side["label"] == "smallest":
        text = f"{side['budget'] / model['plain']['peak']:.3f}, {text}"
    if not side["equal"]:
        text += " **OTHER BITS**"
    if side["peak"] > side["budget"]:
        text += " **above the budget**"
    return text


def row(model):
    plain, checkpoint, share = model["plain"], model["checkpoint"], share_of_overhead(model)
    rival = "it has none"
    if checkpoint["ratios"]:
        rival = f"{checkpoint['peak'] / plain['peak']:.3f}, {statistics.median(checkpoint['ratios']):.2f}"
        rival += "" if checkpoint["equal"] else " **OTHER BITS**"
    cells = [
        model["title"],
        f"{plain['peak'] / 1e6:.0f} MB, {statistics.median(plain['seconds']):.2f} s",
        f"{min(plain['ratios']):.2f}..{max(plain['ratios']):.2f}" if plain["ratios"] else "",
        rival,
        cell(model, labelled(model, "checkpoint's peak")),
        "" if share is None else f"{share:.0%}",
        *(cell(model, labelled(model, label)) for label in ("0.6x", "0.4x", "smallest")),
    ]
    return "|" + "|".join(f" {text} " if text else " " for text in cells) + "|\n"


def about(results):
    models = results["architectures"].values()
    dates = sorted({model["date"] for model in models})
    loads = [model["load"] for model in models]
    repetitions = sorted({model["repetitions"] for model in models})
    return (
        f"Written by `./bench zoo` on {' to '.join(dict.fromkeys((dates[0], dates[-1])))}, "
        f"{' to '.join(str(count) for count in dict.fromkeys((repetitions[0], repetitions[-1])))} repetitions, on a machine with "
        f"{results['cores']} cores ({results['processor']}), load average {min(loads):.1f} to {max(loads):.1f}. "
        f"transformers {results['transformers']}, torch {results['torch']}, Python {results['python']}.\n"
    )


def section_of(results):
    head = ("architecture", "plain: peak, CPU time", "plain against itself", "gradient checkpointing: peak, time", "Reprise at that peak: time",
            "of its overhead", "0.6x: time", "0.4x: time", "smallest: budget, time")  # fmt: skip
    table = "| " + " | ".join(head) + " |\n" + "|---" * len(head) + "|\n"
    table += "".join(row(model) for model in results["architectures"].values())
    return f"\n## Architectures of HuggingFace transformers\n\n{about(results)}\n{verdict(results)}{METHOD}\n{table}"
