// SPDX-License-Identifier: Apache-2.0
// map.ts - the services as a graph: columns by distance from the entry, rows on narrow screens.
import { svg } from "../common/dom";
import { count, time } from "../common/format";
import { latencyOf, type Model } from "./model";
import { quantile } from "./metrics";

const WIDTH = 190, HEIGHT = 84, ALONG = 90, ACROSS = 18;

// The longest way from a service that none calls; a circle of calls ends at its first repetition.
export function layersOf(services: { name: string; calls: string[] }[]): Map<string, number> {
  const depth = new Map<string, number>();
  const calls = new Map(services.map((s) => [s.name, s.calls]));
  const visit = (name: string, at: number, above: Set<string>): void => {
    if (above.has(name) || (depth.get(name) ?? -1) >= at) return;
    depth.set(name, at);
    const below = new Set(above).add(name);
    for (const called of calls.get(name) ?? []) if (calls.has(called)) visit(called, at + 1, below);
  };
  const called = new Set(services.flatMap((s) => s.calls));
  for (const s of services) if (!called.has(s.name)) visit(s.name, 0, new Set());
  for (const s of services) if (!depth.has(s.name)) visit(s.name, 0, new Set());
  return depth;
}

export function callersFirst<S extends { name: string; calls: string[] }>(services: S[]): S[] {
  const depth = layersOf(services);
  return [...services].sort((a, b) => depth.get(a.name)! - depth.get(b.name)!);
}

// The rate of a service is that of the edge to it if it has one caller, and clients outside do not call it, as they do the entry.
export const isRateKnown = (services: { calls: string[]; name: string; entry: boolean }[], called: string): boolean =>
  services.filter((each) => each.calls.includes(called)).length === 1 && !services.some((each) => each.name === called && each.entry);

function node(model: Model, name: string, x: number, y: number, chosen: boolean, choose: (name: string) => void): SVGElement {
  const views = model.of(name);
  const down = views.filter((v) => !v.up).length;
  const back = views.filter((v) => v.up && v.restarted).length;
  const rate = views.reduce((sum, v) => sum + v.rate, 0);
  const errors = views.reduce((sum, v) => sum + v.errors, 0);
  const latency = latencyOf(views);
  const p50 = time(latency && quantile(latency, 0.5)), p99 = time(latency && quantile(latency, 0.99));
  const group = svg("g", { class: `node${chosen ? " chosen" : ""}${down + back ? " down" : ""}`, transform: `translate(${x} ${y})`, tabindex: 0, role: "button", "aria-pressed": String(chosen), "data-key": name },
    svg("rect", { width: WIDTH, height: HEIGHT, rx: 8 }),
    svg("text", { x: 10, y: 20, class: "title" }, name.length > 21 ? `${name.slice(0, 20)}…` : name),
    " ",  // between the words of its accessible name
    svg("text", { x: 10, y: 38 }, `${count(rate)} req/s`, ...(errors > 0 ? [svg("tspan", { class: "bad", dx: 8 }, `${count(errors)} err/s`)] : [])),
    " ",
    svg("text", { x: 10, y: 54 }, `p50 ${p50} · p99 ${p99}`));
  views.slice(0, 14).forEach((v, i) => group.append(svg("circle", { class: v.up && !v.restarted ? "dot" : "dot down", cx: 15 + 12 * i, cy: 69, r: 4 })));
  if (down + back) group.append(" ", svg("text", { x: WIDTH - 10, y: 73, "text-anchor": "end", class: "bad" }, down ? `${down} down` : `${back} restarted`));
  group.addEventListener("click", () => choose(name));
  group.addEventListener("keydown", (event) => {
    const key = (event as KeyboardEvent).key;
    if (key === "Enter" || key === " ") event.preventDefault(), choose(name);
  });
  return group;
}

export function drawMap(model: Model, chosen: string, width: number, choose: (name: string) => void): SVGElement {
  const services = model.document!.services;
  const depth = layersOf(services);
  const columns: string[][] = [];
  for (const s of services) (columns[depth.get(s.name)!] ??= []).push(s.name);
  const across = Math.max(...columns.map((c) => c.length));
  const sideways = columns.length * (WIDTH + ALONG) - ALONG <= width;
  const at = new Map<string, [number, number]>();
  columns.forEach((names, layer) => names.forEach((name, i) => {
    const cell = (sideways ? HEIGHT : WIDTH) + ACROSS;
    const place = 2 + (i + (across - names.length) / 2) * cell;
    at.set(name, sideways ? [2 + layer * (WIDTH + ALONG), place] : [place, 2 + layer * (HEIGHT + 44)]);
  }));
  const w = sideways ? columns.length * (WIDTH + ALONG) - ALONG + 4 : across * (WIDTH + ACROSS) - ACROSS + 4;
  const h = sideways ? across * (HEIGHT + ACROSS) - ACROSS + 4 : columns.length * (HEIGHT + 44) - 40;
  const drawing = svg("svg", { width: w, height: h, viewBox: `0 0 ${w} ${h}`, role: "group", "aria-label": "Services and their calls" },
    svg("defs", {}, svg("marker", { id: "tip", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto", markerUnits: "userSpaceOnUse" }, svg("path", { d: "M0 0L8 4L0 8z", class: "tip" }))));
  for (const s of services) for (const called of s.calls) {
    const [from, to] = [at.get(s.name), at.get(called)];
    if (!from || !to || s.name === called) continue;
    const rate = model.of(called).reduce((sum, v) => sum + v.rate, 0);
    const [x1, y1, x2, y2] = sideways ? [from[0] + WIDTH, from[1] + HEIGHT / 2, to[0], to[1] + HEIGHT / 2] : [from[0] + WIDTH / 2, from[1] + HEIGHT, to[0] + WIDTH / 2, to[1]];
    const [mx, my] = [(x1 + x2) / 2, (y1 + y2) / 2];
    const d = sideways ? `M${x1} ${y1}C${mx} ${y1} ${mx} ${y2} ${x2} ${y2}` : `M${x1} ${y1}C${x1} ${my} ${x2} ${my} ${x2} ${y2}`;
    drawing.append(svg("path", { class: "edge", d, "stroke-width": Math.min(5, 1 + Math.log10(1 + rate)), "marker-end": "url(#tip)" }));
    if (isRateKnown(services, called)) drawing.append(svg("text", { class: "edge-label", x: sideways ? mx : mx + 8, y: sideways ? my - 8 : my + 4, "text-anchor": sideways ? "middle" : "start" }, `${count(rate)}/s`));
  }
  for (const [name, [x, y]] of at) drawing.append(node(model, name, x, y, name === chosen, choose));
  return drawing;
}
