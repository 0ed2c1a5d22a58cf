#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares what `curtail load` measures with the spans of the same requests, as a collector gets them.

Usage: spans_agree.py CURTAIL [--up] TARGET [ARGUMENTS OF curtail load ...]

TARGET is the address of a server, or with --up an application, which is started and ended here. The generator's root spans
go to a collector of this program's own, and with --up those of the services, too. Three measures of each request:

  generator    latency_us.since_sent of the result: from the actual send to the end
  root span    the client's, of the exporter's batches: the same stretch
  server span  of the service that was called: from the whole request to the reply's hand-over to the kernel

The first two must agree within 2 % at p50, p99 and p99.9, and there must be a root span for each request that was sent. A
request that fails, or that is not sent, counts as one that lasts for the time limit, in the result and so here. What the
third lacks is the network, both kernels and the client: it is shown, by request. Ends with 1 if they do not agree.
"""

import http.server
import json
import math
import subprocess
import sys
import tempfile
import threading

MOST_APART = 0.02
PERCENTS = (("p50", 50), ("p99", 99), ("p99_9", 99.9))
CLIENT, SERVER, ERROR = 3, 2, 2  # of OTLP: kinds, and a status


class Collector(http.server.ThreadingHTTPServer):
    """Takes OTLP's JSON; it parses nothing while the load runs."""

    daemon_threads = True

    def __init__(self):
        self.bodies = []
        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def url(self):
        return f"otlp=http://127.0.0.1:{self.server_address[1]}"

    def spans(self):
        for body in self.bodies:
            for resource in json.loads(body)["resourceSpans"]:
                service = resource["resource"]["attributes"][0]["value"]["stringValue"]
                for span in resource["scopeSpans"][0]["spans"]:
                    yield service, span


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.server.bodies.append(self.rfile.read(int(self.headers["content-length"])))
        self.send_response(200)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_):
        pass


def percentile(values, percent):
    """The nearest-rank percentile, as the generator has it."""
    return values[max(0, math.ceil(percent / 100 * len(values)) - 1)]


def micros(span, failed_us=0.0):
    failed = span.get("status", {}).get("code") == ERROR
    return max(failed_us if failed else 0, (int(span["endTimeUnixNano"]) - int(span["startTimeUnixNano"])) / 1e3)


def measure(curtail, collector, target, arguments):
    """The generator's result, and the time limit of its requests in microseconds."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        # Without a warm-up every request counts, as every request has a span.
        command = [curtail, "load", target, "--trace-to", collector.url(), "--warmup", "0s", "--json", file.name, *arguments]
        print("$", *command, flush=True)
        subprocess.run(command, check=False)  # a run that is void still has its requests
        with open(file.name) as text:
            result = json.load(text)
    return result["runs"][0], result["plan"]["timeout_s"] * 1e6


def compare(run, limit_us, spans):
    """Prints the table. Returns why they do not agree; empty: they do."""
    roots = {s["spanId"]: micros(s, limit_us) for service, s in spans if service == "curtail-load" and s["kind"] == CLIENT}
    served = {s["parentSpanId"]: micros(s) for _, s in spans if s["kind"] == SERVER and s.get("parentSpanId") in roots}
    latency = run["latency_us"]
    sent = latency.get("since_sent", latency["all"])
    unsent = run["requests"]["dropped"]
    print(f"{sent['count']} requests, {unsent} not sent, {len(roots)} root spans, {len(served)} server spans of them")
    wrong = [] if len(roots) + unsent == sent["count"] else [f"{len(roots)} root spans of {sent['count'] - unsent} requests"]
    rest = sorted(roots[i] - served[i] for i in served)
    ordered, inside = sorted([*roots.values(), *[limit_us] * unsent]), sorted(served.values())
    print(f"{'us':<8}{'GENERATOR':>12}{'ROOT SPAN':>12}{'APART %':>10}{'SERVER SPAN':>14}{'BETWEEN THEM':>14}")
    for name, percent in PERCENTS:
        root = percentile(ordered, percent) if ordered else math.nan
        apart = root / sent[name] - 1
        server = f"{percentile(inside, percent):14.1f}{percentile(rest, percent):14.1f}" if served else f"{'-':>14}{'-':>14}"
        print(f"{name.replace('_', '.'):<8}{sent[name]:12.1f}{root:12.1f}{apart * 100:10.2f}{server}")
        if not abs(apart) <= MOST_APART:
            wrong.append(f"{name}: {apart * 100:.2f} % apart")
    return wrong


def main(curtail, *arguments):
    collector = Collector()
    up = arguments[0] == "--up"
    target, arguments = (arguments[1], arguments[2:]) if up else (arguments[0], arguments[1:])
    if up:
        # Services follow the client's choice.
        subprocess.run([curtail, "up", target, "--detach", "--trace-to", collector.url(), "--trace-sample", "0"], check=True)
    try:
        run, limit_us = measure(curtail, collector, target, arguments)
    finally:
        if up:
            subprocess.run([curtail, "down", target], check=True)  # with which their last batches come
    wrong = compare(run, limit_us, list(collector.spans()))
    print("; ".join(wrong) if wrong else "they agree")
    sys.exit(1 if wrong else 0)


main(*sys.argv[1:])
