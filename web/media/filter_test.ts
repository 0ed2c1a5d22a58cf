// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { askedOf, filterOf, queryOf, yearProblem } from "./filter";

test("an address has the parts of the filter, and nothing else", () => {
  assert.deepEqual(filterOf("text=a+%26%20b&genre=Drama&skip=7&lastYear="), { text: "a & b", genre: "Drama" });
  assert.deepEqual(filterOf(""), {});
  assert.deepEqual(filterOf(queryOf({ text: "ä=&", firstYear: "1959", lastYear: " " })), { text: "ä=&", firstYear: "1959" });
});

test("without a filter all movies are asked for", () => {
  assert.equal(askedOf({}), "firstYear=1870");
  assert.equal(askedOf({ genre: "Film noir" }), "genre=Film+noir");
});

test("a year is four digits, or none", () => {
  assert.equal(yearProblem(""), null);
  assert.equal(yearProblem("1959"), null);
  for (const wrong of ["59", "19590", "-1959", "year"]) assert.ok(yearProblem(wrong), wrong);
});
