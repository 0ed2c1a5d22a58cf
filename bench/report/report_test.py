#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of the report. Usage: report_test.py"""

import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import report  # noqa: E402

PAGE = """# A page

```sh
bench/count --json x \\
    --markdown t.md      # and so on
bench/fail
npm run plot
```
"""


def members(group):
    """The processes of the group, but those that have ended."""
    found = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, of = stat.read_text().rpartition(")")[2].split()[:3]
        except OSError:
            continue
        if of == group and state != "Z":
            found.append(stat.parent.name)
    return found


class Report(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = pathlib.Path(scratch.name)
        (self.root / "bench").mkdir()
        for name, script in (("count", 'echo a >>counted; wc -l <counted >"$4"'), ("fail", "echo no such thing >&2; exit 3")):
            program = self.root / "bench" / name
            program.write_text(f"#!/bin/sh\n{script}\n")
            program.chmod(0o755)
        before = dict(report.PROGRAMS)
        self.addCleanup(report.PROGRAMS.update, before)
        report.PROGRAMS["bench/"] = f"{self.root}/bench/"
        self.pages = {"page": list(report.lines_of(PAGE))}

    def test_commands_of_a_page_are_whole_lines_that_make_tables(self):
        self.assertEqual(self.pages["page"], ["bench/count --json x --markdown t.md", "bench/fail"])

    def test_a_failure_is_named_and_what_succeeded_is_not_run_again(self):
        out = self.root / "out"
        for _ in range(2):
            self.assertEqual(report.report(self.pages, out), ["bench/fail"])
            page = (out / "report.md").read_text()
            self.assertIn("bench/count --json x --markdown t.md\n```\n\n1\n", page)
            self.assertIn("Exit code 3:\n\n```text\nno such thing\n```", page)

    def test_what_an_interrupted_training_left_is_removed(self):
        out = self.root / "out"
        (out / "page").mkdir(parents=True)
        (out / "page" / "x.partial").touch()
        report.report(self.pages, out)
        self.assertFalse((out / "page" / "x.partial").exists())

    def test_numbers_of_an_earlier_run_have_their_time(self):
        out = self.root / "out"
        for day in ("Monday", "Tuesday"):
            with mock.patch.object(report, "machine", lambda: f"{day}, commit {day.lower()}."):
                report.report(self.pages, out)
        page = (out / "report.md").read_text()
        self.assertIn("# Measured in one run\n\nTuesday, commit tuesday.\n", page)
        self.assertIn("```\n\n1\n\nMeasured: Monday, commit monday.\n", page)
        self.assertEqual(page.count("Measured: "), 1)
        with mock.patch.object(report, "machine", lambda: "Monday, commit monday."):
            report.report(self.pages, out)
        self.assertNotIn("Measured: ", (out / "report.md").read_text())

    def test_a_closed_terminal_ends_the_command(self):
        script = f"import sys; sys.path.insert(0, {str(pathlib.Path(report.__file__).parent)!r}); import report; " \
                 "report.found = lambda only: {'page': ['sleep 600 & sleep 600; true']}; sys.exit(report.main())"
        process = subprocess.Popen([sys.executable, "-c", script, "--out", str(self.root / "out")], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL))
        self.addCleanup(process.kill)
        children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children")
        limit = time.monotonic() + 60
        while not (group := children.read_text().strip()) or len(members(group)) < 3:
            self.assertLess(time.monotonic(), limit)
            time.sleep(0.01)
        self.addCleanup(lambda: members(group) and os.killpg(int(group), signal.SIGKILL))
        process.send_signal(signal.SIGHUP)
        self.assertEqual(process.wait(60), 128 + signal.SIGHUP)
        while members(group):
            self.assertLess(time.monotonic(), limit)
            time.sleep(0.01)

    def test_each_benchmark_that_the_documents_name_exists(self):
        sources = "".join(path.read_text() for folder in ("bench", "apps") for path in (report.ROOT / folder).rglob("CMakeLists.txt"))
        pages = report.found([])
        self.assertGreater(len(pages), 8)
        for command in sum(pages.values(), []):
            words = command.split()
            if words[0] == "./dev":
                self.assertIn(f"{words[2]} ", sources.replace("\n", " ").replace(")", " "), command)
            elif words[0].startswith("bench/"):
                self.assertTrue((report.ROOT / words[0]).exists(), command)

    def test_each_profile_is_made_by_a_command_before_on_its_page(self):
        read = 0
        for page, commands in report.found([]).items():
            made = set()
            for command in commands:
                for path in re.findall(r"--profile[ =]([^\s\"]+)|^curtail verify \S+ (\S+)", command):
                    read += 1
                    self.assertIn(pathlib.Path("".join(path)).name, made, f"{page}: {command}")
                made.update(re.findall(r"--out (\S+)", command))
        self.assertGreater(read, 5)


if __name__ == "__main__":
    unittest.main()
