#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""With CURTAIL_LOG_FORMAT=json all that a service, and a gateway before it, write is JSON, an object a line: from their start to
their end, and of a command line that is wrong. Usage: log_test.py TOY GATEWAY"""
import contextlib
import json
import os
import re
import signal
import subprocess
import sys

MAX_WAIT_S = 60
ENV = {**os.environ, "CURTAIL_LOG_FORMAT": "json", "CURTAIL_LOG_INSTANCE": "toy-count-0"}
KEYS = ["time", "severity", "service", "instance", "message"]


def objects(text, service):
    lines = [json.loads(line) for line in text.splitlines()]
    for line in lines:
        assert list(line)[:len(KEYS)] == KEYS, line
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", line["time"]), line
        assert line["severity"] in ("INFO", "WARNING", "ERROR"), line
        assert line["service"] == service and line["instance"] == "toy-count-0", line
    return lines


@contextlib.contextmanager
def started(service, *command):
    """The process, and the line in which it says that it is there. What it says afterwards is checked at its end."""
    process = subprocess.Popen(command, env={**ENV, "CURTAIL_LOG_SERVICE": service}, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True)
    try:
        line, = objects(process.stdout.readline(), service)
        yield process, line
    finally:
        process.terminate()
        rest = objects(process.communicate(timeout=MAX_WAIT_S)[0], service)
    assert process.returncode == 0, process.returncode
    assert rest, "it says nothing at its end"
    print(service, "ends with", [line["message"] for line in rest])


def main(toy, gateway):
    signal.alarm(MAX_WAIT_S)  # a line that does not come
    with started("count", toy, "--service", "count", "--listen", "127.0.0.1:0") as (_, ready):
        address = ready["address"]
        assert ready["severity"] == "INFO" and ready["message"] == f"ready {address}", ready
        with started("gateway", gateway, address, "--listen", "127.0.0.1:0") as (_, listening):
            assert address in listening["message"], listening
    for program, *words in ((toy, "--service", "nothing"), (toy, "--service", "count", "--listen", "nonsense"),
                            (gateway, "--listen", "127.0.0.1:0")):
        done = subprocess.run([program, *words], env={**ENV, "CURTAIL_LOG_SERVICE": "wrong"}, text=True, capture_output=True,
                              timeout=MAX_WAIT_S, check=False)
        lines = objects(done.stderr, "wrong")
        assert done.returncode == 104 and done.stdout == "" and len(lines) == 1 and lines[0]["severity"] == "ERROR", done
        print(words, "->", lines[0]["message"])


if __name__ == "__main__":
    main(*sys.argv[1:])
