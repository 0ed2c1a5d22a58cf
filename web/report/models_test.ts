// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { modelsChart, type Models } from "./models";

const cell = (rate: number, p99: number, saturated = false) => ({ loop: "open" as const, rate_per_s: rate, p99_us: { median: p99 }, saturated, generator_bound: false });
const row = (config: string, ...cells: Models["configs"][0]["cells"]) => ({ model: config.slice(0, 3), config, cells: [...cells, { loop: "closed" as const, p99_us: { median: 9 } }] });

test("each model is a line of its family, and saturated points are hollow and do not stretch the scale", () => {
  const chart = modelsChart({ benchmark: "models", service: "fanout", configs: [row("SIB1", cell(100, 400), cell(8000, 1e6, true)), row("SDP1-4", cell(100, 400), cell(8000, 700)), row("FIP1", cell(100, 400))] })!;
  assert.deepEqual(chart.lines.map(({ name, style }) => [name, style]), [["SIB1", undefined], ["SDP1-4", "dashed"], ["FIP1", "dashed"]]);
  assert.deepEqual(chart.markers!.map(({ shape, hollow }) => [shape, hollow]), [[0, false], [0, true], [1, false], [1, false], [0, false]]);
  assert.equal(chart.markers![1]!.title, "SIB1 at 8000/s: p99 1 s, saturated or generator-bound");
  assert.ok(chart.y.high < 0.01);
});

test("of several pools the best is shown at each load, a saturated one only when all are", () => {
  const chart = modelsChart({ benchmark: "models", service: "fanout", configs: [row("SDB1-4", cell(100, 20, true), cell(200, 50, true)), row("SDB1-16", cell(100, 40), cell(200, 45, true)), row("SDB1-50", { loop: "open", rate_per_s: 100 })] })!;
  assert.deepEqual(chart.markers!.map(({ title }) => title!.slice(0, 14)), ["SDB1-16 at 100", "SDB1-16 at 200"]);
  assert.equal(chart.lines[0]!.name, "SDB");
  assert.equal(modelsChart({ benchmark: "models", service: "x", configs: [] }), null);
});
