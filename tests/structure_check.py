#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks how the sources include each other.

1. Folders do not include in circles. A folder `internal` is part of the folder that has it. A public header may lie in the
   folder above the rooms that implement it, as those of curtail/rpc do.
2. Files do not include in circles of more than MOST_FILES. A header and the source beside it count as one.
3. The library (curtail) includes nothing of apps, tools or bench; apps nothing of tools or bench; tools nothing of bench.
4. No folder has more than MOST_IN_FOLDER files.

The first three leave out tests, what only tests include (*_testing) and benchmarks beside an application.

usage: structure_check.py [ROOT]          exits with 1 and names the places if a rule is broken
       structure_check.py --folders [ROOT] prints which folder includes which
"""
import collections
import os
import pathlib
import re
import sys

MOST_FILES = 10
MOST_IN_FOLDER = 40
TREES = ("curtail", "apps", "tools", "bench")  # each may include those before it
INCLUDE = re.compile(r'^#include "([^"]+)\.h"', re.MULTILINE)
LEFT_OUT = re.compile(r"(_test|_testing|_fuzz|_bench)\.(h|cc)$|/testdata/|/template/")


def circles(graph):
    """The strongly connected components of more than one node (Tarjan), largest first."""
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for after in graph.get(node, ()):
            if after not in index:
                visit(after)
            if after in stack:
                low[node] = min(low[node], low[after])
        if low[node] == index[node]:
            at = stack.index(node)
            if len(stack) - at > 1:
                found.append(sorted(stack[at:]))
            del stack[at:]

    sys.setrecursionlimit(10_000)
    for node in sorted(graph):
        if node not in index:
            visit(node)
    return sorted(found, key=len, reverse=True)


def includes(root):
    """What each file (without its ending) includes of ours."""
    sources = [path for tree in TREES for path in sorted((root / tree).rglob("*")) if path.suffix in (".h", ".cc")]
    sources = [path for path in sources if not LEFT_OUT.search(path.as_posix())]
    names = {path: path.relative_to(root).with_suffix("").as_posix() for path in sources}
    ours = set(names.values())
    graph = collections.defaultdict(set)
    for path, name in names.items():
        graph[name] |= {other for other in INCLUDE.findall(path.read_text()) if other in ours and other != name}
    return graph


def folder_of(name):
    return re.sub(r"/internal$", "", name.rpartition("/")[0])


def folders_of(files):
    """Which folder includes which, with the files that do."""
    graph = collections.defaultdict(lambda: collections.defaultdict(list))
    for name, others in files.items():
        for other in sorted(others):
            if folder_of(name) != folder_of(other):
                graph[folder_of(name)][folder_of(other)].append(f"{name} includes {other}")
    return graph


def crowded(root):
    """Folders with too many files."""
    for tree in (*TREES, "docs", "tests"):
        for folder, inside, names in os.walk(root / tree):
            inside[:] = [name for name in inside if name != "__pycache__"]
            name = pathlib.Path(folder).relative_to(root).as_posix()
            if len(names) > MOST_IN_FOLDER:
                yield f"{name} has {len(names)} files (at most {MOST_IN_FOLDER}): split it into rooms, folders that a newcomer would look for"


def broken(files, folders):
    for circle in circles(folders):
        yield "folders include in a circle: " + ", ".join(circle)
        for one in circle:
            for other in circle:
                yield from (f"  {text}" for text in folders[one].get(other, [])[:3])
    for circle in circles(files):
        if len(circle) > MOST_FILES:
            yield f"{len(circle)} files include in a circle (at most {MOST_FILES} may): " + ", ".join(circle)
    for name, others in sorted(files.items()):
        place = TREES.index(name.partition("/")[0])
        for other in sorted(others):
            if TREES.index(other.partition("/")[0]) > place:
                yield f"{name} includes {other}, which lies above it"


def main():
    arguments = [argument for argument in sys.argv[1:] if not argument.startswith("--")]
    root = pathlib.Path(arguments[0] if arguments else ".")
    files = includes(root)
    if not files:
        sys.exit("structure_check: no sources here; name the root of the project")
    folders = folders_of(files)
    if "--folders" in sys.argv:
        for folder in sorted(folders):
            print(f"{folder}: {' '.join(sorted(folders[folder]))}")
        return
    faults = [*broken(files, folders), *crowded(root)]
    if faults:
        sys.exit("\n".join(faults))
    largest = max((len(circle) for circle in circles(files)), default=0)
    print(f"{len(files)} files in {len(folders)} folders; the largest circle of files has {largest}")


if __name__ == "__main__":
    main()
