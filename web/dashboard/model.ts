// SPDX-License-Identifier: Apache-2.0
// model.ts - what the page knows of the application: the last samples, bounded, and rates between them.
import type { DashboardDocument, InstanceDocument, Status } from "./document";
import { add, histogramOf, parseMetrics, quantile, type Histogram } from "./metrics";

// Counters of an instance at one time.
interface Counters {
  at: number; // s
  pid: number;
  calls: number;
  errors: number;
  latency: Histogram | null;
  status: Status | null;
  counted: boolean; // the metrics were there, too
  resident: number;
  dropped: Record<string, number>; // spans, by reason
}

// An instance as it is shown.
export interface InstanceView {
  document: InstanceDocument;
  up: boolean;
  restarted: boolean; // within the last RESTART_SHOWN_S
  status: Status | null;
  rate: number;
  errors: number; // a second
  latency: Histogram | null; // of the calls since the sample before
  cpu: number; // CPUs in use
  resident: number; // bytes
  voluntary: number; // context switches a second
  involuntary: number;
  refusedRate: number; // a second
  dropped: Record<string, number>; // spans so far, by reason
  runDelay: number; // s a second
  begun: number; // requests since the sample before
  waited: number; // s, by these for a thread
}

export interface Point {
  at: number; // s since 1970
  rate: number;
  errors: number;
  p50: number | null;
  p99: number | null;
  queued: number;
  wait: number | null;
  cpu: number;
  resident: number;
  threads: number;
  voluntary: number; // context switches a second
  involuntary: number;
  runDelay: number; // s a second, of all threads
  down: number; // instances that are, or were within RESTART_SHOWN_S
  config: string;
}

export interface Switch {
  at: number;
  instance: string;
  from: string;
  to: string;
  reason: string;
}

export const HISTORY = 600;
const MAX_SWITCHES = 200;
const RESTART_SHOWN_S = 5; // a process may be back before it was seen to be gone
// Of health checks, reflection and the admin interface: none of the application's calls.
const OWN = /^(grpc\.|curtail\.admin\.)/;

export function readCounters(instance: InstanceDocument, at: number): Counters {
  const counters: Counters = { at, pid: instance.pid, calls: 0, errors: 0, latency: null, status: instance.status, counted: instance.metrics !== "", resident: 0, dropped: {} };
  const cumulated = new Map<string, Map<number, number>>();
  for (const { name, labels, value } of parseMetrics(instance.metrics)) {
    if (name === "process_resident_memory_bytes") counters.resident = value;
    if (name === "curtail_trace_dropped_total") counters.dropped[labels["reason"] ?? ""] = value;
    if (OWN.test(labels["rpc_service"] ?? "")) continue;
    if (name === "rpc_server_calls_total") {
      counters.calls += value;
      if (labels["rpc_response_status_code"] !== "OK") counters.errors += value;
    } else if (name === "rpc_server_duration_seconds_bucket") {
      const method = `${labels["rpc_service"]}/${labels["rpc_method"]}`;
      const of = cumulated.get(method) ?? new Map<number, number>();
      of.set(labels["le"] === "+Inf" ? Infinity : Number(labels["le"]), value);
      cumulated.set(method, of);
    }
  }
  for (const of of cumulated.values()) counters.latency = add(counters.latency, histogramOf(of));
  return counters;
}

function viewOf(document: InstanceDocument, before: Counters | undefined, now: Counters, restarted: boolean): InstanceView {
  const same = before && before.pid === now.pid && before.status && now.status && before.counted && now.counted && now.calls >= before.calls;
  const seconds = same ? Math.max(now.at - before.at, 1e-3) : 1;
  const rate = (of: (c: Counters) => number) => (same ? Math.max(0, of(now) - of(before)) / seconds : 0);
  return {
    document,
    up: document.state === "external" || (document.state === "ready" && !document.error),
    restarted,
    status: now.status,
    rate: rate((c) => c.calls),
    errors: rate((c) => c.errors),
    latency: same && now.latency && before.latency ? difference(now.latency, before.latency) : null,
    cpu: rate((c) => c.status!.process.cpu_us) / 1e6,
    resident: now.resident,
    voluntary: rate((c) => c.status!.process.voluntary_switches),
    involuntary: rate((c) => c.status!.process.involuntary_switches),
    refusedRate: rate((c) => Object.values(c.status!.refusals ?? {}).reduce((all, times) => all + times, 0)),
    dropped: now.dropped,
    runDelay: rate((c) => c.status!.process.run_delay_us) / 1e6,
    begun: same ? now.status!.begun - before.status!.begun : 0,
    waited: same ? (now.status!.queue_wait_us - before.status!.queue_wait_us) / 1e6 : 0,
  };
}

