#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the tests that failed once more, alone, and tells chance from fault.

Usage: second_chance.py RESULTS FLAKY -- CTEST_COMMAND...

RESULTS is the JUnit file of a run of CTEST_COMMAND that failed. If every failed test now passes, their names and what
each run printed are appended to the file FLAKY, and the exit code is 0. A test that fails twice, or so many failures that
chance does not explain them, gives 1. Tests judge the product: a test in FLAKY is a bug, see ./dev check flaky.
"""

import pathlib
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

MOST_TESTS = 10
MOST_LINES = 150


def passed(case):
    """True for a test that passed, or skipped itself; one whose program or fixture is missing has failed."""
    skipped = case.find("skipped")
    return case.get("status") in ("run", "disabled") or (skipped is not None and skipped.get("message").startswith("SKIP_"))


def results(path):
    """Each test's result: whether it passed, and what it printed."""
    return {case.get("name"): (passed(case), case.findtext("system-out") or "")
            for case in xml.etree.ElementTree.parse(path).iter("testcase")}


def end_of(text):
    lines = text.strip().splitlines()
    left_out = [f"({len(lines) - MOST_LINES} lines before)"] if len(lines) > MOST_LINES else []
    return "\n".join(left_out + lines[-MOST_LINES:])


def main():
    path, flaky, dashes, *ctest = sys.argv[1:]
    assert dashes == "--", __doc__
    first = {name: text for name, (good, text) in results(path).items() if not good}
    if not 0 < len(first) <= MOST_TESTS:
        print(f"{len(first)} tests failed: not run again")
        return 1
    print(f"==> again, alone: {' '.join(sorted(first))}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        again = f"{folder}/again.xml"
        pattern = "|".join(re.escape(name) for name in sorted(first))
        subprocess.run([*ctest, "-j", "1", "-R", f"^({pattern})$", "--output-junit", again], check=False)
        second = results(again) if pathlib.Path(again).exists() else {}
    failed = [name for name in sorted(first) if not second.get(name, (False, ""))[0]]
    if failed:
        print(f"failed twice: {' '.join(failed)}")
        return 1
    with open(flaky, "a", encoding="utf-8") as out:
        for name, text in sorted(first.items()):
            out.write(f"FLAKY {name}\n--- the first run, which failed\n{end_of(text)}\n"
                      f"--- the second, alone\n{end_of(second[name][1])}\n")
    print(f"FLAKY: {' '.join(sorted(first))}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
