// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { pointOf, type Point } from "./model";
import { byConfig, jumpsOf, MAX_CONFIGS, rowsOf } from "./scatter";

const point = (at: number, config: string, p99: number | null = 0.001, rate = 100): Point => ({ ...pointOf([], at), p99, rate, config });
const to = (at: number, config: string, instance = "cart") => ({ at, instance, from: "", to: config, reason: "" });

test("points are by config, without seconds that had no calls", () => {
  const groups = byConfig([point(1, "SIB1"), point(2, "SIB1", null), point(3, "SIB1", 0.002, 0), point(4, "FIB1"), point(5, "SIB1", 0.003, 300)]);
  assert.deepEqual(groups.map((g) => [g.config, g.marks.map((m) => m.at)]), [["SIB1", [1, 5]], ["FIB1", [4]]]);
  assert.deepEqual(rowsOf(groups)[0], ["SIB1", "2", "100 to 300", "3 ms", "3 ms"]);
});

test("the number of configs is bounded", () => {
  const groups = byConfig(Array.from({ length: 50 }, (_, i) => point(i, `SDB1-${i + 1}`)));
  assert.equal(groups.length, MAX_CONFIGS + 1);
  assert.deepEqual([groups.at(-1)!.config, groups.at(-1)!.marks.length], ["others", 50 - MAX_CONFIGS]);
});

test("a switch leads from the second before it to the first whole one after it, once for all instances", () => {
  const points = [point(10, "SIB1"), point(11, "SIB1"), point(12, "FIB1"), point(13, "FIB1"), point(14, "FIB1")];
  const jumps = jumpsOf(points, [to(11.5, "FIB1"), to(11.6, "FIB1", "cart-1"), to(5, "SIB1"), to(20, "SIB1")]);
  assert.deepEqual(jumps.map((j) => [j.from.at, j.to.at, j.config]), [[11, 13, "FIB1"]]);
});
