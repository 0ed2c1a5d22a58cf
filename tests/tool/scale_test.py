#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Scales a service of the toy application out and in under load: no request fails, and each instance gets its share.

Usage: scale_test.py CASE CURTAIL TOY SCRATCH_FOLDER
"""

import contextlib
import http.client
import json
import os
import re
import signal
import socket
import time

from tooling import MAX_WAIT_S, expect_nothing_left, run_case

TOPOLOGY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "kit", "topology.yaml")
REQUEST = ("--method", "curtail.toy.Front/Compose", "--data", '{"user": "ann", "words": {"text": "{{index}} words"}}')


@contextlib.contextmanager
def up(tools):
    tools.env["PATH"] = os.path.dirname(tools.hdsearch) + ":" + os.environ["PATH"]
    code, out, err = tools.run("up", TOPOLOGY, "--detach")
    assert code == 0, (out, err)
    try:
        yield
    finally:
        assert tools.run("down", "toy")[0] == 0
    expect_nothing_left()


def counts(tools):
    """The processes of the service `count`, by name."""
    code, out, _ = tools.run("ps", "--json")
    assert code == 0, out
    return {p["name"]: p for app in json.loads(out) for p in app["processes"] if p["service"] == "count"}


def served(process):
    connection = http.client.HTTPConnection("localhost", timeout=MAX_WAIT_S)
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.connect(process["http_admin"].removeprefix("unix:"))
    connection.request("GET", "/metrics")
    page = connection.getresponse().read().decode()
    connection.close()
    return sum(float(n) for n in re.findall(r'^rpc_server_duration_seconds_count\{[^}]*Number[^}]*\} (\S+)', page, re.M))


def wait_until(holds, what):
    limit = time.monotonic() + MAX_WAIT_S
    while not holds():
        assert time.monotonic() < limit, what
        time.sleep(0.05)


def load(tools):
    """Starts requests at 300 a second. finish() ends them, and they must all have succeeded."""
    path = tools.path("load.json")
    process = tools.start("load", "toy", *REQUEST, "--rps", "300", "--warmup", "0s", "--duration", "20m", "--timeout", "30s",
                          "--json", path)

    def finish():
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=MAX_WAIT_S)
        assert process.returncode == 105, (process.returncode, out, err)
        with open(path) as file:
            run = json.load(file)["runs"][0]
        requests = run["requests"]
        assert requests["failed"] == 0 and requests["ok"] == requests["sent"] > 0, (requests, run["codes"], run["errors"])

    return finish


def await_calls(processes, number):
    """Waits until each process has served so many calls more."""
    before = {name: served(p) for name, p in processes.items()}
    wait_until(lambda: all(served(p) >= before[name] + number for name, p in processes.items()), ("no calls come", before))


def scale(tools, count):
    code, out, err = tools.run("scale", "toy/count", str(count))
    assert code == 0, (out, err)
    return out


def reading(process):
    """The time, and how many calls the process has served by then."""
    begin = time.monotonic()
    calls = served(process)
    return (begin + time.monotonic()) / 2, calls


def expect_fair_shares(tools, calls, window):
    """Of so many calls from now on each of three instances serves a third, give or take 5 points.

    Calls come between the readings of two instances, so rates are compared.
    """
    processes = counts(tools)
    before = {name: reading(p) for name, p in processes.items()}
    assert sorted(before) == ["count", "count-0.1", "count-0.2"], before
    after = {}

    def enough():
        after.update((name, reading(p)) for name, p in processes.items())
        return sum(after[name][1] - before[name][1] for name in before) >= calls

    wait_until(enough, ("no calls come", before))
    rates = {name: (after[name][1] - before[name][1]) / (after[name][0] - before[name][0]) for name in before}
    shares = {name: rate / sum(rates.values()) for name, rate in rates.items()}
    print("window", window, "shares", shares)
    assert all(abs(share - 1 / 3) < 0.05 for share in shares.values()), (window, before, after)


def test_load(tools):
    """Out, a share for each at once, in, and out again: all within one run of load."""
    with up(tools):
        finish = load(tools)
        await_calls(counts(tools), 1)
        assert scale(tools, 3) == "toy/count: 1 -> 3 instances\n"
        for window in range(3):  # the first one begins when the command returns
            expect_fair_shares(tools, 300, window)
        assert scale(tools, 1) == "toy/count: 3 -> 1 instances\n"
        assert list(counts(tools)) == ["count"]
        assert scale(tools, 3) == "toy/count: 1 -> 3 instances\n"
        expect_fair_shares(tools, 300, "again")
        finish()


def test_again(tools):
    """What has left comes back; what was killed does so by itself, and is known to its callers."""
    with up(tools):
        for number in (2, 1, 2):
            scale(tools, number)
        one = counts(tools)["count-0.1"]
        os.kill(one["pid"], signal.SIGKILL)
        wait_until(lambda: counts(tools)["count-0.1"]["pid"] not in (0, one["pid"]), "it does not come back")
        scale(tools, 2)  # once both serve
        finish = load(tools)
        await_calls(counts(tools), 1)
        finish()


def test_restart(tools):
    """One after the other, at the same addresses, and no request fails."""
    with up(tools):
        scale(tools, 3)
        before = counts(tools)
        finish = load(tools)
        await_calls(before, 1)
        code, out, err = tools.run("restart", "toy/count")
        assert code == 0 and out == "toy/count: 3 processes restarted\n", (code, out, err)
        after = counts(tools)
        await_calls(after, 1)
        finish()
        assert {n: p["address"] for n, p in after.items()} == {n: p["address"] for n, p in before.items()}
        assert all(after[n]["pid"] not in (0, p["pid"]) for n, p in before.items()), (before, after)
        code, out, err = tools.run("restart", "toy/count.1")
        assert code == 0 and out == "toy/count.1: 1 process restarted\n", (code, out, err)
        last = counts(tools)
        assert [n for n, p in last.items() if p["pid"] != after[n]["pid"]] == ["count-0.1"], (after, last)
        for target, text in (("toy/nothing", "no service or process nothing"), ("toy", "names no service"), ("no/x", "unknown application \"no\"")):
            code, out, err = tools.run("restart", target)
            assert code == 104 and text in err, (code, out, err)


def test_refuses(tools):
    def refused(code, text, *args):
        got, out, err = tools.run("scale", *args)
        assert got == code and text in err, (got, out, err)

    refused(104, "unknown application \"toy\"", "toy/count", "2")
    refused(104, "APP/SERVICE is missing; no application is up\n")
    with up(tools):
        refused(104, "APP/SERVICE is missing; toy is up\n")
        refused(104, "N is missing\n", "toy/count")
        code, _, err = tools.run("down")
        assert code == 104 and "APP is missing; toy is up\n" in err, (code, err)
        refused(104, "user does not scale; add scales: true to it in the topology, and no --link to it; these scale: count", "toy/user", "2")
        refused(104, "name a service, as toy/SERVICE; these scale: count", "toy", "2")
        refused(104, "N", "toy/count", "0")
        refused(104, "N", "toy/count", "1000")


run_case(globals())
