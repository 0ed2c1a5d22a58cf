// SPDX-License-Identifier: Apache-2.0
// chart.ts - a chart as a tree of SVG elements: axes, lines, bands and marks. It needs no document, so that Node writes files with it.
//
// chart.css has the rules of its classes. Points that are null, or not above 0 on a logarithmic axis, break the line.

export type Point = readonly [x: number, y: number | null];
export type Format = (value: number) => string;

export interface Axis {
  title: string;
  low: number;
  high: number; // above `low`
  log: boolean;
  ticks: { at: number; label: string }[]; // without a label: a grid line only
  text: Format;
}

export interface Line {
  name: string; // in the key; "": not there
  color: string; // as in CSS
  points: Point[]; // by x
  style?: "wide" | "faint" | "dashed";
}

// A part of the x axis, such as the warm-up.
export interface Span {
  from: number;
  to: number;
  name: string; // inside it, where it fits, and for a pointer
  color: string;
}

export interface Marker {
  at: Point;
  color: string;
  shape: number; // of SHAPES
  hollow?: boolean;
  title?: string; // that a pointer shows
}

export interface Chart {
  label: string; // its caption, and for screen readers
  x: Axis;
  y: Axis;
  height: number; // px
  lines: Line[];
  shades?: Span[]; // behind everything, over the whole height
  strip?: Span[]; // above the plot
  marks?: { at: number; name: string }[]; // vertical lines
  bands?: { color: string; low: Point[]; high: Point[] }[]; // between two lines over the same x, where both are known
  markers?: Marker[];
  arrows?: { from: Point; to: Point; name: string }[];
  labels?: { at: Point; text: string }[]; // moved down where two would cover each other
  namesAtEnd?: boolean; // the lines' names are right of their last points
}

export interface Shape {
  name: string;
  attributes: Record<string, string | number>;
  children: (Shape | string)[];
}

const LEFT = 62, RIGHT = 16, STRIP = 20, TITLE = 18, TICKS = 20; // px
const NAMES = 150, NAME_GAP = 16; // of names at the end
const LETTER = 6.7; // about, at 12 px

export const shape = (name: string, attributes: Shape["attributes"] = {}, ...children: Shape["children"]): Shape => ({ name, attributes, children });

const px = (value: number) => Math.round(value * 10) / 10;
const clamp = (value: number, low: number, high: number) => Math.min(Math.max(value, low), high);
const widthOf = (text: string) => text.length * LETTER;

// ----- axes

// 1, 2 or 5 times a power of ten: the least that is not below `value`.
function roundUp(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  return power * ([1, 2, 5].find((step) => step * power >= value * (1 - 1e-9)) ?? 10);
}

const evenTicks = (low: number, high: number, step: number, text: Format) => {
  const first = Math.ceil(low / step - 1e-9), last = Math.floor(high / step + 1e-6);
  return Array.from({ length: last - first + 1 }, (_, i) => ({ at: (first + i) * step, label: text((first + i) * step) }));
};

// From 0 to a round number that is at least `high`.
export function linearAxis(title: string, high: number, text: Format): Axis {
  const top = Number.isFinite(high) && high > 0 ? high : 1, step = roundUp(top / 5), end = step * Math.ceil(top / step - 1e-9);
  return { title, low: 0, high: end, log: false, ticks: evenTicks(0, end, step, text), text };
}

// From `low` to `high` exactly, as for time.
export function exactAxis(title: string, low: number, high: number, text: Format, step = 0): Axis {
  const [from, to] = Number.isFinite(high - low) && high > low ? [low, high] : [0, 1];
  return { title, low: from, high: to, log: false, ticks: evenTicks(from, to, step || roundUp((to - from) / 10), text), text };
}

// Round numbers around [low, high], with labels at 1, 2 and 5 where there is room.
export function logAxis(title: string, low: number, high: number, text: Format): Axis {
  const fine = Number.isFinite(high) && low > 0 && high >= low;
  const from = fine ? 1 / roundUp(1 / low) : 1;
  const to = Math.max(fine ? roundUp(high) : 10, from * 10);
  const decades = Math.log10(to / from), ticks: Axis["ticks"] = [];
  for (let power = Math.floor(Math.log10(from)); power <= Math.log10(to) + 1e-9; ++power) for (const digit of decades > 5 ? [1] : [1, 2, 5]) {
    const at = digit * 10 ** power;
    if (at >= from * 0.999 && at <= to * 1.001) ticks.push({ at, label: digit === 1 || decades < 2.5 ? text(at) : "" });
  }
  return { title, low: from, high: to, log: true, ticks, text };
}

