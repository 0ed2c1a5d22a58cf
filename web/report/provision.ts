// SPDX-License-Identifier: Apache-2.0
// provision.ts - the page of a provisioning. Its document is described by tools/curtail/provision/provision.schema.json.
import { highest, linearAxis, type Chart, type Line, type Point } from "../common/chart";
import { count, percent, plain } from "../common/format";
import { facts, machineText, table, type Block, type Machine, type Page } from "./page";

interface Share {
  cpu: number | null;
  config: string | null;
}
type Shares = Record<string, Share>;

interface Step {
  service: string;
  lever: "cpu" | "threads";
  from: Share;
  to: Share;
}

interface Round {
  cpus: number;
  highest_per_s: number | null;
  refused_per_s: number;
  saturated: { service: string; evidence: string }[];
  steps: Step[];
  verdict: string;
  pairs: number;
  good_share_before: number;
  good_share_after: number;
}

export interface Provisioning {
  kind: "provision";
  curtail_version: string;
  started: string;
  command: string;
  machine: Machine | null;
  application: string;
  qos: string;
  cpus: number;
  instances: Record<string, number>;
  start: Shares;
  shares: Shares;
  highest_per_s: number | null;
  equal_shares: Shares; // empty where that was not tried
  equal_highest_per_s: number | null;
  reason: string;
  cpus_used: Record<string, number>;
  rounds: Round[];
}

const load = (per_s: number | null | undefined) => (per_s === null || per_s === undefined ? "none" : `${plain(Number(per_s.toPrecision(4)))}/s`);
const cpuText = (cpu: number | null) => (cpu ? cpu.toFixed(2) : "–");
const change = ({ lever, from, to }: Step) => (lever === "cpu" ? `cpu ${cpuText(from.cpu)} → ${cpuText(to.cpu)}` : `${from.config ?? "–"} → ${to.config ?? "–"}`);
const stepsText = (round: Round) => round.steps.map((step) => `${step.service} ${change(step)}`).join(", ");
const goodText = (round: Round) => (round.pairs === 0 ? "–" : `${percent(round.good_share_before)} → ${percent(round.good_share_after)}`);
const firstText = ({ saturated: [first] }: Round) => (first ? `${first.service}: ${first.evidence}` : "none");

// The CPUs of all processes together; 0 without limits.
const cpusOf = ({ shares, instances }: Provisioning) => Object.entries(shares).reduce((sum, [name, share]) => sum + (share.cpu ?? 0) * (instances[name] ?? 0), 0);

// The loads over the CPU time that was shared out; without limits of it the rounds stand for it. Null where no load was within the QoS.
export function provisionChart(p: Provisioning): Chart | null {
  const limited = (p.rounds[0]?.cpus ?? 0) > 0, total = cpusOf(p);
  const measured = p.rounds.flatMap((round, i) => (round.highest_per_s === null ? [] : [{ round, title: `round ${i + 1}: ${load(round.highest_per_s)} within QoS, ${load(round.refused_per_s)} not; saturated first: ${firstText(round)}; ${stepsText(round)} ${round.verdict}`, at: [limited ? round.cpus : i + 1, round.highest_per_s] as Point }]));
  const points = measured.map(({ at }) => at), titles = measured.map(({ title }) => title);
  if (p.highest_per_s !== null && points.at(-1)?.[1] !== p.highest_per_s) points.push([limited ? total : p.rounds.length + 1, p.highest_per_s]), titles.push("at the end");
  if (points.length === 0) return null;
  const lines: Line[] = [{ name: "provisioned", color: "var(--color-2)", points }], own = "var(--color-2)", other = "var(--color-1)";
  const markers = points.map((at, i) => ({ at, color: own, shape: 0, title: titles[i]! })), first = p.rounds[0]?.highest_per_s;
  if (limited && p.equal_highest_per_s !== null && first) {
    const end: Point = [total, p.equal_highest_per_s];
    lines.unshift({ name: "equal shares", color: other, style: "dashed", points: [[p.rounds[0]!.cpus, first], end] });
    markers.push({ at: end, color: other, shape: 1, title: "the same CPUs in equal shares" });
  }
  return {
    label: `${p.application}: load within ${p.qos}, round by round`,
    x: linearAxis(limited ? "CPUs that the services may use together" : "round", highest(markers.map(({ at }) => at[0])), plain),
    y: linearAxis("requests a second within the QoS", highest(markers.map(({ at }) => at[1]!)), count),
    height: 420,
    lines,
    markers,
    labels: measured.flatMap(({ round, at }) => (round.verdict === "helps" ? [{ at, text: `+ ${round.steps.map((step) => step.service).join(", ")}` }] : [])),
    namesAtEnd: true,
  };
}
export const PROVISION_NOTE = "beside a point: the service that was saturated first, and got more";

function roundsTable({ rounds }: Provisioning): Block[] {
  const rows = rounds.map((round, i) => [String(i + 1), cpuText(round.cpus), load(round.highest_per_s), load(round.refused_per_s), firstText(round), stepsText(round), goodText(round), round.verdict]);
  return table("Good: the share of requests within the QoS, without and with the step", ["round", "CPUs", "within QoS", "refused", "saturated first", "step", "good", "verdict"], rows);
}

function sharesTable(p: Provisioning): Block[] {
  const order = Object.entries(p.shares).sort(([a, x], [b, y]) => (y.cpu ?? 0) - (x.cpu ?? 0) || (a < b ? -1 : 1));
  const rows = order.map(([name, share]) => [name, String(p.instances[name] ?? "–"), cpuText(p.start[name]?.cpu ?? null), cpuText(share.cpu), p.cpus_used[name]?.toFixed(3) ?? "–", share.config ?? "–"]);
  return table("CPUs of each process; used: of the service, at the highest load", ["service", "instances", "CPU at start", "CPU", "used", "config"], rows);
}

export function provisionPage(p: Provisioning): Page {
  const chart = provisionChart(p), total = cpusOf(p), [first] = p.rounds;
  const cpus = (of: number | undefined) => (of ? `, ${of.toFixed(2)} CPUs` : "");
  return {
    title: `Provisioning of ${p.application}`,
    about: `within ${p.qos}, with ${plain(p.cpus)} CPUs at most`,
    sections: [
      {
        heading: "Outcome",
        blocks: [
          ...facts(`Load within ${p.qos}`, [
            ["ended", p.reason],
            ["equal shares at the start", `${load(first?.highest_per_s)}${cpus(first?.cpus)}`],
            ["provisioned", `${load(p.highest_per_s)}${cpus(total)}`],
            ["the same CPUs in equal shares", Object.keys(p.equal_shares).length === 0 ? "" : load(p.equal_highest_per_s)],
          ]),
          ...(chart ? [{ is: "chart" as const, chart }, { is: "text" as const, kind: "hint" as const, text: PROVISION_NOTE }] : [{ is: "text" as const, kind: "bad" as const, text: "No load was within the QoS." }]),
        ],
      },
      { heading: "Rounds", blocks: roundsTable(p) },
      { heading: "Shares", blocks: sharesTable(p) },
      { heading: "What was measured", blocks: facts("The provisioning", [["machine", machineText(p.machine)], ["started", p.started], ["command", p.command], ["curtail", p.curtail_version]]) },
    ],
  };
}
