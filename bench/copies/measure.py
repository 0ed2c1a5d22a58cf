#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How copies of one application under different flags of `curtail up` compare: their latency and throughput.

Usage: measure.py CURTAIL APP --copy NAME[=FLAGS] --copy NAME=FLAGS ... [--run NAME=WORDS] [--rounds N] [--turns N]
                  [--settle NAME=SECONDS] [--seconds S] [--rps R...] [--schedule S...] [--closed N...] [--load FLAGS] [--json FILE]

In each round all copies start, and take turns: what disturbs the machine disturbs all of them, and what processes have by
chance, such as where their memory lies, differs from round to round. A copy that learns is first given the load for the
seconds that --settle says. A line compares a copy with the first one, turn by turn: the median of the ratios, with the
interval that covers 95 % of the medians of 10,000 resamples of the turns.
A run in which the generator itself was late says nothing, and is made again, three times at most. Ends with 1 if a run
failed.

Examples:
  measure.py curtail hdsearch --copy off --copy "default=--trace-to memory" --copy "all=--trace-to memory --trace-sample 1"
  measure.py curtail hdsearch --copy auto "--copy=online=--policy online" --settle online=60 --rounds 3 --turns 6 --closed 0
  measure.py curtail router --copy auto "--copy=sdb1-16=--config SDB1-16" --rps 200 1000 3000 --rounds 2 --turns 8 --closed 0
  measure.py curtail social --copy curtail --copy grpc --run "grpc=$PWD/social_peer --stack grpc" --rps --closed 16 64 --load "--mix compose"
