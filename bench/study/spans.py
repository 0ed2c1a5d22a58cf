# SPDX-License-Identifier: Apache-2.0
"""Spans of requests that the load generator chooses: so few that every service still has all of a second when it is asked,
once a second. Only that is done while the load runs; `curtail traces` looks at them later."""

import json
import time

import measure
import session

UP_FLAGS = ["--trace-to", "memory", "--trace-sample", "0"]
TRACED = 30  # requests a second; each is several spans of a service, which keeps 128
NOWHERE = "otlp=http://127.0.0.1:9"  # of the generator's own spans


def load_flags(rate):
    return ["--trace-to", NOWHERE, "--trace-sample", f"{min(1, TRACED / rate):.4f}"]


def collect(processes, seconds):
    """The documents of spans that the processes have, second by second."""
    since_us, documents = time.time() * 1e6, []
    for _ in range(max(1, round(seconds))):
        time.sleep(1)
        pages = [session.page(process["http_admin"], "/traces") for process in processes if process["http_admin"]]
        documents.append(pages)
    return [chosen(json.loads(page), since_us) for pages in documents for page in pages]


def chosen(document, since_us):
    """Without spans from before, and without those that a service kept because they were slow: their callees have none."""
    spans = [span for span in document["spans"] if span["start_unix_us"] >= since_us and span["captured"] == "sampled"]
    return {**document, "spans": spans}


def classes(up, documents, *flags):
    """What `curtail traces` says of the requests of clients, by kind."""
    file = up.folder / "spans.json"
    file.write_text(json.dumps(documents))
    found = json.loads(measure.run([up.curtail, "traces", str(file), *flags, "--json", "-"]))["classes"]
    of_clients = {one["method"].rpartition("/")[2]: one for one in found if one["service"] == up.facts.front}
    return {kind: of_clients[method] for method, kind in up.facts.kinds.items() if method in of_clients}
