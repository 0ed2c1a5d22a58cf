// SPDX-License-Identifier: Apache-2.0
// models.ts - p99 over load of the threading models, as models_bench writes its results with --json.
//
// Color is the family, the dash is the reception (block solid, poll dashed), the marker is the execution (in-line circle, dispatch square). A
// point that is saturated or generator-bound is hollow.
import { highest, logAxis, lowestAbove0, type Chart, type Line, type Marker } from "../common/chart";
import { count, time } from "../common/format";

interface Cell {
  model: string;
  config: string;
  outstanding_requests: number; // of a closed loop; 0: an open one
  rate_per_s: number;
  p99_us: { median: number };
  saturated: boolean;
  generator_bound: boolean;
}

export interface Models {
  benchmark: "models";
  service: string;
  tables: { cells: Cell[] };
}

const COLORS: Record<string, string> = { S: "var(--color-0)", A: "var(--color-1)", F: "var(--color-2)" };
export const MODELS_NOTE = "blue sync, orange async, green fiber; solid block, dashed poll; circle in-line, square dispatch; hollow generator-bound or saturated";

interface Best {
  config: string;
  rate: number;
  p99: number; // s
  saturated: boolean;
  hollow: boolean;
}

// Of the pools of a model, at each rate: the one with the lowest p99; a saturated one only when all are.
function bestOf(cells: Cell[]): Best[] {
  const best = new Map<number, Best>();
  for (const { config, rate_per_s: rate, outstanding_requests, p99_us, saturated, generator_bound } of cells) {
    if (outstanding_requests > 0 || p99_us.median <= 0) continue;
    const found = best.get(rate), p99 = p99_us.median / 1e6;
    const better = !found || (saturated === found.saturated ? p99 < found.p99 : found.saturated);
    if (better) best.set(rate, { config, rate, p99, saturated, hollow: saturated || generator_bound });
  }
  return [...best.values()];
}

// Null where nothing was measured.
export function modelsChart({ service, tables: { cells } }: Models): Chart | null {
  const lines: Line[] = [], markers: Marker[] = [], shown: Best[] = [];
  for (const model of new Set(cells.map((cell) => cell.model))) {
    const own = cells.filter((cell) => cell.model === model), pools = new Set(own.map((cell) => cell.config)), best = bestOf(own), color = COLORS[model[0]!] ?? "var(--color-6)";
    if (best.length === 0) continue;
    shown.push(...best);
    lines.push({ name: pools.size === 1 ? own[0]!.config : model, color, points: best.map((b) => [b.rate, b.p99]), ...(model[2] === "P" ? { style: "dashed" } : {}) });
    markers.push(...best.map((b) => ({ at: [b.rate, b.p99] as const, color, shape: model[1] === "D" ? 1 : 0, hollow: b.hollow, title: `${b.config} at ${b.rate}/s: p99 ${time(b.p99)}${b.hollow ? ", saturated or generator-bound" : ""}` })));
  }
  if (lines.length === 0) return null;
  const rates = shown.map((b) => b.rate), p99s = shown.map((b) => b.p99), sustained = highest(shown.filter((b) => !b.saturated).map((b) => b.p99));
  // The tails of saturated cells depend on the length of the run only, so they do not stretch the scale.
  const top = sustained > 0 ? Math.min(2 * sustained, highest(p99s)) : highest(p99s);
  return {
    label: `${service}: p99 over load by threading model`,
    x: logAxis("offered load, requests a second (points on the top edge are off the scale)", lowestAbove0(rates), highest(rates), count),
    y: logAxis("p99", lowestAbove0(p99s), top, time),
    height: 520,
    lines,
    markers,
    namesAtEnd: true,
  };
}
