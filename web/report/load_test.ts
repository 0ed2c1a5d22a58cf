// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { loadPage, spectrumChart, timeCharts, type LoadReport } from "./load";
import { paletteOf } from "./page";
import { HOSTILE, loadReport, runOf, words } from "./testing";

const expectWords = (said: string[], ...wanted: string[]) => wanted.forEach((line) => assert.ok(said.includes(line), `${line}\nin\n${said.join("\n")}`));

test("a run has its numbers, tables, charts and plan", () => {
  const said = words(loadPage(loadReport([runOf()], { curtail_version: "1.2.3", command: "curtail load" })));
  expectWords(said, "Load test of /a.B/C", "127.0.0.1:7000", "✓ Valid: the generator was on time and kept to the schedule.");
  expectWords(said, "p50: 2 ms (95 %: 2 ms to 2.01 ms)", "p99.9: 10 ms (1000 of the 5643 samples for an interval)", "good rate: 100/s (of 100/s due)", "errors: 0 % (0 of 1000 requests)", "recall@10: 0.95 (mean of 1000 replies)");
  expectWords(said, "latency | count | mean | p50 | p90 | p95 | p99 | p99.9 | max", "every request | 1000 | 2 ms | 2 ms | 4 ms | 6 ms | 8 ms | 10 ms | 12 ms", "ok | 1000 | 2 ms | 2 ms | 4 ms | 6 ms | 8 ms | 10 ms | 12 ms");
  expectWords(said, "chart: Latency by percentile", "chart: Latency of calls that ended", "chart: Requests a second", "chart: Calls in flight", "the run | 9 | 1000 | 1000 | 1000 | 0 | 100 | 16 µs | 30 µs", "OK | 1000");
  expectWords(said, "load | open loop, poisson arrivals, constant:100; mean 100/s, peak 100/s", "time | 2 s warm-up, then 10 s; timeout 1 s", "machine | 8 CPUs, Test CPU, Linux 6.1; load average before 0.25", "command | curtail load", "curtail | 1.2.3");
  assert.ok(!said.some((line) => /^(failed|started|request) \|/.test(line) || line.includes("VOID") || line.startsWith("run 1")));
});

test("a journey has a row for each of its steps, and its pauses", () => {
  const { all } = runOf().latency_us, never = runOf().latency_us.failure;
  const journey = runOf({ latency_us: { ...runOf().latency_us, with_pauses: all }, steps: [{ name: "list", ok: 990, failed: 10, latency_us: all }, { name: "pay", ok: 0, failed: 0, latency_us: never }] });
  const said = words(loadPage(loadReport([journey])));
  expectWords(said, "step | ok | failed | mean | p50 | p90 | p99 | max", "list | 990 | 10 | 2 ms | 2 ms | 4 ms | 8 ms | 12 ms", "pay | 0 | 0 | – | – | – | – | –", "with pauses | 1000 | 2 ms | 2 ms | 4 ms | 6 ms | 8 ms | 10 ms | 12 ms");
  assert.ok(words(loadPage(loadReport([journey, journey]))).includes("Steps of the journeys, run 2"));
  assert.ok(!words(loadPage(loadReport([runOf()]))).some((line) => line.startsWith("Steps of")));
});

test("checks have a row each, with the first failure", () => {
  const checked = runOf({ reply_checks: { replies: 1000, failed: 10, checks: [{ check: ".id == 7", failed: 10, example: "it is 8" }, { check: ".name", failed: 0, example: "" }] } });
  const said = words(loadPage(loadReport([checked])));
  expectWords(said, "10 of 1000 replies failed a check (1 %).", "check | failed | first failure", ".id == 7 | 10 | it is 8", ".name | 0 | ");
  assert.ok(!words(loadPage(loadReport([runOf()]))).some((line) => line.includes("failed a check")));
});

test("a mix has a row for each method, and conditions their verdicts", () => {
  const { all } = runOf().latency_us, { plan } = loadReport([runOf()]);
  const mix = runOf({ methods: [{ name: "Pay", ok: 900, failed: 10, latency_us: all }] });
  const thresholds: LoadReport["thresholds"] = [{ text: "p99<5ms", runs: [{ verdict: "failed", actual: "8 ms" }] }, { text: "errors<1%", runs: [{ verdict: "met", actual: "0 %" }] }];
  const said = words(loadPage(loadReport([mix], { plan: { ...plan, methods: ["Pay", "Balance"] }, thresholds })));
  expectWords(said, "Load test of 2 methods", "methods | Pay, Balance", "method | ok | failed | mean | p50 | p90 | p99 | max", "Pay | 900 | 10 | 2 ms | 2 ms | 4 ms | 8 ms | 12 ms");
  expectWords(said, "p99<5ms: ✗ FAILED (8 ms)", "errors<1%: ✓ held (0 %)");
});

test("other plans are told apart", () => {
  const { plan } = loadReport([runOf()]);
  const said = words(loadPage(loadReport([runOf()], { plan: { ...plan, loop: "closed", arrivals: "closed", outstanding: 4, requests: 500, tls: true, realtime: true } })));
  expectWords(said, "load | CLOSED LOOP of 4: latency hides stalls", "time | 2 s warm-up, then 500 requests; timeout 1 s", "target | 127.0.0.1:7000 over TLS", "generator | spins 120 µs before a send; real-time priority");
});

