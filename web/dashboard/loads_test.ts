// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { cellsOfLoad } from "./loads";

const load = { pid: 7, command: "curtail load shop --rps 100", label: "load", elapsed_s: 3.4, total_s: 12, ok: 290, failed: 2, in_flight: 1, due_per_s: 100.4, sent_per_s: 99, p50_us: 250, p99_us: 9000 };

test("a run of a load generator is a row", () => {
  assert.deepEqual(cellsOfLoad(load), ["curtail load shop --rps 100", "3 of 12 s", "100", "99", "290", "2", "1", "250 µs", "9 ms"]);
  assert.equal(cellsOfLoad({ ...load, total_s: 0 })[1], "3 s");
  assert.equal(cellsOfLoad({ ...load, command: "/opt/bin/curtail load a/b" })[0], "curtail load a/b");
  assert.equal(cellsOfLoad({ ...load, elapsed_s: 0 })[1], "begins");
  assert.equal(cellsOfLoad({ ...load, label: "run 2/5" })[0], "run 2/5: curtail load shop --rps 100");
});

test("a long command is cut", () => {
  assert.equal(cellsOfLoad({ ...load, command: "x".repeat(500) })[0]!.length, 121);
});
