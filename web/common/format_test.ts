// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { bytes, count, percent, time } from "./format";

test("a time has three digits and a unit", () => {
  assert.deepEqual([null, 0, 870e-9, 12.34e-6, 999.6e-6, 2.15e-3, 4398].map(time), ["–", "0", "870 ns", "12.3 µs", "1 ms", "2.15 ms", "4398 s"]);
});

test("a number has three digits, and four below ten thousand", () => {
  assert.deepEqual([0, 0.25, 87, 99.96, 1234, 12345, 1.25e6, 3e9].map(count), ["0", "0.25", "87", "100", "1234", "12.3 k", "1.25 M", "3 G"]);
  assert.deepEqual([percent(0.2), percent(0.0012345), bytes(2 ** 20), bytes(1.5 * 2 ** 30)], ["20 %", "0.123 %", "1 MiB", "1.5 GiB"]);
});
