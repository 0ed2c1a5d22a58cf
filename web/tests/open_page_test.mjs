// SPDX-License-Identifier: Apache-2.0
// A dashboard that is left open: node open_page_test.mjs [MINUTES]
//
// The page of web/dist gets documents of twenty services, sixty instances, at forty times the pace of clocks: its own clock and timers are as
// fast. Its heap after MINUTES of its time, 60 by default, is that after eleven, when its history is full; and so is its number of elements.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { launch } from "./kit.mjs";

const minutes = Number(process.argv[2] ?? 60);
const PACE = 40;
const MAX_GROWTH = 1.1, MAX_HEAP = 64 * 2 ** 20, SLACK = 2 ** 20;
const SERVICES = 20, INSTANCES = 3;

let sample = 0;
const bounds = ["0.0001", "0.001", "0.01", "0.1", "+Inf"];
const configs = ["SIB1", "SDB1-4", "FIB1", "ADB1-4-4"];

function instance(service, i) {
  const calls = sample * 100, slow = sample % 97 === i ? 40 : 1; // a wave that the heat map shows
  const counts = [calls * 0.5, calls * 0.9, calls * 0.98 - slow, calls, calls].map(Math.floor);
  const config = configs[Math.floor(sample / 45 + i) % configs.length];
  const method = `rpc_service="shop.S${service}",rpc_method="Get"`;
  const metrics = [`rpc_server_calls_total{${method},rpc_response_status_code="OK"} ${calls}`, ...bounds.map((le, at) => `rpc_server_duration_seconds_bucket{${method},le="${le}"} ${counts[at]}`), "process_resident_memory_bytes 20000000"].join("\n");
  const status = {
    config, pools: [{ name: "worker", threads: 4, active: 1, waiting: 3, parked: 0 }], spinning_threads: 0, sleeping_threads: 0, fibers: 0, queued: sample % 5, begun: calls, queue_wait_us: calls * 3,
    max_queue_wait_us: 100, connections: 3, open_calls: 1, held_bytes: 1000, held_up: [], limits: {}, refusals: { "waited too long": sample },
    fences: { mode: "strict", limiter: "sct", undeclared: [], classes: [{ services: "a b", permits: 8, in_use: sample % 9, waiting: 0, begun: calls, queued: 0, refused: 0, borrowed: 0, shed: 0, late: 0, no_credit: 0 }] },
    policy: { name: "mutune", switches_by_itself: true, rate_per_s: 100, failures: 0, last_failure: "", decisions: [{ ago_ms: (sample % 45) * 1000, from: "SIB1", to: config, reason: "load", failure: "" }] },
    process: { threads: 20, voluntary_switches: calls * 2, involuntary_switches: sample, cpu_us: calls * 100, run_delay_us: calls },
  };
  return { name: `s${service}-${i}`, service: `s${service}`, state: "ready", pid: 100 + service * INSTANCES + i, address: "", restarts: Math.floor(sample / 500), problem: "", error: "", metrics, status };
}

function dashboard() {
  ++sample;
  const services = Array.from({ length: SERVICES }, (_, i) => ({ name: `s${i}`, calls: 2 * i + 1 < SERVICES ? [`s${2 * i + 1}`] : [], entry: i === 0 }));
  const instances = services.flatMap((_, s) => Array.from({ length: INSTANCES }, (_, i) => instance(s, i)));
  const loads = [{ pid: 9000 + (sample % 50), command: "curtail load shop", label: "load", elapsed_s: sample, total_s: 0, ok: sample * 100, failed: 0, in_flight: 1, due_per_s: 100, sent_per_s: 100, p50_us: 100, p99_us: 1000 }];
  return { schema_version: 2, application: "shop", sample, age_ms: 0, traces: true, services, instances, loads };
}

function traces() {
  const spans = Array.from({ length: 128 }, (_, i) => ({ trace: `t${sample}-${i}`, id: `${sample}-${i}`, parent: null, method: "/shop.S0/Get", status: "OK", captured: "sampled", start_unix_us: sample * 1e6 + i, total_ns: 1e6, queue_ns: 1e4, entry_ns: 0, handler_ns: 0, reply_ns: 0, calls: [] }));
  return [{ service: "s0", spans }];
}

const folder = new URL("../dist/", import.meta.url);
const pages = { "/": ["dashboard.html", "text/html"], "/dashboard.js": ["dashboard.js", "text/javascript"], "/dashboard.css": ["dashboard.css", "text/css"] };
const server = createServer((request, reply) => {
  const file = pages[request.url];
  if (file) return reply.setHeader("content-type", file[1]).end(readFileSync(new URL(file[0], folder)));
  reply.setHeader("content-type", "application/json").end(JSON.stringify(request.url === "/traces" ? traces() : dashboard()));
}).listen(0, "127.0.0.1");
await new Promise((resolve) => server.once("listening", resolve));

const browser = await launch();
try {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  const said = [];
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && said.push(message.text()));
  page.on("pageerror", (error) => said.push(String(error)));
  await page.addInitScript((pace) => {
    const now = Date.now.bind(Date), begin = now(), timer = globalThis.setTimeout.bind(globalThis);
    Date.now = () => begin + (now() - begin) * pace;
    globalThis.setTimeout = (body, ms, ...more) => timer(body, (ms ?? 0) / pace, ...more);
  }, PACE);
  await page.goto(`http://127.0.0.1:${server.address().port}/`);
  const devtools = await page.context().newCDPSession(page);
  const until = async (wanted) => {
    while (sample < wanted) await new Promise((resolve) => setTimeout(resolve, 100));
    await devtools.send("HeapProfiler.collectGarbage");
    const heap = (await devtools.send("Runtime.getHeapUsage")).usedSize, { nodes, jsEventListeners } = await devtools.send("Memory.getDOMCounters");
    console.log(`after ${(sample / 60).toFixed(0)} min: heap ${(heap / 2 ** 20).toFixed(1)} MiB, ${nodes} nodes, ${jsEventListeners} listeners`);
    return { heap, nodes, jsEventListeners };
  };
  const full = await until(11 * 60);
  const last = await until(minutes * 60);
  assert.ok(last.heap < full.heap * MAX_GROWTH + SLACK, "the heap grows no more once the history is full");
  assert.ok(last.heap < MAX_HEAP, "the heap is bounded");
  assert.ok(last.nodes < full.nodes * 1.5 && last.jsEventListeners < full.jsEventListeners * 1.5, "so are the elements and what they listen to");
  assert.deepEqual(said, [], "the console");
  console.log("a page that is left open stays as it is");
} finally {
  await browser.close();
  server.close();
}
