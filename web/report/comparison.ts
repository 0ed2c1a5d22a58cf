// SPDX-License-Identifier: Apache-2.0
// comparison.ts - the page of a comparison of policies. Its document is described by tools/curtail/compare/comparison.schema.json.
import { exactAxis, highest, linearAxis, logAxis, lowestAbove0, thin, type Axis, type Chart, type Point, type Span } from "../common/chart";
import { count, plain, time } from "../common/format";
import { facts, machineText, paletteOf, plural, stripOf, table, type Block, type Cell, type Machine, type Page } from "./page";

interface Change {
  at_s: number;
  from: string;
  to: string;
}

interface Run {
  policy: string;
  scenario: number;
  round: number;
  valid: boolean;
  first_config: string;
  switches: number;
  whole: { p99_us: number };
  changes: Change[];
  earlier_changes_lost: boolean;
  series: { bucket_s: number; p99_us: (number | null)[] };
}

interface Scenario {
  name: string;
  text: string;
  warmup_s: number;
  length_s: number;
  phases: { name: string; from_s: number; to_s: number }[];
  rate: { at_s: number[]; per_s: number[] };
}

interface Table {
  title: string;
  text: string;
  corner: string;
  columns: string[];
  rows: { name: string; cells: { text: string; range: string; standing: "best" | "matched" | "beaten" | "unknown" }[] }[];
}

export interface Comparison {
  kind: "policy_comparison";
  curtail_version: string;
  machine: Machine | null;
  application: string;
  data: string;
  profile: string;
  seed: number;
  slo_ms: number;
  rounds: number;
  policies: string[];
  verdict: string[];
  caveats: string[];
  scenarios: Scenario[];
  tables: Table[];
  costs: { policy: string; p99_us: number; server_cpu_s: number; on_front: boolean }[];
  runs: Run[];
}

const MAX_MARKS = 40; // with more switches than these, lines would hide the chart
const STRIP_CELLS = 400; // of the strip of configs, where there are more changes
const GROUPS = 300; // of a line, times two
// Of policy_tables.h.
const MARKS_TEXT = "* lowest   = not told apart from it (t test over the rounds, corrected for all cells and pairs); the arrivals are the same for all";
const MARKS = { best: " *", matched: " =", beaten: "", unknown: "" };

const HOW_TO_READ = [
  "Latency counts from the moment at which a request was due, whether or not the generator or the server was late. A request that failed counts as at least its timeout, so overload shows as a p99 of over a second.",
  "A request belongs to the phase in which it was due: one that is due in a spike and answered long after it counts for the spike.",
  "All policies of a round get the same arrivals. A round gives one number for two policies: the geometric mean of the ratios of their p99 over all cells, which are the parts of the scenarios. “Better” and “worse” mean that the 95 % interval of that ratio over the rounds excludes 1, and “level” that it is within 10 % of 1. Fewer than five rounds that count get no verdict. Rounds are added until the numbers tell; intervals are wide enough for that.",
  "A cell in which both had the same config in force for nine tenths of the time counts as equal. Verdicts on single cells are corrected for the number of cells (Holm); the marks in tables also for the pairs of policies.",
  "The backlog is how long after the spike requests still took over three times the p99 before it, and over 10 ms. The reaction is the time from the first request of the spike to the first change of config within it.",
  "CPU is that of the server under test: 1 is one core all the time. Polling costs CPU even when there is nothing to do. A policy on the front has less of p99 or CPU than each other one; these are points, and the intervals of the ratios say how far to trust them.",
  "Charts show the round whose p99 is the median one: the p99 of the requests due in each 100 ms, which at low loads is that of a few. Dashed lines are changes of config, where there are not too many to draw.",
];

type Palette = Map<string, string>;

// In the order of first use.
const configsOf = (runs: Run[]) => paletteOf(runs.flatMap((run) => [run.first_config, ...run.changes.flatMap((change) => [change.from, change.to])]));

function tableOf(of: Table, palette: Palette): { heading: string; blocks: Block[] } {
  const rows = of.rows.map((row): Cell[] => [row.name, ...row.cells.map((cell) => ({ text: cell.text, range: cell.range, mark: MARKS[cell.standing], ...(palette.has(cell.text) ? { color: palette.get(cell.text)! } : {}) }))]);
  return { heading: of.title, blocks: table(of.text, [of.corner, ...of.columns], rows) };
}

// The run of a policy that is shown: the one with the median p99, or any if all are void.
export function shownRun({ runs }: Comparison, scenario: number, policy: string): Run | undefined {
  const of = runs.filter((run) => run.scenario === scenario && run.policy === policy), valid = of.filter((run) => run.valid);
  const sorted = valid.sort((a, b) => a.whole.p99_us - b.whole.p99_us || a.round - b.round);
  return sorted[Math.floor((sorted.length - 1) / 2)] ?? of[0];
}

// When each config was in force, as far as the changes are known. Spans narrower than can be seen give way to what follows them.
export function configStrip(run: Run, end: number, palette: Palette): Span[] {
  const steps = [{ from: 0, name: run.earlier_changes_lost ? "" : (run.changes[0]?.from ?? run.first_config) }];
  const least = run.changes.length > STRIP_CELLS ? end / STRIP_CELLS : 0;
  for (const { at_s, to } of run.changes) {
    const from = Math.min(Math.max(at_s, 0), end), last = steps.at(-1)!;
    if (from - last.from < least) last.name = to;
    else steps.push({ from, name: to });
  }
  return stripOf(steps, end, palette);
}

