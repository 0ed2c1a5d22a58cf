# SPDX-License-Identifier: Apache-2.0
"""The highest load within the promise p99 < 50 ms, by what is sent: by skew (DeathStarBench, figure 22b), by kind of request (section
3.8). The facts of an application have the flags of `curtail load` for each."""

import statistics

import picture
import session

PROMISE_US = 50_000
FIRST_STEP, LEAST_STEP = 1.25, 1.05
BLOCK = 4  # turns that make an estimate together: neighbours of a staircase are alike
BUDGET = {"rounds": 20, "seconds": 1}
QUICK = {"rounds": 4, "seconds": 0.3}


class Staircase:
    """Finds the rate at which every second run keeps the promise: up by a step after a run that kept it, else down. Each
    time it turns back, the step shrinks to its square root; after two turns the rates are near."""

    def __init__(self, rate):
        self.rate, self.step, self.last, self.turns = rate, FIRST_STEP, None, 0

    def told(self, kept):
        if self.last not in (None, kept):
            self.turns += 1
            self.step = max(self.step**0.5, LEAST_STEP)
        self.last = kept
        self.rate *= self.step if kept else 1 / self.step


def run(s):
    loads = s.facts.limits[s.study].loads
    trials = {name: [] for name in loads}
    with s.up() as up:
        # What four at a time get is near the promise's rate. More would not get a login in time.
        firsts = {name: up.load(["--closed", "4", *flags], max(1, s.seconds), 1) for name, flags in loads.items()}
        stairs = {name: Staircase(first["rates_per_s"]["good"]) for name, first in firsts.items()}
        for turn in range(s.rounds):
            s.step(turn, s.rounds, ", ".join(f"{stair.rate:.0f}" for stair in stairs.values()) + " a second")
            for name, stair in (list(stairs.items()), list(stairs.items())[::-1])[turn % 2]:
                rate = max(1, round(stair.rate))
                result = up.load(["--rps", str(rate), *loads[name]], s.seconds, 1 + turn)
                p99 = result["latency_us"]["all"]["p99"]
                stair.told(p99 < PROMISE_US)
                trials[name].append({"rate": rate, "p99_us": p99, "cpu_us": result["cpu_us"], "settled": stair.turns >= 2})
    return {"trials": trials}


def blocks(result, name, beside=()):
    """Geometric means of the rates of BLOCK turns each, without the turns before this staircase and those beside it were near."""
    begin = max(sum(not one["settled"] for one in result["trials"][other]) for other in (name, *beside))
    rates = [one["rate"] for one in result["trials"][name]][begin:]
    size = min(BLOCK, max(1, len(rates)))
    return [statistics.geometric_mean(rates[i : i + size]) for i in range(0, len(rates) - size + 1, size)] or [
        result["trials"][name][-1]["rate"]
    ]


def spread(values, form):
    """Their median and its interval; of one value there is none."""
    middle, low, high = session.estimate(values)
    return form(middle) + (f" ({form(low)}-{form(high)})" if len(values) > 1 else "")


def table(result, facts):
    first = next(iter(result["trials"]))
    rows = []
    for name, runs in result["trials"].items():
        ratios = session.ratios(blocks(result, name, [first]), blocks(result, first, [name]))
        rows.append(
            [
                name,
                spread(blocks(result, name), "{:,.0f}".format),
                "" if name == first else spread(ratios, "{:.2f}".format),
                session.ms(session.median([one["cpu_us"] for one in runs])),
            ]
        )
    return session.markdown([facts.limits[result["study"]].what, "highest load, /s", f"to {first}", "CPU a request, ms"], rows)


def draw(result, facts):
    limits = facts.limits[result["study"]]
    return picture.dots(
        f"The highest load within p99 < 50 ms, by {limits.what}",
        f"{limits.note}dot: median, line: its interval of 95 %",
        "requests a second",
        ["load"],
        [(name, [session.estimate(blocks(result, name))]) for name in result["trials"]],
        log=limits.log,
        names=limits.names,
    )
