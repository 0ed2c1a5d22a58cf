# SPDX-License-Identifier: Apache-2.0
"""The CPU time of each service in its own code and in the kernel, at low load and at saturation (DeathStarBench, figure 14, whose
third part, libraries, is in a service's own code here)."""

import os
import pathlib
import time

import picture
import session

LEVELS = {"low": ["--rps", "100"], "saturation": ["--closed", "16"]}
SETTLE_S = 1.0
TOLD = 12  # services that the picture and the table name
BUDGET = {"rounds": 3, "seconds": 4}
QUICK = {"rounds": 1, "seconds": 0.5}


def read(processes):
    """Seconds that the processes of each service have used: in their own code, in the kernel."""
    used = {}
    for process in processes:
        fields = pathlib.Path(f"/proc/{process['pid']}/stat").read_text().rpartition(")")[2].split()
        own, kernel = used.get(process["service"], (0, 0))
        tick = os.sysconf("SC_CLK_TCK")
        used[process["service"]] = (own + int(fields[11]) / tick, kernel + int(fields[12]) / tick)
    return used


def run(s):
    rounds = []
    with s.up() as up:
        processes = up.processes()
        for number in range(s.rounds):
            rounds.append({})
            for k, (level, load) in enumerate(LEVELS.items()):
                s.step(number * len(LEVELS) + k, s.rounds * len(LEVELS), f"{level} load")
                with up.under_load(load, SETTLE_S + s.seconds + 30, 1 + number):
                    time.sleep(SETTLE_S)
                    before = read(processes)
                    time.sleep(s.seconds)
                    after = read(processes)
                rounds[-1][level] = {name: [now - then for now, then in zip(after[name], before[name])] for name in after}
    return {"rounds": rounds}


def sums(result, level):
    """Of all rounds, by service, the busiest first; the others together."""
    names = list(result["rounds"][0][level])
    found = {name: [sum(one[level][name][part] for one in result["rounds"]) for part in (0, 1)] for name in names}
    ordered = sorted(found, key=lambda name: -sum(found[name]))
    rest = [sum(found[name][part] for name in ordered[TOLD:]) for part in (0, 1)]
    return {name: found[name] for name in ordered[:TOLD]} | ({"the others": rest} if ordered[TOLD:] else {})


def share(part, whole):
    return f"{100 * part / whole:.0f} %" if whole > 0 else ""


def table(result, _):
    rows = []
    for level in LEVELS:
        found = sums(result, level)
        own, kernel = (sum(one[part] for one in found.values()) for part in (0, 1))
        rows.append([f"all, {level}", share(own, own + kernel), share(kernel, own + kernel), "100 %"])
        for name, (mine, system) in found.items():
            if not mine + system:  # less than a tick
                continue
            rows.append(
                [f"{name}, {level}", share(mine, mine + system), share(system, mine + system), share(mine + system, own + kernel)]
            )
    return session.markdown(["service", "own code", "kernel", "of all CPU time"], rows)


def draw(result, facts):
    rows = []
    for level in LEVELS:
        found = sums(result, level)
        whole = sum(map(sum, found.values())) or 1
        rows += [(f"{name}, {level}", [100 * part / whole for part in parts]) for name, parts in found.items()]
    note = "share of the CPU time of all processes; own code has its libraries in it"
    return picture.stacks(f"{facts.title}: CPU time by service", note, "%", ["own code", "kernel"], rows)
