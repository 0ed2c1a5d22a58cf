#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Provisions an application whose bottlenecks are known: the clerk's one thread, and the archive's CPU time.

Usage: provision_test.py CASE CURTAIL DESK SCRATCH_FOLDER
"""

import json
import os
import signal
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "..", "tool"))
from tooling import MAX_WAIT_S, expect_no_escapes, expect_nothing_left, expect_valid, run_case

DESK = os.path.join(HERE, "topology.yaml")
REQUESTS = ["--method", "curtail.desk.Door/Enter", "--data", '{"text": "a form"}']
CPU_DENIED = 77  # ctest: skipped


def provision(tools, *args):
    tools.env["CURTAIL_PATH"] = os.path.dirname(tools.hdsearch)  # the program under test
    return tools.run("provision", DESK, *REQUESTS, "--out", tools.path("overlay.yaml"), "--json", tools.path("p.json"), *args)


def overlay(tools):
    with open(tools.path("overlay.yaml"), encoding="utf-8") as file:
        return file.read()


def result(tools):
    expect_valid("provision", tools.path("p.json"))
    with open(tools.path("p.json"), encoding="utf-8") as file:
        return json.load(file)


def test_threads(tools):
    """The clerk has too few threads: it is found, gets more, and the application serves more."""
    code, out, err = provision(tools, "--levers", "threads", "--threads", "4", "--qos", "p99<60ms", "--rps", "40",
                               "--seconds", "0.4", "--bound", "25", "--time", "60s", "--html", tools.path("p.html"))
    assert code == 0, code
    expect_no_escapes(out + err)
    document = result(tools)
    first = document["rounds"][0]
    assert first["saturated"][0]["service"] == "clerk" and first["saturated"][0]["short_of"] == "threads", first
    assert first["steps"][0]["to"]["config"] == "SDB1-2" and first["verdict"] == "helps", first
    assert first["highest_per_s"] < 110 and document["highest_per_s"] > 1.3 * first["highest_per_s"], document
    assert document["shares"]["clerk"]["config"] in ("SDB1-2", "SDB1-4"), document["shares"]
    assert document["shares"]["door"] == document["start"]["door"], document["shares"]
    assert "clerk: calls wait" in out and "SDB1-1 -> SDB1-2" in out, out
    assert f"clerk: {{config: {document['shares']['clerk']['config']}}}" in overlay(tools), overlay(tools)
    with open(tools.path("p.html"), encoding="utf-8") as file:
        assert '"kind": "provision"' in file.read()
    expect_nothing_left()
    # What it wrote is what `curtail up` takes.
    code, out, _ = tools.run("up", DESK, "--overlay", tools.path("overlay.yaml"), "--dry-run")
    assert code == 0 and f"--config {document['shares']['clerk']['config']}" in out, out


def test_cpu(tools):
    """The archive gets too little CPU time; so it is throttled first, and gets more."""
    code, out, err = provision(tools, "--levers", "cpu", "--cpu", "0.05", "--cpus", "0.4", "--qos", "p99<80ms", "--rps", "40",
                               "--seconds", "0.4", "--bound", "30", "--time", "60s", "--set", "clerk.config=SDB1-64")
    if code == 104 and "cannot be limited here" in err:
        sys.exit(CPU_DENIED)
    assert code == 0, code
    document = result(tools)
    first = document["rounds"][0]
    assert first["saturated"][0]["service"] == "archive" and first["saturated"][0]["short_of"] == "cpu", first
    assert first["verdict"] == "helps", first
    assert document["shares"]["archive"]["cpu"] >= 0.1 and document["shares"]["door"]["cpu"] <= 0.1, document["shares"]
    assert document["highest_per_s"] > first["highest_per_s"], document
    expect_nothing_left()
    # With the overlay, services are limited.
    up = tools.run("up", DESK, "--overlay", tools.path("overlay.yaml"), "--detach")
    assert up[0] == 0
    groups = [os.path.join(folder, name) for folder, names, _ in os.walk("/sys/fs/cgroup") for name in names
              if name.startswith("curtail.") and name.endswith(".archive")]
    assert groups, "the archive has a group"
    processes = json.loads(tools.run("ps", "--json")[1])[0]["processes"]
    pid = next(p["pid"] for p in processes if p["name"] == "archive")
    mine = [group for group in groups if str(pid) in open(group + "/cgroup.procs").read().split()]
    assert len(mine) == 1, (groups, pid)
    quota = "cpu.max" if os.path.exists(mine[0] + "/cpu.max") else "cpu.cfs_quota_us"
    with open(os.path.join(mine[0], quota), encoding="utf-8") as file:
        assert int(file.read().split()[0]) == round(100000 * document["shares"]["archive"]["cpu"]), mine
    assert tools.run("down", "desk")[0] == 0
    assert not os.path.exists(mine[0]), "the group goes with its process"
    expect_nothing_left()


def test_interrupted(tools):
    """Ctrl-C while it measures: the overlay until then is there, and nothing is left."""
    tools.env["CURTAIL_PATH"] = os.path.dirname(tools.hdsearch)
    process = tools.start("provision", DESK, *REQUESTS, "--out", tools.path("overlay.yaml"), "--json", tools.path("p.json"),
                          "--levers", "threads", "--rps", "30", "--seconds", "0.4", "--qos", "p99<60ms")
    for line in process.stderr:
        if "search at" in line:
            break
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=MAX_WAIT_S)
    assert process.returncode == 105, (process.returncode, out, err)
    assert result(tools)["end"] == "interrupted", out
    assert "application: desk" in overlay(tools)
    expect_nothing_left()
    assert tools.run("up", DESK, "--overlay", tools.path("overlay.yaml"), "--dry-run")[0] == 0


def test_refuses(tools):
    """Mistakes are named before anything is started."""
    for args, words in ((["--qos", "errors<1%"], "needs a percentile"),
                        (["--qos", "p99<fast"], "--qos"),
                        (["--levers", "memory"], "cpu, threads or cpu,threads"),
                        (["--config", "SDB1"], "config"),
                        (["--time", "long"], "--time"),
                        (["--out", tools.path("none/x.yaml")], "none"),
                        (["--overlay", tools.path("none/y.yaml")], "none/y.yaml")):
        code, _, err = tools.run("provision", DESK, *REQUESTS, *args)
        assert code == 104 and words in err, (args, code, err)
    code, _, err = tools.run("provision", DESK, "--dry-run")
    assert code == 104 and "say what to send: either --method package.Service/Method, " in err, err
    with open(tools.path("bad.yaml"), "w", encoding="utf-8") as file:
        file.write("application: desk\nservices:\n  clerk: {cpu: lots}\n")
    code, _, err = tools.run("up", DESK, "--overlay", tools.path("bad.yaml"), "--dry-run")
    assert code == 104 and "bad.yaml:3: cpu must be" in err, err
    code, out, _ = provision(tools, "--levers", "threads", "--dry-run")
    assert code == 0 and "3 services" in out, out
    assert not os.path.exists(tools.path("overlay.yaml"))
    expect_nothing_left()


run_case(globals())
