// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { calmOf, cellsOf, cellText, classOf, COLUMNS, rowText } from "./heat";
import { pointOf, type Point } from "./model";

const point = (at: number, p99: number | null, down = 0): Point => ({ ...pointOf([], at), p99, down });
const calm = Array.from({ length: 40 }, (_, i) => point(1000 + i, 0.001));

test("calm is the lower quartile, once there is enough of it", () => {
  assert.equal(calmOf(calm.slice(0, 19)), null);
  assert.equal(calmOf([...calm, point(1040, null), point(1041, 9), point(1042, 0)]), 0.001);
});

test("a cell has the highest ratio of its seconds, and cells stay where they are as time goes on", () => {
  const points = [...calm, point(1040, 0.003), point(1041, 0.005), point(1042, null, 1)];
  const cells = cellsOf(points, 1042, 5 * COLUMNS);
  assert.equal(cells.length, COLUMNS);
  assert.deepEqual([cells.at(-1)!.from, cells.at(-1)!.p99, cells.at(-1)!.ratio, cells.at(-1)!.down], [1040, 0.005, 5, true]);
  assert.deepEqual(cellsOf(points, 1044.9, 5 * COLUMNS), cells);
  assert.equal(cellsOf(points, 1045, 5 * COLUMNS).at(-2)!.from, 1040);
  assert.equal(cells[0]!.p99, null);
  assert.deepEqual([cellsOf([], 1042, 60).at(-1)!.ratio, cellsOf(points, 1e6, 60).some((cell) => cell.ratio !== null)], [null, false]);
});

test("colors are by limits, the upper one excluded", () => {
  assert.deepEqual([0.2, 1.49, 1.5, 3.9, 4, 8, 1e9].map(classOf), [0, 0, 1, 2, 3, 4, 4]);
});

test("a row and a cell in words", () => {
  const cells = cellsOf([...calm, point(1040, 0.005), point(1041, 0.0012), point(1042, null, 1)], 1042, 60);
  const text = rowText("cart", cells, 0.001);
  assert.ok(/^cart: calm p99 1 ms, now 1\.2 times calm, worst 5\.0 times calm at .*, a process down in 1 of 60 cells$/.test(text));
  assert.ok(/: a process is down$/.test(cellText(cells.at(-1)!)) && /: p99 5 ms, 5\.0 times calm$/.test(cellText(cells.at(-3)!)));
  assert.equal(rowText("cart", cells, null), "cart: its calm value is not known yet");
});
