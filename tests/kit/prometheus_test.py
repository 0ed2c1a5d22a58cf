#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A real Prometheus scrapes a service, and answers for it. Usage: prometheus_test.py CURTAIL TOY

Ends with 77, which ctest takes for skipped, without prometheus in PATH.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tool"))
from tooling import free_address  # part of what tests share

MAX_WAIT_S = 60
CALLS = 7
PATH = 'rpc_service="curtail.toy.Count",rpc_method="Number"'


def query(prometheus, text):
    """The value of the one series that `text` selects; None: there is none, or no answer yet."""
    try:
        url = f"{prometheus}/api/v1/query?{urllib.parse.urlencode({'query': text})}"
        with urllib.request.urlopen(url, timeout=5) as reply:
            series = json.load(reply)["data"]["result"]
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return None
    return float(series[0]["value"][1]) if len(series) == 1 else None


def wait_for_exemplar(prometheus, pages):
    """An exemplar of the histogram names a trace that the service has."""
    end = time.monotonic() + MAX_WAIT_S
    seen = []
    while time.monotonic() < end:
        now = time.time()
        question = urllib.parse.urlencode({"query": f"rpc_server_duration_seconds_bucket{{{PATH}}}", "start": now - 300, "end": now + 300})
        with urllib.request.urlopen(f"{prometheus}/api/v1/query_exemplars?{question}", timeout=5) as reply:
            seen = json.load(reply)["data"]
        traces = {e["labels"]["trace_id"] for series in seen for e in series["exemplars"]}
        if traces:
            with urllib.request.urlopen(f"http://{pages}/traces", timeout=5) as reply:
                known = {span["trace"] for span in json.load(reply)["spans"]}
            assert traces <= known, (traces, known)
            print("exemplars:", *sorted(traces))
            return
        time.sleep(0.1)
    sys.exit(f"no exemplars after {MAX_WAIT_S} s: {seen}")


def wait_for(prometheus, text, expected):
    end = time.monotonic() + MAX_WAIT_S
    seen = None
    while time.monotonic() < end:
        seen = query(prometheus, text)
        if seen == expected:
            print(f"{text} = {seen:g}")
            return
        time.sleep(0.1)
    sys.exit(f"{text}: {seen} instead of {expected} after {MAX_WAIT_S} s")


def main(curtail, toy):
    program = shutil.which("prometheus")
    if program is None:
        print("prometheus is not here: apt-get install prometheus")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        pages, queries = free_address(), free_address()
        (scratch / "prometheus.yml").write_text(
            "global: {scrape_interval: 200ms, scrape_timeout: 200ms}\n"
            f'scrape_configs: [{{job_name: toy, static_configs: [{{targets: ["{pages}"]}}]}}]\n')
        with open(scratch / "log", "w+") as log:
            server = subprocess.Popen([toy, "--service", "count", "--listen", "127.0.0.1:0", "--http-admin", pages,
                                       "--trace-to", "memory", "--trace-sample", "1"], stdout=subprocess.PIPE, stderr=log, text=True)
            scraper = subprocess.Popen([program, f"--config.file={scratch}/prometheus.yml",
                                        "--enable-feature=exemplar-storage",
                                        f"--storage.tsdb.path={scratch}/data", f"--web.listen-address={queries}"],
                                       stdout=log, stderr=log)
            try:
                address = server.stdout.readline().split()[-1]
                prometheus = f"http://{queries}"
                wait_for(prometheus, "up", 1)
                for _ in range(CALLS):
                    subprocess.run([curtail, "load", address, "--method", "curtail.toy.Count/Number", "--data", "{}",
                                    "--timeout", "30s", "--debug"],
                                   check=True, stdout=subprocess.DEVNULL)
                wait_for(prometheus, f'rpc_server_calls_total{{{PATH},rpc_response_status_code="OK"}}', CALLS)
                wait_for(prometheus, f"rpc_server_duration_seconds_count{{{PATH}}}", CALLS)
                wait_for(prometheus, f'rpc_server_duration_seconds_bucket{{{PATH},le="+Inf"}}', CALLS)
                wait_for(prometheus, "count(curtail_config_info)", 1)
                wait_for_exemplar(prometheus, pages)
                wait_for(prometheus, "scrape_samples_scraped > bool 50", 1)
            finally:
                for process in (scraper, server):
                    process.terminate()
                    process.wait(MAX_WAIT_S)
                log.seek(0)
                print(log.read())


main(*sys.argv[1:])
