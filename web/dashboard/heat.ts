// SPDX-License-Identifier: Apache-2.0
// heat.ts - services by time, each cell the p99 of a service over its own calm value.
import { areaSwatch } from "../common/chart_view";
import { byId, element, svg } from "../common/dom";
import { clock, time } from "../common/format";
import type { Point } from "./model";

export const COLUMNS = 60;
// A cell is of the class of the first limit that its ratio is below.
export const LIMITS = [1.5, 2, 4, 8, Infinity];
export const CLASS_NAMES = ["below 1.5 ×", "1.5 to 2 ×", "2 to 4 ×", "4 to 8 ×", "8 × and more"];
const ENOUGH = 20; // points with calls, before any value counts as calm

export interface Cell {
  from: number; // s since 1970
  p99: number | null; // the highest of its seconds; null without calls
  ratio: number | null; // to the calm value; null where one of the two is not known
  down: boolean; // an instance was
}

// The lower quartile of p99 over all that is known of a service; null until there is enough of it.
export function calmOf(points: Point[]): number | null {
  const values = points.map((p) => p.p99).filter((v): v is number => v !== null && v > 0).sort((a, b) => a - b);
  return values.length < ENOUGH ? null : values[Math.floor(values.length / 4)]!;
}

// The last `seconds` before `end`, earliest first. Cells lie on multiples of their length, so that a point stays in its cell.
export function cellsOf(points: Point[], end: number, seconds: number): Cell[] {
  const length = seconds / COLUMNS, last = Math.floor(end / length), calm = calmOf(points);
  const cells: Cell[] = Array.from({ length: COLUMNS }, (_, i) => ({ from: (last - COLUMNS + 1 + i) * length, p99: null, ratio: null, down: false }));
  for (const point of points) {
    const cell = cells[Math.floor(point.at / length) - last + COLUMNS - 1];
    if (!cell) continue;
    cell.down ||= point.down > 0;
    if (point.p99 !== null) cell.p99 = Math.max(cell.p99 ?? 0, point.p99);
    if (calm !== null && cell.p99 !== null) cell.ratio = cell.p99 / calm;
  }
  return cells;
}

export const classOf = (ratio: number) => LIMITS.findIndex((limit) => ratio < limit);
const times = (ratio: number) => `${ratio < 10 ? ratio.toFixed(1) : ratio.toFixed(0)} times calm`;

export function cellText(cell: Cell): string {
  if (cell.p99 === null) return `${clock(cell.from)}: ${cell.down ? "a process is down" : "no calls"}`;
  return `${clock(cell.from)}: p99 ${time(cell.p99)}${cell.ratio === null ? "" : `, ${times(cell.ratio)}`}${cell.down ? ", a process is down" : ""}`;
}

// A row in words: now, the worst, and how often a process was down.
export function rowText(name: string, cells: Cell[], calm: number | null): string {
  if (calm === null) return `${name}: its calm value is not known yet`;
  const known = cells.filter((cell) => cell.ratio !== null), now = known.at(-1);
  if (!now) return `${name}: no calls`;
  const worst = known.reduce((a, b) => (b.ratio! > a.ratio! ? b : a));
  const down = cells.filter((cell) => cell.down).length;
  return `${name}: calm p99 ${time(calm)}, now ${times(now.ratio!)}, worst ${times(worst.ratio!)} at ${clock(worst.from)}${down > 0 ? `, a process down in ${down} of ${cells.length} cells` : ""}`;
}

const ROW = 22, GAP = 2, LETTER = 7.5;
const KINDS = [...CLASS_NAMES.map((_, i) => `heat-${i}`), "heat-down"];

interface HeatRow {
  name: string;
  cells: Cell[];
  text: string;
  group: SVGElement;
  parts: SVGElement[]; // a path for each of KINDS
}

// The map of all services: rows are chosen as those of the graph are, and read cell by cell with the arrow keys or a pointer.
export class Heat {
  private rows: HeatRow[] = [];
  private drawn = ""; // what the rows were made for
  private at: { name: string; from: number } | null = null; // the cell that is read
  private readonly mark = svg("rect", { class: "heat-at", height: ROW - GAP });
  private readonly ticks = [svg("text", { class: "tick" }), svg("text", { class: "tick", "text-anchor": "end" })];
  private labels = 0; // px
  private wide = 0; // px, of a cell

  constructor(private readonly parent: HTMLElement, private readonly choose: (name: string) => void) {
    const key = [...CLASS_NAMES, "a process is down"].map((name, i) => element("li", {}, areaSwatch("", KINDS[i]), name));
    byId("heat-key").append(...key);
  }

