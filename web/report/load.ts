// SPDX-License-Identifier: Apache-2.0
// load.ts - the page of a load test. Its document is described by curtail/load/report/result.schema.json.
import { exactAxis, highest, linearAxis, logAxis, lowestAbove0, thin, valuesOf, type Axis, type Chart, type Line, type Point, type Span } from "../common/chart";
import { count, percent, plain, time } from "../common/format";
import { facts, machineText, paletteOf, plural, stripOf, table, type Block, type Cell, type Machine, type Page } from "./page";

type Range = [low: number, high: number];

type Percentile = "p50" | "p99" | "p99_9";

// In us.
type Latency = Record<Percentile | "count" | "mean" | "p90" | "p95" | "max", number> & {
  ci95: Record<Percentile, [low: number | null, high: number | null]>;
  ci95_samples: Record<Percentile, number>;
};

// In columns; the tail is 1 / (1 - percentile).
interface Spectrum {
  tail: number[];
  latency_us: number[];
  low_us: (number | null)[];
  high_us: (number | null)[];
}

type Spread = Record<"median" | "min" | "max", number> & Record<"median_ci95" | "mean_ci95", Range | null>;
type Interval = Record<"end_s" | "length_s" | "due" | "sent" | "ok" | "failed" | "p50_us" | "p99_us" | "in_flight", number> & { config: string };

type Part = { name: string; latency_us: Latency } & Record<"ok" | "failed", number>;

export interface Run {
  seed: number;
  measured_s: number;
  interrupted: boolean;
  valid: boolean;
  invalid_reasons: string[];
  warnings: string[];
  requests: Record<"scheduled" | "sent" | "ok" | "failed", number>;
  rates_per_s: { scheduled: number; good: number };
  latency_us: { all: Latency; since_sent?: Latency; with_pauses?: Latency; success: Latency; failure: Latency };
  send_lag_us: Latency;
  steps?: Part[]; // of a journey
  methods?: Part[]; // where requests are of several
  spectrum: Spectrum;
  generator: { cpu_us_per_request: number };
  score: { name: string; count: number; sum: number } | null;
  reply_checks?: { replies: number; failed: number; checks: { check: string; failed: number; example: string }[] };
  codes: Record<string, number>;
  errors: Record<string, number>;
  series: Interval[];
}

type PlanNumber = "rate_per_s" | "peak_per_s" | "outstanding" | "connections" | "warmup_s" | "duration_s" | "timeout_s" | "spin_us";
type Plan = Record<"target" | "method" | "workload" | "arrivals" | "schedule", string> & Record<PlanNumber, number> & { loop: "open" | "closed"; tls: boolean; realtime: boolean; requests?: number; threads?: number; shares?: number; share?: number; methods?: string[] };

export interface LoadReport {
  curtail_version?: string;
  started?: string;
  command?: string;
  request?: string;
  machine: Machine | null;
  plan: Plan;
  valid: boolean;
  thresholds?: { text: string; runs: { verdict: "met" | "failed" | "undecided"; actual: string }[] }[];
  between_runs: ({ valid_runs: number; spectrum: Omit<Spectrum, "latency_us"> | null } & Record<string, Spread>) | null;
  runs: Run[];
}

const GROUPS = 200; // of a line over time: up to 400 points
const MAX_MARKS = 40; // with more switches than these, lines would hide the chart
const MAX_SPANS = 400; // of the strip of configs
const MAX_CHARTS = 20; // runs whose charts are shown
const COLORS = 6; // lines of as many runs

const us = (value: number) => time(value / 1e6);
const rate = (value: number) => `${count(value)}/s`;

// ----- numbers

// A number of runs: its key in between_runs, and how people read it. Those with `of` are tiles.
interface Metric {
  key: string;
  name: string;
  text: (value: number) => string;
  of?: (run: Run) => number;
  percentile?: Percentile;
}
const percentile = (key: Percentile, name: string): Metric => ({ key: `${key}_us`, name, text: us, of: (run) => run.latency_us.all[key], percentile: key });
const METRICS: Metric[] = [
  percentile("p50", "p50"),
  { key: "p90_us", name: "p90", text: us },
  percentile("p99", "p99"),
  percentile("p99_9", "p99.9"),
  { key: "mean_us", name: "mean", text: us },
  { key: "good_per_s", name: "good rate", text: rate, of: (run) => run.rates_per_s.good },
  { key: "sent_per_s", name: "sent rate", text: rate },
  { key: "error_share", name: "errors", text: percent, of: (run) => share(run.requests) },
  { key: "generator_cpu_us_per_request", name: "generator CPU", text: us },
];

