#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Limits of path classes from training to service, as users find and use them.

Usage: fence_train_test.py CASE CURTAIL HDSEARCH SCRATCH_FOLDER

Measurements are short: limits must be there and hold; how good they are is not looked at.
"""

import json

from tooling import expect_nothing_left, expect_valid, run_case

DATA = "synthetic:N=2000,D=16"
TRAIN = ("train", "hdsearch", "--corpus", DATA, "--leaves", "2", "--configs", "FIB1")
LEAF = "curtail.hdsearch.Leaf"
PERMITS = 230  # that a class can have under FIB1: 256 less the reserve


def read(path):
    with open(path) as file:
        return json.load(file)


def test_knee(tools):
    """Each class that calls a service has a knee, another training keeps it, and a fence begins with it."""
    profile = tools.path("profile.json")
    code, out, _ = tools.run(*TRAIN, "--fences", "--quick", "--seconds", "0.4", "--out", profile)
    assert code == 0 and f"{LEAF}: Query" in out, (code, out)
    expect_valid("profile", profile)
    fences = read(profile)["fences"]
    assert [fence["services"] for fence in fences] == [[LEAF]], fences
    limit = fences[0]["limit"]
    assert 1 <= limit <= fences[0]["tried"] and fences[0]["throughput_per_s"] > 0, fences
    assert fences[0]["config"] == "FIB1", fences
    expect_nothing_left()
    check_limit_holds(tools, profile, min(limit, PERMITS))
    check_is_kept(tools, profile)


def check_limit_holds(tools, profile, limit):
    code, out, _ = tools.run("up", "hdsearch", "--set", "data=" + DATA, "--set", "leaf.shards=2", "--config", "FIB1",
                             "--fence", "strict", "--profile", profile, "--detach")
    assert code == 0, (code, out)
    code, out, _ = tools.run("load", "hdsearch", "--closed", "8", "--requests", "100", "--duration", "60s", "--warmup", "0s")
    assert code in (0, 98), (code, out)
    code, out, _ = tools.run("status", "hdsearch", "--json")
    fences = json.loads(out)["fences"]
    assert code == 0 and fences["mode"] == "strict", out
    found = {of["services"]: of for of in fences["classes"]}
    assert found[LEAF]["permits"] == limit and found[LEAF]["begun"] >= 100, (limit, found)
    code, _, _ = tools.run("down", "hdsearch")
    assert code == 0
    expect_nothing_left()


def check_is_kept(tools, profile):
    """A training of loads leaves the limits where they are, unless they are of another service."""
    before = read(profile)
    loads = (*TRAIN, "--loads", "100", "--seconds", "0.05", "--out", profile)
    code, _, err = tools.run(*loads)
    assert code == 0 and f"kept: the 1 limit of path classes in {profile};" in err, (code, err)
    after = read(profile)
    assert after["fences"] == before["fences"] and after["cells"], after
    expect_valid("profile", profile)

    with open(profile, "w") as file:
        json.dump({**after, "service": "a.Other"}, file)
    code, _, err = tools.run(*loads)
    assert code == 0 and f"not kept: the 1 limit of path classes in {profile}: the profile is of the service \"a.Other\"" in err, (code, err)
    assert "fences" not in read(profile), "limits of another service"


if __name__ == "__main__":
    run_case(globals())
