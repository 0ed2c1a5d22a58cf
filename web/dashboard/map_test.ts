// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { isRateKnown } from "./map";

test("an edge has a rate where nobody else calls the service", () => {
  const services = [
    { name: "balancer", calls: ["front"], entry: false },
    { name: "front", calls: ["user", "post"], entry: true },
    { name: "user", calls: ["post"], entry: false },
    { name: "post", calls: [], entry: false },
  ];
  assert.deepEqual(["front", "user", "post"].map((called) => isRateKnown(services, called)), [false, true, false]);
});
