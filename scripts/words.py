#!/usr/bin/env python3
"""Finds words of the project's former private dialect in names, comments, docstrings and strings.

    words.py [FILE|FOLDER ...]   Checks these; by default the folders in CLEAN.
    words.py --all               Checks all of src, include, python and tools.

Prints a line for each word, FILE:LINE: WORD -> BETTER WORD; exit code 1 if there is one.
"""
import argparse
import io
import pathlib
import re
import sys
import tokenize
from typing import Iterator, NamedTuple

ROOT = pathlib.Path(__file__).resolve().parent.parent

# What a plain run, and the test of the scripts, checks.
CLEAN = [
    *(f"{tree}/{room}" for tree in ("include/reprise", "src", "tests") for room in ("trace", "simulate", "plan", "store", "report")),
    "tests/support", "scripts", "benchmarks",
]
EVERYTHING = ["src", "include", "python", "tools"]
EXEMPT = {
    "scripts/words.py", "tests/scripts/words_test.py",
    # Not cleaned yet: others are at work on them.
    "src/store/background_thread.cpp", "src/store/background_thread.h", "src/report/summary.cpp", "src/report/summary_json.cpp",
    "include/reprise/report/summary.h", "tests/report/summary_test.cpp",
}


class Word(NamedTuple):
    better: str
    allowed: str = ""          # a regular expression of contexts in which the word is plain English or another library's name
    only: tuple[str, ...] = ()  # the folders in which the word is banned; empty: everywhere


TORCH = ("include/reprise/torch", "src/torch", "tools", "python")
# Where a place could only be a device. In memory/ it may be an address.
DEVICES = ("include/reprise/torch", *(f"src/torch/{folder}" for folder in (
    "recipes", "offload", "plans", "values", "evict", "replay", "record", "session", "hooks", "api")))

# Whole identifiers, without the underscore of a member.
NAMES = {
    "Course": Word("RecipeCursor"), "course": Word("recipe_cursor"),
    "Period": Word("RecordedPass"), "Periods": Word("RecordedPassTracker"), "KnownPeriods": Word("RecordedPassCache"),
    "Standing": Word("Availability"), "outlasts": Word("must_keep_past_inputs"),
    "is_there": Word("has_contents", only=TORCH), "anywhere": Word("storage_even_if_evicted"),
    "asides": Word("library_scopes"),
    "far": Word("device"), "FarMeter": Word("DeviceMeter"), "far_memory": Word("device_headers"),
    "Place": Word("CountedDevice", only=TORCH), "Places": Word("CountedDevices", only=TORCH),
    "PlaceIndex": Word("DeviceOrdinal"),
    "SeeksPlace": Word("InfersDevice"), "place_finder": Word("device_inference"), "PlaceBudget": Word("DeviceBudget"),
    "place": Word("device", only=DEVICES), "places": Word("devices", only=DEVICES),
    "asks_for_nothing": Word("is_noop"), "at_ease": Word("unmonitored"),
    "error_door": Word("error_translation"), "ErrorsStayInside": Word("NoErrorTranslation"),
    "TierTerms": Word("TierCosts"), "TierWork": Word("TransferCost"), "TierLine": Word("LinearCost"),
    "LearntLine": Word("LinearCostEstimator"),
    "ScriptWriter": Word("ExecutablePlanWriter"), "ChainScript": Word("ChainPlan"), "PlanRun": Word("PlanCursor"),
    "Likeness": Word("StructuralHash"), "relative_of": Word("find_similar"),
    "Advice": Word("EvictionHints", only=TORCH), "Turn": Word("EvictionPriority", only=TORCH), "turn": Word("first_backward, priority", only=("src/plan", "src/torch")),
    "Death": Word("OnFree"), "is_taken": Word("is_adopted"),
    "stand_in_front": Word("install"), "in_charge": Word("is_installed"),
    "EngineInFront": Word("DelegatingEngine"), "AllocatorInFront": Word("DelegatingAllocator"),
    "settle": Word("drain_completed, or what it does"), "settled": Word("what it is"),
    "tell": Word("serialize, or what it does"), "told": Word("what it is"), "heard": Word("what it is"),
    "nobody_wrote": Word("differs_only_in_uninitialized"), "unwritten": Word("uninitialized"),
    "WaitingGradients": Word("OffloadedGradients"),
    "obstruct": Word("mark_not_replayable"), "obstacle": Word("why_not_replayable"), "distrust": Word("mark_inexact"),
    "SessionHost": Word("HostOffload"), "SessionDisk": Word("DiskOffload"),
    "forget": Word("evict, drop or clear"), "forgets": Word("can_evict"), "forgotten": Word("evicted or dropped"),
    "forget_everything": Word("evict_everything"), "forget_cheap": Word("evict_cheap"),
    "GiveUp": Word("Evict"), "give_up": Word("evict, or what it does"), "given_up": Word("evicted"),
    "let_go": Word("release"), "put_away": Word("offload"),
    "rebuild": Word("replay or recompute"), "rebuilt": Word("replayed or recomputed"),
    "nobody": Word("none"), "somebody": Word("what it is"), "dear": Word("expensive"), "dearer": Word("more expensive"),
}

