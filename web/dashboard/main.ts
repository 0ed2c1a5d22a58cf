// SPDX-License-Identifier: Apache-2.0
// main.ts - the page: asks for the document once a second and shows it.
import { ChartView } from "../common/chart_view";
import type { Format } from "../common/chart";
import { byId, element, head, replace, svg } from "../common/dom";
import { bytes, clock, count, time } from "../common/format";
import { timeChart, type Curve } from "./charts";
import { drawLoads } from "./loads";
import { Heat } from "./heat";
import { callersFirst, drawMap } from "./map";
import type { DashboardDocument } from "./document";
import { Model, pointOf, type Point, type Switch } from "./model";
import { drawQueue } from "./queue";
import { Scatter } from "./scatter";
import { themeButton } from "../common/theme";
import { matches, tracesOf, type Trace, type TracesDocument } from "./traces";

const PERIOD_MS = 1000;
const TIMEOUT_MS = 4000;
const TRACES_SHOWN = 100;

const model = new Model();
let chosen = "";
let paused = false;
let sample = -1;
let traces: Trace[] = [];
let open: Trace | null = null;
let hasTraces = false;

// The curves of a panel, by what they are called there.
const curve = (label: string, of: Curve["of"], color = "--accent"): Curve => ({ label, of, color });
function panel(id: string, label: string, text: Format, ...curves: Curve[]) {
  const view = new ChartView(true);
  byId(id).append(view.element);
  return (points: Point[], seconds: number, switches: Switch[]) => view.show(timeChart(label, text, curves, points, seconds, switches));
}
const panels = [
  panel("load", "Requests a second", count, curve("offered", (p) => p.rate), curve("errors", (p) => p.errors, "--bad")),
  panel("latency", "Latency", time, curve("p99", (p) => p.p99, "--second"), curve("p50", (p) => p.p50)),
  panel("queue", "Queue: mean wait for a thread", time, curve("wait", (p) => p.wait)),
  panel("cpu", "CPUs in use", (cpus) => cpus.toFixed(2), curve("CPUs", (p) => p.cpu)),
  panel("ctx", "Context switches a second", count, curve("voluntary", (p) => p.voluntary), curve("involuntary", (p) => p.involuntary, "--second")),
  panel("delay", "Ready without a CPU", time, curve("a second", (p) => p.runDelay)),
];
const shownWindow = () => Number((byId("window") as HTMLSelectElement).value);

function choose(name: string): void {
  chosen = name;
  render();
}

const scatter = new Scatter(byId("scatter"), byId("scatter-table"));
const heat = new Heat(byId("heat"), choose);

function header(document_: DashboardDocument): void {
  const name = document_.application || location.host;
  byId("name").textContent = name;
  document.title = `${name} – curtail`;
  const down = model.instances.filter((v) => !v.up).map((v) => v.document.name);
  const health = byId("health");
  const text = down.length === 0 ? `all ${model.instances.length} up` : `down: ${down.slice(0, 4).join(", ")}${down.length > 4 ? " …" : ""}`;
  if (health.textContent !== text) health.textContent = text;
  health.className = down.length === 0 ? "good" : "bad";
}

function tiles(): void {
  const points = model.history.get(chosen) ?? [];
  const last = points.at(-1) ?? pointOf([], 0);
  const policy = model.of(chosen).find((v) => v.status?.policy)?.status?.policy;
  const rows: [string, string, string?][] = [
    ["Service", chosen],
    ["Config", last.config || "–"],
    ...(policy?.switches_by_itself ? [["Policy", policy.name] as [string, string], ["Its load", `${count(policy.rate_per_s)}/s`] as [string, string]] : []),
    ["Requests/s", count(last.rate)],
    ["p50", time(last.p50)],
    ["p99", time(last.p99)],
    ["Errors/s", count(last.errors), last.errors > 0 ? "bad" : ""],
    ["Queued", count(last.queued)],
    ["CPUs", last.cpu.toFixed(2)],
  ];
  replace(byId("tiles"), ...rows.map(([name, value, kind]) => element("div", {}, element("dt", {}, name), element("dd", { class: kind ?? "" }, value))));
}