test("what is wrong with runs stands once, after the runs that it is about", () => {
  const warned = { warnings: ["latencies go together"] };
  const said = words(loadPage(loadReport([runOf(warned), runOf({ ...warned, valid: false, invalid_reasons: ["the generator was late"] }), runOf({ ...warned, interrupted: true, measured_s: 4 })])));
  expectWords(said, "void: VOID: these numbers must not be believed", "void: run 2: the generator was late", "warning: run 1, 2, 3: latencies go together", "warning: run 3: interrupted after 4 s of 10 s: the numbers are partial");
  assert.ok(!said.some((line) => line.includes("Valid")));
  expectWords(said, "p50: 2 ms (median of 2: 1 ms to 3 ms)", "run 2 (void) | 1000 | 2 ms | 2 ms | 4 ms | 6 ms | 8 ms | 10 ms | 12 ms", "p50 | 2 ms | 1 ms | 3 ms | too few runs | 1.5 ms to 2.5 ms", "folded: Run 3 over time");
});

test("a valid run says what share failed", () => {
  const failed = runOf({ requests: { scheduled: 1000, sent: 1000, ok: 800, failed: 200 }, codes: { OK: 800, ABORTED: 150, UNKNOWN: 50 }, errors: { "ABORTED: no": 150 } });
  const said = words(loadPage(loadReport([failed])));
  expectWords(said, "20 % of the calls failed.", "errors: 20 % (200 of 1000 requests)");
  assert.deepEqual(said.slice(said.indexOf("OK | 800"), said.indexOf("OK | 800") + 3), ["OK | 800", "ABORTED | 150", "UNKNOWN | 50"]);
});

test("runs without a request, or all void, are a page", () => {
  const none = runOf({ valid: false, invalid_reasons: ["no request was due"], requests: { scheduled: 0, sent: 0, ok: 0, failed: 0 }, spectrum: { tail: [], latency_us: [], low_us: [], high_us: [] }, series: [], codes: {}, score: null });
  none.latency_us.all = none.latency_us.failure;
  const said = words(loadPage(loadReport([none, none])));
  expectWords(said, "p50: 0 (no valid run)", "void: run 1, 2: no request was due");
  assert.ok(!said.some((line) => line.startsWith("chart") || line.includes("NaN") || line.includes("undefined")));
});

test("the distribution is a line a run with its band, and the band of the median from six runs on", () => {
  const chartOf = (n: number) => spectrumChart(loadReport(Array.from({ length: n }, () => runOf())))!;
  assert.deepEqual([1, 3, 6, 7, 30].map((n) => [chartOf(n).lines.length, chartOf(n).bands!.length]), [[1, 1], [3, 3], [6, 1], [7, 1], [20, 1]]);
  assert.deepEqual([chartOf(1), chartOf(7)].map(({ lines }) => lines[0]!.name), ["every request", "7 runs"]);
  assert.deepEqual(chartOf(1).x.ticks.map(({ label }) => label), ["50 %", "90 %", "99 %", "99.9 %"]);
  assert.ok(!words(loadPage(loadReport([...Array.from({ length: 4 }, () => runOf()), ...Array.from({ length: 4 }, () => runOf({ valid: false }))]))).some((line) => line.startsWith("Shaded")));
});

test("configs are a strip and switches marks, as long as they can be seen", () => {
  const [latency, throughput] = timeCharts(runOf(), 2, paletteOf(["SIB1", "SDB1-16"]));
  assert.deepEqual(latency!.strip!.map((s) => [s.from, s.to, s.name]), [[0, 7, "SIB1"], [7, 10, "SDB1-16"]]);
  assert.deepEqual([latency!.marks!.map((m) => m.at), throughput!.marks!.length], [[7], 1]);
  const restless = (n: number) => runOf({ series: Array.from({ length: n }, (_, i) => ({ ...runOf().series[0]!, end_s: i + 1, config: `SDB1-${i}` })) });
  assert.deepEqual([timeCharts(restless(100), 0, new Map())[0]!].map((c) => [c.marks!.length, c.strip!.length]), [[0, 100]]);
  assert.equal(timeCharts(restless(3600), 0, new Map())[0]!.strip!.length, 0);
  assert.ok(timeCharts(restless(3600), 0, new Map()).every(({ lines }) => lines.every(({ points }) => points.length <= 600)), "a long run is thinned out");
  assert.equal(timeCharts(runOf({ series: runOf().series.map((s) => ({ ...s, config: "" })) }), 0, new Map())[0]!.strip!.length, 0);
});

test("an outage is a gap and says so", () => {
  const out = runOf().series.map((s, i) => (i === 4 || i === 5 ? { ...s, ok: 0, failed: 100 } : s));
  const [latency] = timeCharts(runOf({ series: out }), 2, new Map());
  assert.deepEqual(latency!.shades!.map((s) => [s.from, s.to, s.name]), [[0, 2, "warm-up"], [4, 6, "all failed"]]);
  assert.deepEqual(latency!.lines[0]!.points.map(([, y]) => y === null), out.map((s) => s.ok === 0));
});

test("many errors are cut, and texts of servers stay texts", () => {
  const said = words(loadPage(loadReport([runOf({ errors: Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`error ${i}`, 1])), codes: { [HOSTILE]: 1 } })])));
  expectWords(said, "and 900 more", `${HOSTILE} | 1`);
});
