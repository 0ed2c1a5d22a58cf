// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { modelsChart, type Models } from "./models";

const cell = (config: string, rate: number, p99: number, saturated = false, outstanding = 0) => ({
  model: config.slice(0, 3), config, outstanding_requests: outstanding, rate_per_s: rate, p99_us: { median: p99 }, saturated, generator_bound: false,
});
const models = (...cells: Models["tables"]["cells"]): Models => ({ benchmark: "models", service: "fanout", tables: { cells } });

test("each model is a line of its family, and saturated points are hollow and do not stretch the scale", () => {
  const chart = modelsChart(models(cell("SIB1", 100, 400), cell("SDP1-4", 100, 400), cell("FIP1", 100, 400), cell("SIB1", 8000, 1e6, true), cell("SDP1-4", 8000, 700), cell("SIB1", 0, 9, false, 64)))!;
  assert.deepEqual(chart.lines.map(({ name, style }) => [name, style]), [["SIB1", undefined], ["SDP1-4", "dashed"], ["FIP1", "dashed"]]);
  assert.deepEqual(chart.markers!.map(({ shape, hollow }) => [shape, hollow]), [[0, false], [0, true], [1, false], [1, false], [0, false]]);
  assert.equal(chart.markers![1]!.title, "SIB1 at 8000/s: p99 1 s, saturated or generator-bound");
  assert.ok(chart.y.high < 0.01);
});

test("of several pools the best is shown at each load, a saturated one only when all are", () => {
  const chart = modelsChart(models(cell("SDB1-4", 100, 20, true), cell("SDB1-16", 100, 40), cell("SDB1-4", 200, 50, true), cell("SDB1-16", 200, 45, true)))!;
  assert.deepEqual(chart.markers!.map(({ title }) => title!.slice(0, 14)), ["SDB1-16 at 100", "SDB1-16 at 200"]);
  assert.equal(chart.lines[0]!.name, "SDB");
  assert.equal(modelsChart(models()), null);
});