// The y of all points of the lines that can be drawn.
export const valuesOf = (lines: { points: Point[] }[]) => lines.flatMap((line) => line.points.flatMap(([, y]) => (y === null || !Number.isFinite(y) ? [] : [y])));
export const highest = (values: number[]) => values.reduce((a, b) => Math.max(a, b), 0);
export const lowestAbove0 = (values: number[]) => values.reduce((a, b) => (b > 0 ? Math.min(a, b) : a), Infinity);

// ----- points

// At most about 3 * `groups` points: of each group of neighbours the lowest, the highest and the first that breaks the line, so that no
// spike and no gap is lost.
export function thin(points: Point[], groups: number): Point[] {
  if (points.length <= 2 * groups) return points;
  return Array.from({ length: groups }, (_, i) => {
    const group = points.slice(Math.floor((i * points.length) / groups), Math.floor(((i + 1) * points.length) / groups));
    const known = group.filter(([, y]) => y !== null && Number.isFinite(y));
    const kept = new Set([group.find((p) => !known.includes(p)), known.reduce((a, b) => (b[1]! < a[1]! ? b : a), known[0]!), known.reduce((a, b) => (b[1]! > a[1]! ? b : a), known[0]!)]);
    return group.filter((p) => kept.has(p));
  }).flat();
}

const nearest = (points: Point[], x: number) => points.reduce<Point | null>((a, b) => (a === null || Math.abs(b[0] - x) < Math.abs(a[0] - x) ? b : a), null);

// The values of the lines at `x`: the x of the nearest point, and a text for each line.
export function readAt(chart: Chart, x: number): { x: number; values: string[] } {
  const points = chart.lines.map((line) => nearest(line.points, x));
  const at = points.find((point) => point !== null)?.[0] ?? x;
  return { x: at, values: points.map((point) => (point === null || point[1] === null || Number.isNaN(point[1]) ? "–" : chart.y.text(point[1]))) };
}

// ----- drawing

interface Frame {
  left: number;
  right: number;
  top: number;
  bottom: number;
}

// Where values lie on a drawing.
class Scale {
  private readonly factor: number;
  constructor(private readonly axis: Axis, private readonly from: number, to: number) {
    this.factor = (to - from) / (this.of(axis.high) - this.of(axis.low));
  }
  at = (value: number) => this.from + (this.of(value) - this.of(this.axis.low)) * this.factor;
  valueAt(place: number): number {
    const value = this.of(this.axis.low) + (place - this.from) / this.factor;
    return this.axis.log ? 10 ** value : value;
  }
  has = (value: number | null): value is number => value !== null && Number.isFinite(value) && (!this.axis.log || value > 0);
  private of = (value: number) => (this.axis.log ? Math.log10(value) : value);
}

interface Plot {
  chart: Chart;
  frame: Frame;
  x: Scale;
  y: Scale;
}

function plotOf(chart: Chart, width: number): Plot {
  const top = (chart.y.title ? TITLE + 6 : 6) + (chart.strip?.length ? STRIP + 4 : 0);
  const frame = { left: LEFT, right: width - (chart.namesAtEnd ? NAMES : RIGHT), top, bottom: chart.height - TICKS - (chart.x.title ? TITLE : 0) };
  return { chart, frame, x: new Scale(chart.x, frame.left, frame.right), y: new Scale(chart.y, frame.bottom, frame.top) };
}

const text = (kind: string, anchor: "start" | "middle" | "end", x: number, y: number, words: string) => shape("text", { class: kind, x: px(x), y: px(y), "text-anchor": anchor }, words);
const segment = (kind: string, x1: number, y1: number, x2: number, y2: number) => shape("path", { class: kind, d: `M${px(x1)} ${px(y1)}L${px(x2)} ${px(y2)}` });

// A point on the drawing, within the frame; null where there is none.
function placeOf({ x, y, frame }: Plot, [at, value]: Point): [number, number] | null {
  return x.has(at) && y.has(value) ? [clamp(x.at(at), frame.left, frame.right), clamp(y.at(value), frame.top, frame.bottom)] : null;
}

