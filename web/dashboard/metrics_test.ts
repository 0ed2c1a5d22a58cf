// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { callersFirst, layersOf } from "./map";
import { histogramOf, parseMetrics, quantile } from "./metrics";
import type { DashboardDocument } from "./document";
import { HISTORY, Model, pointOf, type InstanceView } from "./model";
import { matches, tracesOf } from "./traces";

test("metrics are read with their labels, and other lines are left out", () => {
  const series = parseMetrics('# TYPE a counter\na_total{x="1\\"\\n\\\\",y=""} 4\nb 1.5e-3\nnonsense\n');
  assert.deepEqual(series, [
    { name: "a_total", labels: { x: '1"\n\\', y: "" }, value: 4 },
    { name: "b", labels: {}, value: 0.0015 },
  ]);
});

test("a quantile is interpolated within its bucket", () => {
  const histogram = histogramOf(new Map([[0.1, 10], [0.2, 20], [Infinity, 20]]));
  assert.equal(quantile(histogram, 0.5), 0.1);
  assert.ok(Math.abs(quantile(histogram, 0.75)! - 0.15) < 1e-9);
  assert.equal(quantile(histogramOf(new Map([[0.1, 0], [Infinity, 3]])), 0.99), 0.1);
  assert.equal(quantile(histogramOf(new Map([[0.1, 0]])), 0.5), null);
});

const documentAt = (calls: number, config: string, pid = 7, state = "ready"): DashboardDocument => ({
  schema_version: 2, application: "shop", sample: calls, age_ms: 0, traces: false,
  services: [{ name: "cart", calls: [], entry: true }],
  loads: [],
  instances: [{ name: "cart", service: "cart", state, pid, address: "", restarts: 0, problem: "", error: "", ...(state === "ready" ? {
    metrics: `rpc_server_calls_total{rpc_service="a.B",rpc_method="C",rpc_response_status_code="OK"} ${calls}\nrpc_server_calls_total{rpc_service="grpc.health.v1.Health",rpc_method="Check",rpc_response_status_code="OK"} ${9 * calls}\n`,
    status: { schema_version: 1, config, spinning_threads: 0, sleeping_threads: 0, fibers: 0, queued: 0, begun: calls, queue_wait_us: 0, max_queue_wait_us: 0, open_calls: 0, connections: 0, held_bytes: 0, fences: null, policy: null, process: { threads: 1, voluntary_switches: 0, involuntary_switches: 0, cpu_us: 0, run_delay_us: 0 } },
  } : { metrics: "", status: null }) }],
});

test("rates are between samples, without health checks, and none across a restart", () => {
  const model = new Model();
  model.take(documentAt(100, "SIB1"), 10);
  model.take(documentAt(150, "SIB1"), 12);
  assert.equal(model.history.get("cart")!.at(-1)!.rate, 25);
  model.take(documentAt(0, "SIB1", 0, "waiting"), 13);
  assert.equal(model.instances[0]!.up, false);
  model.take(documentAt(500, "SIB1", 8), 14);
  assert.equal(model.history.get("cart")!.at(-1)!.rate, 0);
  assert.equal(model.switches.length, 0);
});

test("a sample without metrics has no rate, and the next one has that since the sample before", () => {
  const model = new Model();
  for (const [calls, at] of [[1000, 10], [1010, 11]] as const) model.take(documentAt(calls, "SIB1"), at);
  const half = documentAt(1020, "SIB1");
  half.instances[0]!.metrics = "";
  model.take(half, 12);
  assert.equal(model.history.get("cart")!.at(-1)!.rate, 0);
  model.take(documentAt(1030, "SIB1"), 13);
  assert.equal(model.history.get("cart")!.at(-1)!.rate, 10);
});

test("the mean wait of a service is of all its requests", () => {
  const views = [{ begun: 1, waited: 0.1 }, { begun: 9999, waited: 0 }] as Partial<InstanceView>[];
  assert.ok(Math.abs(pointOf(views as InstanceView[], 1).wait! - 1e-5) < 1e-12);
});

test("an instance that was gone between two samples is marked for a while", () => {
  const model = new Model();
  const seen = (at: number, restarts: number) => {
    const document = documentAt(at, "SIB1");
    document.instances[0]!.restarts = restarts;
    model.take(document, at);
    return model.instances[0]!.restarted;
  };
  assert.deepEqual([seen(1, 0), seen(2, 1), seen(6, 1), seen(8, 1)], [false, true, true, false]);
});

test("a switch is noted once, and the history is bounded", () => {
  const model = new Model();
  for (let i = 0; i < HISTORY + 50; ++i) model.take(documentAt(i, i < 20 ? "SIB1" : "FIB1"), i);
  assert.equal(model.history.get("cart")!.length, HISTORY);
  assert.deepEqual(model.switches, [{ at: 20, instance: "cart", from: "SIB1", to: "FIB1", reason: "by an operator" }]);
});

test("what is no longer in the document is forgotten", () => {
  const model = new Model();
  model.take(documentAt(1, "SIB1"), 1);
  const other = documentAt(2, "SIB1");
  other.services[0]!.name = other.instances[0]!.name = other.instances[0]!.service = "user";
  model.take(other, 2);
  assert.deepEqual([...model.history.keys()], ["user"]);
  assert.equal(model.of("cart").length, 0);
});

test("services lie one layer below their callers, circles included", () => {
  const layers = layersOf([{ name: "a", calls: ["b", "c"] }, { name: "b", calls: ["c"] }, { name: "c", calls: ["b"] }, { name: "d", calls: ["d"] }]);
  assert.equal(layers.get("a"), 0);
  assert.ok(layers.get("b")! > 0 && layers.get("c")! > 0 && layers.get("d") === 0);
  assert.deepEqual(callersFirst([{ name: "leaf", calls: [] }, { name: "mid", calls: ["leaf"] }]).map((s) => s.name), ["mid", "leaf"]);
});

test("spans of several services are one trace", () => {
  const span = { trace: "t", captured: "head", start_unix_us: 100, total_ns: 9e6, queue_ns: 1e3, entry_ns: 0, handler_ns: 0, reply_ns: 0 };
  const traces = tracesOf([
    { service: "leaf", spans: [{ ...span, id: "2", parent: "1", method: "/L/Get", status: "INTERNAL", start_unix_us: 120, total_ns: 1e6, calls: [] }] },
    { service: "mid", spans: [{ ...span, id: "0", parent: null, method: "/M/Query", status: "OK", calls: [{ id: "1", parent: "0", method: "/L/Get", target: "", status: "INTERNAL", start_ns: 1e4, total_ns: 2e6 }] }] },
  ]);
  assert.equal(traces.length, 1);
  assert.deepEqual(traces[0]!.rows.map((r) => [r.depth, r.kind, r.service]), [[0, "server", "mid"], [1, "client", "mid"], [2, "server", "leaf"]]);
  assert.ok(matches(traces[0]!, "error leaf >5ms") && !matches(traces[0]!, ">10ms") && !matches(traces[0]!, "user"));
});
