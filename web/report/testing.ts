// SPDX-License-Identifier: Apache-2.0
// testing.ts - made-up documents, and what a page of them says.
import type { Comparison } from "./comparison";
import type { LoadReport, Run } from "./load";
import type { Block, Cell, Page } from "./page";
import type { Provisioning } from "./provision";

export const HOSTILE = "</script><img src=x onerror=alert(1)>\u2028\u0000\"'&";

const columns = (length: number, of: (i: number) => number) => Array.from({ length }, (_, i) => of(i));
const latency = (us: number, count = 1000) => ({ count, mean: us, p50: us, p90: 2 * us, p95: 3 * us, p99: 4 * us, p99_9: 5 * us, max: 6 * us, ci95: { p50: [us, us + 10], p99: [3 * us, 5 * us], p99_9: [4 * us, null] }, ci95_samples: { p50: 40, p99: 563, p99_9: 5643 } }) as LoadReport["runs"][0]["latency_us"]["all"];

// Ten seconds at 100/s, all OK; a switch after the seventh.
export function runOf(change: Partial<Run> = {}): Run {
  const tail = [1, 10, 100, 1000];
  return {
    seed: 9, measured_s: 10, interrupted: false, valid: true, invalid_reasons: [], warnings: [],
    requests: { scheduled: 1000, sent: 1000, ok: 1000, failed: 0 }, rates_per_s: { scheduled: 100, good: 100 },
    latency_us: { all: latency(2000), since_sent: latency(1990), success: latency(2000), failure: latency(0, 0) }, send_lag_us: latency(4),
    spectrum: { tail, latency_us: [500, 4000, 8000, 12000], low_us: [400, 3900, 6000, 8000], high_us: [600, 4100, 10000, null as never] },
    generator: { cpu_us_per_request: 30 }, score: { name: "recall@10", count: 1000, sum: 950 }, codes: { OK: 1000 }, errors: {},
    series: columns(10, (i) => i).map((i) => ({ end_s: i + 1, length_s: 1, due: 100, sent: 100, ok: 100, failed: 0, p50_us: 2000, p99_us: 8000, in_flight: 1, config: i < 7 ? "SIB1" : "SDB1-16" })),
    ...change,
  };
}

export function loadReport(runs: Run[], change: Partial<LoadReport> = {}): LoadReport {
  const valid = runs.filter((run) => run.valid), spread = { median: 2000, min: 1000, max: 3000, median_ci95: null, mean_ci95: [1500, 2500] };
  const keys = ["p50_us", "p90_us", "p99_us", "p99_9_us", "mean_us", "good_per_s", "sent_per_s", "error_share", "generator_cpu_us_per_request"];
  const median = valid.length < 6 ? null : { tail: [1, 10, 100], low_us: [400, 3000, 5000], high_us: [600, 5000, 9000] };
  const between = valid.length < 2 ? null : { valid_runs: valid.length, spectrum: median, ...Object.fromEntries(keys.map((key) => [key, spread])) };
  return {
    machine: { cpus: 8, cpu_model: "Test CPU", kernel: "Linux 6.1", load_average_before: 0.25 }, valid: valid.length === runs.length, runs, between_runs: between as unknown as LoadReport["between_runs"],
    plan: { target: "127.0.0.1:7000", tls: false, method: "/a.B/C", workload: "", loop: "open", arrivals: "poisson", schedule: "constant:100", rate_per_s: 100, peak_per_s: 100, outstanding: 0, connections: 1, warmup_s: 2, duration_s: 10, timeout_s: 1, spin_us: 120, realtime: false },
    ...change,
  };
}

