#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the conformance suites of others against curtail, and names what fails that is not known to.

Usage: check.py PROGRAMS TOOLS

PROGRAMS is the folder of conformance_server, conformance_client, interop_server and interop_client. The suites are
installed to TOOLS with `go install`, at the versions below. A suite that cannot be installed is left out, and named.
known_failures.txt lists the cases that may fail. Ends with 1 if anything else does.
"""

import contextlib
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree

HERE = pathlib.Path(__file__).resolve().parent
MAX_WAIT_S = 120
MAX_INSTALL_S = 180
MOST_NAMED = 30
SERVER_NAME = "conformance.example"

SUITES = {
    "h2spec": "github.com/summerwind/h2spec/cmd/h2spec@v2.2.1+incompatible",
    "connectconformance": "connectrpc.com/conformance/cmd/connectconformance@v1.0.7",
    "client": "google.golang.org/grpc/interop/client@v1.85.0",
    "server": "google.golang.org/grpc/interop/server@v1.85.0",
}
INTEROP_CASES = (
    "empty_unary", "large_unary", "client_streaming", "server_streaming", "ping_pong", "empty_stream",
    "timeout_on_sleeping_server", "cancel_after_begin", "cancel_after_first_response", "status_code_and_message",
    "special_status_message", "custom_metadata", "unimplemented_method", "unimplemented_service")
# One of each kind of waiting, and what a server does unless it is told.
INTEROP_CONFIGS = ("auto", "SDB1-4", "ADB1-2-2")


def known_failures():
    lines = (HERE / "known_failures.txt").read_text(encoding="utf-8").splitlines()
    return {line for line in lines if line and not line.startswith("#")}


def install(tools):
    """The suites that are there, by name, and why others are not."""
    tools.mkdir(parents=True, exist_ok=True)
    go = shutil.which("go", path=f"{os.environ.get('PATH', '')}:/usr/local/go/bin")
    found, missing = {}, {}
    for name, module in SUITES.items():
        program = tools / f"{name}-{module.rsplit('@', 1)[1]}"
        if not program.exists():
            if go is None:
                missing[name] = "no go"
                continue
            with tempfile.TemporaryDirectory(dir=tools) as folder:
                try:
                    done = subprocess.run([go, "install", "-trimpath", module], text=True, capture_output=True, check=False,
                                          env={**os.environ, "GOBIN": folder, "GOFLAGS": ""}, timeout=MAX_INSTALL_S)
                except subprocess.TimeoutExpired:
                    missing[name] = f"go install took over {MAX_INSTALL_S} s"
                    continue
                if done.returncode != 0:
                    missing[name] = f"go install failed: {(done.stderr.strip().splitlines() or ['no output'])[-1]}"
                    continue
                shutil.move(f"{folder}/{name}", program)
        found[name] = program
    return found, missing


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as one:
        return one.getsockname()[1]


@contextlib.contextmanager
def running(port, *command):
    """A server, once it takes connections."""
    with subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            until = time.monotonic() + MAX_WAIT_S
            while True:
                assert server.poll() is None and time.monotonic() < until, f"no server: {command}"
                try:
                    socket.create_connection(("127.0.0.1", port), timeout=1).close()
                    break
                except OSError:
                    time.sleep(0.02)
            yield
        finally:
            server.send_signal(signal.SIGTERM)
            try:
                server.wait(timeout=20)
            except subprocess.TimeoutExpired:
                server.kill()


def output_of(*command):
    done = subprocess.run([str(word) for word in command], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=MAX_WAIT_S, check=False)
    return done.returncode, done.stdout


# The header frame that is to exceed what the server takes has five fields of this length, whatever the server says that it
# takes: 128 KiB here. By default they are 4000 bytes long.
LONG_FRAME = ("h2spec http2/4.2: Sends a large size HEADERS frame that exceeds the SETTINGS_MAX_FRAME_SIZE", "http2/4.2/3", 40000)


def h2spec_report(path):
    """The cases of a report that ran, and those that failed."""
    ran, failed = set(), set()
    for suite in xml.etree.ElementTree.parse(path).iter("testsuite"):
        for number, case in enumerate(suite.iter("testcase")):
            if case.find("skipped") is not None:
                continue
            name = f"h2spec {case.get('package')}: {case.get('classname')}"
            ran.add((name, number))
            if case.find("failure") is not None or case.find("error") is not None:
                failed.add(name)
    return ran, failed


def h2spec(suites, programs, folder):
    """Its cases that ran, and those that failed."""
    port = free_port()
    long_name, long_case, long_field = LONG_FRAME
    flags = ("-h", "127.0.0.1", "-p", port, "-o", 1)
    with running(port, programs / "interop_server", "--listen", f"127.0.0.1:{port}", "--config", "SDB1-4"):
        output_of(suites["h2spec"], *flags, "-j", f"{folder}/h2spec.xml")
        output_of(suites["h2spec"], *flags, "-j", f"{folder}/h2spec-long.xml", "--max-header-length", long_field, long_case)
    ran, failed = h2spec_report(f"{folder}/h2spec.xml")
    long_ran, long_failed = h2spec_report(f"{folder}/h2spec-long.xml")
    if any(name == long_name for name, _ in long_ran):
        failed = failed - {long_name} | long_failed
    return len(ran), failed


def connect(suites, programs, mode):
    name = f"connect {mode}"
    code, text = output_of(suites["connectconformance"], "--mode", mode, "--conf", HERE / "grpc.yaml", "--",
                           programs / f"conformance_{mode}")
    total = re.search(r"Total cases: (\d+)", text)
    failed = {f"{name} {case}" for case in re.findall(r"^FAILED: (.+?):?$", text, re.MULTILINE)}
    if code != 0 and not failed:
        failed.add(f"{name}: {text.strip()[-500:]}")
    return int(total.group(1)) if total else 0, failed


def make_certificate(folder):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj",
                    f"/CN={SERVER_NAME}", "-addext", f"subjectAltName=DNS:{SERVER_NAME}", "-out", f"{folder}/crt",
                    "-keyout", f"{folder}/key"], capture_output=True, timeout=MAX_WAIT_S, check=True)


def grpc_go_client(suites, programs, folder):
    ran, failed = 0, set()
    for config in INTEROP_CONFIGS:
        for tls in (False, True):
            port = free_port()
            ours = ["--tls-cert", f"{folder}/crt", "--tls-key", f"{folder}/key"] if tls else []
            theirs = ["-use_tls", "-use_test_ca", "-ca_file", f"{folder}/crt", "-server_host_override",
                      SERVER_NAME] if tls else []
            with running(port, programs / "interop_server", "--listen", f"127.0.0.1:{port}", "--config", config, *ours):
                for case in INTEROP_CASES:
                    code, _ = output_of(suites["client"], "-server_host", "127.0.0.1", "-server_port", port,
                                        "-test_case", case, *theirs)
                    ran += 1
                    if code != 0:
                        failed.add(f"grpc-go client, {config}{', TLS' if tls else ''}: {case}")
    return ran, failed


def grpc_go_server(suites, programs, folder):
    ran, failed = 0, set()
    for tls in (False, True):
        port = free_port()
        theirs = ["-use_tls", "-tls_cert_file", f"{folder}/crt", "-tls_key_file", f"{folder}/key"] if tls else []
        ours = [f"{folder}/crt", SERVER_NAME] if tls else []
        with running(port, suites["server"], "-port", port, *theirs):
            code, text = output_of(programs / "interop_client", f"127.0.0.1:{port}", *ours)
        cases = re.findall(r"^(ok|FAIL) +(\w+)", text, re.MULTILINE)
        ran += len(cases)
        failed |= {f"grpc-go server{', TLS' if tls else ''}: {case}" for word, case in cases if word == "FAIL"}
        if not cases:
            failed.add(f"grpc-go server{', TLS' if tls else ''}: ended with {code}")
    return ran, failed


def main():
    programs, tools = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    suites, missing = install(tools)
    known, new = known_failures(), set()
    with tempfile.TemporaryDirectory() as folder:
        make_certificate(folder)
        # A name, what the names of its cases begin with, and the suite.
        parts = (
            ("h2spec", "h2spec ", "h2spec", lambda: h2spec(suites, programs, folder)),
            ("Connect's suite, of servers", "connect server", "connectconformance",
             lambda: connect(suites, programs, "server")),
            ("Connect's suite, of clients", "connect client", "connectconformance",
             lambda: connect(suites, programs, "client")),
            ("grpc-go's client", "grpc-go client", "client",
             lambda: grpc_go_client(suites, programs, folder)),
            ("grpc-go's server", "grpc-go server", "server",
             lambda: grpc_go_server(suites, programs, folder)),
        )
        for name, prefix, suite, part in parts:
            if suite in missing:
                print(f"{name}: left out: {missing[suite]}", flush=True)
                continue
            began = time.monotonic()
            ran, failed = part()
            if ran == 0:
                failed.add(f"{name}: no case ran")
            new |= failed - known
            passed = {one for one in known - failed if one.startswith(prefix)}
            print(f"{name}: {ran} cases, {len(failed)} failed, {len(failed & known)} of them known, "
                  f"{time.monotonic() - began:.0f} s", flush=True)
            for one in sorted(passed):
                print(f"  no longer fails, so take it from known_failures.txt: {one}")
    for one in sorted(new)[:MOST_NAMED]:
        print(f"new failure: {one}")
    if len(new) > MOST_NAMED:
        print(f"... and {len(new) - MOST_NAMED} more")
    return 1 if new else 0


sys.exit(main())