function switches(): void {
  const own = model.switches.filter((s) => model.of(chosen).some((v) => v.document.name === s.instance)).slice(-30).reverse();
  const rows = own.map((s) => element("li", {}, element("time", {}, clock(s.at)), ` ${s.instance}: ${s.from} → ${s.to}, ${s.reason}`));
  replace(byId("switches"), ...(rows.length > 0 ? rows : [element("li", { class: "hint" }, "none seen")]));
}

function instances(): void {
  const rows = model.instances.map((v) => {
    const point = pointOf([v], 0);
    const fine = v.up && !v.restarted;
    const why = fine ? "" : (v.document.error || v.document.problem).split("\n")[0]!;
    const cells = [v.document.name, fine ? v.document.state : `${v.restarted ? "restarted" : v.document.state}${why ? `: ${why.slice(0, 80)}` : ""}`, v.status?.config ?? "–", count(v.rate), time(point.p50), time(point.p99), count(v.errors), `${(100 * v.cpu).toFixed(1)} %`, v.resident ? bytes(v.resident) : "–", v.status ? String(v.status.process.threads) : "–", count(v.voluntary), count(v.involuntary), v.rate > 0 ? ((v.voluntary + v.involuntary) / v.rate).toFixed(1) : "–", `${(100 * v.runDelay).toFixed(1)} %`, String(v.document.restarts)];
    return element("tr", { class: fine ? (v.document.service === chosen ? "chosen" : "") : "down", "data-instance": v.document.name }, ...cells.map((cell, i) => element("td", i === 1 ? { class: fine ? "good" : "bad" } : {}, cell)));
  });
  replace(byId("instances"), head("Process", "State", "Config", "Req/s", "p50", "p99", "Err/s", "CPU", "Memory", "Threads", "Voluntary/s", "Involuntary/s", "Switches/req", "Run delay", "Restarts"), element("tbody", {}, ...rows));
}

function render(): void {
  if (!model.document) return;
  if (!model.document.services.some((s) => s.name === chosen)) {
    chosen = (model.document.services.find((s) => s.entry) ?? model.document.services[0])?.name ?? "";
  }
  header(model.document);
  const map = byId("map");
  replace(map, drawMap(model, chosen, map.clientWidth, choose));
  drawLoads(model.document);
  tiles();
  heat.show(callersFirst(model.document.services), model.history, shownWindow(), chosen);
  const own = model.switches.filter((s) => model.of(chosen).some((v) => v.document.name === s.instance));
  for (const show of panels) show(model.history.get(chosen) ?? [], shownWindow(), own);
  scatter.show(model.history.get(chosen) ?? [], own);
  switches();
  drawQueue(model.of(chosen));
  instances();
}

// ----- traces

