// SPDX-License-Identifier: Apache-2.0
// loads.ts - the load generators that call the application now.
import { byId, element, head, replace } from "../common/dom";
import { count, time } from "../common/format";
import type { DashboardDocument, LoadDocument } from "./document";

const MAX_COMMAND = 120;

export function cellsOfLoad(load: LoadDocument): string[] {
  const typed = load.command.replace(/^\S*\/(?=\S)/, ""); // without the folder of the program
  const command = `${typed.slice(0, MAX_COMMAND)}${typed.length > MAX_COMMAND ? "…" : ""}`;
  const run = load.label === "load" ? command : `${load.label.slice(0, MAX_COMMAND)}: ${command}`; // of several runs
  const begun = load.elapsed_s > 0; // before, it makes its requests
  const elapsed = `${load.elapsed_s.toFixed(0)}${load.total_s > 0 ? ` of ${load.total_s.toFixed(0)}` : ""} s`;
  return [run, begun ? elapsed : "begins", count(load.due_per_s), count(load.sent_per_s), count(load.ok), count(load.failed), count(load.in_flight), time(load.p50_us / 1e6), time(load.p99_us / 1e6)];
}

export function drawLoads(document_: DashboardDocument): void {
  const loads = document_.loads;
  byId("loads-panel").hidden = document_.application === ""; // of a single server nobody knows its callers
  const note = loads.length === 0 ? `None runs: curtail load ${document_.application} --rps 100 is shown here while it does.` : `${loads.length} running; rates and times of the last second, from the intended send time.`;
  if (byId("loads-note").textContent !== note) byId("loads-note").textContent = note;
  const rows = loads.map((load) => element("tr", { "data-pid": String(load.pid) }, ...cellsOfLoad(load).map((cell, i) => element("td", i === 5 && load.failed > 0 ? { class: "bad" } : {}, cell))));
  const names = ["Run", "Time", "Intended/s", "Sent/s", "Answered", "Errors", "In flight", "p50", "p99"];
  replace(byId("loads"), ...(rows.length > 0 ? [head(...names), element("tbody", {}, ...rows)] : []));
}