function axes({ chart, frame: f, x, y }: Plot): Shape[] {
  const drawn = chart.y.ticks.flatMap(({ at, label }) => [segment("grid", f.left, y.at(at), f.right, y.at(at)), text("tick", "end", f.left - 8, y.at(at) + 4, label)]);
  let free = 0; // where no label is yet
  for (const { at, label } of chart.x.ticks) {
    drawn.push(segment("grid", x.at(at), f.top, x.at(at), f.bottom));
    const half = widthOf(label) / 2;
    const middle = Math.min(x.at(at), f.right + RIGHT - half);
    if (middle - half < free) continue;
    drawn.push(text("tick", "middle", middle, f.bottom + 16, label));
    free = middle + half + 8;
  }
  drawn.push(segment("axis", f.left, f.bottom, f.right, f.bottom));
  if (chart.x.title) drawn.push(text("title", "middle", (f.left + f.right) / 2, f.bottom + 33, chart.x.title));
  if (chart.y.title) drawn.push(text("title", "start", 4, 12, chart.y.title));
  return drawn;
}

// The rectangles of spans, to the tenth of a pixel that is written, so that neighbours leave no gap; and their names, which come after what
// would strike them through.
function spans({ x, frame }: Plot, of: Span[], kind: string, top: number, bottom: number): { areas: Shape[]; names: Shape[] } {
  const areas: Shape[] = [], names: Shape[] = [];
  for (const span of of) {
    const from = px(clamp(x.at(span.from), frame.left, frame.right)), to = px(clamp(x.at(span.to), frame.left, frame.right));
    if (!(to > from)) continue;
    areas.push(shape("rect", { class: kind, fill: span.color, x: from, y: top, width: px(to - from), height: px(bottom - top) }, ...(span.name ? [shape("title", {}, span.name)] : [])));
    if (span.name && widthOf(span.name) + 8 < to - from) names.push(text(`${kind}-name`, "middle", (from + to) / 2, top + 13, span.name));
  }
  return { areas, names };
}

// "M" where a line begins, with a line of no length that shows a lone point as a dot, "L" where it goes on.
function path(plot: Plot, points: Point[]): string {
  let open = false;
  return points.map((point) => {
    const place = placeOf(plot, point), begins = !open;
    open = place !== null;
    return place ? `${begins ? "M" : "L"}${px(place[0])} ${px(place[1])}${begins ? "h0" : ""}` : "";
  }).join("");
}

function bands(plot: Plot): Shape[] {
  return (plot.chart.bands ?? []).flatMap(({ color, low, high }) => {
    const known = low.map((_, i) => i).filter((i) => placeOf(plot, low[i]!) && placeOf(plot, high[i]!));
    const outline = [...known.map((i) => low[i]!), ...known.reverse().map((i) => high[i]!)];
    return outline.length < 3 ? [] : [shape("path", { class: "band", fill: color, d: `${path(plot, outline)}Z` })];
  });
}

function lines(plot: Plot): Shape[] {
  return plot.chart.lines.flatMap((line) => {
    const d = path(plot, line.points);
    return d ? [shape("path", { class: `line ${line.style ?? ""}`, stroke: line.color, d })] : [];
  });
}

// Shapes tell apart what colors do not: paths about a point, within a radius.
export const SHAPES: ((x: number, y: number, r: number) => string)[] = [
  (x, y, r) => `M${x - r} ${y}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0z`,
  (x, y, r) => `M${x - r} ${y - r}h${2 * r}v${2 * r}h${-2 * r}z`,
  (x, y, r) => `M${x} ${y - r}L${x + r} ${y + r}L${x - r} ${y + r}z`,
  (x, y, r) => `M${x} ${y - r}L${x + r} ${y}L${x} ${y + r}L${x - r} ${y}z`,
];

// Those that are alike and have no title of their own are one element.
function markers(plot: Plot): Shape[] {
  const drawn = new Map<string, Shape>();
  (plot.chart.markers ?? []).forEach((marker, i) => {
    const { color, hollow = false, title } = marker, place = placeOf(plot, marker.at), key = title ? String(i) : `${color} ${marker.shape} ${hollow}`;
    if (!place) return;
    const like = drawn.get(key) ?? shape("path", { class: `marker ${hollow ? "hollow" : ""}`, stroke: color, fill: color, d: "" }, ...(title ? [shape("title", {}, title)] : []));
    like.attributes["d"] += SHAPES[marker.shape % SHAPES.length]!(px(place[0]), px(place[1]), 3.5);
    drawn.set(key, like);
  });
  return [...drawn.values()];
}

function marks({ chart, frame: f, x }: Plot): { lines: Shape[]; names: Shape[] } {
  let free = -Infinity;
  const names: Shape[] = [], seen = (chart.marks ?? []).filter(({ at }) => at >= chart.x.low && at <= chart.x.high);
  for (const { at, name } of seen) {
    const left = Math.min(x.at(at) + 4, f.right - widthOf(name));
    if (!name || left < free) continue;
    names.push(text("mark-name", "start", left, f.top + 11, name));
    free = left + widthOf(name) + 4;
  }
  return { lines: seen.map(({ at }) => segment("mark", x.at(at), f.top, x.at(at), f.bottom)), names };
}

