// SPDX-License-Identifier: Apache-2.0
// metrics.ts - reads Prometheus' text format, and quantiles of histograms.

export interface Series {
  name: string;
  labels: Record<string, string>;
  value: number;
}

const LINE = /^([A-Za-z_:][\w:]*)(?:\{(.*)\})? (\S+)$/;
const LABEL = /([A-Za-z_]\w*)="((?:[^"\\]|\\.)*)"/g;

// The samples of a text; lines that are none are left out.
export function parseMetrics(text: string): Series[] {
  const series: Series[] = [];
  for (const line of text.split("\n")) {
    const found = LINE.exec(line);
    if (line.startsWith("#") || !found) continue;
    const labels: Record<string, string> = {};
    for (const [, key, value] of (found[2] ?? "").matchAll(LABEL)) {
      labels[key!] = value!.replace(/\\(.)/g, (_, c: string) => (c === "n" ? "\n" : c));
    }
    series.push({ name: found[1]!, labels, value: Number(found[3]) });
  }
  return series;
}

// Counts of calls up to each bound in seconds, not cumulated; the last bound is infinite.
export interface Histogram {
  bounds: number[];
  counts: number[];
}

export function histogramOf(cumulated: Map<number, number>): Histogram {
  const bounds = [...cumulated.keys()].sort((a, b) => a - b);
  let before = 0;
  const counts = bounds.map((bound) => {
    const count = cumulated.get(bound)! - before;
    before += count;
    return count;
  });
  return { bounds, counts };
}

export function add(a: Histogram | null, b: Histogram): Histogram {
  if (!a || a.bounds.length !== b.bounds.length) return b;
  return { bounds: b.bounds, counts: b.counts.map((count, i) => a.counts[i]! + count) };
}

// The time that the share `q` of calls did not exceed, by interpolation within its bucket; null without calls.
export function quantile(histogram: Histogram, q: number): number | null {
  const total = histogram.counts.reduce((sum, count) => sum + Math.max(0, count), 0);
  if (total <= 0) return null;
  let left = q * total;
  for (let i = 0; i < histogram.counts.length; ++i) {
    const count = Math.max(0, histogram.counts[i]!);
    const low = i === 0 ? 0 : histogram.bounds[i - 1]!;
    const high = histogram.bounds[i]!;
    if (left <= count && count > 0) return Number.isFinite(high) ? low + ((high - low) * left) / count : low;
    left -= count;
  }
  return histogram.bounds.at(-2) ?? null;
}
