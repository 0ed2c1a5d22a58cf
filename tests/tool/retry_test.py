#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills or stalls one of two servers that have calls in hand: with retries or hedges no request fails.

Usage: retry_test.py CASE CURTAIL TOY SCRATCH_FOLDER

A server is stopped before it is killed, until the other one has answered as many calls as go to both: so calls are in hand.
"""

import contextlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import threading
import time

from tooling import MAX_WAIT_S, expect_nothing_left, own_host, run_case

HERE = os.path.dirname(os.path.abspath(__file__))
IN_HAND = 20


class Service:
    """A service of the toy application, as a process of its own. Once it is killed, no other test listens at its address."""

    def __init__(self, tools, name, number, *flags):
        self.admin = tools.path(f"{name}-{number}.sock")
        self.process = subprocess.Popen(
            [tools.hdsearch, "--service", name, "--listen", own_host() + ":0", "--http-admin", f"unix:{self.admin}", *flags],
            env=tools.env, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.address = re.search(r"ready (\S+)", self.process.stdout.readline())[1]

    def metric(self, name):
        """The sum over its labels."""
        connection = http.client.HTTPConnection("localhost", timeout=MAX_WAIT_S)
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.connect(self.admin)
        connection.request("GET", "/metrics")
        page = connection.getresponse().read().decode()
        connection.close()
        return sum(float(n) for n in re.findall(rf"^{name}\S* (\S+)", page, re.M))

    def served(self):
        return self.metric("rpc_server_duration_seconds_count")

    def send(self, number):
        self.process.send_signal(number)


def wait_until(holds, what):
    limit = time.monotonic() + MAX_WAIT_S
    while not holds():
        assert time.monotonic() < limit, what
        time.sleep(0.01)


@contextlib.contextmanager
def ended(*all_of_them):
    try:
        yield all_of_them
    finally:
        for service in all_of_them:
            service.send(signal.SIGKILL)
            service.process.wait(timeout=MAX_WAIT_S)


def servers(tools):
    return ended(Service(tools, "count", 0), Service(tools, "count", 1))


def target_of(both):
    return "ipv4:" + ",".join(server.address for server in both)


def kill_with_calls_in_hand(one, other):
    one.send(signal.SIGSTOP)
    before = other.served()
    wait_until(lambda: other.served() >= before + IN_HAND, "the other server gets no calls")
    one.send(signal.SIGKILL)


def run_load(tools, name, *flags):
    """The result of a load during which one of two servers is killed."""
    result = tools.path(f"{name}.json")
    with servers(tools) as both:
        load = tools.start("load", target_of(both), "--balancer", "round_robin", "--rps", "200", "--method",
                           "curtail.toy.Count/Number", "--data", '{"text": "one two"}', "--duration", "20m", "--warmup", "0s",
                           "--timeout", "60s", "--json", result, *flags)
        wait_until(lambda: all(server.served() > 10 for server in both), "not both get calls")
        kill_with_calls_in_hand(*both)
        before = both[1].served()
        wait_until(lambda: both[1].served() > before + 100, "the load does not go on")
        load.send_signal(signal.SIGINT)
        out, err = load.communicate(timeout=MAX_WAIT_S)
        print(out, err)
        assert load.returncode == 105, load.returncode
    with open(result, encoding="utf-8") as file:
        return json.load(file), out


def test_load(tools):
    report, out = run_load(tools, "with", "--retries", "2")
    requests = report["runs"][0]["requests"]
    assert report["plan"]["retries"] == 2
    assert requests["failed"] == 0 and requests["ok"] == requests["sent"], requests
    assert IN_HAND / 2 < requests["retried"] <= requests["retries"], requests
    assert re.search(rf"^retried +{requests['retried']} requests, by {requests['retries']} calls$", out, re.M), out
    assert "up to 2 retries" in out
    expect_nothing_left(1)


def test_without(tools):
    report, out = run_load(tools, "without")
    run = report["runs"][0]
    assert run["requests"]["failed"] > IN_HAND / 2 and set(run["codes"]) == {"OK", "UNAVAILABLE"}, run["codes"]
    assert "retries" not in report["plan"] and "retried" not in run["requests"] and "retried" not in out


def test_hedges(tools):
    """One of two servers stalls for good: no read waits for it."""
    with servers(tools) as both, ended(Service(tools, "text", 0, "--peer", "count=" + ",".join(one.address for one in both),
                                               "--balancer", "round_robin", "--hedge-after", "20")) as (text,):
        def load(calls):
            code, out, err = tools.run("load", text.address, "-c", "2", "-n", str(calls), "--method", "curtail.toy.Text/Process",
                                       "--data", '{"text": "one two"}', "--warmup", "0s", "--timeout", "30s", "--fail-if",
                                       "errors<0.1%")
            assert code == 0, (out, err)

        load(10)  # connects to both
        both[0].send(signal.SIGSTOP)
        hedged, answered = text.metric("curtail_client_hedges_total"), both[1].served()
        load(IN_HAND)
        assert text.metric("curtail_client_hedges_total") > hedged
        assert both[1].served() >= answered + IN_HAND


def test_refuses(tools):
    """Methods that are not declared idempotent, and calls that are not unary calls of gRPC."""
    toy = ("--proto", os.path.join(HERE, "../kit/toy.proto"), "--data", "{}", "--rps", "1", "--retries", "1")
    for words, why in ((("127.0.0.1:1", "--method", "curtail.toy.Front/Compose", *toy), "may do harm when it runs twice"),
                       (("http://127.0.0.1:1", "--rps", "1", "--retries", "1"), "only unary calls of gRPC"),
                       (("127.0.0.1:1", "--method", "curtail.toy.Count/Number", *toy[:-1], "5"), "--retries")):
        code, _, err = tools.run("load", *words)
        assert code == 104 and why in err, (code, err)


def test_gateway(tools):
    gateway = os.path.join(os.path.dirname(tools.curtail), "../gateway/curtail-gateway")
    answers = []

    def ask(address):
        connection = http.client.HTTPConnection(address, timeout=MAX_WAIT_S)
        connection.request("POST", "/curtail.toy.Count/Number", '{"text": "one two"}', {"content-type": "application/json"})
        reply = connection.getresponse()
        answers.append((reply.status, json.loads(reply.read())))

    with servers(tools) as both:
        front = subprocess.Popen([gateway, target_of(both), "--listen", "127.0.0.1:0", "--retries", "2"], env=tools.env, text=True,
                                 stdout=subprocess.PIPE)
        address = re.search(r"listening on (\S+)", front.stdout.readline())[1]

        def connected():  # to both: else all the calls may be in the one hand
            ask(address)
            return all(server.served() > 0 for server in both)

        wait_until(connected, "a server gets no calls")
        answers.clear()
        both[0].send(signal.SIGSTOP)
        threads = [threading.Thread(target=ask, args=(address,)) for _ in range(IN_HAND)]
        for thread in threads:
            thread.start()
        wait_until(lambda: len(answers) >= IN_HAND / 4, "the other server does not answer")
        both[0].send(signal.SIGKILL)
        for thread in threads:
            thread.join(timeout=MAX_WAIT_S)
        assert len(answers) == IN_HAND and all(status == 200 and reply["number"] == 2 for status, reply in answers), answers
        front.send_signal(signal.SIGTERM)
        out, _ = front.communicate(timeout=MAX_WAIT_S)
    assert int(re.search(r"(\d+) retries", out)[1]) > 0, out


if __name__ == "__main__":
    run_case(globals())
