# SPDX-License-Identifier: Apache-2.0
"""Copies of an application under different flags of `curtail up`: its services as processes and as one (DeathStarBench, figure 3), over
other stores, over a slower network: latency over load, throughput, CPU. The facts of the application have the flags of each."""

import picture
import session

AT_A_TIME = 16
TURNS = 4
BUDGET = {"rounds": 2, "seconds": 1.2}
QUICK = {"rounds": 1, "seconds": 0.2}


def rates(facts, study):
    return facts.compared[study].rates or facts.latency_rates


def run(s):
    compared = s.facts.compared[s.study]
    copies = {name: flags for name, (_, flags) in compared.copies.items()}
    return {"values": s.take_turns(copies, TURNS, rps=rates(s.facts, s.study), closed=[AT_A_TIME], load=compared.load)}


def shown(measure_name, values):
    return picture.number(session.median(values)) if measure_name.endswith("/s") else session.ms(session.median(values))


def table(result, facts):
    copies = facts.compared[result["study"]].copies
    rows = []
    for name, by_copy in result["values"].items():
        row = [name.replace(", us", ", ms"), shown(name, by_copy["services"])]
        for copy in list(copies)[1:]:
            ratio = session.estimate(session.ratios(by_copy[copy], by_copy["services"]))
            row.append(f"{shown(name, by_copy[copy])} " + "({1:.2f}-{2:.2f})".format(*ratio))
        rows.append(row)
    written = session.markdown(["", *(shown_as for shown_as, _ in copies.values())], rows)
    return f"{written}\n\n{boundaries(result)}" if "monolith" in copies else written


def boundaries(result):
    """The share of a request's CPU that one process does not use."""
    shares = []
    for name, by_copy in result["values"].items():
        if name.startswith("CPU a request"):
            ratios = session.ratios(by_copy["monolith"], by_copy["services"])
            middle, low, high = (100 * (1 - value) for value in session.estimate(ratios))
            at = name.removeprefix("CPU a request").removesuffix(", us").lstrip(", ")
            shares.append(f"{at} {middle:.0f} % ({high:.0f}-{low:.0f})")
    return "Of the CPU of a request the boundaries between services take: " + "; ".join(shares) + "."


def draw(result, facts):
    compared, rows = facts.compared[result["study"]], []
    for rate in rates(facts, result["study"]):
        for quantile in ("p50", "p99"):
            by_copy = result["values"][f"{quantile} at {rate}/s, us"]
            in_ms = {copy: [value / 1000 for value in values] for copy, values in by_copy.items()}
            rows.append((f"{quantile} at {rate}/s", [session.estimate(in_ms[copy]) for copy in compared.copies]))
    return picture.dots(
        f"{facts.title} {compared.title}",
        "latency over load; dots: medians of the turns, lines: their intervals of 95 %",
        "ms",
        [shown_as for shown_as, _ in compared.copies.values()],
        rows,
        log=True,
    )
