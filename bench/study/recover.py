# SPDX-License-Identifier: Apache-2.0
"""How long an application is late after one of its processes was killed, which `curtail up` starts again; and the application as one
process (DeathStarBench, figure 20, where a service was overloaded)."""

import os
import signal
import subprocess
import time

import measure
import picture
import session

LATE_US = 50_000
CALM_S = 1.0  # before the process is killed
COPIES = {"services": [], "monolith": ["--monolith"]}
BUDGET = {"rounds": 3, "seconds": 5}
QUICK = {"rounds": 1, "seconds": 2}


def late(lines):
    """Of lines "run,due_us,latency_us,ok": the seconds between the first request that was late or failed and the last one, and how many
    failed. Requests before the kill do not count."""
    requests = [(float(due), float(latency), ok == "1") for _, due, latency, ok in (line.split(",") for line in lines)]
    found = [one for one in requests if one[0] >= 0.9e6 * CALM_S and (one[1] > LATE_US or not one[2])]
    dues = [due for due, _, _ in found]
    return (max(dues) - min(dues)) / 1e6 if found else 0.0, sum(not ok for _, _, ok in found)


def kill(up, service, seconds, seed):
    """What late() tells of a run in which all processes of the service are killed."""
    raw = up.folder / "raw.csv"
    plan = f"--rps {up.facts.rate} --duration {seconds}s --warmup 0s --timeout 1s --seed {seed} --quiet --raw {raw}"
    command = [up.curtail, "load", up.facts.app, up.name, *up.corpus, *up.facts.prompt, *plan.split()]
    pids = [process["pid"] for process in up.processes() if process["service"] == service]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True) as load:
        try:
            time.sleep(CALM_S)
            for pid in pids:
                os.kill(pid, signal.SIGKILL)
            load.wait()
        finally:
            if load.poll() is None:
                load.terminate()
    up.runs += 1
    return late(raw.read_text().splitlines()[1:])


def run(s):
    found = {}
    for copy, flags in COPIES.items():
        victims = s.facts.victims if copy == "services" else [s.facts.front]
        found[copy] = {victim: [] for victim in victims}
        with s.up(copy, flags) as up:
            for number in range(s.rounds):
                for k, victim in enumerate(victims):
                    s.step(number * len(victims) + k, s.rounds * len(victims), f"{copy}: {victim} is killed")
                    found[copy][victim].append(kill(up, victim, s.seconds, 1 + number))
                    measure.run([s.curtail, "load", s.facts.app, up.name, *up.corpus, "--requests", "20", "--rps", "20", "--quiet"],
                                fine=(0, session.VOID))  # it is well again
    return {"kills": found}


def rows(result):
    for copy, victims in result["kills"].items():
        for victim, kills in victims.items():
            yield victim if copy == "services" else "the one process", kills


def table(result, _):
    lines = []
    for name, kills in rows(result):
        middle, low, high = session.estimate([seconds for seconds, _ in kills])
        lines.append([name, f"{middle:.2f} ({low:.2f}-{high:.2f})", picture.number(session.median([failed for _, failed in kills]))])
    return session.markdown(["killed", "late for, s", "requests that failed"], lines)


def draw(result, facts):
    return picture.dots(
        f"{facts.title}: how long requests are late after a process was killed",
        f"{facts.rate} requests a second; late: above 50 ms, or failed; dot: median, line: its interval of 95 %",
        "s",
        ["late"],
        [(name, [session.estimate([seconds for seconds, _ in kills])]) for name, kills in rows(result)],
        names=190,
    )
