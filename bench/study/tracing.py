# SPDX-License-Identifier: Apache-2.0
"""What tracing costs: off, one request in 1000, all (DeathStarBench, section 3.7)."""

import picture
import session

COPIES = {"off": [], "default": ["--trace-to", "memory"], "all": ["--trace-to", "memory", "--trace-sample", "1"]}
NAMES = {"default": "one in 1000", "all": "all"}
RATE, AT_A_TIME = 300, 16
TURNS = 5
BUDGET = {"rounds": 3, "seconds": 1.2}
QUICK = {"rounds": 1, "seconds": 0.2}


def run(s):
    return {"values": s.take_turns(COPIES, TURNS, rps=[RATE], closed=[AT_A_TIME])}


def compared(result):
    """For each measure and copy the ratios to the copy without traces: median, low, high."""
    for name, by_copy in result["values"].items():
        yield name, {copy: session.estimate(session.ratios(by_copy[copy], by_copy["off"])) for copy in NAMES}


def change(found):
    middle, low, high = (100 * (value - 1) for value in found)
    return f"{middle:+.1f} % ({low:+.1f} to {high:+.1f})"


def table(result, facts):
    rows = []
    for name, by_copy in compared(result):
        off = session.median(result["values"][name]["off"])
        rows.append([name, picture.number(off), *(change(by_copy[copy]) for copy in NAMES)])
    return session.markdown(["", "without traces", *NAMES.values()], rows)


def draw(result, facts):
    rows = [(name, list(by_copy.values())) for name, by_copy in compared(result)]
    return picture.dots(
        f"{facts.title} with traces, to without",
        "medians of the turns' ratios, with their intervals of 95 %",
        "ratio to without traces",
        list(NAMES.values()),
        rows,
        log=True,
        base=1,
        names=210,
    )
