#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What traces cost a whole application: its latency and throughput with none, with one request in 1000, and with all.

Usage: measure.py CURTAIL APP [--rounds N] [--seconds S] [--rps R] [--closed N] [--json FILE]

In each round three copies of the application start, and take turns: what disturbs the machine disturbs all of them, and
what processes have by chance, such as where their memory lies, differs from round to round. A line compares a copy with
the one that has no traces, round by round: the median of the ratios, with the interval that covers 95 % of the medians
of 10,000 resamples of the rounds.
Ends with 1 if a run failed.
"""

import argparse
import json
import pathlib
import random
import re
import statistics
import subprocess
import sys
import tempfile

COPIES = {
    "off": [],
    "default": ["--trace-to", "memory"],
    "all": ["--trace-to", "memory", "--trace-sample", "1"],
}


def run(command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\nended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def measure(curtail, name, load, seconds, seed):
    """The result of one turn."""
    command = [curtail, "load", *name, *load, "--warmup", "300ms", "--duration", f"{seconds}s", "--seed", str(seed)]
    return json.loads(run([*command, "--quiet", "--json", "-"]))["runs"][0]


def interval(values, rng):
    """The median, and the interval of the medians of resamples."""
    medians = sorted(statistics.median(rng.choices(values, k=len(values))) for _ in range(10000))
    return statistics.median(values), medians[249], medians[9749]


def write_copies(app, folder):
    """A topology for each copy, under a name of its own; the paths of the files."""
    root = pathlib.Path(__file__).resolve().parents[2]
    text = (root / "apps" / app / "topology.yaml").read_text()
    files = {}
    for copy in COPIES:
        files[copy] = pathlib.Path(folder) / f"{app}-{copy}.yaml"
        files[copy].write_text(re.sub(r"(?m)^application: .*$", f"application: {app}-{copy}", text))
    return files


def measure_rounds(options, files):
    """For each copy the values of each measure, a round after another."""
    loads = {
        f"mean at {options.rps}/s, us": (["--rps", str(options.rps)], lambda r: r["latency_us"]["all"]["mean"]),
        f"p50 at {options.rps}/s, us": (None, lambda r: r["latency_us"]["all"]["p50"]),
        f"p99 at {options.rps}/s, us": (None, lambda r: r["latency_us"]["all"]["p99"]),
        f"{options.closed} at a time, /s": (["--closed", str(options.closed)], lambda r: r["rates_per_s"]["good"]),
    }
    values = {measure_name: {copy: [] for copy in files} for measure_name in loads}
    for round_number in range(options.rounds):
        order = sorted(files, key=lambda _: random.random())
        try:
            for copy in order:
                run([options.curtail, "up", str(files[copy]), "--detach", *COPIES[copy]])
            for copy in order:
                result = None
                for measure_name, (load, value) in loads.items():
                    if load is not None:
                        name = (options.app, files[copy].stem)
                        result = measure(options.curtail, name, load, options.seconds, round_number + 1)
                    values[measure_name][copy].append(value(result))
        finally:
            for copy in order:
                subprocess.run([options.curtail, "down", files[copy].stem], capture_output=True, check=False)
        print(f"\rround {round_number + 1} of {options.rounds}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return values


def report(values, rng):
    """Prints the table; the same for programs."""
    rows = []
    print(f"{'measure':28}{'traces':10}{'median':>10}   ratio to off, 95 % interval")
    for measure_name, by_copy in values.items():
        for copy, numbers in by_copy.items():
            ratios = [mine / off for mine, off in zip(numbers, by_copy["off"])]
            middle, low, high = interval(ratios, rng)
            rows.append({"measure": measure_name, "traces": copy, "median": statistics.median(numbers),
                         "ratio": middle, "low": low, "high": high, "rounds": numbers})
            beside = "" if copy == "off" else f"   {100 * (middle - 1):+.1f} %  ({100 * (low - 1):+.1f} to {100 * (high - 1):+.1f})"
            print(f"{measure_name:28}{copy:10}{statistics.median(numbers):10.1f}{beside}")
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("curtail", help="the program, built with optimisation")
    parser.add_argument("app", choices=["hdsearch", "recommend", "router", "setalgebra"])
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--rps", type=int, default=500)
    parser.add_argument("--closed", type=int, default=16)
    parser.add_argument("--json", help="write the rounds here")
    options = parser.parse_args()
    random.seed(1)
    with tempfile.TemporaryDirectory() as folder:
        values = measure_rounds(options, write_copies(options.app, folder))
    rows = report(values, random.Random(1))
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps({"app": options.app, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
