# SPDX-License-Identifier: Apache-2.0
"""A pool of threads, asynchronous calls, fences and fibers under three traces of varying load (PathFence's
table of the social network)."""

import picture
import session

COPIES = {"base": [], "async": [], "fence": ["--fence", "on"], "fiber": []}
CONFIGS = {"base": "SDB1-16", "async": "ADB1-4-4", "fence": "SDB1-16", "fiber": "FIB1"}
NAMES = {"base": "pool of threads", "async": "asynchronous calls", "fence": "pool with fences", "fiber": "fibers"}
TRACES = {"large": "large-variation", "quick": "quick-variation", "slow": "slow-variation"}
PEAK = 800  # requests a second, at the trace's highest point
TURNS = 9
BUDGET = {"rounds": 1, "seconds": 3}
QUICK = {"rounds": 1, "seconds": 0.3}


def schedule(trace):
    return f"{TRACES[trace]}:{PEAK}"


def run(s):
    programs = {copy: f"{s.facts.app} --config {config}" for copy, config in CONFIGS.items()}
    schedules = [schedule(trace) for trace in TRACES]
    return {"values": s.take_turns(COPIES, TURNS, schedule=schedules, programs=programs)}


def in_ms(result, what, trace, copy):
    return [value / 1000 for value in result["values"][f"{what} in {schedule(trace)}, us"][copy]]


def spread(values):
    return "{} ({}-{})".format(*(picture.number(value) for value in (session.median(values), min(values), max(values))))


def table(result, facts):
    rows = []
    for trace in TRACES:
        for copy, name in NAMES.items():
            means = in_ms(result, "mean", trace, copy)
            ratio = session.estimate(session.ratios(means, in_ms(result, "mean", trace, "base")))
            paper = facts.paper_traces.get((trace, copy))
            rows.append(
                [
                    f"{trace}, {name}",
                    spread(means),
                    "" if copy == "base" else "{:.2f} ({:.2f}-{:.2f})".format(*ratio),
                    spread(in_ms(result, "p99", trace, copy)),
                    sum(result["values"][f"failed in {schedule(trace)}"][copy]),
                    ", ".join(f"{value:,}" for value in paper) if paper else "",
                ]
            )
    head = ["trace, threading", "mean, ms", "to the pool", "p99, ms", "failed", "paper: mean, p99, dropped"]
    return session.markdown(head, rows)


def draw(result, facts):
    rows = [(trace, [session.estimate(in_ms(result, "p99", trace, copy)) for copy in NAMES]) for trace in TRACES]
    return picture.dots(
        f"{facts.title} under three traces of varying load",
        f"at most {PEAK} requests a second; dots: medians of the turns, lines: their intervals of 95 %",
        "p99, ms",
        list(NAMES.values()),
        rows,
        log=True,
    )
