# SPDX-License-Identifier: Apache-2.0
"""Policies that choose the threading model of mid-tiers: copies under `online`, and under `mutune` with a profile that is
trained first, take turns with one under `auto`. A profile is of one service, so mutune has the front end alone."""

import contextlib

import measure
import models

CONFIGS = "SDB1-16,ADB1-2-2,FIB1,FDB1-4,auto"
SETTLE_S = 10  # in which a policy learns at the rate
BUDGET = {"rounds": 6, "seconds": 1}
QUICK = {"rounds": 1, "seconds": 0.2}


def train(up, seconds):
    """The profile of the front end of an application that is up."""
    front = next(process for process in up.processes() if process["service"] == up.facts.front)
    profile = up.folder / "profile.json"
    plan = f"--configs {CONFIGS} --loads {up.facts.train_rates} --repeats 3 --seconds {0.3 * seconds} --out {profile}"
    target = [up.facts.app, up.address(), *up.corpus, "--admin", front["admin"]]
    measure.run([up.curtail, "train", *target, *plan.split()])
    return profile


def run(s):
    with contextlib.ExitStack() as stack:
        auto = stack.enter_context(s.up("auto"))
        s.say("training the front end")
        mutune = ["--policy", "mutune", "--profile", str(train(auto, s.seconds))]
        online = [word for tier in models.mid_tiers(auto) for word in ("--set", f"{tier}.policy=online")]
        copies = {"auto": auto}
        for name, flags in {"online": online, "mutune": mutune}.items():
            copies[name] = stack.enter_context(s.up(name, flags))
            s.say(f"{name} learns")
            copies[name].load(["--rps", str(s.facts.rate)], SETTLE_S * min(1, s.seconds), 1000)
        turns = {name: [] for name in copies}
        for number in range(s.rounds):
            s.step(number, s.rounds, "rounds")
            for name in (list(copies), list(copies)[::-1])[number % 2]:
                turns[name].append(models.turn(copies[name], s.seconds, 1 + number))
        configs = {
            name: {one["service"]: one["config"] for one in up.processes() if one["http_admin"]}
            for name, up in copies.items()
        }
    return {"turns": turns, "configs": configs}


table = models.table


def draw(result, facts):
    return models.dots(result, facts, f"{facts.title} under policies", f"online on all mid-tiers, mutune on {facts.front}")
