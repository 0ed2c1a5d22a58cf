// SPDX-License-Identifier: Apache-2.0
// dom.ts - makes elements; text never becomes markup.

export function byId(id: string): HTMLElement {
  const found = document.getElementById(id);
  if (!found) throw new Error(`no element ${id}`);
  return found;
}

type Child = Node | string;

export function element(name: string, attributes: Record<string, string> = {}, ...children: Child[]): HTMLElement {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

export function svg(name: string, attributes: Record<string, string | number> = {}, ...children: Child[]): SVGElement {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  made.append(...children);
  return made;
}

export const head = (...names: string[]) => element("thead", {}, element("tr", {}, ...names.map((name) => element("th", { scope: "col" }, name))));

// Replaces what `parent` holds, and keeps the focus on the element with the same data-key.
export function replace(parent: Element, ...children: Child[]): void {
  const focused = document.activeElement;
  const key = focused && parent.contains(focused) ? focused.getAttribute("data-key") : null;
  parent.replaceChildren(...children);
  if (!key) return;
  for (const each of parent.querySelectorAll<HTMLElement>("[data-key]")) {
    if (each.getAttribute("data-key") === key) each.focus({ preventScroll: true });
  }
}
