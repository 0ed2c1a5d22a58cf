// SPDX-License-Identifier: Apache-2.0
// list.ts - a list that is read page by page, and shows whether it is empty, loading or failed.
import { element, replace } from "../common/dom";
import { onPress } from "./act";

export interface Page<T> { items: T[] | undefined; next: string | undefined } // as JSON has them: nothing for the empty list, and for 0

export interface ListOptions<T> {
  id: string;
  label: string;
  empty: string;
  read(from: string): Promise<Page<T>>; // "0": from the first
  show(item: T): HTMLElement; // an <li>
}

// load() reads the first page, and shows it in place of what there is. Errors are those of `read`; then a button tries again.
export function pagedList<T>({ id, label, empty, read, show }: ListOptions<T>): { element: HTMLElement; load: () => Promise<void> } {
  const items = element("ol", { id, class: "list", "aria-label": label });
  const state = element("p", { class: "hint", role: "status" }), more = element("button", { type: "button", hidden: "" });
  let next = "0", turn = 0;

  async function readFrom(from: string): Promise<void> {
    const mine = ++turn;
    items.setAttribute("aria-busy", "true");
    if (items.childElementCount === 0) state.textContent = "Loading…";
    try {
      const page = await read(from);
      if (mine !== turn) return;
      next = page.next ?? "0";
      const made = (page.items ?? []).map(show);
      if (from === "0") replace(items, ...made);
      else items.append(...made);
      state.textContent = items.childElementCount === 0 ? empty : "";
      const focused = document.activeElement === more;
      [more.textContent, more.hidden] = ["More", next === "0"];
      if (focused) focusOn(made[0]);
    } catch (error) {
      if (mine === turn) [next, state.textContent, more.textContent, more.hidden] = [from, "", "Try again", false];
      throw error;
    } finally {
      if (mine === turn) items.removeAttribute("aria-busy");
    }
  }

  onPress(more, () => readFrom(next));
  return { element: element("div", {}, items, state, more), load: () => readFrom("0") };
}

// A reader who pressed the button goes on here. Without it the focus falls to the top of the page when the button hides.
function focusOn(item: HTMLElement | undefined): void {
  item?.setAttribute("tabindex", "-1");
  item?.focus({ preventScroll: true });
}
