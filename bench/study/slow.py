# SPDX-License-Identifier: Apache-2.0
"""One slow service: whose latency follows (DeathStarBench, figures 19 and 22a). A service is slow as it stands still: SIGSTOP
for 50 ms, four times a second, as in docs/observe.md."""

import contextlib
import math
import os
import signal
import statistics
import threading
import time

import picture
import session
import spans

STOPPED_S, EVERY_S = 0.05, 0.25
SLOW_MS = 25  # a request that met a stop
LEAST_SLOW = 3  # such requests of a kind
SETTLE_S = 0.8
LEAST_CALLS = 20  # of a service in the time of a cell
BUDGET = {"rounds": 1, "seconds": 4}
QUICK = {"rounds": 1, "seconds": 0.5}


@contextlib.contextmanager
def slow(pids):
    """The processes stand still again and again while the block runs, and all run after it."""
    end = threading.Event()
    processes = [os.pidfd_open(pid) for pid in pids]  # a number may be another process's later

    def send(number):
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(process, number)

    def pulse():
        while not end.is_set():
            send(signal.SIGSTOP)
            time.sleep(STOPPED_S)
            send(signal.SIGCONT)
            end.wait(EVERY_S - STOPPED_S)

    thread = threading.Thread(target=pulse)
    try:
        thread.start()
        yield
    finally:
        end.set()
        if thread.ident:  # an interrupt may come while it starts
            thread.join()
        for process in processes:
            os.close(process)


def watch(up, processes, seconds):
    """The p99 in ms and the calls of each service over that time, and the spans of it."""
    time.sleep(SETTLE_S)
    before = up.durations(processes)
    documents = spans.collect(processes, seconds)
    counts = session.grown(before, up.durations(processes))
    cells = {}
    for service, buckets in counts.items():
        p99 = session.quantile(buckets, 0.99)
        if p99 is not None:
            cells[service] = {"p99_ms": 1000 * p99, "calls": buckets[-1][1]}
    return {"services": cells, "documents": documents}


def culprits(up, documents):
    """By kind of request, how many were slow, and which service `curtail traces` makes answerable."""
    found = spans.classes(up, documents, "--slow", f"{SLOW_MS}ms")
    tails = {kind: one["slow"] for kind, one in found.items() if one["slow"] and one["slow"]["slow"] >= LEAST_SLOW}
    return {
        kind: {"service": tail["culprit"], "slow": tail["slow"], "others": tail["others"]} for kind, tail in tails.items()
    }


def run(s):
    with s.up(flags=spans.UP_FLAGS) as up:
        processes = up.processes()
        order = list(dict.fromkeys(process["service"] for process in processes))
        with up.under_load(["--rps", str(s.facts.rate), *spans.load_flags(s.facts.rate)], 600):
            s.say("nothing is slow")
            calm = [watch(up, processes, s.seconds)]
            called = [
                name
                for name in order
                if calm[0]["services"].get(name, {}).get("calls", 0) >= LEAST_CALLS * min(1, s.seconds / BUDGET["seconds"])
            ]
            rows = {}
            for number, name in enumerate(victims := [*s.facts.slow_too, *called]):
                s.step(number, len(victims), f"{name} is slow")
                with slow([process["pid"] for process in processes if name in (process["service"], process["name"])]):
                    rows[name] = watch(up, processes, s.seconds)
            time.sleep(1)
            calm.append(watch(up, processes, s.seconds))
        for watched in (*calm, *rows.values()):
            watched["culprits"] = culprits(up, watched.pop("documents"))
    return {"order": called, "calm": calm, "rows": rows}


def p99s(result, name):
    """Of a service, in ms, in all rows that have it."""
    rows = (*result["calm"], *result["rows"].values())
    return [one["services"][name]["p99_ms"] for one in rows if name in one["services"]]


def calm_p99(result, name):
    """The lower quartile of its p99, as the dashboard has it: a disturbance while nothing is slow counts for little."""
    return statistics.quantiles(p99s(result, name), n=4, method="inclusive")[0]


def cells(result):
    """The rows of the map: the calm values, then each slow service; a cell is a p99 in ms."""
    order = result["order"]
    found = [[calm_p99(result, name) for name in order]]
    for row in result["rows"].values():
        found.append([row["services"].get(name, {}).get("p99_ms") for name in order])
    return found


def named(row, slow_one):
    """How many kinds of requests with a slow tail the traces lay on the slow service, of how many."""
    return sum(one["service"] == slow_one for one in row["culprits"].values()), len(row["culprits"])


def followers(result, slow_one):
    """The other services whose p99 is higher than calm by half of a stop, or more."""
    p99 = {name: one["p99_ms"] for name, one in result["rows"][slow_one]["services"].items()}
    others = [name for name in result["order"] if name != slow_one]
    return [name for name in others if p99.get(name, 0) - calm_p99(result, name) >= 1000 * STOPPED_S / 2]


def table(result, facts):
    rows = []
    for name, row in result["rows"].items():
        found, of = named(row, name)
        front = row["services"][facts.front]["p99_ms"]
        raised = ", ".join(followers(result, name)) or "none"
        rows.append([name, picture.number(front), raised, f"{found} of {of}" if of else ""])
    return session.markdown(["slow service", f"p99 of {facts.front}, ms", "whose p99 follows", "named as culprit"], rows)


def draw(result, facts):
    found = cells(result)
    calm = found[0]

    def share(i, k):
        """The darkest is ten times the calm p99, and more; below 5 ms nothing counts."""
        return math.log10(max(1.0, found[i][k] / max(calm[k], 5))) if found[i][k] else 0

    return picture.heat(
        "p99 of each service, in ms, while one of them stands still for 50 ms four times a second",
        f"rows: the slow one; columns: whose p99; {facts.rate} requests a second; darker: more times the calm p99",
        ["calm", *result["rows"]],
        result["order"],
        found,
        share,
    )