"""

import argparse
import contextlib
import json
import math
import os
import pathlib
import random
import re
import shlex
import signal
import statistics
import subprocess
import sys
import tempfile

WARMUP_S = 0.3
VOID = 98  # how `curtail load` ends when the generator itself was late
TRIES = 4


def run(command, fine=(0,)):
    """What the command prints; the program ends if the command ends with another code than `fine`."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in fine:
        sys.exit(f"{' '.join(command)}\nended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def cpu_seconds(options, file):
    """What the processes of the copy have used since they started."""
    up = json.loads(run([options.curtail, "ps", file.stem, "--json"]))
    return cpu_seconds_of(re.findall(r'"pid": ?(\d+)', json.dumps(up)))


def cpu_seconds_of(pids):
    ticks = 0
    for pid in pids:
        try:
            fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except FileNotFoundError:
            continue  # it has ended since it was named
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def measure(options, file, load, seconds, seed):
    """The result of one turn of the copy of that file, and the CPU that its processes used."""
    kept = own_data(file)
    data = ["--corpus", str(kept)] if kept else []
    command = [options.curtail, "load", options.app, file.stem, *data, *options.load, *load,
               "--warmup", f"{WARMUP_S}s", "--duration", f"{seconds}s", "--seed", str(seed)]
    for last in range(TRIES - 1, -1, -1):
        before = cpu_seconds(options, file)
        report = json.loads(run([*command, "--quiet", "--json", "-"], (0, VOID) if last else options.fine))
        if report["valid"]:
            break
    result = report["runs"][0]
    if result["requests"]["ok"] == 0:
        sys.exit(f"{' '.join(command)}\nno request succeeded: try the command, it says why")
    requests = result["requests"]["ok"] * (1 + WARMUP_S / result["measured_s"])
    result["cpu_us"] = 1e6 * (cpu_seconds(options, file) - before) / max(requests, 1)
    return result


def interval(values, rng):
    """The median, and the interval of the medians of resamples."""
    medians = sorted(statistics.median(rng.choices(values, k=len(values))) for _ in range(10000))
    return statistics.median(values), medians[249], medians[9749]


def write_copies(app, copies, folder, programs=None):
    """A topology for each copy, under a name of its own, with the words that stand for the app's program; the paths of the files."""
    root = pathlib.Path(__file__).resolve().parents[2]
    text = (root / "apps" / app / "topology.yaml").read_text()
    files = {}
    for copy in copies:
        files[copy] = pathlib.Path(folder) / f"{app}-{copy}.yaml"
        named = re.sub(r"(?m)^application: .*$", f"application: {app}-{copy}", text)
        words = (programs or {}).get(copy, app)
        files[copy].write_text(re.sub(rf"(?m)^( +run: ){app}(?= --service)", lambda line: line[1] + words, named))
    return files


def own_data(file):
    """The folder of a copy of a service that keeps data; None for others."""
    return file.with_suffix("") if "keeps: data" in file.read_text() else None


def end_cleanly_on_signals():
    """SIGTERM and SIGHUP unwind as Ctrl-C does, so that what was started ends."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))


@contextlib.contextmanager
def up(curtail, files, flags):
    """The applications of the files are up, each with its flags of `curtail up`; at the end they are down."""
    try:
        for name, file in files.items():
            kept = own_data(file)
            data = ["--set", f"data={kept}"] if kept else []
            run([curtail, "up", str(file), "--detach", *data, *flags[name]])
        yield
    finally:
        # A second Ctrl-C would leave processes behind.
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        for file in files.values():
            subprocess.run([curtail, "down", file.stem], capture_output=True, check=False, start_new_session=True)
        signal.signal(signal.SIGINT, before)


def measures(options):
    """The measures by name: the flags of the load, or None for that of the measure before, and the value of a run."""
    loads = {}
    for rps in options.rps:
        loads[f"mean at {rps}/s, us"] = (["--rps", str(rps)], lambda r: r["latency_us"]["all"]["mean"])
        for quantile in ("p50", "p99"):
            loads[f"{quantile} at {rps}/s, us"] = (None, lambda r, q=quantile: r["latency_us"]["all"][q])
        loads[f"CPU a request at {rps}/s, us"] = (None, lambda r: r["cpu_us"])
    for schedule in options.schedule:
        loads[f"mean in {schedule}, us"] = (["--schedule", schedule], lambda r: r["latency_us"]["all"]["mean"])
        loads[f"p99 in {schedule}, us"] = (None, lambda r: r["latency_us"]["all"]["p99"])
        loads[f"failed in {schedule}"] = (None, lambda r: r["requests"]["failed"])
        loads[f"void in {schedule}"] = (None, lambda r: int(not r["valid"]))
    for closed in options.closed:
        name = f"{closed} at a time, /s"
        loads[name] = (["--closed", str(closed)], lambda r: r["rates_per_s"]["good"])
        loads[f"CPU a request, {closed} at a time, us"] = (None, lambda r: r["cpu_us"])
    return loads


def take_turn(options, files, order, seed, values):
    for copy in order:
        result = None
        for measure_name, (load, value) in measures(options).items():
            if load is not None:
                result = measure(options, files[copy], load, options.seconds, seed)
            values[measure_name][copy].append(value(result))


def measure_rounds(options, files):
    """For each measure and copy the values, a turn after another."""
    values = {measure_name: {copy: [] for copy in files} for measure_name in measures(options)}
    for round_number in range(options.rounds):
        order = sorted(files, key=lambda _: random.random())
        with up(options.curtail, {copy: files[copy] for copy in order}, options.copies):
            for copy, seconds in options.settle.items():
                measure(options, files[copy], ["--rps", str(options.rps[0])], seconds, 1000 + round_number)
            for turn in range(options.turns):
                take_turn(options, files, order, 1 + round_number * options.turns + turn, values)
                order.reverse()
        print(f"\rround {round_number + 1} of {options.rounds}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return values


def pooled(values):
    """The measures that several rates have, with the turns at all of them."""
    together = {}
    for measure_name, by_copy in values.items():
        kind, _, rest = measure_name.partition(" at ")
        for copy, numbers in by_copy.items() if rest.endswith("/s, us") else ():
            together.setdefault(f"{kind} at all rates, us", {}).setdefault(copy, []).extend(numbers)
    return together


def report(values, rng):
    """Prints the table; the same for programs."""
    rows = []
    base = next(iter(next(iter(values.values()))))
    print(f"{'measure':36}{'copy':12}{'median':>10}   ratio to {base}, 95 % interval")
    for measure_name, by_copy in values.items():
        for copy, numbers in by_copy.items():
            ratios = [mine / other if other else math.nan for mine, other in zip(numbers, by_copy[base])]
            middle, low, high = interval(ratios, rng)
            rows.append({"measure": measure_name, "copy": copy, "median": statistics.median(numbers),
                         "ratio": middle, "low": low, "high": high, "turns": numbers})
            beside = "" if copy == base or math.isnan(middle) else f"   {100 * (middle - 1):+.1f} %  ({100 * (low - 1):+.1f} to {100 * (high - 1):+.1f})"
            print(f"{measure_name:36}{copy:12}{statistics.median(numbers):10.1f}{beside}")
    return rows


def named(text):
    """NAME[=REST] in two."""
    name, _, rest = text.partition("=")
    if not re.fullmatch(r"[a-z0-9-]+", name):
        raise argparse.ArgumentTypeError(f"'{name}': a name is of small letters, digits and '-'")
    return name, rest


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("curtail", help="the program, built with optimisation")
    parser.add_argument("app", choices=["fanout", "hdsearch", "recommend", "router", "setalgebra", "social"])
    parser.add_argument("--copy", type=named, action="append", required=True, dest="copies", metavar="NAME[=FLAGS]")
    parser.add_argument("--run", type=named, action="append", default=[], dest="programs", metavar="NAME=WORDS",
                        help="what the copy runs in the place of the app's program")
    parser.add_argument("--settle", type=named, action="append", default=[], metavar="NAME=SECONDS")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--turns", type=int, default=1, help="of each copy in a round")
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--rps", type=int, nargs="*", default=[500], help="requests a second, in turn; none: not measured")
    parser.add_argument("--schedule", nargs="*", default=[], help="schedules of `curtail load`, in turn")
    parser.add_argument("--closed", type=int, nargs="*", default=[16], help="requests at a time, in turn; none or 0: not measured")
    parser.add_argument("--load", default="", type=shlex.split, metavar="FLAGS", help="more flags of `curtail load`, such as --mix home")
    parser.add_argument("--json", help="write the turns here")
    options = parser.parse_args()
    options.copies = {name: shlex.split(flags) for name, flags in options.copies}
    options.settle = {name: float(seconds) for name, seconds in options.settle}
    options.programs = dict(options.programs)
    options.closed = [closed for closed in options.closed if closed > 0]
    for flag, given in (("--settle", options.settle), ("--run", options.programs)):
        if unknown := set(given) - set(options.copies):
            parser.error(f"{flag}: there is no copy {', '.join(sorted(unknown))}")
    if options.settle and len(options.rps) != 1:
        parser.error("--settle: a copy settles at one rate; give --rps one")
    if not os.access(options.curtail, os.X_OK):
        parser.error(f"{options.curtail} is not a program; build it: cmake --build build/bench --target curtail_command {options.app}")
    # A schedule may go beyond what this machine bears, the generator included.
    options.fine = (0, VOID) if options.schedule else (0,)
    random.seed(1)
    end_cleanly_on_signals()
    with tempfile.TemporaryDirectory() as folder:
        values = measure_rounds(options, write_copies(options.app, options.copies, folder, options.programs))
    if len(options.rps) > 1:
        values |= pooled(values)
    rows = report(values, random.Random(1))
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps({"app": options.app, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
