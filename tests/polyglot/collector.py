# SPDX-License-Identifier: Apache-2.0
"""A collector of spans."""

import http.server
import json
import threading

MAX_WAIT_S = 20


class Collector:
    """Takes spans in OTLP's JSON."""

    def __init__(self):
        self.spans, self.came = [], threading.Condition()
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                for resource in body["resourceSpans"]:
                    service = {a["key"]: a["value"] for a in resource["resource"]["attributes"]}["service.name"]["stringValue"]
                    for scope in resource["scopeSpans"]:
                        with collector.came:
                            collector.spans += [{**span, "service": service} for span in scope["spans"]]
                            collector.came.notify_all()
                self.send_response(200)
                self.send_header("content-length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.target = f"otlp=http://127.0.0.1:{self.server.server_port}"

    def wait(self, trace):
        """The spans of a trace, once there is one."""
        def of_trace():
            return [span for span in self.spans if span["traceId"] == trace]
        with self.came:
            assert self.came.wait_for(of_trace, MAX_WAIT_S), f"no span of {trace}"
            return of_trace()
