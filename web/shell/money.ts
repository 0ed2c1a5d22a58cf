// SPDX-License-Identifier: Apache-2.0
// money.ts - euros as people write them, and the cents that they are: integers, never fractions of floating point.

// "1234567" cents are "12,345.67 €". Debts begin with "−".
export function euros(cents: string | bigint): string {
  const value = BigInt(cents), digits = String(value < 0n ? -value : value).padStart(3, "0");
  const whole = digits.slice(0, -2).replace(/\B(?=(\d{3})+$)/g, ",");
  return `${value < 0n ? "−" : ""}${whole}.${digits.slice(-2)} €`;
}

// The cents of "12", "12.5", "12,50" or "12.50 €"; null for any other text, "1,234" among them, which could be either.
export function centsOf(text: string): bigint | null {
  const found = /^(\d{1,15})(?:[.,](\d{1,2}))?\s*€?$/.exec(text.trim());
  return found && BigInt(found[1]!) * 100n + BigInt((found[2] ?? "").padEnd(2, "0"));
}
