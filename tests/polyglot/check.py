#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the services in other languages and compares them with C++.

Usage: check.py BUILD_FOLDER

BUILD_FOLDER has the programs curtail, curtail-gateway, shop and shop_model_test. A language whose tools are missing is left out, and named;
without Python nothing is compared. Ends with 1 if anything else fails.
"""

import os
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
MAX_BUILD_S = 900
MAX_CHECK_S = 600
TOOL_MISSING = 3
LANGUAGES = ("python", "go", "java", "node")


def run(title, *words, limit=MAX_CHECK_S):
    from_s = time.monotonic()
    code = subprocess.run([str(word) for word in words], check=False, timeout=limit).returncode
    came_to = {0: "passed", TOOL_MISSING: "left out"}.get(code, "FAILED")
    print(f"{title}: {came_to}, {time.monotonic() - from_s:.0f} s", flush=True)
    return code


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    os.environ["PATH"] += ":/usr/local/go/bin"
    built, failed = [], []
    for language in LANGUAGES:
        codes = [run(f"build {app}-{language}", ROOT / "apps/kit/lang/build", language, ROOT / folder, app,
                     build / f"apps/{app}-{language}", limit=MAX_BUILD_S)
                 for folder, app in (("tests/polyglot", "probe"), ("apps/shop", "shop"))]
        if codes == [0, 0]:
            built.append(language)
        elif max(codes) != TOOL_MISSING:
            failed.append(f"the build of {language}")
    if "python" not in built:
        sys.exit("Python is missing, and with it the programs that compare")
    python = [build / "apps/probe-python/venv/bin/python", "-B"]
    checks = [("calls, errors, traces, drain", [*python, HERE / "shims.py", build, *built])]
    if {"go", "java", "python"} <= set(built):
        checks.append(("10,000 calls replayed", [*python, HERE / "replay.py", build]))
    if "java" in built:
        checks.append(("C++ and Java exchanged under load", [*python, HERE / "exchange.py", build]))
    if len(built) == len(LANGUAGES):
        checks.append(("curtail up shop --polyglot", [*python, HERE / "whole.py", build]))
        model = ["env", "CURTAIL_TEST_POLYGLOT=1", build / "apps/shop/shop_model_test", "--gtest_filter=-*WhileServicesFail*"]
        checks.append(("random customers beside a model", model))
    failed += [title for title, words in checks if run(title, *words) != 0]
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


main()
