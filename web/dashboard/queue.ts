// SPDX-License-Identifier: Apache-2.0
// queue.ts - the queue, the pools, the fences and what was refused, of the chosen service.
import { byId, element, head, replace } from "../common/dom";
import { bytes, count, time } from "../common/format";
import type { FenceClass, Pool, Status } from "./document";
import type { InstanceView } from "./model";

type Up = InstanceView & { status: Status };
const withStatus = (views: InstanceView[]) => views.filter((v): v is Up => v.status !== null);
const sum = (views: Up[], of: (s: Status) => number) => views.reduce((total, v) => total + of(v.status), 0);

// What the service holds now, all instances together.
export function nowRows(views: InstanceView[]): [string, string][] {
  const up = withStatus(views);
  if (up.length === 0) return [];
  const credits = up.flatMap((v) => v.status.credits ?? []);
  const total = (of: (c: (typeof credits)[0]) => number) => count(credits.reduce((all, c) => all + of(c), 0));
  return [
    ["Queued", count(sum(up, (s) => s.queued))],
    ["Longest wait", time(Math.max(...up.map((v) => v.status.max_queue_wait_us)) / 1e6)],
    ["Open calls", count(sum(up, (s) => s.open_calls))],
    ["Connections", count(sum(up, (s) => s.connections))],
    ["Held for them", bytes(sum(up, (s) => s.held_bytes))],
    ["Spinning", count(sum(up, (s) => s.spinning_threads))],
    ["Without a role", count(sum(up, (s) => s.sleeping_threads))],
    ["Fibers", count(sum(up, (s) => s.fibers))],
    ...(credits.length > 0 ? [["Credits issued", `${total((c) => c.issued)} of ${total((c) => c.total)}`] as [string, string]] : []),
  ];
}

// What went wrong so far, or was kept from it: a line each.
export function notesOf(views: InstanceView[]): string[] {
  return withStatus(views).flatMap(({ document, status, refusedRate, dropped }) => {
    const name = document.name;
    const lines = Object.entries(status.refusals ?? {}).map(([why, times]) => `${name}: ${times} requests ${why}`);
    if (refusedRate > 0) lines.push(`${name}: ${count(refusedRate)} refused a second now`);
    for (const [limit, times] of Object.entries(status.limits ?? {})) lines.push(`${name}: clients reached the limit ${limit} ${times} times`);
    for (const m of status.held_up ?? []) lines.push(`${name}: ${m.path} held a thread up ${m.times} times${m.blocks ? ", and has a thread for each call" : ""}`);
    for (const u of status.fences?.undeclared ?? []) lines.push(`${name}: ${u.method} called ${u.service} ${u.times} times without having declared it`);
    const policy = status.policy;
    if (policy && policy.failures > 0) lines.push(`${name}: ${policy.failures} switches failed, the last one: ${policy.last_failure.slice(0, 200)}`);
    for (const [why, times] of Object.entries(dropped)) if (times > 0) lines.push(`${name}: ${times} spans did not get to the collector (${why})`);
    return lines;
  });
}

export function fenceText(views: InstanceView[]): string {
  const fences = withStatus(views).flatMap((v) => v.status.fences ?? []);
  if (fences.length === 0) return "Fences are off.";
  const limiters = [...new Set(fences.map((f) => f.limiter).filter(Boolean))];
  return `Fences: ${[...new Set(fences.map((f) => f.mode))].join(", ")}${limiters.length > 0 ? `; limits follow ${limiters.join(", ")}` : ""}.`;
}

const line = (...cells: (string | Node)[]) => cells.map((cell) => element("td", {}, cell));

function poolRow(instance: string, pool: Pool): HTMLElement {
  return element("tr", {}, ...line(pool.name, instance, String(pool.threads), String(pool.active), String(pool.waiting), String(pool.parked)));
}

function fenceRow(instance: string, c: FenceClass): HTMLElement {
  const full = c.permits > 0 && c.in_use >= c.permits;
  const used = c.permits > 0 ? element("meter", { min: "0", max: String(c.permits), value: String(c.in_use), "aria-label": `permits of ${c.services} in use` }) : "";
  const cells = line(c.services, instance, c.permits ? String(c.permits) : "any", "", ...[c.waiting, c.begun, c.queued, c.borrowed, c.refused, c.shed, c.late, c.no_credit].map(String));
  cells[3]!.append(used, ` ${c.in_use}`);
  return element("tr", { class: full ? "down" : "" }, ...cells);
}

function table(id: string, names: string[], rows: HTMLElement[]): void {
  replace(byId(id), ...(rows.length > 0 ? [head(...names), element("tbody", {}, ...rows)] : []));
  byId(id).parentElement!.hidden = rows.length === 0;
}

export function drawQueue(views: InstanceView[]): void {
  const up = withStatus(views);
  replace(byId("queue-now"), ...nowRows(views).map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value))));
  table("pools", ["Pool", "Instance", "Threads", "Active", "Waiting", "Parked"], up.flatMap((v) => (v.status.pools ?? []).map((pool) => poolRow(v.document.name, pool))));
  byId("fence-text").textContent = fenceText(views);
  table("fences", ["Calls", "Instance", "Permits", "In use", "Waiting", "Begun", "Queued", "Borrowed", "Refused", "Shed", "Late", "No credit"], up.flatMap((v) => (v.status.fences?.classes ?? []).map((c) => fenceRow(v.document.name, c))));
  const notes = notesOf(views);
  replace(byId("queue-notes"), ...(notes.length > 0 ? notes : ["nothing was refused, and no limit was reached"]).map((note) => element("li", {}, note)));
}
