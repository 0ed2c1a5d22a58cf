// SPDX-License-Identifier: Apache-2.0
// scatter.ts - offered load against p99, a mark a second, by the config in force; switches are arrows.
import uPlot from "uplot";
import { byId, element, head, replace } from "../common/dom";
import { count, time } from "./format";
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

const HEIGHT = 230, SIZE = 3.5;
const colorOf = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const colorName = (i: number) => `--config-${Math.min(i, MAX_CONFIGS)}`;

// Shapes tell configs apart where colors do not.
const shapes: ((ctx: CanvasRenderingContext2D, x: number, y: number, r: number) => void)[] = [
  (ctx, x, y, r) => ctx.arc(x, y, r, 0, 2 * Math.PI),
  (ctx, x, y, r) => ctx.rect(x - r, y - r, 2 * r, 2 * r),
  (ctx, x, y, r) => (ctx.moveTo(x, y - r), ctx.lineTo(x + r, y + r), ctx.lineTo(x - r, y + r), ctx.closePath()),
  (ctx, x, y, r) => (ctx.moveTo(x, y - r), ctx.lineTo(x + r, y), ctx.lineTo(x, y + r), ctx.lineTo(x - r, y), ctx.closePath()),
];

export class Scatter {
  private plot: uPlot;
  private groups: ConfigMarks[] = [];
  private jumps: Jump[] = [];

  constructor(private readonly parent: HTMLElement, private readonly table: HTMLElement) {
    this.plot = this.make();
    new ResizeObserver(() => this.plot.setSize({ width: Math.max(200, parent.clientWidth), height: HEIGHT })).observe(parent);
  }

  restyle(): void {
    this.plot.destroy();
    this.plot = this.make();
  }

  show(points: Point[], switches: Switch[]): void {
    this.groups = byConfig(points);
    this.jumps = jumpsOf(points, switches);
    const marks = this.groups.flatMap((group) => group.marks);
    const top = (of: (m: Mark) => number, least: number) => 1.1 * Math.max(least, ...marks.map(of));
    this.plot.batch(() => {
      this.plot.setScale("x", { min: 0, max: top((m) => m.rate, 1) });
      this.plot.setScale("y", { min: 0, max: top((m) => m.p99, 1e-4) });
    });
    this.plot.redraw(false, true);
    byId("scatter-note").textContent = marks.length === 0 ? "No calls yet." : `${marks.length} seconds with calls; switches: ${this.jumps.length}.`;
    const rows = rowsOf(this.groups).map((cells, i) => element("tr", {}, ...cells.map((cell, column) => (column === 0 ? element("td", {}, element("span", { class: `swatch config-${Math.min(i, MAX_CONFIGS)} shape-${i % shapes.length}` }), cell) : element("td", {}, cell)))));
    replace(this.table, head("Config", "Seconds", "Requests/s", "p99, median", "p99, highest"), element("tbody", {}, ...rows));
  }

  private make(): uPlot {
    const text = colorOf("--dim"), grid = { stroke: colorOf("--grid"), width: 1 }, ticks = { stroke: colorOf("--line") };
    const axis = { stroke: text, grid, ticks, labelFont: "12px system-ui, sans-serif", labelSize: 18 };
    return new uPlot({
      width: Math.max(200, this.parent.clientWidth),
      height: HEIGHT,
      scales: { x: { time: false, auto: false }, y: { auto: false } },
      axes: [
        { ...axis, label: "requests a second", size: 32, values: (_, splits) => splits.map(count) },
        { ...axis, label: "p99", size: 64, values: (_, splits) => splits.map(time) },
      ],
      series: [{}, {}],
      legend: { show: false },
      cursor: { show: false },
      hooks: { draw: [(plot) => this.draw(plot)] },
    }, [[], []], this.parent);
  }

  private draw(plot: uPlot): void {
    const { ctx } = plot, scale = devicePixelRatio;
    const place = (mark: Mark): [number, number] => [plot.valToPos(mark.rate, "x", true), plot.valToPos(mark.p99, "y", true)];
    ctx.save();
    this.groups.forEach(({ marks }, i) => {
      ctx.fillStyle = colorOf(colorName(i));
      ctx.beginPath();
      for (const mark of marks) {
        const [x, y] = place(mark);
        ctx.moveTo(x + SIZE * scale, y);
        shapes[i % shapes.length]!(ctx, x, y, SIZE * scale);
      }
      ctx.fill();
    });
    ctx.strokeStyle = ctx.fillStyle = colorOf("--text");
    ctx.lineWidth = 1.3 * scale;
    ctx.font = `${11 * scale}px system-ui, sans-serif`;
    for (const { from, to, config } of this.jumps) this.arrow(ctx, place(from), place(to), config, plot.bbox.left + plot.bbox.width);
    ctx.restore();
  }

  private arrow(ctx: CanvasRenderingContext2D, [x1, y1]: [number, number], [x2, y2]: [number, number], text: string, right: number): void {
    const scale = devicePixelRatio, toward = Math.atan2(y2 - y1, x2 - x1), tip = 7 * scale;
    ctx.beginPath();
    ctx.moveTo(x1, y1);
    ctx.lineTo(x2, y2);
    for (const side of [-0.45, 0.45]) ctx.moveTo(x2, y2), ctx.lineTo(x2 - tip * Math.cos(toward + side), y2 - tip * Math.sin(toward + side));
    ctx.stroke();
    ctx.fillText(text, Math.min(x2 + 6 * scale, right - ctx.measureText(text).width), y2 - 6 * scale);
  }
}
