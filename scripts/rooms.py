#!/usr/bin/env python3
"""Checks the walls of docs/architecture.md, which has a table of rooms and one of the folders of torch/.

    rooms.py             Checks that files include only what the tables allow, that public headers include only public
                         headers, that the way of one activation names functions that are in the files it says, that
                         every file has a name of its own, and that docs/rooms.svg is the map of this code. Prints a line
                         for each rule that is broken; exit code 1 if there is one.
    rooms.py --map       Draws docs/rooms.svg.
    rooms.py --figures   Prints how large, and how entangled, the code is.
"""
import argparse
import collections
import pathlib
import re
import sys
from typing import Iterator, NamedTuple

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/architecture.md"
MAP = ROOT / "docs/rooms.svg"
INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)


class Table(NamedTuple):
    """The rooms, from the one that may include nothing to the one that may include all others."""

    rooms: dict[str, list[str]]  # what each may include, as prefixes of paths: 'trace/', 'trace/error.h'
    folders: list[str]           # of torch/: each may include those before it


def read_table() -> Table:
    text = PAGE.read_text()
    rooms: dict[str, list[str]] = {}
    for room, allowed in re.findall(r"^\| `(\w+)/` \| .* \| ([^|]+) \|$", text, re.MULTILINE):
        names = list(rooms) if allowed == "all above" else re.findall(r"[\w/]+\.h|\w+", allowed)
        rooms[room] = [name if name.endswith(".h") else f"{name}/" for name in names if name != "nothing"]
    return Table(rooms, re.findall(r"^\| `torch/(\w+)/` \|", text, re.MULTILINE))


def sources(*folders: pathlib.Path) -> list[pathlib.Path]:
    return sorted(file for folder in folders for file in folder.rglob("*.*") if file.suffix in {".h", ".cpp"})


def includes(file: pathlib.Path) -> list[str]:
    return INCLUDE.findall(file.read_text())


# ---- rules -----------------------------------------------------------------------------------------------------------


def broken_walls(table: Table) -> Iterator[str]:
    """Yields includes of a room, or of a folder of torch/, that it may not include."""
    for room, allowed in table.rooms.items():
        prefixes = (*allowed, f"{room}/")
        for file in sources(ROOT / "include/reprise" / room, ROOT / "src" / room, ROOT / room):
            where, public = file.relative_to(ROOT), ROOT / "include" in file.parents
            for name in includes(file):
                inside = name.removeprefix("reprise/")
                if inside.split("/")[0] not in table.rooms:
                    continue
                if not inside.startswith(prefixes):
                    yield f"{where} includes {name}: {room}/ may include only {', '.join(prefixes)}"
                if public and inside == name:
                    yield f"{where} includes {name}: a public header may include only public headers"


def broken_walls_of_torch(folders: list[str]) -> Iterator[str]:
    for file in sources(ROOT / "src/torch"):
        where = file.relative_to(ROOT)
        own = file.parent.name
        if own not in folders:
            yield f"{where} is in none of the folders of torch/ that the table has"
            continue
        for name in includes(file):
            of_torch = re.fullmatch(r"torch/(\w+)/\w+\.\w+", name)
            if of_torch and folders.index(of_torch[1]) > folders.index(own):
                yield f"{where} includes {name}: torch/{own}/ stands before torch/{of_torch[1]}/ in the table"


def lost_on_the_way() -> Iterator[str]:
    """Yields functions that the way of one activation names, and that are not in the file named before them."""
    text = PAGE.read_text()
    way = text[text.index("### The way of one activation"):].split("\n\n")[2]
    for stop in re.split(r"\n(?=\d)", way):
        source = ""
        for name in re.findall(r"`([^`]+)`", stop):
            files = list((ROOT / "src/torch").glob(f"*/{name}.*")) if name.isidentifier() else []
            if files:
                source = "".join(file.read_text() for file in files)
            elif not re.search(r"\b" + name.split("::")[-1].strip("~()") + r"\b", source):
                yield f"docs/architecture.md, the way of one activation: no {name} where it says: {stop}"


def doubled_names() -> Iterator[str]:
    places = collections.defaultdict(list)
    for folder in ("include", "src", "tests", "tools", "benchmarks", "examples", "python", "scripts"):
        for file in sorted((ROOT / folder).rglob("*.*")):
            if file.suffix in {".h", ".cpp", ".py"} and not file.name.startswith("__"):
                places[file.name].append(str(file.relative_to(ROOT)))
    for name, files in places.items():
        if len(files) > 1:
            yield f"{name} is the name of {len(files)} files: {', '.join(files)}"


