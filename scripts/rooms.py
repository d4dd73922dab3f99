#!/usr/bin/env python3
"""Checks that every room includes only what the table of rooms in docs/architecture.md allows it, and that public
headers include only public headers. Prints one line for each include that breaks a rule; exit code 1 if there is one."""
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


def main():
    rooms = read_table()
    if len(rooms) < 8:
        sys.exit("docs/architecture.md has no table of rooms that could be read")
    broken = list(broken_rules(rooms))
    print("\n".join(broken) or f"{len(rooms)} rooms include what they may")
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
