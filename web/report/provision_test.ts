// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { provisionChart, provisionPage } from "./provision";
import { provisioning, words } from "./testing";

test("a provisioning has its outcome, rounds and shares", () => {
  const said = words(provisionPage(provisioning()));
  for (const line of ["Provisioning of shop", "ended | no step helps", "equal shares at the start | 120/s, 0.08 CPUs", "provisioned | 200/s, 0.10 CPUs", "the same CPUs in equal shares | 130/s", "1 | 0.08 | 120/s | 132/s | front: out of CPU time in 62 % of periods | front cpu 0.02 → 0.04 | 71 % → 99 % | helps", "2 | 0.10 | 200/s | 220/s | front: out of CPU time in 62 % of periods | cart SDB1-4 → SDB1-8 | 71 % → 99 % | cannot tell", "front | 1 | 0.02 | 0.04 | 0.031 | FIB2", "cache | 1 | 0.02 | 0.02 | – | –", "command | curtail provision shop"]) assert.ok(said.includes(line), `${line}\nin\n${said.join("\n")}`);
});

test("the chart names the steps that helped, beside equal shares", () => {
  const chart = provisionChart(provisioning())!;
  assert.deepEqual(chart.labels, [{ at: [0.08, 120], text: "+ front" }]);
  assert.deepEqual(chart.lines.map(({ name, points }) => [name, points]), [["equal shares", [[0.08, 120], [0.1, 130]]], ["provisioned", [[0.08, 120], [0.1, 200]]]]);
});

test("without limits of CPU time the rounds stand for it", () => {
  const [one, two] = provisioning().rounds;
  const chart = provisionChart(provisioning({ rounds: [{ ...one!, cpus: 0 }, { ...two!, cpus: 0, highest_per_s: null }], equal_shares: {}, equal_highest_per_s: null }))!;
  assert.deepEqual([chart.x.title, chart.lines.map(({ points }) => points)], ["round", [[[1, 120], [3, 200]]]]);
});

test("no load within the QoS is said", () => {
  const said = words(provisionPage(provisioning({ rounds: [], highest_per_s: null, equal_shares: {}, equal_highest_per_s: null, cpus_used: {} })));
  assert.ok(said.includes("No load was within the QoS.") && said.includes("provisioned | none, 0.10 CPUs") && !said.some((line) => line.startsWith("chart") || line.startsWith("the same CPUs")), said.join("\n"));
});