def outdated_map(table: Table) -> Iterator[str]:
    if not MAP.exists() or MAP.read_text() != draw(table):
        yield "docs/rooms.svg is not the map of this code: scripts/rooms.py --map draws it"


# ---- the map ---------------------------------------------------------------------------------------------------------


def place_of(path: str) -> str:
    """Returns the room of a file, or its folder where the room is torch/: 'plan', 'torch/memory'."""
    parts = path.split("/")
    return "/".join(parts[:2]) if parts[0] == "torch" and len(parts) > 2 else parts[0]


def map_of_includes(table: Table) -> tuple[dict[str, int], collections.Counter]:
    """Returns lines of code by place, and how many files of a place include something of another."""
    places = [room for room in table.rooms if room not in ("torch", "python", "tools")]
    places += [f"torch/{folder}" for folder in table.folders] + ["tools", "python"]
    lines, edges = dict.fromkeys(places, 0), collections.Counter()
    for place in places:
        public = ROOT / "include/reprise" / ("torch" if place == "torch/api" else place)
        for file in sources(ROOT / "src" / place, ROOT / place, public):
            text = file.read_text()
            lines[place] += text.count("\n")
            others = {place_of(name.removeprefix("reprise/")) for name in INCLUDE.findall(text)} - {place}
            # A public header of torch/ is a part of torch/api/, but every folder may include it.
            edges.update((place, other) for other in others if other in lines)
    return lines, edges


def draw(table: Table) -> str:
    """Returns the map as SVG: a row for each place, and to its right arcs from who includes to who is included."""
    lines, edges = map_of_includes(table)
    places, height, left = list(lines), 26, 330
    middle = {place: 30 + height * row for row, place in enumerate(places)}
    text = []
    for place, y in middle.items():
        width = lines[place] / 60
        text.append(f'<rect x="{left - 190}" y="{y - 7}" width="{width:.0f}" height="14" rx="2" fill="#9db8d2"/>')
        text.append(f'<text x="{left - 200}" y="{y + 4}" text-anchor="end">{place}/</text>')
        text.append(f'<text x="{left - 186 + width:.0f}" y="{y + 4}" class="size">{lines[place] / 1000:.1f}k</text>')
    for (user, used), count in sorted(edges.items()):
        y, to = middle[user], middle[used]
        bend = left + 40 + abs(y - to) * 0.55
        strong = 1 if count == 1 else 2 if count < 10 else 3.5
        text.append(f'<path d="M{left} {y} C{bend:.0f} {y} {bend:.0f} {to} {left} {to}" stroke-width="{strong}">'
                    f"<title>{user}/ includes {used}/</title></path>")
    tall, wide = 30 + height * len(places), left + 330
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {tall}" width="{wide}" height="{tall}">',
        "<title>The rooms: lines of code, and arcs from who includes to who is included, which is above</title>",
        "<style>text{font:13px sans-serif;fill:#222}.size{fill:#667;font-size:11px}path{fill:none;stroke:#c0713a;opacity:.45}</style>",
        f'<rect width="{wide}" height="{tall}" fill="#fff"/>', *text, "</svg>", ""])


# ---- figures ---------------------------------------------------------------------------------------------------------


def units() -> dict[str, set[str]]:
    """Returns what each unit of src/torch (a header and its sources) includes of the others."""
    graph = collections.defaultdict(set)
    for file in sources(ROOT / "src/torch"):
        own = str(file.relative_to(ROOT / "src").with_suffix(""))
        named = {name.rpartition(".")[0] for name in includes(file) if name.startswith("torch/")}
        graph[own] |= named - {own}
    return {unit: {other for other in others if other in graph} for unit, others in graph.items()}


