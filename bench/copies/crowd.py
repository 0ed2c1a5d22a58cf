#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the first 100 ms of a crowd meet: latencies, and the kernel's trace of who waits for a CPU and who touches new pages.

Usage: crowd.py CURTAIL APP --config NAME... [--low R] [--high R] [--rounds N] [--json FILE]

Each round starts the application anew for each config, so that the crowd meets cold processes: the low rate for two seconds,
the high one for one. `perf record` traces all switches, wake-ups and page faults meanwhile, as root. A thread's wait is the
time from its wake-up, or from its preemption, until it runs. The crowd is found in the trace by the generator's switches.

Example:
  crowd.py build/bench/tools/curtail/curtail hdsearch --config auto FIB1 SDB1-50 --high 3400 --rounds 5
"""

import argparse
import bisect
import collections
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from measure import VOID, end_cleanly_on_signals, run, up, write_copies

WARMUP_S, QUIET_S, CROWD_S, BEGIN_S = 1, 2, 1, 0.1
BIN_S = 0.005
EVENTS = ["-e", "sched:sched_switch", "-e", "sched:sched_wakeup", "-e", "page-faults"]
LINE = re.compile(r"\s*(?P<tid>\d+) \[(?P<cpu>\d+)\]\s+(?P<time>[\d.]+):\s+(?:\d+\s+)?(?P<event>[\w:-]+):\s*(?P<rest>.*)")
SWITCH = re.compile(r"prev_pid=(\d+) .*prev_state=(\S+) ==> .*next_pid=(\d+) ")
WAKEUP = re.compile(r"pid=(\d+) ")
PARTS = ("before", "first 100 ms", "rest")


def threads(pid):
    return [int(path.name) for path in pathlib.Path(f"/proc/{pid}/task").iterdir()]


def processes(curtail, name):
    """The processes of the application: their names in the table by process number."""
    application, = json.loads(run([curtail, "ps", name, "--json"]))
    return {process["pid"]: process["service"] for process in application["processes"]}


class Trace:
    """What the kernel saw, by the group of each thread."""

    def __init__(self, text, group_of):
        self.waits = []  # (time, group, seconds until it ran)
        self.runs = []  # (time of the end, group, seconds)
        self.faults = []  # (time, group)
        ready, on_cpu = {}, {}
        for line in text.splitlines():
            if (found := LINE.match(line)) is None:
                continue
            now = float(found["time"])
            if found["event"].endswith("sched_switch"):
                if (switch := SWITCH.search(found["rest"])) is None:
                    continue
                before, state, after = int(switch[1]), switch[2], int(switch[3])
                if found["cpu"] in on_cpu and before:
                    self.runs.append((now, group_of(before), now - on_cpu[found["cpu"]]))
                if before and state.startswith("R"):
                    ready[before] = now
                on_cpu[found["cpu"]] = now
                if (since := ready.pop(after, None)) is not None:
                    self.waits.append((since, group_of(after), now - since))
            elif found["event"].endswith("sched_wakeup"):
                if (woken := WAKEUP.search(found["rest"])) is not None:
                    ready.setdefault(int(woken[1]), now)
            else:
                self.faults.append((now, group_of(int(found["tid"]))))

    def crowd(self, group):
        """When the group began to wait far more often for CPUs than before."""
        bins = collections.Counter(int(at / BIN_S) for at, name, _ in self.waits if name == group)
        usual = statistics.mean(bins.values()) if bins else 0
        first = min(bins, default=0)
        for at in range(first, max(bins, default=0)):
            if min(bins[at + i] for i in range(4)) > max(usual, 6):
                return at * BIN_S
        sys.exit("the trace shows no crowd: give a higher --high")


def latencies(file):
    """The p99 of each part in ms."""
    begin = (WARMUP_S + QUIET_S) * 1e6
    bounds = {"before": (begin - 1e6, begin), "first 100 ms": (begin, begin + BEGIN_S * 1e6),
              "rest": (begin + BEGIN_S * 1e6, begin + CROWD_S * 1e6)}
    by_part = {part: [] for part in PARTS}
    for line in file.read_text().splitlines()[1:]:
        fields = line.split(",")
        for part, (low, high) in bounds.items():
            if low <= float(fields[1]) < high:
                by_part[part].append(float(fields[2]) / 1e3)
    return {part: sorted(values)[int(len(values) * 0.99)] for part, values in by_part.items()}


def crowd(options, file, folder, seed):
    """One crowd: its p99s in ms, and for each part and group its share of the CPUs, its waits in us, its faults a second."""
    schedule, raw, data = (folder / name for name in ("crowd.csv", "raw.csv", "perf.data"))
    schedule.write_text("time_s,rate_per_s\n" + "".join(f"{at},{rate}\n" for at, rate in (
        (0, options.low), (QUIET_S, options.low), (QUIET_S, options.high), (QUIET_S + CROWD_S, options.high))))
    groups = {}
    for pid, service in processes(options.curtail, file.stem).items():
        groups |= dict.fromkeys(threads(pid), service)
    perf = subprocess.Popen(["perf", "record", "-q", "-a", "-c", "1", *EVENTS, "-o", str(data)], stderr=subprocess.DEVNULL)
    load = subprocess.Popen([options.curtail, "load", options.app, file.stem, "--schedule", str(schedule), "--warmup", f"{WARMUP_S}s",
                             "--duration", f"{QUIET_S + CROWD_S}s", "--seed", str(seed), "--raw", str(raw), "--quiet"],
                            stdout=subprocess.DEVNULL)
    try:
        time.sleep(WARMUP_S + QUIET_S / 2)  # until it has its threads
        groups |= dict.fromkeys(threads(load.pid), "generator")
        if (code := load.wait(timeout=30)) not in (0, VOID):
            sys.exit(f"curtail load ended with {code}")
    finally:
        load.terminate()
        perf.terminate()
        perf.wait(timeout=30)
    text = run(["perf", "script", "-i", str(data), "-F", "tid,cpu,time,event,trace"])
    trace = Trace(text, lambda tid: groups.get(tid, "others"))
    begin = trace.crowd("generator")
    edges = [begin - 1, begin, begin + BEGIN_S, begin + CROWD_S]
    seconds = dict(zip(PARTS, (1, BEGIN_S, CROWD_S - BEGIN_S)))
    part_of = lambda at: PARTS[bisect.bisect_right(edges, at) - 1] if edges[0] <= at < edges[-1] else None
    kernel = {part: collections.defaultdict(lambda: {"cpu": 0, "waits": [], "faults": 0}) for part in PARTS}
    for at, group, spent in trace.runs:
        if part := part_of(at):
            kernel[part][group]["cpu"] += spent / seconds[part]
    for at, group, wait in trace.waits:
        if part := part_of(at):
            kernel[part][group]["waits"].append(1e6 * wait)
    for at, group in trace.faults:
        if part := part_of(at):
            kernel[part][group]["faults"] += 1 / seconds[part]
    return latencies(raw), kernel


def report(rounds, config):
    """Prints the table of a config, medians of its rounds; the same for programs."""
    rows = []
    for part in PARTS:
        p99 = statistics.median(latency[part] for latency, _ in rounds)
        print(f"{config:10}{part:14}p99 {p99:6.2f} ms")
        rows.append({"config": config, "part": part, "p99_ms": [latency[part] for latency, _ in rounds]})
        for group in sorted({group for _, kernel in rounds for group in kernel[part]}):
            of = [kernel[part][group] for _, kernel in rounds]
            p99s = [sorted(one["waits"])[int(len(one["waits"]) * 0.99)] if one["waits"] else 0 for one in of]
            row = {"config": config, "part": part, "group": group, "cpu": [one["cpu"] for one in of],
                   "wait_mean_us": [statistics.mean(one["waits"] or [0]) for one in of], "wait_p99_us": p99s,
                   "faults_per_s": [one["faults"] for one in of]}
            rows.append(row)
            print(f"{'':24}{group:12}{statistics.median(row['cpu']):6.2f} CPUs   waits{statistics.median(row['wait_mean_us']):7.0f} us,"
                  f" p99{statistics.median(p99s):7.0f} us{statistics.median(row['faults_per_s']):9.0f} page faults/s")
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("curtail", help="the program, built with optimisation")
    parser.add_argument("app", choices=["fanout", "hdsearch", "recommend", "router", "setalgebra"])
    parser.add_argument("--config", nargs="+", default=["auto"], help="threading configs, in turn")
    parser.add_argument("--low", type=int, default=100, help="requests a second before the crowd")
    parser.add_argument("--high", type=int, default=3400, help="requests a second of the crowd")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", help="write the rounds here")
    options = parser.parse_args()
    if not os.access(options.curtail, os.X_OK):
        parser.error(f"{options.curtail} is not a program; build it: cmake --build build/bench --target curtail_command {options.app}")
    if os.geteuid() != 0:
        parser.error("the trace of the whole machine needs root")
    if shutil.which("perf") is None:
        parser.error("perf is missing; install it: apt-get install linux-perf")
    end_cleanly_on_signals()
    rounds = {config: [] for config in options.config}
    with tempfile.TemporaryDirectory() as name:
        for number in range(options.rounds):
            for config in options.config:
                files = write_copies(options.app, ["crowd"], name)
                with up(options.curtail, files, {"crowd": ["--config", config]}):
                    rounds[config].append(crowd(options, files["crowd"], pathlib.Path(name), 1 + number))
            print(f"\rround {number + 1} of {options.rounds}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    rows = [row for config in options.config for row in report(rounds[config], config)]
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps({"app": options.app, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
