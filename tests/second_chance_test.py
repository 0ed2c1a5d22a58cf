#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What second_chance.py makes of tests that fail once, twice, or in numbers.

Usage: second_chance_test.py
"""

import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().with_name("second_chance.py")
GOOD = ("good", "true")
ONCE = ("once", "test -e mark && echo second || { touch mark && echo first && false; }")
TWICE = ("twice", "echo always && false")


class SecondChance(unittest.TestCase):
    def run_tests(self, *tests, properties=""):
        """Runs the shell commands as tests, then the script; returns its exit code, its output, and the file of flaky ones."""
        with tempfile.TemporaryDirectory() as folder:
            commands = "".join(f"add_test({name} sh -c [=[{command}]=])\n" for name, command in tests)
            pathlib.Path(folder, "CTestTestfile.cmake").write_text(commands + properties, encoding="utf-8")
            ctest = ["ctest", "--test-dir", folder]
            subprocess.run([*ctest, "--output-junit", "first.xml"], capture_output=True, timeout=60, check=False)
            done = subprocess.run([sys.executable, "-B", SCRIPT, f"{folder}/first.xml", f"{folder}/flaky", "--", *ctest],
                                  capture_output=True, text=True, timeout=60, check=False)
            flaky = pathlib.Path(folder, "flaky")
            return done.returncode, done.stdout, flaky.read_text(encoding="utf-8") if flaky.exists() else ""

    def test_a_test_that_passes_alone_is_named_with_both_outputs(self):
        code, _, flaky = self.run_tests(GOOD, ONCE)
        self.assertEqual(code, 0)
        self.assertEqual(flaky, "FLAKY once\n--- the first run, which failed\nfirst\n--- the second, alone\nsecond\n")

    def test_a_test_that_fails_twice_is_red_and_hides_behind_no_other(self):
        code, out, flaky = self.run_tests(ONCE, TWICE)
        self.assertEqual(code, 1)
        self.assertIn("failed twice: twice\n", out)
        self.assertEqual(flaky, "")

    def test_a_missing_program_is_red(self):
        code, out, _ = self.run_tests(GOOD, properties="add_test(gone /nowhere)\n")
        self.assertEqual(code, 1)
        self.assertIn("failed twice: gone\n", out)

    def test_a_test_runs_again_with_the_fixture_that_failed(self):
        needs = "set_tests_properties(once PROPERTIES FIXTURES_SETUP f)\nset_tests_properties(good PROPERTIES FIXTURES_REQUIRED f)\n"
        code, _, flaky = self.run_tests(ONCE, GOOD, properties=needs)
        self.assertEqual(code, 0)
        self.assertIn("FLAKY good\n", flaky)
        self.assertIn("FLAKY once\n", flaky)

    def test_a_skipped_test_has_not_failed(self):
        code, out, _ = self.run_tests(ONCE, ("skips", "exit 77"),
                                      properties="set_tests_properties(skips PROPERTIES SKIP_RETURN_CODE 77)\n")
        self.assertEqual(code, 0)
        self.assertIn("again, alone: once\n", out)

    def test_many_failures_are_not_chance(self):
        code, out, _ = self.run_tests(*((f"bad{number}", "false") for number in range(11)))
        self.assertEqual(code, 1)
        self.assertIn("11 tests failed: not run again\n", out)


if __name__ == "__main__":
    unittest.main()
