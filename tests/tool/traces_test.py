#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Finds where the time of a live application goes, also where one of its services is made slow.

Usage: traces_test.py CASE CURTAIL TOY SCRATCH_FOLDER; TOY is the program of tests/kit.
"""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading

from tooling import MAX_WAIT_S, expect_no_escapes, expect_nothing_left

KIT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "kit", "topology.yaml")


def up(tools, *args):
    """Starts the toy application, with a post to read; returns its processes by name."""
    tools.env["PATH"] = os.path.dirname(tools.hdsearch) + ":" + os.environ["PATH"]
    code, _, err = tools.run("up", KIT, "--detach", *args)
    assert code == 0, err
    processes = {p["name"]: p for p in json.loads(tools.run("ps", "--json")[1])[0]["processes"]}
    post = json.dumps({"user": "ann", "words": {"text": "hello world"}})
    code, out, err = tools.run("load", processes["front"]["address"], "--method", "curtail.toy.Front/Compose", "--data", post,
                              "--timeout", "30s", "--debug")
    assert code == 0, (out, err)
    return processes


def down(tools):
    assert tools.run("down", "toy")[0] == 0
    expect_nothing_left()


def read(processes, *args):
    return ["load", processes["front"]["address"], "--method", "curtail.toy.Front/Read", "--data", '{"user": "ann"}',
            "--warmup", "0s", *args]


def request_class(tools, *args):
    """The result for the class of requests that were sent, and the text."""
    code, out, err = tools.run("traces", "toy", "--json", "-", *args)
    assert code == 0, (code, err)
    expect_no_escapes(err)
    found = [c for c in json.loads(out)["classes"] if c["method"] == "/curtail.toy.Front/Read"]
    assert len(found) == 1 and found[0]["requests"] > 50, out
    return found[0], json.loads(out), err


def test_parts(tools):
    """Every service and edge has its parts, which are the whole; and a file of spans says the same."""
    code, _, err = tools.run("traces", "toy")
    assert code == 104 and "unknown application \"toy\"" in err, (code, err)
    processes = up(tools)
    code, _, err = tools.run("traces", "toy", "--seconds", "0")
    assert code == 1 and "--trace-to memory --trace-sample 1" in err, (code, err)
    down(tools)

    code, _, err = tools.run("up", KIT, "--trace-sample", "1")
    assert code == 104 and "--trace-to" in err, (code, err)
    processes = up(tools, "--trace-to", "memory", "--trace-sample", "1")
    load = tools.start(*read(processes, "--rps", "50", "--duration", "100s", "--timeout", "30s"))
    of, whole, text = request_class(tools, "--seconds", "3")
    load.send_signal(signal.SIGINT)
    load.communicate(timeout=MAX_WAIT_S)
    services = {s["service"]: s for s in whole["services"]}
    assert {"front", "user", "post", "timeline"} <= set(services), services
    for part in whole["services"] + whole["edges"]:
        assert abs(sum(part["mean_parts_us"].values()) - part["mean_us"]) < 0.01, part
    assert abs(sum(step["mean_us"] for step in of["critical_path"]) - of["mean_us"]) < 0.01, of
    assert 0 < of["network_share"] < 1 and of["failed"] == 0, of
    assert {"front", "post"} <= {step["service"] for step in of["critical_path"]}, of
    edges = {(e["caller"], e["callee"]): e for e in whole["edges"]}
    for edge in (("front", "user"), ("front", "timeline"), ("front", "post"), ("user", "post"), ("post", "user")):
        assert edges[edge]["callee_seen"] > 0 and edges[edge]["mean_parts_us"]["network"] > 0, edges
    assert re.search(r"^front +\d+ +0 ", text, re.M) and "CRITICAL PATH" in text and "culprit: " in text, text

    path = tools.path("spans.json")
    with open(path, "w") as file:
        file.write(spans_of(processes["front"]))
    code, out, _ = tools.run("traces", path)
    assert code == 0 and "128 spans" in out and "UNSEEN" in out, out
    with open(path, "w") as file:
        file.write("{}")
    code, _, err = tools.run("traces", path)
    assert code == 104 and "no spans" in err, (code, err)
    code, _, err = tools.run("traces", "toy", "--slow", "fast")
    assert code == 104 and "fast" in err, (code, err)
    down(tools)


def test_roots(tools):
    """The generator's root spans are all of its requests, as long as it says; the spans of services are in their traces."""
    processes = up(tools, "--trace-to", "memory", "--trace-sample", "0")
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "load", "spans_agree.py")
    done = subprocess.run([sys.executable, "-B", script, tools.curtail, *read(processes)[1:-2], "--rps", "50", "--duration", "3s"],
                          env=tools.env, capture_output=True, text=True, timeout=MAX_WAIT_S, check=False)
    assert done.returncode == 0 and done.stdout.endswith("they agree\n"), done
    assert re.search(r"traces +root spans of (\d+) of \1 requests\n", done.stdout), done.stdout
    spans = [s for s in json.loads(spans_of(processes["front"]))["spans"] if s["method"] == "/curtail.toy.Front/Read"]
    assert len(spans) > 50 and all(s["parent"] and s["captured"] == "sampled" for s in spans), spans
    code, _, err = tools.run(*read(processes, "--rps", "50", "--duration", "1s", "--trace-to", "nowhere"))
    assert code == 104 and "--trace-to" in err, (code, err)
    down(tools)


def spans_of(process):
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(MAX_WAIT_S)
        client.connect(process["http_admin"].removeprefix("unix:"))
        client.sendall(b"GET /traces HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        text = b""
        while block := client.recv(65536):
            text += block
    return text.decode().split("\r\n\r\n", 1)[1]


def test_culprit(tools):
    """The store of one leaf stands still now and then: that leaf is named, by its handler, and its callers only wait."""
    processes = up(tools, "--trace-to", "memory", "--trace-sample", "1")
    store = processes["timeline-cache"]["pid"]
    over = threading.Event()

    def stand_still():
        while not over.wait(0.5):
            os.kill(store, signal.SIGSTOP)
            over.wait(0.15)
            os.kill(store, signal.SIGCONT)

    fault = threading.Thread(target=stand_still)
    fault.start()
    load = tools.start(*read(processes, "--rps", "50", "--duration", "100s"))
    try:
        of, _, text = request_class(tools, "--seconds", "6", "--slow", "60ms")
    finally:
        over.set()
        fault.join()
    load.send_signal(signal.SIGINT)
    load.communicate(timeout=MAX_WAIT_S)
    slow = of["slow"]
    assert slow["slow"] >= 5 and slow["others"] >= 5, slow
    assert slow["culprit"] == "timeline" and slow["part"] == "handler", slow
    assert slow["growth_us"] > slow["whole_growth_us"] / 2 > 0, slow
    verdicts = {s["service"]: s["verdict"] for s in slow["services"]}
    assert verdicts["timeline"] == "culprit" and verdicts["front"] == "waits", verdicts
    assert "culprit: timeline, its handler: " in text, text
    down(tools)


if __name__ == "__main__":
    from tooling import run_case
    run_case(globals())