def cycles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Returns sets of units that reach each other."""
    def reach(start: str) -> set[str]:
        seen, waiting = set(), [start]
        while waiting:
            for other in graph[waiting.pop()] - seen:
                seen.add(other)
                waiting.append(other)
        return seen
    reached = {unit: reach(unit) for unit in graph}
    found = {tuple(sorted(other for other in reached[unit] if unit in reached[other])) for unit in graph if unit in reached[unit]}
    return [list(cycle) for cycle in sorted(found)]


FUNCTION = re.compile(r"^( *)(?!.*\b(?:namespace|class|struct|enum|union)\b)(?!.*=)\S.*\)[^;()]*\{$")


def functions(file: pathlib.Path) -> Iterator[tuple[int, str]]:
    """Yields (lines, first line) of the functions of a file, by the indentation that clang-format gives them."""
    lines = file.read_text().splitlines()
    at = 0
    while at < len(lines):
        match = FUNCTION.match(lines[at])
        is_statement = re.match(r" *(?:\} )?(?:if|for|while|switch|else|do|try|catch|return|case)\b", lines[at])
        if not match or is_statement or len(match[1]) > 4:
            at += 1
            continue
        # The body of a constructor with initializers is indented as its name is, not as they are.
        indent = match[1][4:] if lines[at].lstrip().startswith(":") else match[1]
        end = next((k for k in range(at + 1, len(lines)) if lines[k].startswith(f"{indent}}}")), at)
        yield end - at + 1, lines[at].strip()
        at = end + 1


CLASS = re.compile(r"^( *)(?:class|struct) (?:REPRISE_EXPORT )?(\w+)[^;]*\{$")


def public_functions(file: pathlib.Path) -> Iterator[tuple[int, str]]:
    """Yields (public functions, name) of the classes that begin in a file; constructors and operators do not count."""
    lines = file.read_text().splitlines()
    for at, line in enumerate(lines):
        match = CLASS.match(line)
        if not match:
            continue
        indent, name, public, names = match[1], match[2], line.lstrip().startswith("struct"), set()
        for inside in lines[at + 1:]:
            if inside.startswith(f"{indent}}}"):
                break
            if re.match(rf"{indent} (public|private|protected):", inside):
                public = "public" in inside
            declared = re.match(rf"{indent}  (?! ).*?\b([a-z]\w*)\(", inside)
            if public and declared and not re.match(rf"{indent}  (?://|using|friend|static_assert|return)", inside):
                names.add(declared[1])
        yield len(names), name


def print_figures(table: Table) -> None:
    graph = units()
    files = sources(ROOT / "src/torch")
    print(f"src/torch: {len(files)} files, {len(graph)} units, {sum(len(f.read_text().splitlines()) for f in files)} lines")
    for folder in table.folders:
        inside = sources(ROOT / "src/torch" / folder)
        print(f"  {folder:10} {len(inside):3} files  {sum(len(f.read_text().splitlines()) for f in inside):5} lines")
    found = cycles(graph)
    print(f"cycles between units: {len(found)}" + "".join(f"\n  {' '.join(cycle)}" for cycle in found))
    used_by = collections.Counter(other for others in graph.values() for other in others)
    products = sorted(((used_by[unit] * len(others), unit) for unit, others in graph.items()), reverse=True)
    print("fan-in times fan-out, above 100:" + "".join(
        f"\n  {product:4}  {unit} {used_by[unit]} x {len(graph[unit])}" for product, unit in products if product > 100))
    both = [*files, *sources(ROOT / "src/chain")]
    print("functions above 45 lines, in src/torch and src/chain:" + "".join(
        f"\n  {length:4}  {file.relative_to(ROOT)}: {name}" for file in both for length, name in functions(file) if length > 45))
    print("classes with more than 25 public functions, there:" + "".join(
        f"\n  {count:4}  {file.relative_to(ROOT)}: {name}" for file in both for count, name in public_functions(file) if count > 25))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--map", action="store_true")
    parser.add_argument("--figures", action="store_true")
    options = parser.parse_args()
    table = read_table()
    if len(table.rooms) < 8 or len(table.folders) < 10:
        sys.exit("docs/architecture.md has no tables of rooms and of folders of torch/ that could be read")
    if options.map:
        MAP.write_text(draw(table))
    if options.figures:
        print_figures(table)
    if options.map or options.figures:
        return
    broken = [*broken_walls(table), *broken_walls_of_torch(table.folders), *lost_on_the_way(), *doubled_names(), *outdated_map(table)]
    print("\n".join(broken) or f"{len(table.rooms)} rooms and {len(table.folders)} folders of torch/ include what they may, the way of "
          "one activation leads where it says, every file has a name of its own, and the map is right")
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
