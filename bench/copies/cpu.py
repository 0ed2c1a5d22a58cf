#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The CPU that services take while nobody calls them, and at a low load, as a share of one CPU.

Usage: cpu.py CURTAIL [APP...] [--up FLAGS] [--rps N] [--seconds S]

Each application starts, is left alone for the seconds, and is then given the load for as long. A row has the service that clients
call, and all processes of the application, from their utime and stime in /proc before and after. The kernel counts these in
hundredths of a second, so 10 s resolve 0.1 %.

Examples:
  cpu.py curtail                                   # hdsearch, setalgebra, recommend and router under auto, at 50/s
  cpu.py curtail router --up "--config SDB1-16" --rps 200
"""

import argparse
import json
import os
import pathlib
import shlex
import sys
import tempfile
import time

import measure

APPS = ["hdsearch", "setalgebra", "recommend", "router"]
SETTLE_S = 2  # after the start, and after the first requests


def pids(curtail, name):
    """Of the service that clients call, and of all."""
    processes = json.loads(measure.run([curtail, "ps", name, "--json"]))[0]["processes"]
    return [p["pid"] for p in processes if p["service"] == "mid-tier"], [p["pid"] for p in processes]


def shares(groups, seconds, during):
    """What each group of processes takes of a CPU while `during` runs; it takes the seconds or longer."""
    before = [measure.cpu_seconds_of(group) for group in groups]
    start = time.monotonic()
    during()
    took = time.monotonic() - start
    if took < 0.9 * seconds:
        sys.exit(f"cpu.py: the load ended after {took:.1f} s")
    return [(measure.cpu_seconds_of(group) - was) / took for group, was in zip(groups, before)]


def row(options, app, folder):
    file = measure.write_copies(app, ["cpu"], folder)["cpu"]

    def load(seconds):
        measure.run([options.curtail, "load", app, file.stem, "--rps", str(options.rps), "--warmup", "0s",
                     "--duration", f"{seconds}s", "--quiet"], (0, measure.VOID))

    with measure.up(options.curtail, {app: file}, {app: options.up}):
        groups = pids(options.curtail, file.stem)
        load(SETTLE_S)
        time.sleep(SETTLE_S)
        idle = shares(groups, options.seconds, lambda: time.sleep(options.seconds))
        loaded = shares(groups, options.seconds, lambda: load(options.seconds))
    return [f"{100 * share:.1f} %" for share in (idle[0], loaded[0], idle[1], loaded[1])]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("curtail", help="the program, built with optimisation")
    parser.add_argument("apps", nargs="*", default=APPS, metavar="APP", help=" ".join(APPS))
    parser.add_argument("--up", default="", type=shlex.split, metavar="FLAGS", help="of `curtail up`, such as --config FIB1")
    parser.add_argument("--rps", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=10)
    options = parser.parse_args()
    if unknown := set(options.apps) - {*APPS, "fanout"}:
        parser.error(f"no such application: {', '.join(sorted(unknown))}; there are {', '.join(APPS)}")
    if not os.access(options.curtail, os.X_OK):
        parser.error(f"{options.curtail} is not a program; build it: cmake --build build/bench --target curtail_command {' '.join(options.apps)}")
    options.curtail = str(pathlib.Path(options.curtail).resolve())
    measure.end_cleanly_on_signals()
    print(f"| service | mid-tier, idle | at {options.rps}/s | all processes, idle | at {options.rps}/s |")
    print("| --- | ---: | ---: | ---: | ---: |")
    with tempfile.TemporaryDirectory() as folder:
        for app in options.apps:
            print(f"| {app} | {' | '.join(row(options, app, folder))} |", flush=True)


if __name__ == "__main__":
    main()
