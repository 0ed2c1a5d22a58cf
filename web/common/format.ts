// SPDX-License-Identifier: Apache-2.0
// format.ts - numbers as people read them.

// Three significant digits, without an exponent.
const digits = (value: number) => (Math.abs(value) >= 99.95 ? value.toFixed(0) : String(Number(value.toFixed(Math.abs(value) >= 9.995 ? 1 : 2))));

// A time in seconds; "–" for none.
export function time(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds === 0) return "0";
  if (seconds < 0.9995e-6) return `${digits(seconds * 1e9)} ns`;
  if (seconds < 0.9995e-3) return `${digits(seconds * 1e6)} µs`;
  return seconds < 0.9995 ? `${digits(seconds * 1e3)} ms` : `${digits(seconds)} s`;
}

export function count(value: number): string {
  if (value >= 999.5e6) return `${digits(value / 1e9)} G`;
  if (value >= 999.5e3) return `${digits(value / 1e6)} M`;
  return value >= 9999.5 ? `${digits(value / 1e3)} k` : digits(value);
}

export function bytes(value: number): string {
  return value >= 2 ** 30 ? `${digits(value / 2 ** 30)} GiB` : `${digits(value / 2 ** 20)} MiB`;
}

export const plain = (value: number) => String(Number(value.toPrecision(6)));
export const percent = (share: number) => `${Number((100 * share).toPrecision(3))} %`;
export const clock = (unix: number) => new Date(unix * 1000).toLocaleTimeString([], { hour12: false });
