#!/usr/bin/env python3
"""Checks that includes point one way, by the table below; prints each that does not."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Folder -> prefixes that its files may include, besides themselves and include/polyrail.
BASE = "src/base/"
ALLOWED = {
    "include/polyrail": [],
    "src/base": [],
    "topology": [BASE],
    "kernels": [BASE],
    "transports": [BASE, "topology/rail.hpp"],
    "src/plan": [BASE, "topology/"],
    # The graph says what a plan allows to run while bytes land.
    "src/exec": [BASE, "src/plan/plan.hpp", "src/plan/layout.hpp", "src/plan/range.hpp",
                 "src/plan/step_graph.hpp", "transports/transport.hpp",
                 "kernels/kernels.hpp", "topology/rail.hpp"],
    "src/bootstrap": [BASE],
    "src/comm": [BASE, "topology/", "src/plan/", "src/exec/", "src/bootstrap/", "kernels/kernels.hpp",
                 "transports/transport.hpp", "transports/builtin.hpp", "transports/fault/fault.hpp"],
    "src/capi": [BASE],
    "perf/topo": ["topology/"],
    "perf/plan": ["topology/", "src/plan/", BASE],
    "perf/kernels": ["kernels/"],
    "perf": [],
}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"|^\s*#\s*include\s+<(polyrail/[^>]+)>')


def folder_of(path):
    """The row of the table for a file: the longest prefix; None if it has none."""
    best = None
    for folder in ALLOWED:
        if path.startswith(folder + "/") and (best is None or len(folder) > len(best)):
            best = folder
    return best


def siblings_apart(path, target):
    """Transports do not know each other; only the table and the decorator may."""
    a, b = path.split("/"), target.split("/")
    return (a[0] == "transports" and b[0] == "transports" and len(a) > 2 and len(b) > 2
            and a[1] != b[1])


def main():
    problems = []
    checked = 0
    for path in sorted(ROOT.rglob("*")):
        name = path.relative_to(ROOT).as_posix()
        if path.suffix not in (".hpp", ".cpp", ".h", ".cu", ".cuh"):
            continue
        folder = folder_of(name)
        if folder is None:
            continue
        checked += 1
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            match = INCLUDE.match(line)
            if not match or match.group(2):
                continue
            target = match.group(1)
            own = target.startswith(folder + "/") or (folder == "include/polyrail")
            allowed = own or any(target == p or (p.endswith("/") and target.startswith(p))
                                 for p in ALLOWED[folder])
            # The folder's own name as a row means: files of sub-folders of it count as its own.
            if siblings_apart(name, target) or not allowed:
                problems.append(f"{name}:{number}: includes {target}")
    for problem in problems:
        print(problem)
    if checked < 50:
        print(f"only {checked} files were looked at: is the check at the right place?")
        return 1
    print(f"{checked} files, {len(problems)} includes against the table")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
