// SPDX-License-Identifier: Apache-2.0
// filter.ts - which items a list shows, as the address of a page and the query of a call have it.

export type Filter<Name extends string> = Partial<Record<Name, string>>;

// Leaves out empty parts and unknown names.
export function filterOf<Name extends string>(names: readonly Name[], query: string): Filter<Name> {
  const given = new URLSearchParams(query), filter: Filter<Name> = {};
  for (const name of names) {
    const value = given.get(name)?.trim();
    if (value) filter[name] = value;
  }
  return filter;
}

export function queryOf<Name extends string>(names: readonly Name[], filter: Filter<Name>): string {
  const given = new URLSearchParams(filter as Record<string, string>).toString();
  return new URLSearchParams(filterOf(names, given) as Record<string, string>).toString();
}
