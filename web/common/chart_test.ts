// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { cursorAt, draw, exactAxis, linearAxis, logAxis, readAt, thin, type Chart, type Point, type Shape } from "./chart";
import { count } from "./format";
import { markup, svgFile } from "./svg_file";

const chart: Chart = { label: "A chart", x: exactAxis("x", 0, 10, count), y: linearAxis("y", 10, count), height: 200, lines: [] };
const all = (of: Shape, wanted: (shape: Shape) => boolean): Shape[] => [...(wanted(of) ? [of] : []), ...of.children.flatMap((child) => (typeof child === "string" ? [] : all(child, wanted)))];
const ofClass = (name: string) => (of: Shape) => String(of.attributes["class"]).split(" ").includes(name);
const shapes = (of: Partial<Chart>, name: string, width = 400) => all(draw({ ...chart, ...of }, width), ofClass(name));

test("ticks are round and few, whatever the values", () => {
  for (let i = 0; i < 2000; ++i) {
    const low = 10 ** (12 * Math.random() - 9), high = low * 10 ** (6 * Math.random());
    for (const axis of [linearAxis("", high, count), exactAxis("", 0, high, count), logAxis("", low, high, count)]) {
      assert.ok(axis.low < axis.high && axis.high >= high * 0.999 && axis.ticks.length >= 2 && axis.ticks.length <= 20, `${low} to ${high}`);
      assert.ok(axis.ticks.every(({ at }) => at >= axis.low * 0.998 && at <= axis.high * 1.002), `${low} to ${high}`);
    }
  }
  for (const axis of [linearAxis("", NaN, count), linearAxis("", 0, count), exactAxis("", 0, 0, count), logAxis("", 0, 5, count), logAxis("", Infinity, 0, count)]) assert.ok(axis.low < axis.high && axis.ticks.length > 0);
  assert.deepEqual(logAxis("", 3, 40, count).ticks.map(({ label }) => label), ["2", "5", "10", "20", "50"]);
});

test("labels of the x axis leave room for each other", () => {
  const texts = (width: number) => shapes({ x: exactAxis("", 0, 1e6, (value) => `${value} seconds`) }, "tick", width).filter((tick) => tick.attributes["text-anchor"] === "middle").length;
  assert.ok(texts(1200) >= 10 && texts(300) < 5, `${texts(1200)}, ${texts(300)}`);
});

test("thinning keeps the extremes, the gaps and the order", () => {
  const points: Point[] = Array.from({ length: 3600 }, (_, i) => [i, i === 1234 ? 50 : i === 2345 ? -50 : i >= 1000 && i < 1003 ? null : Math.random()]);
  const kept = thin(points, 200), values = kept.map(([, y]) => y);
  assert.ok(kept.length >= 200 && kept.length <= 401 && values.includes(50) && values.includes(-50));
  assert.equal(values.filter((y) => y === null).length, 1, "a gap shorter than a group stays a gap");
  assert.ok(kept.every(([x], i) => i === 0 || x > kept[i - 1]![0]));
  assert.deepEqual([thin(points, 1800).length, thin(points.map(([x]) => [x, null]), 200).length], [3600, 200]);
});

test("a line breaks at what it does not know, and a lone point is a dot", () => {
  const line = { name: "l", color: "red", points: [[0, 1], [1, 2], [2, null], [3, NaN], [4, 5], [5, null], [6, 20]] as Point[] };
  const d = String(shapes({ lines: [line] }, "line")[0]!.attributes["d"]);
  assert.equal(d.match(/M/g)!.length, 3);
  assert.equal(d.match(/h0/g)!.length, 3);
  assert.equal(shapes({ lines: [{ ...line, points: [[0, null]] }] }, "line").length, 0);
  assert.equal(shapes({ y: logAxis("", 1, 10, count), lines: [{ ...line, points: [[0, 0], [1, -1]] }] }, "line").length, 0, "not on a logarithmic axis");
});