function difference(now: Histogram, before: Histogram): Histogram {
  if (now.bounds.length !== before.bounds.length) return now;
  return { bounds: now.bounds, counts: now.counts.map((count, i) => count - before.counts[i]!) };
}

export function latencyOf(views: InstanceView[]): Histogram | null {
  return views.reduce<Histogram | null>((sum, v) => (v.latency ? add(sum, v.latency) : sum), null);
}

const sum = (views: InstanceView[], of: (v: InstanceView) => number) => views.reduce((total, v) => total + of(v), 0);

export function pointOf(views: InstanceView[], at: number): Point {
  const latency = latencyOf(views);
  const begun = sum(views, (v) => v.begun);
  return {
    at,
    rate: sum(views, (v) => v.rate),
    errors: sum(views, (v) => v.errors),
    p50: latency && quantile(latency, 0.5),
    p99: latency && quantile(latency, 0.99),
    queued: sum(views, (v) => v.status?.queued ?? 0),
    wait: begun > 0 ? sum(views, (v) => v.waited) / begun : null,
    cpu: sum(views, (v) => v.cpu),
    resident: sum(views, (v) => v.resident),
    threads: sum(views, (v) => v.status?.process.threads ?? 0),
    voluntary: sum(views, (v) => v.voluntary),
    involuntary: sum(views, (v) => v.involuntary),
    runDelay: sum(views, (v) => v.runDelay),
    down: sum(views, (v) => (v.up && !v.restarted ? 0 : 1)),
    config: [...new Set(views.map((v) => v.status?.config).filter((c) => c !== undefined))].join(", "),
  };
}

// The model of one page. Its memory is bounded: HISTORY points a service and MAX_SWITCHES switches.
export class Model {
  document: DashboardDocument | null = null;
  instances: InstanceView[] = [];
  readonly history = new Map<string, Point[]>();
  switches: Switch[] = [];
  private counters = new Map<string, Counters>();
  private restarts = new Map<string, { times: number; at: number }>(); // at which an instance was seen to be back

  // Takes a document that was read at `at`, in s since 1970.
  take(document: DashboardDocument, at: number): void {
    const sampled = at - document.age_ms / 1000;
    this.document = document;
    const counters = new Map<string, Counters>();
    this.instances = document.instances.map((instance) => {
      const now = readCounters(instance, sampled);
      const before = this.counters.get(instance.name);
      counters.set(instance.name, now.status && now.counted ? now : (before ?? now));
      this.noteSwitches(instance.name, before, now, sampled);
      return viewOf(instance, before, now, this.noteRestart(instance, sampled));
    });
    this.counters = counters;
    for (const name of this.restarts.keys()) if (!counters.has(name)) this.restarts.delete(name);
    for (const name of this.history.keys()) if (!document.services.some((s) => s.name === name)) this.history.delete(name);
    for (const service of document.services) {
      const points = this.history.get(service.name) ?? [];
      points.push(pointOf(this.of(service.name), sampled));
      if (points.length > HISTORY) points.shift();
      this.history.set(service.name, points);
    }
    if (this.switches.length > MAX_SWITCHES) this.switches.splice(0, this.switches.length - MAX_SWITCHES);
  }

  of(service: string): InstanceView[] {
    return this.instances.filter((view) => view.document.service === service);
  }

  private noteRestart(instance: InstanceDocument, at: number): boolean {
    const known = this.restarts.get(instance.name);
    const since = known && known.times !== instance.restarts ? at : (known?.at ?? -Infinity);
    this.restarts.set(instance.name, { times: instance.restarts, at: since });
    return at - since < RESTART_SHOWN_S;
  }

  private noteSwitches(instance: string, before: Counters | undefined, now: Counters, at: number): void {
    if (!now.status) return;
    const known = this.switches.filter((s) => s.instance === instance);
    for (const d of now.status.policy?.decisions ?? []) {
      const when = at - d.ago_ms / 1000;
      if (d.failure || known.some((s) => Math.abs(s.at - when) < 1.5 && s.to === d.to)) continue;
      this.switches.push({ at: when, instance, from: d.from, to: d.to, reason: d.reason });
    }
    const from = before?.status?.config;
    if (from === undefined || from === now.status.config || before!.pid !== now.pid) return;
    if (this.switches.some((s) => s.instance === instance && s.to === now.status!.config && at - s.at < 3)) return;
    this.switches.push({ at, instance, from, to: now.status.config, reason: "by an operator" });
  }
}
