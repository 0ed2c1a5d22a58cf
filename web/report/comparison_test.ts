// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { comparisonPage, configStrip, frontChart, shownRun } from "./comparison";
import { paletteOf, type Block } from "./page";
import { comparison, HOSTILE, words } from "./testing";

const chartsOf = (c: ReturnType<typeof comparison>) => comparisonPage(c).sections.flatMap(({ blocks }) => blocks.flatMap((b: Block) => (b.is === "chart" ? [b.chart] : [])));

test("a comparison has its verdict, tables, charts and origin", () => {
  const said = words(comparisonPage(comparison()));
  for (const line of ["Comparison of policies: hdsearch", "hdsearch over 10 points; no profile; SLO 10 ms; 3 rounds; seed 7", "# Verdict", "mutune is better.", "Against static:SIP1: better.", "warning: A caveat.", "# flash-crowd: 100/s", "policy | spike | config", "mutune | 1.01 * (1.00-1.02) | SDB1-16", "# Over time: flash-crowd", "# How to read this", "seed | 7", "flash-crowd | 100/s, then 900/s", "SLO | 10 ms"]) assert.ok(said.includes(line), line);
  assert.deepEqual(said.filter((line) => line.startsWith("chart: ")), ["chart: p99 against CPU of the server under test", "chart: Offered load, requests a second", "chart: mutune: p99, round 3, 2 switches", "chart: static:SIP1: p99, round 3, 0 switches"]);
});

test("the run with the median p99 is shown, a void one where there is no other", () => {
  const c = comparison();
  assert.equal(shownRun(c, 0, "mutune")!.round, 2);
  for (const run of c.runs) run.valid = run.policy !== "mutune" || run.round === 1;
  assert.equal(shownRun(c, 0, "mutune")!.round, 1);
  for (const run of c.runs) run.valid = false;
  assert.equal(shownRun(c, 0, "mutune")!.round, 0);
  assert.ok(chartsOf(c).some(({ label }) => label.endsWith("(void)")));
  assert.equal(shownRun(c, 1, "mutune"), undefined);
});

test("charts of a scenario have the same axes, the configs and the switches", () => {
  const [, , first, second] = chartsOf(comparison());
  assert.deepEqual(first!.y, second!.y);
  assert.deepEqual(first!.strip!.map((s) => [s.from, s.to, s.name]), [[0, 1, "SIP1"], [1, 2, "SDB1-16"], [2, 4, "SIP1"]]);
  assert.deepEqual([first!.marks!.map((m) => m.at), second!.marks], [[1, 2], []]);
  assert.deepEqual(first!.shades!.map((s) => s.name), ["warm-up", "before", "spike", "after"]);
  assert.equal(first!.strip![0]!.color, second!.strip![0]!.color, "a config has one color on the page");
});

test("thousands of switches stay a chart, and what is not known is drawn as such", () => {
  const [run] = comparison().runs, changes = Array.from({ length: 5000 }, (_, i) => ({ at_s: i / 2000, from: "a", to: i % 2 ? "a" : "b" }));
  const strip = configStrip({ ...run!, changes, earlier_changes_lost: true }, 4, paletteOf(["a", "b"]));
  assert.ok(strip.length > 1 && strip.length <= 401 && strip.every((s, i) => i === 0 || (s.name !== strip[i - 1]!.name && s.from === strip[i - 1]!.to)));
  assert.deepEqual([strip.at(-1)!.to, configStrip({ ...run!, earlier_changes_lost: true }, 4, new Map())[0]!.name], [4, "not known"]);
  const busy = comparison({ runs: [{ ...run!, changes, switches: 92903 }] }), chart = chartsOf(busy).find(({ label }) => label.includes("92903 switches"));
  assert.equal(chart!.marks!.length, 0);
});

test("no two configs have the same color", () => {
  const palette = paletteOf(["", ...Array.from({ length: 40 }, (_, i) => `SDB1-${i}`), "SDB1-3"]);
  assert.deepEqual([palette.size, new Set(palette.values()).size, palette.has("")], [40, 40, false]);
});

test("a config has the same color on every page", () => {
  const names = ["auto", "SIB1", "SDB1-50", "SIP1", "ADB1-8-2"], one = paletteOf(names), other = paletteOf([...names].reverse());
  for (const name of names) assert.equal(one.get(name), other.get(name));
  assert.equal(paletteOf(["SIB1"]).get("SIB1"), one.get("SIB1"));
});

test("policies on the front are joined by steps", () => {
  const chart = frontChart(comparison())!;
  assert.deepEqual(chart.lines[0]!.points, [[1, 0.003], [2, 0.003], [2, 0.001]]);
  assert.deepEqual(chart.labels!.map(({ text }) => text), ["fm", "static:SIP1", "mutune"]);
  assert.equal(frontChart(comparison({ costs: [] })), null);
});

test("a comparison without runs is a page, and texts stay texts", () => {
  const said = words(comparisonPage(comparison({ runs: [], costs: [], tables: [], verdict: ["Nothing was measured."], caveats: [], data: HOSTILE })));
  assert.ok(said.includes(`data | ${HOSTILE}`) && !said.some((line) => line.startsWith("chart") || line.includes("undefined")));
});
