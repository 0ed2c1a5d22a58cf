// SPDX-License-Identifier: Apache-2.0
// filter.ts - which movies a list shows, as the address of the page and the query of SearchMovies() have it.
import * as shell from "../shell/filter";

export const FILTERS = ["text", "genre", "firstYear", "lastYear"] as const;
export type Filter = shell.Filter<(typeof FILTERS)[number]>;

const FIRST_YEAR = "1870"; // the first that a movie may have

export const filterOf = (query: string): Filter => shell.filterOf(FILTERS, query);
export const queryOf = (filter: Filter) => shell.queryOf(FILTERS, filter);

// What is asked of the server, which takes no search of nothing: of all movies then.
export const askedOf = (filter: Filter) => queryOf(Object.keys(filter).length > 0 ? filter : { firstYear: FIRST_YEAR });

// What is wrong with a year of the form; null: nothing.
export const yearProblem = (value: string) => (/^(\d{4})?$/.test(value.trim()) ? null : "A year has four digits.");
