// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { once, Refused } from "./client";

// Writes that are refused with these statuses, one after the other; 200 for an answer.
function writes(...statuses: number[]) {
  const keys: string[] = [];
  const write = once(async (body: { cents: number }, key: string) => {
    keys.push(key);
    const status = statuses.shift() ?? 200;
    if (status !== 200) throw new Refused(status, "refused");
    return body.cents;
  });
  return { keys, write, attempt: (cents: number) => write({ cents }).catch((error: Refused) => -error.status) };
}

test("a write keeps its key while it may still take effect", async () => {
  const to = writes(0, 503, 504, 409);
  for (const reply of [0, -503, -504, -409, 1]) assert.equal(await to.attempt(1) + 0, reply);
  assert.equal(new Set(to.keys).size, 1);
  await to.attempt(1); // the next payment of as much
  assert.equal(new Set(to.keys).size, 2);
});

test("a write that was refused for good has no key to keep", async () => {
  const to = writes(400, 429);
  for (const reply of [-400, -429, 1]) assert.equal(await to.attempt(1), reply);
  assert.equal(new Set(to.keys).size, 3);
});

test("another body between two tries does not lose the key", async () => {
  const to = writes(503, 200);
  await to.attempt(1), await to.attempt(2), await to.attempt(1);
  assert.equal(to.keys[0], to.keys[2]);
  assert.equal(new Set(to.keys).size, 2);
});
