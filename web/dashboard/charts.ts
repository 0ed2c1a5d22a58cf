// SPDX-License-Identifier: Apache-2.0
// charts.ts - curves over time; switches of config as marked lines.
import { exactAxis, highest, linearAxis, valuesOf, type Axis, type Chart, type Format } from "../common/chart";
import { clock } from "../common/format";
import type { Point, Switch } from "./model";

export interface Curve {
  label: string;
  of: (point: Point) => number | null;
  color: string; // a custom property
}

const HEIGHT = 160, STEPS = [10, 15, 30, 60, 120]; // s

function clockAxis(end: number, seconds: number): Axis {
  return exactAxis("", end - seconds, end, clock, STEPS.find((step) => seconds / step <= 6) ?? STEPS.at(-1)!);
}

// The last `seconds` of the points.
export function timeChart(label: string, text: Format, curves: Curve[], points: Point[], seconds: number, switches: Switch[]): Chart {
  const end = points.at(-1)?.at ?? Date.now() / 1000, seen = points.filter((p) => p.at >= end - seconds);
  const lines = curves.map((curve) => ({ name: curve.label, color: `var(${curve.color})`, points: seen.map((p) => [p.at, curve.of(p)] as const) }));
  return { label, x: clockAxis(end, seconds), y: linearAxis("", highest(valuesOf(lines)), text), height: HEIGHT, lines, marks: switches.map((s) => ({ at: s.at, name: s.to })) };
}
