// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import type { DashboardDocument, Status } from "./document";
import { Model } from "./model";
import { fenceText, notesOf, nowRows } from "./queue";

const status: Status = {
  schema_version: 1,
  config: "SIB1", pools: [], spinning_threads: 1, sleeping_threads: 2, fibers: 3, queued: 4, begun: 0, queue_wait_us: 0, max_queue_wait_us: 1500,
  connections: 5, open_calls: 6, held_bytes: 1 << 20, held_up: [{ path: "/a.B/C", times: 7, blocks: true }], limits: { max_streams: 8 }, refusals: { "waited too long": 9 },
  fences: { mode: "strict", limiter: "sct", classes: [], undeclared: [{ method: "/a.B/C", service: "user", times: 10 }] },
  policy: { name: "mutune", note: "", switches_by_itself: true, rate_per_s: 1, fast_rate_per_s: 1, paper_rate_per_s: 1, arrivals: 0, evaluations: 0, switches: 0, failures: 2, last_failure: "<b>no</b>", decisions: [] },
  process: { threads: 1, voluntary_switches: 0, involuntary_switches: 0, cpu_us: 0, run_delay_us: 0 },
};

const documentOf = (of: Status): DashboardDocument => ({
  schema_version: 2, application: "shop", sample: 1, age_ms: 0, traces: false, services: [{ name: "cart", calls: [], entry: true }], loads: [],
  instances: [{ name: "cart-0", service: "cart", state: "ready", pid: 7, address: "", restarts: 0, problem: "", error: "", status: of, metrics: 'curtail_trace_dropped_total{reason="full"} 11\ncurtail_trace_dropped_total{reason="backlog"} 0\n' }],
});

function viewsOf(...statuses: Status[]) {
  const model = new Model();
  statuses.forEach((each, i) => model.take(documentOf(each), 10 + i));
  return model.of("cart");
}

test("all that a service refused or was kept from is a line", () => {
  assert.deepEqual(notesOf(viewsOf(status)), [
    "cart-0: 9 requests waited too long",
    "cart-0: clients reached the limit max_streams 8 times",
    "cart-0: /a.B/C held a thread up 7 times, and has a thread for each call",
    "cart-0: /a.B/C called user 10 times without having declared it",
    "cart-0: 2 switches failed, the last one: <b>no</b>",
    "cart-0: 11 spans did not get to the collector (full)",
  ]);
  assert.ok(notesOf(viewsOf(status, { ...status, refusals: { "waited too long": 29 } })).includes("cart-0: 20 refused a second now"));
});

test("what is held now, and fences in words", () => {
  const rows = Object.fromEntries(nowRows(viewsOf(status)));
  assert.deepEqual([rows["Queued"], rows["Longest wait"], rows["Held for them"], rows["Credits issued"]], ["4", "1.5 ms", "1 MiB", undefined]);
  assert.equal(Object.fromEntries(nowRows(viewsOf({ ...status, credits: { total: 32, issued: 20, accounts: 2 } })))["Credits issued"], "20 of 32");
  assert.equal(fenceText(viewsOf(status)), "Fences: strict; limits follow sct.");
  assert.equal(fenceText(viewsOf({ ...status, fences: null })), "Fences are off.");
});

test("a service of another program, or of an older version, has no numbers and is no error", () => {
  assert.deepEqual([nowRows([]), notesOf([])], [[], []]);
  const { pools, limits, held_up, refusals, ...older } = status;
  assert.equal(notesOf(viewsOf({ ...older, fences: null, policy: null })).length, 1);
  assert.ok([pools, limits, held_up, refusals].length === 4);
});