const share = ({ ok, failed }: { ok: number; failed: number }) => (ok + failed === 0 ? 0 : failed / (ok + failed));

// How sure a number of a run is.
function certainty({ percentile: p, key }: Metric, run: Run): string {
  if (!p) return key === "good_per_s" ? `of ${rate(run.rates_per_s.scheduled)} due` : `${run.requests.failed} of ${run.requests.ok + run.requests.failed} requests`;
  const all = run.latency_us.all, [low, high] = all.ci95[p];
  return low === null || high === null ? `${all.count} of the ${all.ci95_samples[p]} samples for an interval` : `95 %: ${us(low)} to ${us(high)}`;
}

function tiles({ runs, between_runs }: LoadReport): Block {
  const valid = runs.filter((run) => run.valid);
  const shown = METRICS.flatMap((metric) => {
    if (!metric.of) return [];
    const one = metric.of(valid[0] ?? runs[0]!), { median, min, max } = between_runs?.[metric.key] ?? { median: one, min: one, max: one };
    const spread = valid.length === 0 ? "no valid run" : `median of ${valid.length}: ${metric.text(min)} to ${metric.text(max)}`;
    return [{ name: metric.name, value: metric.text(median), detail: runs.length > 1 ? spread : certainty(metric, runs[0]!) }];
  });
  const scores = runs.flatMap((run) => run.score ?? []), replies = scores.reduce((sum, score) => sum + score.count, 0);
  const mean = scores.reduce((sum, score) => sum + score.sum, 0) / replies;
  return { is: "tiles", tiles: replies === 0 ? shown : [...shown, { name: scores[0]!.name, value: String(Number(mean.toPrecision(4))), detail: `mean of ${replies} replies` }] };
}

// ----- what to know

// Each text once, after the runs that it is about.
function remarks(runs: Run[], of: (run: Run) => string[]): string[] {
  const about = new Map<string, number[]>();
  runs.forEach((run, i) => of(run).forEach((text) => about.set(text, [...(about.get(text) ?? []), i + 1])));
  return [...about].map(([text, which]) => (runs.length > 1 ? `run ${which.join(", ")}: ${text}` : text));
}

function boxes({ runs, plan }: LoadReport): Block[] {
  const reasons = remarks(runs, (run) => run.invalid_reasons);
  const warnings = remarks(runs, (run) => [...run.warnings, ...(run.interrupted ? [`interrupted after ${time(run.measured_s)} of ${time(plan.duration_s)}: the numbers are partial`] : [])]);
  const failed = share({ ok: runs.reduce((sum, run) => sum + run.requests.ok, 0), failed: runs.reduce((sum, run) => sum + run.requests.failed, 0) });
  const verdict: Block[] = reasons.length > 0 ? [{ is: "box", kind: "void", lines: ["VOID: these numbers must not be believed", ...reasons] }] : [{ is: "text", kind: "good", text: "✓ Valid: the generator was on time and kept to the schedule." }];
  // That a measurement is valid is not praise of the server.
  if (reasons.length === 0 && failed > 0) verdict.push({ is: "text", kind: "bad", text: `${percent(failed)} of the calls failed.` });
  return warnings.length > 0 ? [...verdict, { is: "box", kind: "warning", lines: warnings }] : verdict;
}

// What --fail-if asked for, and whether it held.
function thresholdBlocks({ thresholds = [], runs }: LoadReport): Block[] {
  const words = { met: "✓ held", failed: "✗ FAILED", undecided: "void: the generator's lateness decides" };
  const lines = thresholds.flatMap(({ text, runs: of }) => of.map(({ verdict, actual }, i) => ({ verdict, text: `${text}${runs.length > 1 ? `, run ${i + 1}` : ""}: ${words[verdict]} (${actual})` })));
  return lines.map(({ verdict, text }) => ({ is: "text", kind: verdict === "met" ? "good" : "bad", text }));
}

// ----- tables

