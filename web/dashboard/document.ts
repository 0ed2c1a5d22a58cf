// SPDX-License-Identifier: Apache-2.0
// document.ts - what /dashboard.json holds: curtail/observe/dashboard.cc writes it, curtail/rpc/admin/admin_json.cc the status within it.
//
// document.json is such a document: a test of the writers compares it, and the compiler holds it against these types.

export interface LoadDocument {
  pid: number;
  command: string;
  label: string;
  elapsed_s: number;
  total_s: number; // 0: open
  ok: number;
  failed: number;
  in_flight: number;
  due_per_s: number;
  sent_per_s: number;
  p50_us: number;
  p99_us: number;
}

export interface FenceClass {
  services: string;
  permits: number;
  in_use: number;
  waiting: number;
  begun: number;
  queued: number;
  refused: number;
  borrowed: number;
  shed: number;
  late: number;
  no_credit: number;
  methods: string[];
}

export interface Fences {
  mode: string;
  limiter: string;
  classes: FenceClass[];
  undeclared: { method: string; service: string; times: number }[];
}

export interface Pool {
  name: string;
  threads: number;
  active: number;
  waiting: number;
  parked: number;
}

export interface Decision {
  ago_ms: number;
  rate_per_s: number;
  from: string;
  to: string;
  reason: string;
  failure: string;
}

export interface Policy {
  name: string;
  note: string;
  switches_by_itself: boolean;
  rate_per_s: number;
  fast_rate_per_s: number;
  paper_rate_per_s: number;
  arrivals: number;
  evaluations: number;
  switches: number;
  failures: number;
  last_failure: string;
  decisions: Decision[];
}

export interface Store {
  name: string;
  up: boolean;
  connections: number;
  attempts: number;
  failures: number;
  lost: number;
}

// Optional keys are absent in what an older version of curtail wrote.
export interface Status {
  schema_version: number;
  config: string;
  pools?: Pool[];
  spinning_threads: number;
  sleeping_threads: number; // that the config does not use
  fibers: number;
  queued: number;
  begun: number;
  queue_wait_us: number;
  max_queue_wait_us: number; // since the sample before
  open_calls: number;
  connections: number;
  held_bytes: number;
  held_up?: { path: string; times: number; blocks: boolean }[];
  limits?: Record<string, number>;
  stores?: Store[];
  refusals?: Record<string, number>;
  credits?: { total: number; issued: number; accounts: number } | null;
  fences: Fences | null;
  policy: Policy | null;
  process: { threads: number; voluntary_switches: number; involuntary_switches: number; cpu_us: number; run_delay_us: number };
}

export interface InstanceDocument {
  name: string;
  service: string;
  state: string;
  pid: number;
  address: string;
  restarts: number;
  problem: string;
  error: string; // why the next two are missing
  status: Status | null;
  metrics: string; // in Prometheus' text format; empty: none
}

export interface DashboardDocument {
  schema_version: number;
  application: string;
  sample: number;
  age_ms: number;
  traces: boolean;
  services: { name: string; calls: string[]; entry: boolean }[];
  instances: InstanceDocument[];
  loads: LoadDocument[];
}
