// SPDX-License-Identifier: Apache-2.0
// charts.ts - curves over time, by uPlot; switches of config as marked lines.
import uPlot from "uplot";
import { count, time } from "./format";
import type { Point, Switch } from "./model";

export interface Curve {
  label: string;
  of: (point: Point) => number | null;
  color: string; // a custom property
  value: (value: number) => string;
  dash?: number[];
}

const HEIGHT = 170;
const colorOf = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// A Chart follows one panel's width, theme and points.
export class Chart {
  private plot: uPlot;
  private switches: Switch[] = [];

  constructor(private readonly parent: HTMLElement, private readonly title: string, private readonly curves: Curve[]) {
    this.plot = this.make();
    new ResizeObserver(() => this.plot.setSize({ width: Math.max(200, parent.clientWidth), height: HEIGHT })).observe(parent);
  }

  restyle(): void {
    const data = this.plot.data;
    this.plot.destroy();
    this.plot = this.make();
    this.plot.setData(data);
  }

  show(points: Point[], seconds: number, switches: Switch[]): void {
    const end = points.at(-1)?.at ?? Date.now() / 1000;
    const seen = points.filter((p) => p.at >= end - seconds);
    this.switches = switches.filter((s) => s.at >= end - seconds);
    this.plot.setData([seen.map((p) => p.at), ...this.curves.map((curve) => seen.map(curve.of))], false);
    const top = Math.max(0, ...this.curves.flatMap((curve) => seen.map((p) => curve.of(p) ?? 0)));
    this.plot.batch(() => {
      this.plot.setScale("x", { min: end - seconds, max: end });
      if (this.plot.cursor.idx === null || this.plot.cursor.idx === undefined) this.plot.setLegend({ idx: seen.length - 1 }, false);
      this.plot.setScale("y", { min: 0, max: top > 0 ? top * 1.1 : 1 });
    });
  }

  private make(): uPlot {
    const text = colorOf("--dim"), grid = { stroke: colorOf("--grid"), width: 1 }, ticks = { stroke: colorOf("--line") };
    const value = this.curves[0]!.value;
    return new uPlot({
      title: this.title,
      width: Math.max(200, this.parent.clientWidth),
      height: HEIGHT,
      scales: { x: { time: true, auto: false }, y: { auto: false } },
      axes: [
        { stroke: text, grid, ticks, space: 70, size: 32, values: "{HH}:{mm}:{ss}" },
        { stroke: text, grid, ticks, size: 64, values: (_, splits) => splits.map(value) },
      ],
      series: [
        { value: "{HH}:{mm}:{ss}" },
        ...this.curves.map((curve) => ({ label: curve.label, stroke: colorOf(curve.color), width: 1.6, points: { show: false }, ...(curve.dash ? { dash: curve.dash } : {}), value: (_: uPlot, v: number | null) => (v === null ? "–" : curve.value(v)) })),
      ],
      hooks: { draw: [(plot) => this.mark(plot)] },
    }, [[]], this.parent);
  }

  private mark(plot: uPlot): void {
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.strokeStyle = ctx.fillStyle = colorOf("--second");
    ctx.lineWidth = devicePixelRatio;
    ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
    let free = -Infinity;
    for (const each of this.switches) {
      const x = plot.valToPos(each.at, "x", true);
      ctx.beginPath();
      ctx.setLineDash([3, 3]);
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
      const wide = ctx.measureText(each.to).width;
      const left = Math.min(x + 4, bbox.left + bbox.width - wide);
      if (left > free) ctx.fillText(each.to, left, bbox.top + 11 * devicePixelRatio), (free = left + wide + 4);
    }
    ctx.restore();
  }
}

export const rateCurve = (label: string, of: Curve["of"], color: string): Curve => ({ label, of, color, value: count });
export const timeCurve = (label: string, of: Curve["of"], color: string): Curve => ({ label, of, color, value: time });
