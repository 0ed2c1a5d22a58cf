// SPDX-License-Identifier: Apache-2.0
// scatter.ts - offered load against p99, a mark a second, by the config in force; switches are arrows.
import { highest, linearAxis, type Chart } from "../common/chart";
import { ChartView, pointSwatch } from "../common/chart_view";
import { byId, element, head, replace } from "../common/dom";
import { count, time } from "../common/format";
import type { Point, Switch } from "./model";

export const MAX_CONFIGS = 6; // with a color of their own; others share the last one
const OTHERS = "others";

export interface Mark {
  at: number;
  rate: number;
  p99: number;
}

export interface ConfigMarks {
  config: string;
  marks: Mark[];
}

// The seconds with calls, by config, in the order in which these came into force first.
export function byConfig(points: Point[]): ConfigMarks[] {
  const groups = new Map<string, Mark[]>();
  for (const { at, rate, p99, config } of points) {
    if (p99 === null || rate <= 0) continue;
    const name = config || "no config";
    const key = groups.has(name) || groups.size < MAX_CONFIGS ? name : OTHERS;
    const marks = groups.get(key) ?? [];
    marks.push({ at, rate, p99 });
    groups.set(key, marks);
  }
  return [...groups].map(([config, marks]) => ({ config, marks }));
}

export interface Jump {
  from: Mark;
  to: Mark;
  config: string;
}

// From the last second with calls before a switch to the first whole one after it. Instances that switch together jump once.
export function jumpsOf(points: Point[], switches: Switch[]): Jump[] {
  const marks = byConfig(points).flatMap((group) => group.marks).sort((a, b) => a.at - b.at);
  const jumps: Jump[] = [];
  for (const each of [...switches].sort((a, b) => a.at - b.at)) {
    const next = marks.findIndex((mark) => mark.at >= each.at + 1);
    const from = marks.filter((mark) => mark.at < each.at).at(-1), to = marks[next];
    if (!from || !to || jumps.some((jump) => jump.to === to && jump.config === each.to)) continue;
    jumps.push({ from, to, config: each.to });
  }
  return jumps;
}

const median = (values: number[]) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)]!;

// A row a config: seconds, loads, median p99, highest p99.
export function rowsOf(groups: ConfigMarks[]): string[][] {
  return groups.map(({ config, marks }) => {
    const rates = marks.map((m) => m.rate), p99s = marks.map((m) => m.p99);
    return [config, String(marks.length), `${count(Math.min(...rates))} to ${count(Math.max(...rates))}`, time(median(p99s)), time(Math.max(...p99s))];
  });
}

const HEIGHT = 230;
const colorOf = (i: number) => `var(--color-${Math.min(i, MAX_CONFIGS)})`;

export function scatterChart(groups: ConfigMarks[], jumps: Jump[]): Chart {
  const marks = groups.flatMap((group) => group.marks);
  return {
    label: "p99 by requests a second",
    x: linearAxis("requests a second", highest(marks.map((m) => m.rate)), count),
    y: linearAxis("p99", highest(marks.map((m) => m.p99)), time),
    height: HEIGHT,
    lines: [],
    markers: groups.flatMap((group, i) => group.marks.map((m) => ({ at: [m.rate, m.p99], color: colorOf(i), shape: i }))),
    arrows: jumps.map(({ from, to, config }) => ({ from: [from.rate, from.p99], to: [to.rate, to.p99], name: config })),
  };
}

export class Scatter {
  private readonly view = new ChartView();

  constructor(parent: HTMLElement, private readonly table: HTMLElement) {
    parent.append(this.view.element);
  }

  show(points: Point[], switches: Switch[]): void {
    const groups = byConfig(points), jumps = jumpsOf(points, switches);
    this.view.show(scatterChart(groups, jumps));
    const seconds = groups.reduce((sum, group) => sum + group.marks.length, 0);
    byId("scatter-note").textContent = seconds === 0 ? "No calls yet." : `${seconds} seconds with calls; switches: ${jumps.length}.`;
    const rows = rowsOf(groups).map((cells, i) => element("tr", {}, ...cells.map((cell, column) => element("td", {}, ...(column === 0 ? [pointSwatch(colorOf(i), i)] : []), cell))));
    replace(this.table, head("Config", "Seconds", "Requests/s", "p99, median", "p99, highest"), element("tbody", {}, ...rows));
  }
}
