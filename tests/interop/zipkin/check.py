#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sends the spans of a curtail server to a real Zipkin, and asks Zipkin for them.

Usage: check.py PROGRAMS CURTAIL

PROGRAMS is the folder of interop_server, CURTAIL the command. Zipkin's server comes from Maven Central, at the version below.
Where it cannot be had, the check is left out, and named. Ends with 1 if Zipkin lacks a span. Takes about 40 s, most of them
Zipkin's start.
"""

import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

VERSION = "3.5.1"
JAR = pathlib.Path.home() / f".m2/repository/io/zipkin/zipkin-server/{VERSION}/zipkin-server-{VERSION}-exec.jar"
MAX_INSTALL_S = 300
MAX_WAIT_S = 120
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = "00f067aa0ba902b7"
METHOD = "/grpc.testing.TestService/EmptyCall"


def missing():
    """Why there is no Zipkin; empty if there is one."""
    if shutil.which("java") is None:
        return "no java"
    if JAR.exists():
        return ""
    if shutil.which("mvn") is None:
        return "no mvn"
    command = ["mvn", "-q", "dependency:get", f"-Dartifact=io.zipkin:zipkin-server:{VERSION}:jar:exec", "-Dtransitive=false"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=MAX_INSTALL_S)
    except subprocess.TimeoutExpired:
        return f"mvn took over {MAX_INSTALL_S} s"
    return "" if done.returncode == 0 else f"mvn failed: {(done.stdout.strip().splitlines() or ['no output'])[0]}"


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as one:
        return one.getsockname()[1]


def wait_for(what, ask):
    """The first answer of ask() that is not empty."""
    end = time.monotonic() + MAX_WAIT_S
    while time.monotonic() < end:
        try:
            answer = ask()
            if answer:
                return answer
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            pass
        time.sleep(0.2)
    sys.exit(f"zipkin: no {what} in {MAX_WAIT_S} s")


def get(url):
    with urllib.request.urlopen(url, timeout=5) as reply:
        return json.load(reply)


def check(programs, curtail, zipkin):
    server = subprocess.Popen([programs / "interop_server", "--trace-to", f"zipkin={zipkin}", "--trace-sample", "0"],
                              stdout=subprocess.PIPE, text=True)
    try:
        address = server.stdout.readline().split()[-1]
        subprocess.run([curtail, "load", address, "--method", METHOD[1:], "--closed", "1", "--duration", "1s",
                        "-H", f"traceparent: 00-{TRACE}-{PARENT}-01"], check=False, stdout=subprocess.DEVNULL)
        spans = wait_for("span", lambda: get(f"{zipkin}/api/v2/trace/{TRACE}"))
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(MAX_WAIT_S)
    for span in spans:  # the load generator asks for the method's form in the same trace
        seen = (span["traceId"], span["parentId"], span["kind"], span["localEndpoint"]["serviceName"])
        if seen != (TRACE, PARENT, "SERVER", "interop_server") or span["duration"] < 1:
            sys.exit(f"zipkin: a span is not as it was sent: {span}")
    if METHOD.lower() not in {span["name"] for span in spans}:
        sys.exit(f"zipkin: no span of {METHOD}")
    print(f"zipkin {VERSION}: {len(spans)} spans of the caller's trace")


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    why = missing()
    if why:
        print(f"left out: zipkin ({why})")
        return
    port = free_port()
    with tempfile.TemporaryFile() as log:
        zipkin = subprocess.Popen(["java", "-Xmx512m", "-jar", JAR], env={**os.environ, "QUERY_PORT": str(port)}, stdout=log,
                                  stderr=log)
        try:
            wait_for("answer", lambda: get(f"http://127.0.0.1:{port}/health"))
            check(pathlib.Path(sys.argv[1]), sys.argv[2], f"http://127.0.0.1:{port}")
        finally:
            zipkin.terminate()
            zipkin.wait(MAX_WAIT_S)


main()