test("a band is where both of its ends are known", () => {
  const band = (high: Point[]) => shapes({ bands: [{ color: "red", low: [[0, 1], [1, 1], [2, 1]], high }] }, "band");
  assert.equal(String(band([[0, 2], [1, 2], [2, null]])[0]!.attributes["d"]).match(/[ML]/g)!.length, 4);
  assert.equal(band([[0, 2], [1, null], [2, null]]).length, 0);
});

test("spans beside each other leave no gap, and have names where there is room", () => {
  const strip = Array.from({ length: 30 }, (_, i) => ({ from: i / 3, to: (i + 1) / 3, name: "SDB1-16", color: "red" }));
  const drawn = shapes({ strip }, "strip"), edges = drawn.map(({ attributes: { x, width } }) => [Number(x), Number(x) + Number(width)]);
  edges.forEach(([from], i) => assert.ok(i === 0 || Math.abs(from! - edges[i - 1]![1]!) < 1e-6));
  assert.equal(shapes({ strip }, "strip-name").length, 0);
  assert.equal(shapes({ strip: [{ from: -5, to: 50, name: "SDB1-16", color: "red" }] }, "strip-name").length, 1);
});

test("names at the end do not cover each other, and names of marks neither", () => {
  const lines = Array.from({ length: 6 }, (_, i) => ({ name: `line ${i}`, color: "red", points: [[0, 1], [10, 0.01 * i]] as Point[] }));
  const heights = shapes({ lines, namesAtEnd: true }, "name").map((name) => Number(name.attributes["y"]));
  assert.ok(heights.length === 6 && heights.every((y, i) => i === 0 || y - heights[i - 1]! >= 12) && heights.at(-1)! <= 200);
  const marks = [1, 1.1, 1.2, 8].map((at) => ({ at, name: "SDB1-16" }));
  assert.deepEqual([shapes({ marks }, "mark").length, shapes({ marks }, "mark-name").length], [4, 2]);
  const labels = [1, 1.1, 9.9].map((x) => ({ at: [x, 5] as Point, text: "a policy" })), texts = shapes({ labels }, "title").filter((t) => t.children[0] === "a policy");
  assert.ok(Number(texts[1]!.attributes["y"]) - Number(texts[0]!.attributes["y"]) >= 15);
  assert.equal(texts[2]!.attributes["text-anchor"], "end");
});

test("a place is read as the values of the nearest points", () => {
  const lines = [[[0, 1], [4, 2], [9, null]], [[0, 7], [4, 8], [9, 9]], []].map((points) => ({ name: "", color: "red", points: points as unknown as Point[] }));
  assert.deepEqual(readAt({ ...chart, lines }, 3), { x: 4, values: ["2", "8", "–"] });
  assert.deepEqual(readAt({ ...chart, lines }, 8).values, ["–", "9", "–"]);
  assert.equal(cursorAt(chart, 400, 5), null);
  assert.ok(Math.abs(cursorAt(chart, 400, 62 + (400 - 62 - 16) / 2)!.x - 5) < 1e-9);
});

test("a file stands alone, and no text of it is markup", () => {
  const written = svgFile({ ...chart, label: "A <chart>\u0000", markers: [{ at: [1, 1], color: "red", shape: 1, title: "a & \"b\"" }, { at: [1, null], color: "red", shape: 0, title: "nowhere" }] }, "</text><script>", ".line { fill: none; }");
  for (const part of ['xmlns="http://www.w3.org/2000/svg"', "A &#60;chart&#62;\ufffd", "a &#38; &#34;b&#34;", "&#60;/text&#62;&#60;script&#62;", ".line { fill: none; }"]) assert.ok(written.includes(part), part);
  assert.ok(!written.includes("nowhere") && !written.includes("<script"));
  assert.equal(markup({ name: "g", attributes: { x: 1 }, children: [] }), '<g x="1"></g>\n');
});
