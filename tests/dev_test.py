#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What ./dev does when a signal ends it, with programs in place of those that it calls. Usage: dev_test.py"""

import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[1]
MAX_WAIT_S = 60


class Dev(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = pathlib.Path(scratch.name)
        shutil.copy(ROOT / "dev", self.root)
        (self.root / "bin").mkdir()
        self.program("dpkg-query", "echo >>asked; sleep 0.02; printf installed")
        self.program("cmake", "echo $$ >configuring; exec sleep 600")

    def program(self, name, script):
        path = self.root / "bin" / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def signalled(self, number, until):
        """The exit code of a build that gets the signal once the file `until` has content."""
        process = subprocess.Popen([self.root / "dev", "build"], env={**os.environ, "PATH": f"{self.root}/bin:{os.environ['PATH']}"},
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   preexec_fn=lambda: signal.signal(number, signal.SIG_DFL))
        self.addCleanup(process.kill)
        limit = time.monotonic() + MAX_WAIT_S
        while not (self.root / until).exists() or not (self.root / until).read_text():
            self.assertLess(time.monotonic(), limit)
            time.sleep(0.01)
        process.send_signal(number)
        return process.wait(MAX_WAIT_S)

    def test_a_signal_before_a_step_ends_it_at_once(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            self.assertEqual(self.signalled(number, "asked"), 128 + number)
            self.assertLess((self.root / "asked").read_text().count("\n"), 10, "packages looked for")
            self.assertFalse((self.root / "configuring").exists())
            (self.root / "asked").unlink()

    def test_a_signal_ends_the_step_that_runs(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            self.assertEqual(self.signalled(number, "configuring"), 128 + number)
            group = int((self.root / "configuring").read_text())
            with self.assertRaises(ProcessLookupError):
                os.killpg(group, 0)
            (self.root / "configuring").unlink()


if __name__ == "__main__":
    unittest.main()
