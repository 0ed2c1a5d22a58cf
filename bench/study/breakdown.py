# SPDX-License-Identifier: Apache-2.0
"""Where the time of requests goes, service by service, at low load and at saturation (DeathStarBench, section 7)."""

import math
import time

import picture
import session
import spans

LEVELS = {"low": ["--rps", "100"], "saturation": ["--closed", "16"]}
TOLD = 10  # services that the picture names
SETTLE_S = 1.5
KEPT = ("requests", "mean_us", "p50_us", "critical_path")
BUDGET = {"rounds": 4, "seconds": 5}
QUICK = {"rounds": 1, "seconds": 1}


def shares(kind):
    """What share of the mean latency of a class each service has, on the critical path, and what is between services."""
    found = {}
    for step in kind["critical_path"]:
        between = step["part"] in ("network", "serialize")
        name = "between services" if between else step["service"]
        found[name] = found.get(name, 0) + step["mean_us"] / kind["mean_us"]
    return found


def run(s):
    rounds = []
    with s.up(flags=spans.UP_FLAGS) as up:
        processes = up.processes()
        rates = {"low": 100, "saturation": up.load(LEVELS["saturation"], min(3, s.seconds), 1)["rates_per_s"]["good"]}
        for number in range(s.rounds):
            rounds.append({})
            for k, (level, load) in enumerate(LEVELS.items()):
                s.step(number * len(LEVELS) + k, s.rounds * len(LEVELS), f"{level} load")
                flags = [*load, *spans.load_flags(rates[level])]
                with up.under_load(flags, SETTLE_S + s.seconds + 30, 1 + number):
                    time.sleep(SETTLE_S)
                    documents = spans.collect(processes, s.seconds)
                found = spans.classes(up, documents)
                rounds[-1][level] = {name: {key: kind[key] for key in KEPT} for name, kind in found.items()}
    return {"rates_per_s": rates, "rounds": rounds}


def values(result, level, kind, value):
    return [value(one[level][kind]) for one in result["rounds"] if kind in one[level]]


def services(result):
    """The greatest shares first, over all kinds and levels."""
    total = {}
    for one in result["rounds"]:
        for kinds in one.values():
            for kind in kinds.values():
                for name, share in shares(kind).items():
                    total[name] = total.get(name, 0) + share
    return sorted(total, key=lambda name: -total[name])


def percent(shares_of_rounds):
    """Blank where no round has any: of a kind of which the generator chose no request, too."""
    if not shares_of_rounds:
        return ""
    middle, low, high = (100 * value for value in session.estimate(shares_of_rounds))
    return f"{middle:.0f} ({low:.0f}-{high:.0f})" if middle >= 0.5 else ""


def columns(facts):
    return [(kind, level) for kind in facts.kinds.values() for level in LEVELS]


def table(result, facts):
    rows = []
    for name in services(result):
        cells = [
            percent(values(result, level, kind, lambda one: shares(one).get(name, 0)))
            for kind, level in columns(facts)
        ]
        if any(cells):
            rows.append([name, *cells])
    for title, key in (("mean, ms", "mean_us"), ("p50, ms", "p50_us")):
        middles = [session.median(values(result, level, kind, lambda one: one[key])) for kind, level in columns(facts)]
        rows.append([title, *("" if math.isnan(middle) else session.ms(middle) for middle in middles)])
    return session.markdown(["% of the latency", *(f"{kind}, {level}" for kind, level in columns(facts))], rows)


def draw(result, facts):
    told = services(result)[:TOLD]
    rows = []
    for kind, level in columns(facts):
        if not values(result, level, kind, shares):
            continue
        parts = [100 * session.median(values(result, level, kind, lambda one: shares(one).get(name, 0))) for name in told]
        mean = session.ms(session.median(values(result, level, kind, lambda one: one["mean_us"])))
        rows.append((f"{kind}, {level}: {mean} ms", [*parts, max(0, 100 - sum(parts))]))
    return picture.stacks(
        "Where the time of requests goes",
        "critical path of the mean request, medians of rounds; low: 100 requests a second, saturation: 16 at a time",
        "% of the latency",
        [*told, "others"],
        rows,
        names=230,
    )
