# SPDX-License-Identifier: Apache-2.0
"""The log of a process, and spans of its requests."""

import datetime
import json
import os
import queue
import random
import re
import socket
import sys
import threading
import time
import urllib.request

MOST_SPANS = 512
SEVERITIES = ("DEBUG", "INFO", "WARNING", "ERROR")
TRACE_FORM = re.compile("00-([0-9a-f]{32})-([0-9a-f]{16})-0([0-3])")
LOGS_JSON = os.environ.get("CURTAIL_LOG_FORMAT") == "json"
current = threading.local()  # of a handler's thread: `context` and `span` of its request


def log(program, severity, message, **fields):
    """A line on stderr, with the fields of curtail/base/log.h and the trace of the request of this thread."""
    if SEVERITIES.index(severity) < SEVERITIES.index(os.environ.get("CURTAIL_LOG_LEVEL", "info").upper()):
        return
    span, service = getattr(current, "span", None), os.environ.get("CURTAIL_LOG_SERVICE", program)
    if not LOGS_JSON:
        text = f"{service}: {message}" + (f" [{span['trace'][:8]}]" if span else "")
        print(text.replace("\n", "\\n"), file=sys.stderr, flush=True)
        return
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    ids = {"trace_id": span["trace"], "span_id": span["id"]} if span else {}
    instance = os.environ.get("CURTAIL_LOG_INSTANCE", socket.gethostname())
    line = {"time": now, "severity": severity, "service": service, "instance": instance, "message": message, **ids, **fields}
    print(json.dumps(line), file=sys.stderr, flush=True)


def attribute(key, **value):
    return {"key": key, "value": value}


class Tracer:
    """Sends spans of requests that their caller or chance has chosen to the collector `to`, "otlp=URL"; empty: requests carry their
    caller's trace on. Any thread."""

    def __init__(self, service, to, share):
        if to and not to.startswith("otlp="):
            raise ValueError(f"--trace-to {to}: write otlp=http://HOST:PORT")
        self.service, self.share, self.spans, self.url = service, share, queue.Queue(MOST_SPANS), to.removeprefix("otlp=")
        if re.fullmatch("https?://[^/]*", self.url):
            self.url += "/v1/traces"
        if self.url:
            threading.Thread(target=self.send, daemon=True).start()

    def begin(self, received):
        """The place in its trace of a request with the traceparent `received`; None: it is in no trace."""
        parts, own = TRACE_FORM.fullmatch(received), f"{random.getrandbits(64) | 1:016x}"
        if parts:
            return {"trace": parts[1], "id": own if self.url else parts[2], "parent": parts[2], "chosen": int(parts[3]) & 1}
        if not self.url or random.random() >= self.share:
            return None
        return {"trace": f"{random.getrandbits(128) | 1:032x}", "id": own, "parent": "", "chosen": 1}

    def end(self, span, path, began, code):
        if not self.url or not span or not span["chosen"]:
            return
        attributes = [attribute("rpc.system", stringValue="grpc"), attribute("rpc.grpc.status_code", intValue=str(code.value[0]))]
        one = {"traceId": span["trace"], "spanId": span["id"], "parentSpanId": span["parent"], "name": path[1:], "kind": 2,
               "startTimeUnixNano": str(began), "endTimeUnixNano": str(time.time_ns()), "attributes": attributes}
        if code.value[0] != 0:
            one["status"] = {"code": 2, "message": code.name}
        try:
            self.spans.put_nowait(one)
        except queue.Full:
            pass  # a collector that is slow costs spans and nothing else

    def send(self):
        while True:
            batch = [self.spans.get()]
            while not self.spans.empty():
                batch.append(self.spans.get())
            resource = {"attributes": [attribute("service.name", stringValue=self.service)]}
            scope = {"scope": {"name": "curtail"}, "spans": batch}
            body = json.dumps({"resourceSpans": [{"resource": resource, "scopeSpans": [scope]}]}).encode()
            try:
                with urllib.request.urlopen(urllib.request.Request(self.url, body, {"content-type": "application/json"}), timeout=5):
                    pass
            except OSError as lost:
                log(self.service, "DEBUG", f"spans were lost: {lost}")
            for _ in batch:
                self.spans.task_done()

    def close(self):
        """Waits, for 2 s at most, until all spans are sent. No request is in flight any more."""
        sent = threading.Thread(target=self.spans.join, daemon=True)
        sent.start()
        sent.join(2)