// Two policies, three rounds of one scenario of four seconds; the first one goes to SDB1-16 and back.
export function comparison(change: Partial<Comparison> = {}): Comparison {
  const policies = ["mutune", "static:SIP1"];
  const runs = [0, 1, 2].flatMap((round) => policies.map((policy, i) => ({
    policy, scenario: 0, round, valid: true, first_config: "SIP1", switches: i === 0 ? 2 : 0, whole: { p99_us: 1000 + 100 * [0, 2, 1][round]! }, earlier_changes_lost: false,
    changes: i === 0 ? [{ at_s: 1, from: "SIP1", to: "SDB1-16" }, { at_s: 2, from: "SDB1-16", to: "SIP1" }] : [], series: { bucket_s: 0.1, p99_us: columns(40, (k) => 1000 + k) },
  })));
  return {
    kind: "policy_comparison", curtail_version: "0.1.0", machine: null, application: "hdsearch", data: "10 points", profile: "", seed: 7, slo_ms: 10, rounds: 3, policies, verdict: ["mutune is better.", "Against static:SIP1: better."], caveats: ["A caveat."],
    scenarios: [{ name: "flash-crowd", text: "100/s, then 900/s", warmup_s: 0.5, length_s: 4, phases: [{ name: "before", from_s: 0.5, to_s: 1 }, { name: "spike", from_s: 1, to_s: 2 }, { name: "after", from_s: 2, to_s: 4 }], rate: { at_s: [0, 1, 1, 4], per_s: [100, 100, 900, 900] } }],
    tables: [{ title: "flash-crowd: 100/s", text: "p99 in ms", corner: "policy", columns: ["spike", "config"], rows: [{ name: "mutune", cells: [{ text: "1.01", range: "1.00-1.02", standing: "best" }, { text: "SDB1-16", range: "", standing: "unknown" }] }] }],
    costs: [{ policy: "mutune", p99_us: 1000, server_cpu_s: 2, on_front: true }, { policy: "static:SIP1", p99_us: 3000, server_cpu_s: 1, on_front: true }, { policy: "fm", p99_us: 4000, server_cpu_s: 3, on_front: false }],
    runs, ...change,
  };
}

export function provisioning(change: Partial<Provisioning> = {}): Provisioning {
  const start = { front: { cpu: 0.02, config: "auto" }, cart: { cpu: 0.02, config: "SDB1-4" }, cache: { cpu: 0.02, config: null } };
  const round = { saturated: [{ service: "front", evidence: "out of CPU time in 62 % of periods" }], pairs: 4, good_share_before: 0.71, good_share_after: 0.99 };
  return {
    kind: "provision", curtail_version: "1.0", started: "2026-01-31T12:00:00Z", command: "curtail provision shop", machine: null, application: "shop", qos: "p99<50ms", cpus: 2, instances: { front: 1, cart: 2, cache: 1 },
    start, shares: { ...start, front: { cpu: 0.04, config: "FIB2" } }, highest_per_s: 200, equal_shares: start, equal_highest_per_s: 130, reason: "no step helps", cpus_used: { front: 0.031 },
    rounds: [
      { ...round, cpus: 0.08, highest_per_s: 120, refused_per_s: 132, steps: [{ service: "front", lever: "cpu", from: start.front, to: { cpu: 0.04, config: "auto" } }], verdict: "helps" },
      { ...round, cpus: 0.1, highest_per_s: 200, refused_per_s: 220, steps: [{ service: "cart", lever: "threads", from: start.cart, to: { cpu: 0.02, config: "SDB1-8" } }], verdict: "cannot tell" },
    ],
    ...change,
  };
}

const cellText = (cell: Cell) => (typeof cell === "string" ? cell : `${cell.text}${cell.mark ?? ""}${cell.range ? ` (${cell.range})` : ""}`);

function wordsOf(block: Block): string[] {
  switch (block.is) {
    case "text":
      return [block.text];
    case "list":
      return block.items;
    case "box":
      return block.lines.map((line) => `${block.kind}: ${line}`);
    case "tiles":
      return block.tiles.map(({ name, value, detail }) => `${name}: ${value} (${detail})`);
    case "table":
      return [block.caption, ...[block.columns, ...block.rows].map((row) => row.map(cellText).join(" | "))];
    case "chart":
      return [`chart: ${block.chart.label}`];
    case "folded":
      return [`folded: ${block.summary}`, ...block.blocks.flatMap(wordsOf)];
  }
}

// All that a page says, a line each.
export const words = (page: Page): string[] => [page.title, page.about, ...page.sections.filter((s) => s.blocks.length > 0).flatMap(({ heading, blocks }) => [`# ${heading}`, ...blocks.flatMap(wordsOf)])];