  show(services: { name: string }[], history: Map<string, Point[]>, seconds: number, chosen: string): void {
    const end = Math.max(0, ...[...history.values()].map((points) => points.at(-1)?.at ?? 0));
    this.makeRows(services.map((s) => s.name));
    for (const row of this.rows) {
      const points = history.get(row.name) ?? [];
      row.cells = cellsOf(points, end, seconds);
      row.text = rowText(row.name, row.cells, calmOf(points));
      this.draw(row, row.name === chosen);
    }
    const first = this.rows[0]?.cells;
    if (first) this.ticks.forEach((tick, i) => (tick.textContent = clock(first.at(-i)!.from)));
    this.read();
  }

  // Rows stay while the services and the width do, and with them the focus.
  private makeRows(names: string[]): void {
    const width = Math.max(240, this.parent.clientWidth), key = JSON.stringify([width, names]);
    if (key === this.drawn) return;
    this.drawn = key;
    this.labels = Math.min(150, width * 0.28);
    this.wide = (width - this.labels) / COLUMNS;
    this.rows = names.map((name, i) => this.makeRow(name, i));
    const below = names.length * ROW + 14;
    this.ticks.forEach((tick, i) => (tick.setAttribute("x", String(i === 0 ? this.labels : width)), tick.setAttribute("y", String(below))));
    this.parent.replaceChildren(svg("svg", { width, height: below + 4, role: "group", "aria-label": "p99 of each service over time" }, ...this.rows.map((row) => row.group), this.mark, ...this.ticks));
  }

  private makeRow(name: string, i: number): HeatRow {
    const y = i * ROW, room = Math.floor((this.labels - 8) / LETTER);
    const parts = KINDS.map((kind) => svg("path", { class: kind, transform: `translate(${this.labels} ${y})` }));
    const group = svg("g", { tabindex: 0, role: "button", "data-key": name },
      svg("rect", { class: "heat-ground", x: 0, y, width: this.labels + this.wide * COLUMNS, height: ROW - GAP }),
      svg("text", { x: 4, y: y + 15 }, name.length > room ? `${name.slice(0, Math.max(3, room - 1))}…` : name), ...parts);
    const row: HeatRow = { name, cells: [], text: name, group, parts };
    const move = (column: number) => {
      const cell = row.cells[Math.max(0, Math.min(COLUMNS - 1, column))];
      this.at = cell ? { name, from: cell.from } : null;
      this.read();
    };
    group.addEventListener("click", () => this.choose(name));
    group.addEventListener("focus", () => group.setAttribute("aria-label", row.text));
    group.addEventListener("pointermove", (event) => {
      const column = Math.floor((event.clientX - this.parent.getBoundingClientRect().left - this.labels) / this.wide);
      if (column >= 0) move(column);
    });
    group.addEventListener("keydown", (event) => {
      const column = this.at?.name === name ? row.cells.findIndex((cell) => cell.from === this.at!.from) : COLUMNS;
      if (event.key === "Enter" || event.key === " ") this.choose(name);
      else if (event.key === "ArrowLeft" || event.key === "ArrowRight") move(column + (event.key === "ArrowLeft" ? -1 : 1));
      else if (event.key === "ArrowUp" || event.key === "ArrowDown") this.rows[i + (event.key === "ArrowDown" ? 1 : -1)]?.group.focus();
      else return;
      event.preventDefault();
    });
    return row;
  }

  private draw(row: HeatRow, chosen: boolean): void {
    const paths = KINDS.map(() => "");
    const add = (kind: number, column: number, top: number, height: number) => (paths[kind] += `M${(column * this.wide).toFixed(2)} ${top}h${this.wide.toFixed(2)}v${height}h${(-this.wide).toFixed(2)}z`);
    row.cells.forEach((cell, column) => {
      if (cell.ratio !== null) add(classOf(cell.ratio), column, 0, ROW - GAP);
      if (cell.down) add(KINDS.length - 1, column, ROW - GAP - 6, 6);
    });
    row.parts.forEach((part, i) => part.setAttribute("d", paths[i]!));
    row.group.setAttribute("class", `heat-row${chosen ? " chosen" : ""}`);
    row.group.setAttribute("aria-pressed", String(chosen));
    // A name that changes under the focus would be read out each second.
    if (row.group !== document.activeElement) row.group.setAttribute("aria-label", row.text);
  }

  // Says the cell that is read and marks it, until it is out of sight.
  private read(): void {
    const i = this.rows.findIndex((row) => row.name === this.at?.name);
    const column = this.rows[i]?.cells.findIndex((cell) => cell.from === this.at!.from) ?? -1;
    const text = column < 0 ? "" : `${this.at!.name}, ${cellText(this.rows[i]!.cells[column]!)}`;
    if (byId("heat-cell").textContent !== text) byId("heat-cell").textContent = text;
    this.mark.setAttribute("width", String(column < 0 ? 0 : this.wide));
    this.mark.setAttribute("x", String(this.labels + column * this.wide));
    this.mark.setAttribute("y", String(i * ROW));
  }
}