function waterfall(trace: Trace): void {
  open = trace;
  const row = 20, left = 4, width = Math.max(280, byId("waterfall").clientWidth), bars = width - left - 8;
  const begin = Math.min(0, ...trace.rows.map((r) => r.begin));
  const end = Math.max(trace.duration, ...trace.rows.map((r) => r.begin + r.duration));
  const x = (us: number) => left + (bars * (us - begin)) / (end - begin);
  const drawing = svg("svg", { viewBox: `0 0 ${width} ${trace.rows.length * 2 * row + 4}`, role: "img", "aria-label": `${trace.rows.length} spans, ${time(trace.duration / 1e6)}` });
  trace.rows.forEach((r, i) => {
    const y = i * 2 * row, wide = Math.max(1.5, x(r.begin + r.duration) - x(r.begin));
    const failed = r.status !== "OK";
    const text = `${r.kind === "client" ? `${r.service} calls` : r.service} ${r.method} – ${time(r.duration / 1e6)}${r.queue >= 1 ? `, ${time(r.queue / 1e6)} queued` : ""}${failed ? `, ${r.status}` : ""}`;
    drawing.append(
      svg("text", { x: left + Math.min(r.depth, 8) * 10, y: y + 14 }, text),
      svg("rect", { class: failed ? "bar-bad" : `bar-${r.kind}`, x: x(r.begin), y: y + 19, width: wide, height: r.kind === "client" ? 6 : 12, rx: 2 }));
    if (r.queue > 0 && !failed) drawing.append(svg("rect", { class: "bar-queue", x: x(r.begin), y: y + 19, width: Math.max(0.5, x(r.begin + r.queue) - x(r.begin)), height: 12 }));
  });
  replace(byId("waterfall"), element("h3", {}, `Trace ${trace.id}`), element("p", { class: "hint" }, "Filled: a service works on a request, first part: it waits for a thread. Outline: a call waits for its reply."), drawing);
}

function renderTraces(): void {
  const text = (byId("search") as HTMLInputElement).value;
  const found = traces.filter((trace) => matches(trace, text));
  byId("trace-note").textContent = !hasTraces ? "Traces are off: start the server with --trace-to memory, or curtail up with it." : `${found.length} of the latest ${traces.length} traces`;
  const rows = found.slice(0, TRACES_SHOWN).map((trace) => {
    const button = element("button", { type: "button", "data-key": trace.id + trace.at }, trace.method);
    button.addEventListener("click", () => (waterfall(trace), byId("waterfall").focus()));
    return element("tr", { class: trace.error ? "down" : "" }, element("td", {}, button), element("td", { class: "left" }, trace.services.join(", ")), element("td", {}, time(trace.duration / 1e6)), element("td", {}, String(trace.rows.length)), element("td", {}, trace.captured), element("td", {}, clock(trace.at / 1e6)));
  });
  replace(byId("traces"), head("Request", "Services", "Time", "Spans", "Kept for", "At"), element("tbody", {}, ...rows));
}

async function readJson<T>(path: string): Promise<T> {
  const reply = await fetch(path, { signal: AbortSignal.timeout(TIMEOUT_MS) });
  if (!reply.ok) throw new Error(`${path}: ${reply.status}`);
  return (await reply.json()) as T;
}

async function refreshTraces(): Promise<void> {
  if (!hasTraces) return renderTraces();
  const read = await readJson<TracesDocument | TracesDocument[]>("traces");
  traces = tracesOf(Array.isArray(read) ? read : [read]);
  renderTraces();
}

async function refresh(): Promise<number> {
  const read = await readJson<DashboardDocument>("dashboard.json");
  if (read.sample !== sample && read.instances.length > 0) {
    sample = read.sample;
    hasTraces = read.traces;
    model.take(read, Date.now() / 1000);
    render();
  }
  // Soon after the next sample, when the server says how old this one is.
  return read.instances.length === 0 ? 200 : Math.max(200, PERIOD_MS - read.age_ms + 20);
}

async function run(): Promise<void> {
  for (let turn = 0; ; ++turn) {
    let pause = PERIOD_MS;
    try {
      if (!paused && !document.hidden) {
        pause = await refresh();
        if (turn % 3 === 1) await refreshTraces();
      }
    } catch {
      byId("health").textContent = "the server does not answer";
      byId("health").className = "bad";
    }
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
}

themeButton(byId("theme"));
byId("pause").addEventListener("click", () => {
  paused = !paused;
  byId("pause").setAttribute("aria-pressed", String(paused));
  byId("pause").textContent = paused ? "Go on" : "Pause";
});
byId("window").addEventListener("change", render);
byId("search").addEventListener("input", renderTraces);
addEventListener("resize", () => (render(), open && waterfall(open)));
void run();
