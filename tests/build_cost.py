#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints, for every preset built, what takes longest: the ten dearest sources, and the ten dearest tests of their last run.

Usage: build_cost.py BUILD_FOLDER

Sources are listed as they were last compiled: a batch by its first source and how many follow. The times are of the wall
clock, so they depend on what else ran, and one of a compiler cache is short.
"""

import pathlib
import re
import sys

LISTED = 10


def name_of(output, preset):
    """The source behind an object, or `first source + n` for a batch."""
    batch = preset / re.sub(r"\.o$", "", output)
    if "/Unity/" in output and batch.exists():
        sources = re.findall(r'^#include "(.*)"', batch.read_text(), re.MULTILINE)
        if sources:
            root = preset.resolve().parent.parent
            first = pathlib.Path(sources[0])
            first = first.relative_to(root) if first.is_relative_to(root) else first.name
            return f"{first} + {len(sources) - 1}" if len(sources) > 1 else str(first)
    return re.sub(r"CMakeFiles/[^/]*\.dir/|\.o$", "", output)


def compilations(preset):
    """Seconds of every object's last compilation."""
    seconds = {}
    for line in (preset / ".ninja_log").read_text().splitlines():
        fields = line.split("\t")
        if len(fields) == 5 and fields[3].endswith(".o"):
            seconds[fields[3]] = (int(fields[1]) - int(fields[0])) / 1000
    return seconds


def tests(preset):
    """Seconds of the tests in the log of the last run."""
    log = preset / "Testing/Temporary/LastTest.log"
    if not log.exists():
        return {}
    pattern = r"^\d+/\d+ Test: (\S+)$.*?^Test time = +([\d.]+) sec$"
    found = re.findall(pattern, log.read_text(errors="replace"), re.DOTALL | re.MULTILINE)
    return {name: float(seconds) for name, seconds in found}


def show(title, seconds, name=lambda key: key):
    print(f"{title}: {sum(seconds.values()):.0f} s in {len(seconds)}")
    for key in sorted(seconds, key=seconds.get, reverse=True)[:LISTED]:
        print(f"{seconds[key]:8.1f} s  {name(key)}")


def main():
    for log in sorted(pathlib.Path(sys.argv[1]).glob("*/.ninja_log")):
        preset = log.parent
        show(f"{preset.name}, compiled", compilations(preset), lambda output: name_of(output, preset))
        show(f"{preset.name}, tested", tests(preset))


if __name__ == "__main__":
    main()
