# SPDX-License-Identifier: Apache-2.0
"""A long run in which a process of the application is killed every few seconds. At the end the application is audited, and what clients were
told is done must be in the stores. What it does at most, before the first kill and after the last one, says whether it grew slower."""

import os
import pathlib
import random
import signal
import sqlite3
import subprocess
import sys
import threading

import picture
import session

KILL_EVERY_S = 5
CLOSED = 16  # requests at a time, for what it does at most
ROWS = 12  # of the table
BUDGET = {"rounds": 60, "seconds": 60}
QUICK = {"rounds": 2, "seconds": 12}


class Killer:
    """Kills a process of the application with SIGKILL, again and again, while the block runs. The seed says which."""

    def __init__(self, up, seed):
        self.up, self.rng, self.killed, self.over = up, random.Random(seed), 0, threading.Event()
        self.thread = threading.Thread(target=self.kill)

    def kill(self):
        while not self.over.wait(KILL_EVERY_S):
            running = [process["pid"] for process in self.up.processes() if process["pid"]]
            try:
                os.kill(self.rng.choice(running), signal.SIGKILL)
                self.killed += 1
            except (IndexError, ProcessLookupError):
                pass  # it had just been killed, and is not back yet

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


def at_most(up, s):
    """The requests answered a second, in blocks."""
    seconds = s.seconds / 20
    return [up.load(["--mix", "mixed", "--closed", str(CLOSED)], seconds, 90 + block)["rates_per_s"]["good"] for block in range(5)]


def kept(up):
    """How many of each acknowledged kind the stores have."""
    counts = {}
    for method, (store, query) in up.facts.acknowledged.items():
        with sqlite3.connect(f"file:{up.data / store}?mode=ro", uri=True) as db:
            counts[method] = db.execute(query).fetchone()[0]
    return counts


def audit(up):
    """What the application's audit says; nothing where all is right."""
    program = pathlib.Path(up.curtail).resolve().parents[2] / "apps" / up.facts.app / up.facts.app
    done = subprocess.run([str(program), "audit", "--data", str(up.data)], capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else f"exit code {done.returncode}: {done.stderr.strip() or done.stdout.strip()}"


def run(s):
    parts, told = [], dict.fromkeys(s.facts.acknowledged, 0)
    with s.up() as up:
        first, before = at_most(up, s), kept(up)
        for part in range(s.rounds):
            s.step(part, s.rounds, f"{parts[-1]['ok']:,} answered, {parts[-1]['failed']:,} not" if parts else "the first kills")
            with Killer(up, part) as killer:
                result = up.load(["--mix", "mixed", "--rps", str(s.facts.rate), "--timeout", "2s"], s.seconds, 1 + part)
            latency, requests = result["latency_us"]["all"], result["requests"]
            parts.append(
                {
                    "kills": killer.killed,
                    "ok": requests["ok"],
                    "failed": requests["failed"],
                    "p50_us": latency["p50"],
                    "p99_us": latency["p99"],
                }
            )
            for method in told:
                told[method] += sum(row["ok"] for row in result["methods"] if row["name"] == method)
        last = at_most(up, s)
        stored = {method: count - before[method] for method, count in kept(up).items()}
        found = audit(up)
    result = {"parts": parts, "at_most": {"before": first, "after": last}, "told": told, "stored": stored, "audit": found}
    if found or any(stored[method] < told[method] for method in told):
        print(f"the soak has found a fault: {found or [told, stored]}", file=sys.stderr)
    return result


def rows(parts):
    """The parts, several of them together."""
    size = -(-len(parts) // ROWS)
    for begin in range(0, len(parts), size):
        some = parts[begin : begin + size]
        sums = {name: sum(part[name] for part in some) for name in ("kills", "ok", "failed")}
        medians = {name: session.median([part[name] for part in some]) for name in ("p50_us", "p99_us")}
        yield f"{begin + 1} to {begin + len(some)}", sums | medians


def table(result, _):
    lines = [
        [name, row["kills"], f"{row['ok']:,}", f"{row['failed']:,}", session.ms(row["p50_us"]), session.ms(row["p99_us"])]
        for name, row in rows(result["parts"])
    ]
    before, after = (session.estimate(result["at_most"][when]) for when in ("before", "after"))
    told = ", ".join(f"{count:,} of {method} were acknowledged, {result['stored'][method]:,} stored" for method, count in result["told"].items())
    return "\n".join(
        [
            session.markdown([f"parts of {result['seconds']:.0f} s", "kills", "answered", "failed", "p50, ms", "p99, ms"], lines),
            "",
            f"At most, {CLOSED} at a time: {before[0]:,.0f} a second ({before[1]:,.0f}-{before[2]:,.0f}) before the first kill, "
            f"{after[0]:,.0f} ({after[1]:,.0f}-{after[2]:,.0f}) after the last one.",
            f"{told}. The audit: {result['audit'] or 'clean'}.",
        ]
    )


def draw(result, facts):
    return picture.dots(
        f"{facts.title} while a process is killed every {KILL_EVERY_S} s",
        f"{facts.rate} requests a second, in parts of {result['seconds']:.0f} s: medians",
        "p99, ms",
        ["p99"],
        [(name, [(row["p99_us"] / 1000,) * 3]) for name, row in rows(result["parts"])],
    )
