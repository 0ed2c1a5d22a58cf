// SPDX-License-Identifier: Apache-2.0
// filter.ts - which movies a list shows, as the address of the page and the query of SearchMovies() have it.

export const FILTERS = ["text", "genre", "firstYear", "lastYear"] as const;
export type Filter = Partial<Record<(typeof FILTERS)[number], string>>;

const FIRST_YEAR = "1870"; // the first that a movie may have

// Parts that are empty, and those of other names, are left out.
export function filterOf(query: string): Filter {
  const given = new URLSearchParams(query), filter: Filter = {};
  for (const name of FILTERS) {
    const value = given.get(name)?.trim();
    if (value) filter[name] = value;
  }
  return filter;
}

export function queryOf(filter: Filter): string {
  return new URLSearchParams(filterOf(new URLSearchParams(filter).toString()) as Record<string, string>).toString();
}

// What is asked of the server, which takes no search of nothing: of all movies then.
export const askedOf = (filter: Filter) => queryOf(Object.keys(filter).length > 0 ? filter : { firstYear: FIRST_YEAR });

// What is wrong with a year of the form; null: nothing.
export const yearProblem = (value: string) => (/^(\d{4})?$/.test(value.trim()) ? null : "A year has four digits.");
