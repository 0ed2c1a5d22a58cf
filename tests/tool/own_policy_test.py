#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A policy that a program has and the library has not, by name: in comparisons and in an application that is up.

Usage: own_policy_test.py CASE CURTAIL OWN_POLICY_FANOUT SCRATCH_FOLDER
"""

import json
import re

from tooling import expect_nothing_left, run_case

TWO_STEP = "two-step:SIB1,SDB1-4"
COMPARE = ("compare", "fanout", "--scenarios", "flash-crowd", "--flash-crowd", "100..600", "--quick")


def test_compare(tools):
    path = tools.path("compare.json")
    code, _, _ = tools.run(*COMPARE, "--program", tools.hdsearch, "--policies", f"{TWO_STEP};static:FIB1", "--json", path)
    assert code == 0, code
    with open(path) as file:
        runs = {run["policy"]: run for run in json.load(file)["runs"]}
    assert set(runs) == {TWO_STEP, "static:FIB1"}, set(runs)
    # 600 a second are beyond the step, 100 are below.
    changes = [(change["from"], change["to"]) for change in runs[TWO_STEP]["changes"]]
    assert runs[TWO_STEP]["first_config"] == "SIB1" and ("SIB1", "SDB1-4") in changes, runs[TWO_STEP]
    expect_nothing_left()


def test_refuses(tools):
    own = ("--program", tools.hdsearch)
    for program, policy, wanted, words in (
            ((), TWO_STEP, 104, ("two-step", "there is static:CONFIG", "--program")),
            (own, "three-step", 1, ("three-step", "there is static:CONFIG", "two-step:LOW,HIGH")),
            (own, "two-step:SIB1", 1, ("needs two configs",))):
        code, _, err = tools.run(*COMPARE, *program, "--policies", f"{policy};static:FIB1")
        assert code == wanted, (policy, code)
        assert all(word in err for word in words), err
    expect_nothing_left()


def test_up(tools):
    path = tools.path("own.yaml")
    with open(path, "w") as file:
        file.write(f"""application: own
services:
  leaf:
    run: {tools.hdsearch} --service leaf
  mid-tier:
    run: {tools.hdsearch} --service mid-tier
    calls: [leaf]
    entry: true
""")
    code, _, _ = tools.run("up", path, "--detach", "--policy", TWO_STEP)
    assert code == 0, code
    code, out, _ = tools.run("status", "own/mid-tier")
    assert code == 0 and re.search(r"two-step", out), out
    assert tools.run("switch", "own", "FIB1")[0] != 0, "the policy chooses"
    assert tools.run("down", "own")[0] == 0
    code, _, err = tools.run("up", path, "--detach", "--policy", "three-step")
    assert code != 0 and "there is static:CONFIG" in err and "two-step:LOW,HIGH" in err, (code, err)
    expect_nothing_left(grace_s=5)


if __name__ == "__main__":
    run_case(globals())
