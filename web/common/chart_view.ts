// SPDX-License-Identifier: Apache-2.0
// chart_view.ts - a chart on a page: as wide as its parent, with a key below it, whose values follow the pointer.
import { cursorAt, draw, placeAt, readAt, shape, SHAPES, type Chart, type Shape, type Span } from "./chart";
import { element, svg } from "./dom";

const MAX_SPANS_IN_KEY = 20;

export const drawn = (of: Shape): SVGElement => svg(of.name, of.attributes, ...of.children.map((child) => (typeof child === "string" ? child : drawn(child))));

const picture = (...inside: Shape[]) => drawn(shape("svg", { class: "swatch", width: 18, height: 12, "aria-hidden": "true" }, ...inside));
// The mark of a color before its name: as a point or as an area.
export const pointSwatch = (color: string, kind: number) => picture(shape("path", { fill: color, d: SHAPES[kind % SHAPES.length]!(9, 6, 5) }));
export const areaSwatch = (color: string, kind = "strip") => picture(shape("rect", { class: kind, fill: color, x: 3, width: 12, height: 12 }));

// The names in a strip, each once.
function distinct(strip: Span[]): Span[] {
  return [...new Map(strip.map((span) => [span.name, span])).values()].slice(0, MAX_SPANS_IN_KEY);
}

// `latest`: without a pointer the key has the last values.
export class ChartView {
  readonly element = element("figure", { class: "chart" });
  private chart: Chart | null = null;
  private width = 0;
  private pointer: number | null = null; // px on the drawing
  private drawing: SVGElement = svg("svg");
  private readonly cursor = svg("path", { class: "cursor" });
  private readonly caption = element("figcaption");
  private readonly key = element("ul", { class: "key" });
  private values: HTMLElement[] = [];

  constructor(private readonly latest = false) {
    this.element.append(this.caption, this.drawing, this.key);
    // In the next frame: a drawing of another height would be a change of size within the observer's own round.
    new ResizeObserver(() => requestAnimationFrame(() => this.element.clientWidth !== this.width && this.draw())).observe(this.element);
    this.element.addEventListener("pointermove", (event) => {
      const box = this.drawing.getBoundingClientRect();
      this.pointer = ((event.clientX - box.left) * this.width) / box.width;
      this.read();
    });
    this.element.addEventListener("pointerleave", () => ((this.pointer = null), this.read()));
  }

  show(chart: Chart): HTMLElement {
    this.chart = chart;
    this.draw();
    return this.element;
  }

  private draw(): void {
    this.width = this.element.clientWidth;
    if (!this.chart || this.width === 0) return; // hidden: until it is shown
    const old = this.drawing;
    this.drawing = drawn(draw(this.chart, Math.max(this.width, 240)));
    this.drawing.append(this.cursor);
    old.replaceWith(this.drawing);
    this.caption.textContent = this.chart.label;
    this.makeKey(this.chart);
    this.read();
  }

  private makeKey(chart: Chart): void {
    const names = chart.lines.map((line) => (chart.namesAtEnd ? "" : line.name));
    this.values = names.map(() => element("b"));
    const of = names.map((name, i) => element("li", {}, picture(shape("path", { class: `line ${chart.lines[i]!.style ?? ""}`, stroke: chart.lines[i]!.color, d: "M0 6L18 6" })), name, " ", this.values[i]!));
    const spans = distinct(chart.strip ?? []).map((span) => element("li", {}, areaSwatch(span.color), span.name));
    this.values.push(element("b"));
    this.key.replaceChildren(...of.filter((_, i) => names[i]), ...spans, element("li", {}, this.values.at(-1)!));
  }

  // The values where the pointer is.
  private read(): void {
    if (!this.chart) return;
    const at = this.pointer === null ? null : cursorAt(this.chart, this.width, this.pointer);
    const read = at || this.latest ? readAt(this.chart, at?.x ?? this.chart.x.high) : null;
    this.values.forEach((value, i) => (value.textContent = read?.values[i] ?? ""));
    this.values.at(-1)!.textContent = at && read ? `at ${this.chart.x.text(read.x)}` : "";
    const x = at && read ? placeAt(this.chart, this.width, read.x) : 0;
    this.cursor.setAttribute("d", at ? `M${x} ${at.top}L${x} ${at.bottom}` : "");
  }
}