function overTime(scenario: Scenario) {
  const warmup: Span[] = scenario.warmup_s > 0 ? [{ from: 0, to: scenario.warmup_s, name: "warm-up", color: "var(--band)" }] : [];
  const phases = scenario.phases.map((p, i): Span => ({ from: p.from_s, to: p.to_s, name: p.name, color: i % 2 === 0 ? "none" : "var(--band)" }));
  return { x: exactAxis("seconds since the start", 0, scenario.length_s, plain), shades: [...warmup, ...phases] };
}

function rateChart(scenario: Scenario): Chart {
  const { at_s, per_s } = scenario.rate;
  return { ...overTime(scenario), label: "Offered load, requests a second", height: 160, y: linearAxis("", highest(per_s), count), lines: [{ name: "offered", color: "var(--text)", points: at_s.map((at, i) => [at, per_s[i]!]) }] };
}

function policyChart(scenario: Scenario, run: Run, y: Axis, palette: Palette): Chart {
  const { bucket_s, p99_us } = run.series;
  return {
    ...overTime(scenario),
    label: `${run.policy}: p99, round ${run.round + 1}, ${plural(run.switches, "switch", "switches")}${run.valid ? "" : " (void)"}`,
    height: 230,
    y,
    strip: configStrip(run, scenario.length_s, palette),
    marks: run.changes.length > MAX_MARKS ? [] : run.changes.map((change) => ({ at: change.at_s, name: "" })),
    lines: [{ name: "p99", color: "var(--text)", points: thin(p99_us.map((us, i): Point => [(i + 0.5) * bucket_s, us === null ? null : us / 1e6]), GROUPS) }],
  };
}

// All policies on the same axes.
function scenarioCharts(c: Comparison, scenario: number, palette: Palette): Block[] {
  const runs = c.policies.flatMap((policy) => shownRun(c, scenario, policy) ?? []), of = c.scenarios[scenario]!;
  const values = runs.flatMap((run) => run.series.p99_us.flatMap((us) => (us ? [us / 1e6] : [])));
  const y = logAxis("", lowestAbove0(values), highest(values), time);
  return runs.length === 0 ? [] : [rateChart(of), ...runs.map((run) => policyChart(of, run, y, palette))].map((chart) => ({ is: "chart", chart }));
}

// Each policy a point; those on the front are joined by steps. Null with fewer than two.
export function frontChart({ costs }: Comparison): Chart | null {
  if (costs.length < 2) return null;
  const sorted = [...costs].sort((a, b) => b.p99_us - a.p99_us), at = (of: (typeof costs)[0]): Point => [of.server_cpu_s, of.p99_us / 1e6]; // top down
  const front = sorted.filter((of) => of.on_front), colorOf = (on: boolean) => (on ? "var(--good)" : "var(--dim)");
  const steps = front.flatMap((of, i): Point[] => (i === 0 ? [at(of)] : [[of.server_cpu_s, front[i - 1]!.p99_us / 1e6], at(of)]));
  const p99s = sorted.map((of) => of.p99_us / 1e6);
  return {
    label: "p99 against CPU of the server under test",
    x: linearAxis("CPU of the mid-tier in a round, seconds", highest(sorted.map((of) => of.server_cpu_s)), plain),
    y: logAxis("p99, the geometric mean over all cells", lowestAbove0(p99s), highest(p99s), time),
    height: 320,
    lines: [{ name: "", color: colorOf(true), style: "dashed", points: steps }],
    markers: sorted.map((of) => ({ at: at(of), color: colorOf(of.on_front), shape: 0, title: `${of.policy}: ${time(of.p99_us / 1e6)}, ${plain(of.server_cpu_s)} s` })),
    labels: sorted.map((of) => ({ at: at(of), text: of.policy })),
  };
}

function originTable(c: Comparison): Block[] {
  return facts("The comparison", [
    ["application", c.application],
    ["data", c.data],
    ["profile", c.profile || "none"],
    ["SLO", c.slo_ms > 0 ? time(c.slo_ms / 1e3) : ""],
    ...c.scenarios.map(({ name, text }): [string, string] => [name, text]),
    ["policies", c.policies.join(", ")],
    ["rounds", String(c.rounds)],
    ["runs", String(c.runs.length)],
    ["seed", String(c.seed)],
    ["machine", machineText(c.machine)],
    ["curtail", c.curtail_version],
  ]);
}

export function comparisonPage(c: Comparison): Page {
  const [lead, ...verdict] = c.verdict, palette = configsOf(c.runs), front = frontChart(c);
  const marks: Block = { is: "text", kind: "hint", text: MARKS_TEXT }, tables = c.tables.map((of) => tableOf(of, palette));
  tables.at(-1)?.blocks.push(marks);
  return {
    title: `Comparison of policies: ${c.application}`,
    about: [c.application + (c.data ? ` over ${c.data}` : ""), c.profile ? `profile ${c.profile}` : "no profile", ...(c.slo_ms > 0 ? [`SLO ${c.slo_ms} ms`] : []), plural(c.rounds, "round"), `seed ${c.seed}`].join("; "),
    sections: [
      { heading: "Verdict", blocks: [{ is: "text", kind: "lead", text: lead! }, { is: "list", items: verdict }, ...(c.caveats.length > 0 ? [{ is: "box" as const, kind: "warning" as const, lines: c.caveats }] : [])] },
      ...tables,
      { heading: "p99 against CPU", blocks: front ? [{ is: "chart", chart: front }] : [] },
      ...c.scenarios.map(({ name }, i) => ({ heading: `Over time: ${name}`, blocks: scenarioCharts(c, i, palette) })),
      { heading: "How to read this", blocks: [{ is: "list", items: HOW_TO_READ }] },
      { heading: "What was measured", blocks: originTable(c) },
    ],
  };
}
