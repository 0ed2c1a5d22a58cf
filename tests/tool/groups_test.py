#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs services of the toy application in one process: they call each other in it, and are found by their names.

Usage: groups_test.py CASE CURTAIL TOY SCRATCH_FOLDER
"""

import json
import os
import re
import signal
import socket

from tooling import MAX_WAIT_S, await_ps, expect_nothing_left, ps_answered, run_case

TOPOLOGY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "kit", "topology.yaml")
GROUPS = ("--group", "text,count", "--group", "user,post")
PROCESSES = ["front", "post-cache", "text+count", "timeline", "timeline-cache", "user+post"]


def up(tools, *args):
    tools.env["PATH"] = os.path.dirname(tools.hdsearch) + ":" + os.environ["PATH"]
    return tools.run("up", TOPOLOGY, *GROUPS, *args)


def test_key(tools):
    """The key `groups` of a topology is --group; the command line goes first, and a cluster has none."""
    path = tools.path("toy.yaml")
    with open(TOPOLOGY) as file, open(path, "w") as copy:
        copy.write(file.read() + "groups: [[text, count], [user, post]]\n")
    tools.env["PATH"] = os.path.dirname(tools.hdsearch) + ":" + os.environ["PATH"]
    names = lambda *args: sorted(line.split(":")[0] for line in tools.run("up", path, "--dry-run", *args)[1].splitlines()
                                 if re.match(r"[a-z+-]+: ", line))
    assert names() == PROCESSES, names()
    assert "text" in names("--group", "none") and "user+post" not in names("--group", "text,count")
    code, out, err = tools.run("render", path, "--to", "compose", "--image", "toy:1", "--set", "post-cache.replicas=0", "--set",
                               "timeline-cache.replicas=0")
    assert code == 0 and "text+count" not in out and "count:" in out, (out, err)


def compose(tools):
    post = json.dumps({"user": "ann", "words": {"text": "hello world"}})
    code, out, err = tools.run("load", "toy", "--method", "curtail.toy.Front/Compose", "--data", post, "--timeout", "30s",
                              "--debug")
    assert code == 0 and '"number": 2' in out, (out, err)


def served(process, method):
    """How many calls of a method have come over a connection."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(MAX_WAIT_S)
        client.connect(process["http_admin"].removeprefix("unix:"))
        client.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        page = b""
        while block := client.recv(65536):
            page += block
    return sum(float(n) for n in re.findall(rf'^rpc_server_duration_seconds_count\{{[^}}]*{method}"[^}}]*\}} (\S+)', page.decode(), re.M))


def test_names(tools):
    """Each command takes the name of a service for its process, and shows the process by the names of all."""
    code, out, err = up(tools, "--detach", "--trace-to", "memory", "--trace-sample", "1")
    assert code == 0 and re.search(r"memory: about \d+ MiB; ", err), (out, err)
    try:
        found = ps_answered(tools)
        assert sorted(found) == PROCESSES, found
        assert all(p["state"] == "ready" and p["health"] in ("serving", "-") for p in found.values()), found
        compose(tools)
        text = found["text+count"]
        assert served(text, "Process") == 1 and served(text, "Number") == 0, "a call within the process"
        # From outside, each service of the process is there.
        code, out, err = tools.run("load", "toy/count", "--method", "curtail.toy.Count/Number", "--data",
                                   '{"text": "a b c"}', "--timeout", "30s", "--debug")
        assert code == 0 and '"number": 3' in out, (out, err)
        assert served(text, "Number") == 1

        code, out, _ = tools.run("logs", "toy", "count")
        assert code == 0 and "text+count | --- " in out and "--service text,count" in out and "front | " not in out, out
        assert tools.run("logs", "toy/user")[1].startswith("user+post | --- ")
        code, out, _ = tools.run("switch", "toy/post", "SDB1-8")
        assert code == 0 and out == "auto -> SDB1-8\n", out
        await_ps(tools, lambda found: found["user+post"]["config"].endswith("SDB1-8"))
        code, _, err = tools.run("scale", "toy/count", "2")
        assert code == 104 and "toy has no service count" in err, err
        code, _, err = tools.run("status", "toy/texts")
        assert code == 104 and "text+count" in err, err

        load = tools.start("load", "toy", "--method", "curtail.toy.Front/Read", "--data", '{"user": "ann"}', "--rps", "50",
                           "--duration", "100s", "--warmup", "0s")
        code, out, _ = tools.run("top", "toy", "--seconds", "3", "--json")
        last = {s["service"]: s for s in json.loads(out.splitlines()[-1])["services"]}
        assert code == 0 and last["user+post"]["ready"] == 1 and last["user+post"]["calls_per_s"] > 0, last
        code, out, err = tools.run("traces", "toy", "--seconds", "3", "--json", "-")
        traced = {s["service"] for s in json.loads(out)["services"]}
        assert code == 0 and {"front", "user+post"} <= traced, (traced, err)
        load.send_signal(signal.SIGINT)
        load.communicate(timeout=MAX_WAIT_S)

        # One process ends, and is started again with both.
        os.kill(text["pid"], signal.SIGKILL)
        await_ps(tools, lambda found: found["text+count"]["pid"] not in (0, text["pid"]) and found["text+count"]["state"] == "ready")
        compose(tools)
    finally:
        assert tools.run("down", "toy")[0] == 0
    expect_nothing_left()


def test_circle(tools):
    """Two groups that call each other, under all kinds of waiting."""
    for config in ("SIB32", "FIB1", "ADB1-2-2"):
        settings = [word for name in ("front", "user", "text", "post", "count") for word in ("--set", f"{name}.config={config}")]
        tools.env["PATH"] = os.path.dirname(tools.hdsearch) + ":" + os.environ["PATH"]
        code, out, err = tools.run("up", TOPOLOGY, "--group", "front,user,count", "--group", "text,post", *settings, "--detach")
        assert code == 0 and "toy is up: front+user+count at " in out, (out, err)
        try:
            found = ps_answered(tools)
            assert len(found) == 5 and found["front+user+count"]["config"] == config, found
            compose(tools)
            code, out, err = tools.run("load", "toy", "--method", "curtail.toy.Front/Read", "--data", '{"user": "ann"}',
                                       "--closed", "8", "--duration", "1s", "--warmup", "100ms", "--timeout", "10s")
            assert code in (0, 98) and re.search(r"\b0 failed", out), (out, err)
        finally:
            assert tools.run("down", "toy")[0] == 0
        expect_nothing_left()


def test_refuses(tools):
    def refused(texts, *args):
        code, out, err = up(tools, "--dry-run", *args)
        assert code == 104 and all(text in err for text in texts), (code, out, err)

    code, out, err = up(tools, "--dry-run")
    assert code == 0 and "text+count: toy --service text,count" in out, (out, err)
    assert "--peer text=<text+count> --peer user=<user+post> --peer post=<user+post>" in out, out
    refused(["no service count", "text+count"], "--group", "count,front")
    refused(["--group text,count cannot be one process: count has 2 instances"], "--scale", "2")
    refused(["post-cache is not a curtail service"], "--group", "front,post-cache")
    refused(["write two services or more"], "--group", "front")
    refused(["does not go with --monolith"], "--monolith")


run_case(globals())