function latencyTable({ runs }: LoadReport): Block[] {
  const { all, since_sent, with_pauses, success, failure } = runs[0]!.latency_us;
  const named: [string, Latency | undefined][] = runs.length === 1 ? [["every request", all], ["since sent", since_sent], ["with pauses", with_pauses], ["ok", success], ["failed", failure]] : runs.map((run, i) => [`run ${i + 1}${run.valid ? "" : " (void)"}`, run.latency_us.all]);
  const rows = named.flatMap(([name, l]) => (l && l.count > 0 ? [[name, String(l.count), us(l.mean), us(l.p50), us(l.p90), us(l.p95), us(l.p99), us(l.p99_9), us(l.max)]] : []));
  return table("Of every request a failed one counts as at least the timeout.", ["latency", "count", "mean", "p50", "p90", "p95", "p99", "p99.9", "max"], rows);
}

function partTables({ runs }: LoadReport): Block[] {
  const rows = (parts: Part[]) => parts.map(({ name, ok, failed, latency_us: l }) => [name, String(ok), String(failed), ...(l.count > 0 ? [[l.mean, l.p50, l.p90, l.p99, l.max].map(us)].flat() : Array<string>(5).fill("–"))]);
  return runs.flatMap(({ steps = [], methods = [] }, i) => {
    const which = runs.length > 1 ? `, run ${i + 1}` : "", columns = ["ok", "failed", "mean", "p50", "p90", "p99", "max"];
    return [...table(`Steps of the journeys${which}`, ["step", ...columns], rows(steps)), ...table(`Methods${which}`, ["method", ...columns], rows(methods))];
  });
}

// The checks of --check; one that some reply failed names what that had instead.
function checkTables({ runs }: LoadReport): Block[] {
  return runs.flatMap(({ reply_checks: all }, i) => {
    if (!all) return [];
    const which = runs.length > 1 ? `, run ${i + 1}` : "", rows = all.checks.map(({ check, failed, example }) => [check, String(failed), example]);
    const text = `${all.failed} of ${all.replies} replies failed a check (${percent(all.replies > 0 ? all.failed / all.replies : 0)})${which}.`;
    return [{ is: "text", kind: all.failed > 0 ? "bad" : "good", text } as Block, ...table(`Checks of the replies${which}`, ["check", "failed", "first failure"], rows)];
  });
}

function betweenRuns({ between_runs }: LoadReport): Block[] {
  if (!between_runs) return [];
  const range = (of: Range | null, text: Metric["text"]) => (of ? `${text(of[0])} to ${text(of[1])}` : "too few runs");
  const rows = METRICS.map(({ key, name, text }) => {
    const { median, min, max, median_ci95, mean_ci95 } = between_runs[key]!;
    return [name, text(median), text(min), text(max), range(median_ci95, text), range(mean_ci95, text)];
  });
  return table("Between runs", ["number", "median", "lowest", "highest", "95 % of the median", "95 % of the mean"], rows);
}

function runsTable({ runs }: LoadReport): Block[] {
  const rows = runs.map((run, i): Cell[] => [runs.length === 1 ? "the run" : `run ${i + 1}`, String(run.seed), ...[run.requests.scheduled, run.requests.sent, run.requests.ok, run.requests.failed].map(String), count(run.rates_per_s.good), run.send_lag_us.count > 0 ? us(run.send_lag_us.p99) : "–", us(run.generator.cpu_us_per_request)]);
  return table("Requests of each run", ["requests", "seed", "due", "sent", "ok", "failed", "good/s", "send lag p99", "CPU a request"], rows);
}

// Sums over the runs, the most first.
function counts(caption: string, of: Record<string, number>[]): Block[] {
  const sums = new Map<string, number>();
  for (const each of of) for (const [name, calls] of Object.entries(each)) sums.set(name, (sums.get(name) ?? 0) + calls);
  const rows = [...sums].sort(([a, x], [b, y]) => y - x || (a < b ? -1 : 1)).map(([name, calls]) => [name, String(calls)]);
  return table(caption, ["answer", "calls"], rows);
}

