#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`curtail dashboard` shows services that it has not started, and sees them go. Usage: dashboard_test.py CURTAIL TOY"""
import http.client
import json
import os
import signal
import subprocess
import sys
import time

MAX_WAIT_S = 60


def start(*command, **variables):
    return subprocess.Popen(command, env={**os.environ, **variables}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def end(process):
    process.terminate()
    process.communicate(timeout=MAX_WAIT_S)
    return process.returncode


def line_with(process, word):
    """The rest of the first line that has the word."""
    for line in process.stdout:
        if word in line:
            return line.partition(word)[2].strip()
    raise AssertionError(f"it ended without {word}")


def get(address, path):
    connection = http.client.HTTPConnection(address, timeout=10)
    connection.request("GET", path)
    reply = connection.getresponse()
    return reply.status, reply.read()


def wait_for(address, holds):
    """The instances by name, once they are as they should be."""
    until = time.monotonic() + MAX_WAIT_S
    while True:
        instances = {i["name"]: i for i in json.loads(get(address, "/dashboard.json")[1])["instances"]}
        if holds(instances):
            return instances
        assert time.monotonic() < until, instances
        time.sleep(0.2)  # between looks


def main(curtail, toy):
    signal.alarm(2 * MAX_WAIT_S)  # a line that does not come
    counted = start(toy, "--service", "count", "--listen", "127.0.0.1:0", "--http-admin", "127.0.0.1:0")
    dashboard = None
    try:
        pages = line_with(counted, "HTTP admin on ").removeprefix("http://").rstrip("/")
        dashboard = start(curtail, "dashboard", "toy", "--listen", "127.0.0.1:0", "--service", f"count={pages}", "--calls", "front=count,store",
                          "--entry", "front", CURTAIL_LOG_FORMAT="json", CURTAIL_LOG_SERVICE="dashboard")
        ready = json.loads(dashboard.stdout.readline())
        assert ready["severity"] == "INFO" and ready["service"] == "dashboard", ready
        address = ready["address"]
        assert get(address, "/")[0] == 200
        read = wait_for(address, lambda them: any(i["metrics"] for i in them.values()))
        count = next(i for i in read.values() if i["service"] == "count")
        assert count["state"] == "ready" and not count["error"] and "rpc_server" in count["metrics"] and count["status"]["config"], count
        assert [read[name]["state"] for name in ("front", "store")] == ["external", "external"], read
        graph = json.loads(get(address, "/dashboard.json")[1])["services"]
        assert {"front": ["count", "store"], "count": [], "store": []} == {s["name"]: s["calls"] for s in graph}, graph
        assert end(counted) == 0
        gone = wait_for(address, lambda them: any(i["error"] for i in them.values()))
        print("after its end:", next(i["error"] for i in gone.values() if i["error"]))
        assert end(dashboard) == 0
    finally:
        for process in (counted, dashboard):
            if process is not None and process.poll() is None:
                process.kill()
                process.wait()
    wrong = subprocess.run([curtail, "dashboard", "toy", "--service", "count"], text=True, capture_output=True, timeout=MAX_WAIT_S, check=False)
    assert wrong.returncode == 104 and "NAME=HOST:PORT" in wrong.stderr, wrong


if __name__ == "__main__":
    main(*sys.argv[1:])