function arrows(plot: Plot): Shape[] {
  return (plot.chart.arrows ?? []).flatMap(({ from, to, name }) => {
    const begin = placeOf(plot, from), end = placeOf(plot, to);
    if (!begin || !end) return [];
    const toward = Math.atan2(end[1] - begin[1], end[0] - begin[0]);
    const tip = [-0.45, 0.45].map((side) => `M${px(end[0])} ${px(end[1])}L${px(end[0] - 7 * Math.cos(toward + side))} ${px(end[1] - 7 * Math.sin(toward + side))}`);
    return [shape("path", { class: "arrow", d: `M${px(begin[0])} ${px(begin[1])}L${px(end[0])} ${px(end[1])}${tip.join("")}` }), text("title", "start", Math.min(end[0] + 6, plot.frame.right - widthOf(name)), end[1] - 6, name)];
  });
}

// Above a point and right of it, or left of one that is near the right edge.
function labels(plot: Plot): Shape[] {
  const placed: { left: number; right: number; y: number }[] = [];
  return (plot.chart.labels ?? []).flatMap(({ at, text: words }) => {
    const place = placeOf(plot, at);
    if (!place) return [];
    const width = widthOf(words), before = place[0] + 10 + width > plot.frame.right, left = before ? place[0] - 10 - width : place[0] + 10;
    const here = { left, right: left + width, y: place[1] - 8 };
    for (const other of placed) if (here.left <= other.right && here.right >= other.left && Math.abs(here.y - other.y) < 15) here.y = other.y + 15;
    placed.push(here);
    return [text("title", before ? "end" : "start", before ? here.right : here.left, here.y, words)];
  });
}

// Right of the plot, in the order of the lines' last points, each with a thin line to its point; pushed apart downwards, then back up from the
// bottom.
function namesAtEnd(plot: Plot): Shape[] {
  const { frame: f } = plot;
  const names = plot.chart.lines.flatMap((line) => {
    const last = line.points.at(-1), place = line.name && last ? placeOf(plot, last) : null;
    return place ? [{ line, x: place[0], y: place[1], at: place[1] }] : [];
  }).sort((a, b) => a.y - b.y);
  names.forEach((name, i) => (name.at = i === 0 ? name.y : Math.max(name.y, names[i - 1]!.at + NAME_GAP)));
  let limit = f.bottom;
  for (const name of [...names].reverse()) limit = (name.at = Math.min(name.at, limit)) - NAME_GAP;
  return names.flatMap(({ line, x, y, at }) => [
    shape("path", { class: "line lead", stroke: line.color, d: `M${px(x + 6)} ${px(y)}L${px(f.right + 14)} ${px(at)}` }),
    shape("text", { class: "name", fill: line.color, x: px(f.right + 18), y: px(at + 4) }, line.name),
  ]);
}

// The content of the <svg> element.
function inside(plot: Plot): Shape[] {
  const { chart, frame: f } = plot;
  const shades = spans(plot, chart.shades ?? [], "shade", f.top, f.bottom), strip = spans(plot, chart.strip ?? [], "strip", f.top - STRIP - 4, f.top - 4);
  const vertical = marks(plot);
  return [...shades.areas, ...axes(plot), ...strip.areas, ...vertical.lines, ...bands(plot), ...lines(plot), ...markers(plot), ...arrows(plot), ...(chart.namesAtEnd ? namesAtEnd(plot) : []), ...shades.names, ...strip.names, ...vertical.names, ...labels(plot)];
}

// An <svg> element of this width, in px.
export const draw = (chart: Chart, width: number): Shape => shape("svg", { class: "plot", viewBox: `0 0 ${width} ${chart.height}`, width, height: chart.height, role: "img", "aria-label": chart.label }, ...inside(plotOf(chart, width)));

// What draw() shows at a place: the x value, and from where to where the plot reaches; null beside the plot.
export function cursorAt(chart: Chart, width: number, place: number): { x: number; top: number; bottom: number } | null {
  const { frame, x } = plotOf(chart, width);
  return place < frame.left || place > frame.right ? null : { x: x.valueAt(place), top: frame.top, bottom: frame.bottom };
}
export const placeAt = (chart: Chart, width: number, value: number) => plotOf(chart, width).x.at(value);