function planTable({ plan: p, machine, ...origin }: LoadReport): Block[] {
  const open = `open loop, ${p.arrivals} arrivals, ${p.schedule}; mean ${rate(p.rate_per_s)}, peak ${rate(p.peak_per_s)}`;
  return facts("What was measured, and how", [
    ["target", `${p.target}${p.tls ? " over TLS" : ""}`],
    [p.methods ? "methods" : "method", p.methods?.join(", ") ?? p.method],
    ["workload", p.workload],
    ["request", origin.request],
    ["load", p.loop === "closed" ? `CLOSED LOOP of ${p.outstanding}: latency hides stalls` : open],
    ["time", `${time(p.warmup_s)} warm-up, then ${p.requests === undefined ? time(p.duration_s) : `${p.requests} requests`}; timeout ${time(p.timeout_s)}`],
    ["connections", `${p.connections} to each target${p.threads ? `, of each of ${p.threads} threads` : ""}`],
    ["generators", p.shares ? (p.share ? `share ${p.share} of ${p.shares}` : `${p.shares}, each with its connections and threads`) : undefined],
    ["generator", `spins ${us(p.spin_us)} before a send${p.realtime ? "; real-time priority" : ""}`],
    ["machine", machineText(machine)],
    ["started", origin.started],
    ["command", origin.command],
    ["curtail", origin.curtail_version],
  ]);
}

// ----- charts

// "50 %", "90 %", "99 %", "99.9 %": each ten times further along the tail.
function spectrumAxis(most: number): Axis {
  const text = (tail: number) => `${Number((100 * (1 - 1 / tail)).toPrecision(Math.max(2, 2 + Math.ceil(Math.log10(tail)))))} %`;
  const high = Math.max(10, most), tens = Array.from({ length: Math.floor(Math.log10(high * 1.001)) }, (_, i) => 10 ** (i + 1));
  return { title: "percentile (scale: 1 / (1 - percentile), logarithmic)", low: 1, high, log: true, ticks: [2, ...tens].map((at) => ({ at, label: text(at) })), text };
}

// The whole distribution: a line a run, with 95 % bands.
export function spectrumChart({ runs, between_runs }: LoadReport): Chart | null {
  const measured = runs.filter((run) => run.latency_us.all.count > 0).slice(0, MAX_CHARTS), few = measured.length <= COLORS;
  if (measured.length === 0) return null;
  const points = (tail: number[], values: (number | null)[]): Point[] => tail.map((at, i) => [at, values[i] === null ? null : values[i]! / 1e6]);
  const color = (i: number) => `var(--color-${few ? i : 0})`;
  const nameOf = (i: number) => (measured.length === 1 ? "every request" : few ? `run ${i + 1}` : i === 0 ? plural(measured.length, "run") : "");
  const lines = measured.map(({ spectrum: s }, i): Line => ({ name: nameOf(i), color: color(i), points: points(s.tail, s.latency_us), ...(few ? {} : { style: "faint" }) }));
  const median = between_runs?.spectrum;
  const bands = median ? [{ ...median, color: color(0) }] : measured.length <= COLORS ? measured.map(({ spectrum }, i) => ({ ...spectrum, color: color(i) })) : [];
  const values = valuesOf(lines), low = lowestAbove0(values), high = highest(values);
  return {
    label: "Latency by percentile",
    x: spectrumAxis(Math.max(...measured.map((run) => run.latency_us.all.count))),
    y: high > 30 * low ? logAxis("", low, high, time) : linearAxis("", high, time),
    height: 320,
    lines,
    bands: bands.map((s) => ({ color: s.color, low: points(s.tail, s.low_us), high: points(s.tail, s.high_us) })),
  };
}

// The configs that the server had, one after the other, where they are known.
function configsOf(series: Interval[], palette: Map<string, string>): Span[] {
  const strip = stripOf(series.map((s, i) => ({ from: series[i - 1]?.end_s ?? 0, name: s.config })), series.at(-1)!.end_s, palette);
  return series.every((s) => s.config === "") ? [] : strip;
}

// The times in which calls ended and none was answered OK.
function outages(series: Interval[]): Span[] {
  const found: Span[] = [];
  for (const s of series.filter((s) => s.ok === 0 && s.failed > 0)) {
    const from = s.end_s - s.length_s, last = found.at(-1);
    if (last && from - last.to < s.length_s / 2) last.to = s.end_s;
    else found.push({ from, to: s.end_s, name: "all failed", color: "var(--bad-ground)" });
  }
  return found.slice(0, MAX_MARKS);
}

