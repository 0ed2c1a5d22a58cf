// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import type { DashboardDocument } from "./document";
import written from "./document.json";
import { Model } from "./model";
import { nowRows } from "./queue";

const document_: DashboardDocument = written; // the compiler compares the types with what the server writes

test("what the server writes is shown", () => {
  const model = new Model();
  model.take(document_, 10);
  const [cart, gone] = model.instances;
  assert.deepEqual([cart!.up, cart!.status!.config, cart!.resident], [true, "SIB1", 1000]);
  assert.equal(Object.fromEntries(nowRows([cart!]))["Credits issued"], "20 of 32");
  assert.deepEqual(model.switches.map(({ from, to }) => [from, to]), [["SDB1-4", "SIB1"]]);
  assert.deepEqual([gone!.up, gone!.status], [false, null]);
});
