#!/usr/bin/env python3
"""Checks includes against the tables in docs/architecture.md: every room includes only what the table of rooms allows
it, every file of src/torch only files that stand before it in the table of layers, and public headers only public
headers. The way of one activation, which names functions: they are in the files it says. And the names of files: one
name means one file, so that a name is enough to find it. Prints one line for each that breaks a rule; exit code 1 if
there is one."""
import pathlib
import re
import sys

root = pathlib.Path(__file__).resolve().parent.parent
row = re.compile(r"^\| `(\w+)/` \| .* \| ([^|]+) \|$")
include = re.compile(r'^#include "([^"]+)"', re.MULTILINE)


def read_table():
    """What each room may include, as prefixes of paths: 'trace/', 'trace/error.h'."""
    rooms = {}
    for line in (root / "docs/architecture.md").read_text().splitlines():
        match = row.match(line)
        if not match:
            continue
        room, allowed = match.groups()
        names = list(rooms) if allowed == "all above" else re.findall(r"[\w/]+\.h|\w+", allowed)
        rooms[room] = [name if name.endswith(".h") else name + "/" for name in names if name != "nothing"]
    return rooms


def broken_rules(rooms):
    for room, allowed in rooms.items():
        prefixes = tuple(allowed + [room + "/"])
        folders = [root / "include/reprise" / room, root / "src" / room, root / room]
        for file in sorted(path for folder in folders for path in folder.rglob("*.*")):
            if file.suffix not in {".h", ".cpp"}:
                continue
            public = root / "include" in file.parents
            for name in include.findall(file.read_text()):
                inside = name.removeprefix("reprise/")
                if inside.split("/")[0] not in rooms:
                    continue
                where = file.relative_to(root)
                if not inside.startswith(prefixes):
                    yield f"{where} includes {name}: {room}/ may include only {', '.join(prefixes)}"
                if public and inside == name:
                    yield f"{where} includes {name}: a public header may include only public headers"


def read_layers():
    """The place of each file of src/torch in the table of layers: 'meter.h': 7, 'meter.cpp': 7."""
    text = (root / "docs/architecture.md").read_text()
    table = text[text.index("| layer | files |"):].split("\n\n")[0]
    places = {}
    for name in re.findall(r"`([\w.]+)`", table):
        for file in [name] if "." in name else [name + ".h", name + ".cpp"]:
            places[file] = len(places)
    return places


def broken_layers(places):
    for file in sorted((root / "src/torch").glob("*.*")):
        if file.suffix not in {".h", ".cpp"}:
            continue
        if file.name not in places:
            yield f"src/torch/{file.name} is not in the table of layers"
            continue
        for name in re.findall(r'^#include "torch/([^"]+)"', file.read_text(), re.MULTILINE):
            if name.endswith(".h") and pathlib.Path(name).stem != file.stem and places[name] > places[file.name]:
                yield f"src/torch/{file.name} includes torch/{name}, which stands in a layer above it"
    for name in places:
        if not list((root / "src/torch").glob(pathlib.Path(name).stem + ".*")):
            yield f"{name} is in the table of layers, and not in src/torch"


def lost_on_the_way():
    """Functions that the way of one activation names, and that are not in the file named before them."""
    text = (root / "docs/architecture.md").read_text()
    way = text[text.index("### The way of one activation"):].split("\n\n")[2]
    for stop in re.split(r"\n(?=\d)", way):
        source = ""
        for name in re.findall(r"`([^`]+)`", stop):
            files = list((root / "src/torch").glob(name + ".*")) if name.isidentifier() else []
            if files:
                source = "".join(file.read_text() for file in files)
            elif not re.search(r"\b" + name.split("::")[-1].strip("~()") + r"\b", source):
                yield f"docs/architecture.md, the way of one activation: no {name} where it says: {stop}"


def doubled_names():
    places = {}
    for folder in ["include", "src", "tests", "tools", "benchmarks", "examples", "python", "scripts"]:
        for file in sorted((root / folder).rglob("*.*")):
            if file.suffix in {".h", ".cpp", ".py"} and not file.name.startswith("__"):
                places.setdefault(file.name, []).append(str(file.relative_to(root)))
    for name, files in places.items():
        if len(files) > 1:
            yield f"{name} is the name of {len(files)} files: {', '.join(files)}"


def main():
    rooms, places = read_table(), read_layers()
    if len(rooms) < 8 or len(places) < 60:
        sys.exit("docs/architecture.md has no tables of rooms and layers that could be read")
    broken = [*broken_rules(rooms), *broken_layers(places), *lost_on_the_way(), *doubled_names()]
    print("\n".join(broken) or f"{len(rooms)} rooms and the layers of torch/ include what they may, the way of one activation "
          "leads where it says, and every file has a name of its own")
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
