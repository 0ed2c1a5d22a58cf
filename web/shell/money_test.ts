// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { centsOf, euros } from "./money";

test("cents are euros, to the last digit that an int64 has", () => {
  const written = { "0": "0.00 €", "5": "0.05 €", "-5": "−0.05 €", "100": "1.00 €", "99999": "999.99 €", "100000": "1,000.00 €", "-123456789": "−1,234,567.89 €" };
  for (const [cents, text] of Object.entries(written)) assert.equal(euros(cents), text);
  assert.equal(euros(9223372036854775807n), "92,233,720,368,547,758.07 €");
  assert.equal(euros("-9223372036854775808"), "−92,233,720,368,547,758.08 €");
});

test("an amount is exact, with a point or a comma", () => {
  const read = { "12": 1200n, "12.5": 1250n, "12,50": 1250n, " 12.50 € ": 1250n, "0.29": 29n, "1.10": 110n, "007": 700n, "90071992547409.93": 9007199254740993n };
  for (const [text, cents] of Object.entries(read)) assert.equal(centsOf(text), cents);
});

test("what could be another amount, or is none, is refused", () => {
  for (const text of ["", "€", "-1", "+1", "1,234", "1.234", "1.2.3", "1,234.50", "1e3", "0x10", "1.", ".5", "1 000", "١", "12 $", "9".repeat(16)]) assert.equal(centsOf(text), null, text);
});

test("an amount that was formatted is read as the same cents", () => {
  for (const cents of [1n, 10n, 99n, 12345n, 99999n]) assert.equal(centsOf(euros(cents)), cents);
});
