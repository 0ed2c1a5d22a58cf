# SPDX-License-Identifier: Apache-2.0
"""The twelve threading models on all mid-tiers, which are the services that call others. One application is switched from
model to model, `auto` among them."""

import random
import re

import measure
import picture
import session

MODELS = (
    *("SIB16", "SIP2", "SDB1-16", "SDP1-4"),
    *("AIB1-1", "AIP1-1", "ADB1-2-2", "ADP1-2-2"),
    *("FIB1", "FIP1", "FDB1-4", "FDP1-2"),
)
AT_A_TIME = 16
BUDGET = {"rounds": 4, "seconds": 1}
QUICK = {"rounds": 1, "seconds": 0.2}
MEASURES = {
    "p50": "p50 at {rate}/s, ms",
    "p99": "p99 at {rate}/s, ms",
    "cpu_us": "CPU a request at {rate}/s, ms",
    "good": f"{AT_A_TIME} at a time, /s",
}


def mid_tiers(up):
    """The services that call others, of the topology, without programs of another kind."""
    services = up.file.read_text().split("\nservices:\n")[1]
    blocks = dict(re.findall(r"(?ms)^  ([a-z-]+):(.*?)(?=^ {0,2}[a-z]|\Z)", services))
    return [name for name, block in blocks.items() if "\n    calls: [" in block and "protocol:" not in block]


def turn(up, seconds, seed):
    level = up.load(["--rps", str(up.facts.rate)], seconds, seed)
    most = up.load(["--closed", str(AT_A_TIME)], seconds, seed)
    latency = level["latency_us"]["all"]
    return {"p50": latency["p50"], "p99": latency["p99"], "cpu_us": level["cpu_us"], "good": most["rates_per_s"]["good"]}


def switch(up, tiers, config):
    for tier in tiers:
        measure.run([up.curtail, "switch", f"{up.name}/{tier}", config])


def run(s):
    turns = {model: [] for model in (*MODELS, "auto")}
    rng = random.Random(1)
    with s.up() as up:
        tiers = mid_tiers(up)
        for number in range(s.rounds):
            for k, model in enumerate(sorted(turns, key=lambda _: rng.random())):
                s.step(number * len(turns) + k, s.rounds * len(turns), model)
                switch(up, tiers, model)
                turns[model].append(turn(up, s.seconds, 1 + number))
    return {"mid_tiers": tiers, "turns": turns}


def of(turns, key):
    return [one[key] / (1 if key == "good" else 1000) for one in turns]


def table(result, facts):
    """Each beside auto."""
    lines = []
    for name, turns in result["turns"].items():
        cells = [name]
        for key in MEASURES:
            _, low, high = session.estimate(session.ratios(of(turns, key), of(result["turns"]["auto"], key)))
            beside = "" if name == "auto" else f" ({low:.2f}-{high:.2f})"
            cells.append(picture.number(session.median(of(turns, key))) + beside)
        lines.append(cells)
    return session.markdown(["mid-tiers", *(name.format(rate=facts.rate) for name in MEASURES.values())], lines)


def dots(result, facts, heading, note):
    rows = [(name, [session.estimate(of(turns, key)) for key in ("p50", "p99")]) for name, turns in result["turns"].items()]
    return picture.dots(
        heading, f"{note}; {facts.rate} requests a second; lines: intervals of 95 %", "ms", ["p50", "p99"], rows, log=True
    )


def draw(result, facts):
    return dots(result, facts, f"{facts.title} under the twelve models", "all mid-tiers under one model")
