# SPDX-License-Identifier: Apache-2.0
"""The same handlers on other stacks: curtail as it comes and with fibers, a thread for each call of a fan-out as the fiber
study has it (Boost fibers for RPC), and grpc++. Copies of the application take turns at their peak, for the mix and for
posts alone."""

import contextlib
import os
import pathlib
import sys
import time

import measure
import picture
import session

MIXES = ("mixed", "compose")
# The words that stand for the program of all services; PEER is social_peer's path.
STACKS = {
    "curtail": "social",
    "fibers": "social --config FIB1",
    "threads": "PEER --stack threads --config SDB1-16",
    "grpc": "PEER --stack grpc",
}
NAMES = {"curtail": "curtail", "fibers": "curtail, fibers", "threads": "a thread a call", "grpc": "grpc++"}
AT_A_TIME = 32
LOOK_S, IDLE_CPUS, LOOKS = 0.25, 0.1, 40
BUDGET = {"rounds": 6, "seconds": 2}
QUICK = {"rounds": 1, "seconds": 0.3}


def peer(curtail):
    """The program of the other stacks, of the same build as `curtail`."""
    program = pathlib.Path(curtail).resolve().parents[2] / "bench/social_peer/social_peer"
    if not os.access(program, os.X_OK):
        sys.exit(f"{program} is not a program; build it: cmake --build build/bench --target social_peer (it needs gRPC C++)")
    return program


def settle(pids):
    """Waits until the posts of the last turn are in the home timelines and the search: then the processes are idle."""
    for _ in range(LOOKS):
        before = measure.cpu_seconds_of(pids)
        time.sleep(LOOK_S)
        if measure.cpu_seconds_of(pids) - before <= IDLE_CPUS * LOOK_S:
            return


def turn(up, mix, seconds, seed):
    pids = [process["pid"] for process in up.processes()]
    result = up.load(["--mix", mix, "--closed", str(AT_A_TIME)], seconds, seed)
    settle(pids)
    return {
        "good": result["rates_per_s"]["good"],
        "p99": result["latency_us"]["all"]["p99"],
        "cpu_us": result["cpu_us"],
        "failed": result["requests"]["failed"],
    }


def run(s):
    turns = {stack: {mix: [] for mix in MIXES} for stack in STACKS}
    program = peer(s.curtail)
    with contextlib.ExitStack() as started:
        copies = {}
        for name, words in STACKS.items():
            copies[name] = started.enter_context(s.up(name, program=words.replace("PEER", str(program))))
            settle([process["pid"] for process in copies[name].processes()])
        steps = s.rounds * len(MIXES) * len(copies)
        for number in range(s.rounds):
            for m, mix in enumerate(MIXES):
                for k, name in enumerate((list(copies), list(copies)[::-1])[number % 2]):
                    s.step((number * len(MIXES) + m) * len(copies) + k, steps, f"{mix}, {NAMES[name]}")
                    turns[name][mix].append(turn(copies[name], mix, s.seconds, 1 + number))
        configs = {
            name: sorted({one["config"] for one in up.processes() if one["http_admin"]}) for name, up in copies.items()
        }
    return {"at_a_time": AT_A_TIME, "configs": configs, "turns": turns}


def of(result, stack, mix, key="good"):
    return [one[key] for one in result["turns"][stack][mix]]


def to(result, stack, mix, base):
    """The ratios of the throughput to another stack's, turn by turn: their median and its interval."""
    if stack == base:
        return ""
    return "{:.2f} ({:.2f}-{:.2f})".format(*session.estimate(session.ratios(of(result, stack, mix), of(result, base, mix))))


def table(result, _):
    rows = []
    for mix in MIXES:
        for stack, name in NAMES.items():
            rows.append(
                [
                    f"{mix}, {name}",
                    "{} ({}-{})".format(*map(picture.number, session.estimate(of(result, stack, mix)))),
                    *(to(result, stack, mix, base) for base in ("curtail", "threads")),
                    session.ms(session.median(of(result, stack, mix, "cpu_us"))),
                    session.ms(session.median(of(result, stack, mix, "p99"))),
                    sum(of(result, stack, mix, "failed")),
                ]
            )
    head = ["load, stack", "peak, /s", "to curtail", "to a thread a call", "CPU a request, ms", "p99, ms", "failed"]
    return session.markdown(head, rows)


def draw(result, _):
    rows = [(name, [session.estimate(of(result, stack, mix)) for mix in MIXES]) for stack, name in NAMES.items()]
    return picture.dots(
        "The social network's handlers on other stacks",
        f"{result['at_a_time']} requests at a time; dots: medians, lines: intervals of 95 %",
        "requests a second",
        list(MIXES),
        rows,
    )
