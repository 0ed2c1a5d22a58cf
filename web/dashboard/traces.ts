// SPDX-License-Identifier: Apache-2.0
// traces.ts - the documents of /traces, joined to traces: one row a span, placed in time and in its tree.

export interface ChildDocument {
  id: string;
  parent: string;
  method: string;
  target: string;
  status: string;
  start_ns: number;
  total_ns: number;
}

export interface SpanDocument {
  trace: string;
  id: string;
  parent: string | null;
  method: string;
  status: string;
  captured: string;
  start_unix_us: number;
  total_ns: number;
  queue_ns: number;
  entry_ns: number;
  handler_ns: number;
  reply_ns: number;
  calls: ChildDocument[];
}

export interface TracesDocument {
  service: string;
  spans: SpanDocument[];
}

export interface Row {
  depth: number;
  kind: "server" | "client";
  service: string;
  method: string;
  status: string;
  begin: number; // us since the trace's begin
  duration: number; // us
  queue: number; // us of it, of a server: waiting for a thread
}

export interface Trace {
  id: string;
  at: number; // us since 1970
  duration: number; // us
  method: string;
  service: string;
  services: string[];
  captured: string;
  error: boolean;
  rows: Row[];
}

const MAX_ROWS = 500;

interface Owned extends SpanDocument {
  service: string;
}

function rowsOf(span: Owned, byParent: Map<string, Owned[]>, base: number, depth: number, rows: Row[]): void {
  if (rows.length >= MAX_ROWS || depth > 40) return;
  const begin = span.start_unix_us - base;
  rows.push({ depth, kind: "server", service: span.service, method: span.method, status: span.status, begin, duration: span.total_ns / 1e3, queue: span.queue_ns / 1e3 });
  for (const call of [...span.calls].sort((a, b) => a.start_ns - b.start_ns)) {
    if (rows.length >= MAX_ROWS) return;
    rows.push({ depth: depth + 1, kind: "client", service: span.service, method: call.method, status: call.status, begin: begin + call.start_ns / 1e3, duration: call.total_ns / 1e3, queue: 0 });
    for (const served of byParent.get(call.id) ?? []) rowsOf(served, byParent, base, depth + 2, rows);
  }
}

// The traces, latest first. A span whose caller is not there begins a trace of its own.
export function tracesOf(documents: TracesDocument[]): Trace[] {
  const groups = new Map<string, Owned[]>();
  for (const document of documents) {
    for (const span of document.spans) {
      const group = groups.get(span.trace) ?? [];
      group.push({ ...span, service: document.service });
      groups.set(span.trace, group);
    }
  }
  const traces: Trace[] = [];
  for (const [id, spans] of groups) {
    const calls = new Set(spans.flatMap((span) => span.calls.map((call) => call.id)));
    const byParent = new Map<string, Owned[]>();
    for (const span of spans) if (span.parent) byParent.set(span.parent, [...(byParent.get(span.parent) ?? []), span]);
    for (const root of spans.filter((span) => !span.parent || !calls.has(span.parent))) {
      const rows: Row[] = [];
      rowsOf(root, byParent, root.start_unix_us, 0, rows);
      traces.push({
        id,
        at: root.start_unix_us,
        duration: root.total_ns / 1e3,
        method: root.method,
        service: root.service,
        services: [...new Set(rows.map((row) => row.service))],
        captured: root.captured,
        error: rows.some((row) => row.status !== "OK"),
        rows,
      });
    }
  }
  return traces.sort((a, b) => b.at - a.at);
}

// Words of `text` are all in the trace's names; "error" finds failures, ">5ms" those that took longer.
export function matches(trace: Trace, text: string): boolean {
  const names = [trace.id, trace.captured, ...trace.rows.flatMap((row) => [row.service, row.method, row.status])].join(" ").toLowerCase();
  return text.toLowerCase().split(/\s+/).filter(Boolean).every((word) => {
    const longer = /^>(\d+(?:\.\d+)?)(us|µs|ms|s)$/.exec(word);
    if (longer) return trace.duration > Number(longer[1]) * ({ us: 1, µs: 1, ms: 1e3, s: 1e6 }[longer[2]!] ?? 1);
    return word === "error" ? trace.error : names.includes(word);
  });
}