# Regular expressions, in comments, docstrings and strings. A blank matches a line break as well.
PHRASES = {
    r"nobody|no one": Word("no thread, no caller, nothing"),
    r"somebody|someone|anybody|everybody": Word("a thread, another process, a user"),
    r"whoever": Word("the caller, a thread that"),
    r"told|heard": Word("called with, reported, known"),
    r"tells?": Word("reports, says, knows", allowed=r"tells? \w+( \w+)? apart"),
    r"dear|dearer|dearest": Word("expensive, costs more"),
    r"so many|so much": Word("the number, by its name", allowed=r"so much (?:as|for)\b"),
    r"lately": Word("in the last steps"),
    r"settled?|settles|settling": Word("what it does"),
    r"gives? up|gave up|given up|giving up": Word("evict, stop"),
    r"lets? go|letting go": Word("release, evict"),
    r"puts? away|putting away": Word("offload, evict"),
    r"forgets?|forgot|forgotten|forgetting": Word("evict, drop, clear"),
    r"rebuilds?|rebuilt|rebuilding": Word("recompute, replay", only=("include", "src", "python/reprise", "python/bindings")),
    r"to hand|in hand": Word("available, at hand; this", allowed=r"by hand|(?:to|in) hand(?:le|\w)"),
    r"at ease|in charge|in front of the engine": Word("unmonitored, installed"),
    r"This one\.": Word("Returns the ..."),
    r"as [\w' ]{1,30} has it": Word("see, by, in terms of"),
    r", too(?=[.,;:)]|$)": Word("also, as well"),
}


class Text(NamedTuple):
    """A piece of a source: a comment of one or more lines, a string, or the code of a line."""

    line: int
    text: str
    is_code: bool


CPP = re.compile(r"""//(?P<comment>[^\n]*) | /\*(?P<block>.*?)\*/ | R"(?P<mark>[^(\s]*)\((?P<raw>.*?)\)(?P=mark)"
                     | "(?P<string>(?:\\.|[^"\\\n])*)" | '(?:\\.|[^'\\\n])+' (?<!\w') """, re.VERBOSE | re.DOTALL)


def cpp_texts(source: str) -> Iterator[Text]:
    source = re.sub(r"(?<=[\da-fA-F])'(?=[\da-fA-F])", "_", source)  # 1'000'000
    block: Text | None = None  # comment lines so far that have nothing else on them
    done = 0
    for match in CPP.finditer(source):
        code = source[done:match.start()]
        line = source.count("\n", 0, match.start()) + 1
        if code.strip():
            yield Text(source.count("\n", 0, done) + 1, code, True)
        if block and (code.strip() or match["comment"] is None or line != block.line + block.text.count("\n") + 1):
            yield block
            block = None
        done = match.end()
        if match["comment"] is None:
            text = match["block"] or match["raw"] or match["string"]
            if text:
                yield Text(line, text, False)
        elif source[source.rfind("\n", 0, match.start()) + 1:match.start()].strip():
            yield Text(line, match["comment"], False)
        else:
            block = Text(block.line, f"{block.text}\n{match['comment']}", False) if block else Text(line, match["comment"], False)
    if block:
        yield block
    if source[done:].strip():
        yield Text(source.count("\n", 0, done) + 1, source[done:], True)


def python_texts(source: str) -> Iterator[Text]:
    strings = {tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.NAME:
            yield Text(token.start[0], token.string, True)
        elif token.type == tokenize.COMMENT or token.type in strings:
            yield Text(token.start[0], token.string.strip("#\"' "), False)


READERS = {".h": cpp_texts, ".cpp": cpp_texts, ".py": python_texts, ".pyi": python_texts}
NAME = re.compile(r"(?<![\w#])[A-Za-z]\w*")


def compiled(phrase: str) -> re.Pattern[str]:
    start = r"(?<!\w)" if phrase[0].isalpha() else ""
    end = r"(?!\w)" if phrase[-1].isalpha() else ""
    return re.compile(start + "(?:" + phrase.replace(" ", r"\s+") + ")" + end, re.IGNORECASE)


COMPILED = {compiled(phrase): word for phrase, word in PHRASES.items()}


def is_banned(word: Word, path: str, text: str, start: int, end: int) -> bool:
    if word.only and not any(path.startswith(f"{folder}/") for folder in word.only):
        return False
    return not word.allowed or not any(m.start() <= start and end <= m.end() for m in re.finditer(word.allowed, text))


def found(path: str, source: str) -> Iterator[str]:
    """Yields FILE:LINE: WORD -> BETTER WORD, in order of the lines."""
    lines: list[tuple[int, str]] = []
    for line, text, is_code in READERS[pathlib.PurePath(path).suffix](source):
        if is_code:
            hits = [(match, NAMES[name]) for match in NAME.finditer(text) if (name := match[0].rstrip("_")) in NAMES]
        else:
            hits = [(match, word) for phrase, word in COMPILED.items() for match in phrase.finditer(text)]
        for match, word in hits:
            if is_banned(word, path, text, match.start(), match.end()):
                at = line + text.count("\n", 0, match.start())
                lines.append((at, f"{path}:{at}: {' '.join(match[0].split())} -> {word.better}"))
    return (text for _, text in sorted(lines))


def files(names: list[str], root: pathlib.Path) -> Iterator[pathlib.Path]:
    for name in names:
        path = root / name
        yield from [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.suffix in READERS)


def check(names: list[str], root: pathlib.Path = ROOT) -> list[str]:
    paths = {file: file.resolve().relative_to(root.resolve()).as_posix() for file in files(names, root)}
    return [line for file, path in paths.items() if path not in EXEMPT for line in found(path, file.read_text())]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="FILE|FOLDER")
    parser.add_argument("--all", action="store_true")
    arguments = parser.parse_args()
    lines = check(EVERYTHING if arguments.all else arguments.names or CLEAN)
    print(*lines, sep="\n", end="\n" if lines else "")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
