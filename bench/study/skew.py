# SPDX-License-Identifier: Apache-2.0
"""The highest load within the promise p99 < 50 ms, by skew: skew s has 100 - s % of the users send 90 % of the requests
(DeathStarBench, figure 22b)."""

import statistics

import picture
import session

SKEWS = (0, 50, 80, 90, 95, 99)
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
    trials = {skew: [] for skew in SKEWS}
    with s.up() as up:
        # What 16 at a time get is beyond the promise's rate, or near it.
        first = 0.8 * up.load(["--closed", "16"], max(1, s.seconds), 1)["rates_per_s"]["good"]
        stairs = {skew: Staircase(first) for skew in SKEWS}
        for turn in range(s.rounds):
            s.step(turn, s.rounds, ", ".join(f"{stair.rate:.0f}" for stair in stairs.values()) + " a second")
            for skew, stair in (list(stairs.items()), list(stairs.items())[::-1])[turn % 2]:
                rate = round(stair.rate)
                result = up.load(["--rps", str(rate), "--senders", f"skew:{skew}"], s.seconds, 1 + turn)
                p99 = result["latency_us"]["all"]["p99"]
                stair.told(p99 < PROMISE_US)
                trials[skew].append({"rate": rate, "p99_us": p99, "settled": stair.turns >= 2})
    return {"trials": {str(skew): runs for skew, runs in trials.items()}}


def blocks(result, skew):
    """Geometric means of the rates of BLOCK turns each, without the turns before all staircases were near."""
    begin = max((sum(not one["settled"] for one in runs) for runs in result["trials"].values()))
    rates = [one["rate"] for one in result["trials"][str(skew)]][begin:]
    size = min(BLOCK, max(1, len(rates)))
    return [statistics.geometric_mean(rates[i : i + size]) for i in range(0, len(rates) - size + 1, size)] or [
        result["trials"][str(skew)][-1]["rate"]
    ]


def table(result, facts):
    base = blocks(result, SKEWS[0])
    rows = []
    for skew in SKEWS:
        middle, low, high = session.estimate(blocks(result, skew))
        ratio = session.estimate(session.ratios(blocks(result, skew), base))
        rows.append(
            [
                skew,
                f"{middle:,.0f} ({low:,.0f}-{high:,.0f})",
                "" if skew == SKEWS[0] else "{:.2f} ({:.2f}-{:.2f})".format(*ratio),
            ]
        )
    return session.markdown(["skew", "highest load, /s", "to skew 0"], rows)


def draw(result, facts):
    rows = [(f"skew {skew}", [session.estimate(blocks(result, skew))]) for skew in SKEWS]
    return picture.dots(
        "The highest load within p99 < 50 ms, by skew",
        "skew s: 100 - s % of the users send 90 % of the requests; dot: median, line: its interval of 95 %",
        "requests a second",
        ["load"],
        rows,
    )
