// SPDX-License-Identifier: Apache-2.0
//
// The log of a process, and spans of its requests.
import { AsyncLocalStorage } from "node:async_hooks";
import { randomBytes } from "node:crypto";
import { hostname } from "node:os";
import grpc from "@grpc/grpc-js";

const mostSpans = 512;
const severities = ["DEBUG", "INFO", "WARNING", "ERROR"];
const traceForm = /^00-([0-9a-f]{32})-([0-9a-f]{16})-0([0-3])$/;
export const current = new AsyncLocalStorage(); // { call, span } of the request that a handler answers
export const logsJson = process.env.CURTAIL_LOG_FORMAT === "json";

// A line on stderr, with the fields of curtail/base/log.h and the trace of the request that writes it.
export function log(program, severity, message, fields = {}) {
  if (severities.indexOf(severity) < severities.indexOf((process.env.CURTAIL_LOG_LEVEL ?? "info").toUpperCase())) return;
  const { span } = current.getStore() ?? {}, service = process.env.CURTAIL_LOG_SERVICE ?? program;
  const text = `${service}: ${message}${span ? ` [${span.trace.slice(0, 8)}]` : ""}`;
  if (!logsJson) return void console.error(text.replaceAll("\n", "\\n"));
  const time = new Date().toISOString().replace("Z", "000Z"), instance = process.env.CURTAIL_LOG_INSTANCE ?? hostname();
  const ids = span && { trace_id: span.trace, span_id: span.id };
  console.error(JSON.stringify({ time, severity, service, instance, message, ...ids, ...fields }));
}

const attribute = (key, value) => ({ key, value });

// Sends spans of requests that their caller or chance has chosen to the collector `to`, "otlp=URL"; empty: requests carry their caller's
// trace on.
export class Tracer {
  constructor(service, to, share) {
    if (to && !to.startsWith("otlp=")) throw Error(`--trace-to ${to}: write otlp=http://HOST:PORT`);
    const url = to.slice("otlp=".length);
    Object.assign(this, { service, share, spans: [], url: /^https?:\/\/[^/]*$/.test(url) ? `${url}/v1/traces` : url });
  }

  // The place in its trace of a request with the traceparent `received`; undefined: it is in no trace.
  begin(received) {
    const parts = traceForm.exec(received), id = randomBytes(8).toString("hex");
    if (parts) return { trace: parts[1], id: this.url ? id : parts[2], parent: parts[2], chosen: parts[3] & 1 };
    if (!this.url || Math.random() >= this.share) return undefined;
    return { trace: randomBytes(16).toString("hex"), id, parent: "", chosen: 1 };
  }

  end(span, path, began, code) {
    if (!this.url || !span?.chosen || this.spans.length >= mostSpans) return; // a collector that is slow costs spans and nothing else
    this.spans.push({
      traceId: span.trace, spanId: span.id, parentSpanId: span.parent, name: path.slice(1), kind: 2,
      startTimeUnixNano: `${began}000000`, endTimeUnixNano: `${Date.now()}000000`,
      attributes: [attribute("rpc.system", { stringValue: "grpc" }), attribute("rpc.grpc.status_code", { intValue: String(code) })],
      ...(code && { status: { code: 2, message: grpc.status[code] } }),
    });
    this.sending ??= this.send().finally(() => (this.sending = undefined));
  }

  async send() {
    while (this.spans.length > 0) {
      await new Promise(setImmediate); // the spans of this turn go together
      const scope = { scope: { name: "curtail" }, spans: this.spans.splice(0) };
      const resource = { attributes: [attribute("service.name", { stringValue: this.service })] };
      const body = JSON.stringify({ resourceSpans: [{ resource, scopeSpans: [scope] }] }), headers = { "content-type": "application/json" };
      await fetch(this.url, { method: "POST", body, headers, signal: AbortSignal.timeout(5000) }).then((answer) => answer.arrayBuffer())
        .catch((lost) => log(this.service, "DEBUG", `spans were lost: ${lost}`));
    }
  }

  // Sends what waits, for 2 s at most. No request is in flight any more.
  close() { return Promise.race([this.sending, new Promise((late) => setTimeout(late, 2000))]); }
}