// Latency, throughput and calls in flight over the time of a run, one below the other.
export function timeCharts({ series }: Run, warmup: number, palette: Map<string, string>): Chart[] {
  if (series.length === 0) return [];
  const strip = configsOf(series, palette), marks = strip.slice(1).map((span) => ({ at: span.from, name: "" }));
  const shades: Span[] = [...(warmup > 0 ? [{ from: 0, to: warmup, name: "warm-up", color: "var(--band)" }] : []), ...outages(series)];
  const shared = { x: exactAxis("seconds since the start", 0, series.at(-1)!.end_s, plain), shades, marks: marks.length <= MAX_MARKS ? marks : [] };
  const line = (name: string, color: string, of: (s: Interval) => number | null): Line => ({ name, color, points: thin(series.map((s) => [s.end_s - s.length_s / 2, of(s)]), GROUPS) });
  // Timeouts alone are not latency: a line through them would join what the outage parts.
  const latency = [line("p50", "var(--color-0)", (s) => (s.ok === 0 ? null : s.p50_us / 1e6)), line("p99", "var(--color-1)", (s) => (s.ok === 0 ? null : s.p99_us / 1e6))];
  const perSecond = (of: "due" | "sent" | "ok" | "failed") => (s: Interval) => (s.length_s > 0 ? s[of] / s.length_s : null);
  const throughput = [{ ...line("due", "var(--color-6)", perSecond("due")), style: "wide" as const }, line("sent", "var(--color-0)", perSecond("sent")), line("ok", "var(--color-2)", perSecond("ok")), line("failed", "var(--color-4)", perSecond("failed"))];
  const flight = [line("in flight", "var(--color-3)", (s) => s.in_flight)];
  return [
    { ...shared, label: "Latency of calls that ended", height: 280, strip: strip.length <= MAX_SPANS ? strip : [], y: logAxis("", lowestAbove0(valuesOf(latency)), highest(valuesOf(latency)), time), lines: latency },
    { ...shared, label: "Requests a second", height: 240, y: linearAxis("", highest(valuesOf(throughput)), count), lines: throughput },
    { ...shared, label: "Calls in flight", height: 160, y: linearAxis("", highest(valuesOf(flight)), count), lines: flight },
  ];
}

const charts = (of: Chart[]): Block[] => of.map((chart) => ({ is: "chart", chart }));

function overTime({ runs, plan }: LoadReport): Block[] {
  const shown = runs.slice(0, MAX_CHARTS), palette = paletteOf(shown.flatMap((run) => run.series.map((s) => s.config)));
  const [first, ...others] = shown.map((run) => timeCharts(run, plan.warmup_s, palette));
  return [...charts(first ?? []), ...others.flatMap((of, i): Block[] => (of.length > 0 ? [{ is: "folded", summary: `Run ${i + 2} over time`, blocks: charts(of) }] : []))];
}

function spectrum(report: LoadReport): Block[] {
  const chart = spectrumChart(report);
  if (!chart) return [];
  const of = report.between_runs?.spectrum ? "as the median over runs" : "by the samples of a run; runs differ by more";
  const hint: Block = { is: "text", kind: "hint", text: `Shaded: where the percentile is with 95 % confidence, ${of}.` };
  return [...charts([chart]), ...(chart.bands?.length ? [hint] : [])];
}

export function loadPage(report: LoadReport): Page {
  const { plan, runs } = report;
  return {
    title: `Load test of ${plan.methods ? plural(plan.methods.length, "method") : plan.method}`,
    about: `${plan.target}${runs.length > 1 ? `, ${runs.length} runs` : ""}`,
    sections: [
      { heading: "Result", blocks: [...boxes(report), ...thresholdBlocks(report), tiles(report), ...latencyTable(report), ...partTables(report), ...checkTables(report), ...betweenRuns(report)] },
      { heading: "Latency by percentile", blocks: spectrum(report) },
      { heading: runs.length > 1 ? "Over time, run 1" : "Over time", blocks: overTime(report) },
      { heading: "Requests", blocks: [...runsTable(report), ...counts("Codes of the answers", runs.map((run) => run.codes)), ...counts("Errors", runs.map((run) => run.errors))] },
      { heading: "Plan", blocks: planTable(report) },
    ],
  };
}
