// SPDX-License-Identifier: Apache-2.0
// page.ts - what a report shows, before render.ts draws it: sections of texts, tables and charts; and what all reports say alike.
import type { Chart, Span } from "../common/chart";

export type Cell = string | { text: string; range?: string; mark?: string; color?: string };
export type Block =
  | { is: "text"; text: string; kind: "lead" | "hint" | "good" | "bad" }
  | { is: "list"; items: string[] }
  | { is: "box"; kind: "void" | "warning"; lines: string[] }
  | { is: "tiles"; tiles: { name: string; value: string; detail: string }[] }
  | { is: "table"; caption: string; columns: string[]; rows: Cell[][] }
  | { is: "chart"; chart: Chart }
  | { is: "folded"; summary: string; blocks: Block[] };

export interface Page {
  title: string;
  about: string; // below the title
  sections: { heading: string; blocks: Block[] }[];
}

const MAX_ROWS = 100;

export function table(caption: string, columns: string[], rows: Cell[][]): Block[] {
  if (rows.length === 0) return [];
  const more: Block[] = rows.length > MAX_ROWS ? [{ is: "text", kind: "hint", text: `and ${rows.length - MAX_ROWS} more` }] : [];
  return [{ is: "table", caption, columns, rows: rows.slice(0, MAX_ROWS) }, ...more];
}

// Names and values; without those that have no value.
export const facts = (caption: string, rows: [name: string, value: string | undefined][]): Block[] => table(caption, [], rows.flatMap(([name, value]) => (value ? [[name, value]] : [])));

export interface Machine {
  cpus: number;
  cpu_model: string;
  kernel: string;
  load_average_before: number;
}

export const machineText = (m: Machine | null) => (m ? `${m.cpus} CPUs, ${m.cpu_model}, ${m.kernel}; load average before ${m.load_average_before.toFixed(2)}` : "");
export const plural = (n: number, what: string, more = `${what}s`) => `${n} ${n === 1 ? what : more}`;

const UNKNOWN = "var(--line)", COLORS = 6; // of base.css, without the gray one

// The configs that most pages have; their colors are those of base.css.
const USUAL = ["auto", "SIB1", "SIP1", "SDB1-16", "FIB1", "SDP1-16"];
const colorOf = (i: number) => (i < COLORS ? `var(--color-${i})` : `hsl(${((137.508 * i) % 360).toFixed(1)} 65% ${i % 2 === 0 ? 35 : 65}%)`);

// One color for each name, on all pages: the usual ones have theirs, and others a hue at the golden angle that their letters choose. No two of
// a page have the same: of two that would, the later one takes the next.
export function paletteOf(names: Iterable<string>): Map<string, string> {
  const palette = new Map<string, string>(), taken = new Set<string>();
  for (const name of names) {
    if (name === "" || palette.has(name)) continue;
    const usual = USUAL.indexOf(name), letters = [...name].reduce((sum, c) => (sum * 31 + c.charCodeAt(0)) % 9973, 0);
    let i = usual >= 0 ? usual : COLORS + letters;
    while (taken.has(colorOf(i))) ++i;
    palette.set(name, colorOf(i)), taken.add(colorOf(i));
  }
  return palette;
}

// What was in force from when to when, up to `end`: neighbours of one name become one span.
export function stripOf(steps: { from: number; name: string }[], end: number, palette: Map<string, string>): Span[] {
  const joined = steps.filter(({ name }, i) => i === 0 || name !== steps[i - 1]!.name);
  return joined.map(({ from, name }, i) => ({ from, to: joined[i + 1]?.from ?? end, name: name || "not known", color: palette.get(name) ?? UNKNOWN }));
}
