// SPDX-License-Identifier: Apache-2.0
// basket.ts - what a user or a guest is about to buy: #/basket.
import { element, replace } from "../common/dom";
import { attempt, onPress } from "../shell/act";
import { call, guest, keepGuest, part, read, Refused, session } from "../shell/client";
import { euros } from "../shell/money";
import { refreshButton, type View } from "../shell/shell";
import type { Basket, BasketLine } from "./api";
import { productItem } from "./goods";

// Moves the basket of the guest to the user who has logged in. A guest whose session has ended has none.
export async function adoptBasket(): Promise<void> {
  const from = guest();
  if (!from) return;
  await call("POST", "basket/adopt", { guestToken: from.token }).catch((error: unknown) => {
    if (!(error instanceof Refused && [401, 429].includes(error.status))) throw error; // it has ended, or there is no room for it
  });
  keepGuest(null);
}

function countField({ product, count }: BasketLine, changed: () => Promise<unknown>): HTMLElement {
  const id = `count-${product.id}`;
  const control = element("input", { id, "data-key": id, type: "number", min: "1", max: "99", step: "1", value: String(count) }) as HTMLInputElement;
  control.addEventListener("change", () => void attempt(async () => {
    if (control.reportValidity()) await call("PUT", `basket/${part(product.id)}`, { count: Number(control.value) });
    await changed();
  }));
  return element("span", { class: "row count" }, element("label", { for: id }, "How many"), control);
}

function lineItem(line: BasketLine, changed: () => Promise<unknown>): HTMLElement {
  const remove = onPress(element("button", { type: "button", "aria-label": `Remove ${line.product.name}` }, "Remove"), async () => {
    await call("DELETE", `basket/${part(line.product.id)}`);
    await changed();
  });
  return productItem(line.product, element("div", { class: "row" }, countField(line, changed), remove, element("strong", {}, euros(line.cents))));
}

export function basket(_: string, visit: AbortSignal): View {
  const lines = element("ul", { id: "basket", class: "list", "aria-label": "Basket" }), state = element("p", { class: "hint", role: "status" }), sum = element("p", { id: "sum", class: "total" });
  const order = element("p", { class: "total" }, element("a", { href: "#/checkout" }, "Go to checkout"));
  const load = async () => {
    const found = session() || guest() ? await read<Basket>("basket", visit) : {}, items = found.lines ?? [];
    replace(lines, ...items.map((line) => lineItem(line, load)));
    state.textContent = items.length === 0 ? "Your basket is empty." : "";
    replace(sum, ...(items.length === 0 ? [] : [`Together: ${euros(found.goodsCents ?? "0")}`]));
    order.hidden = items.length === 0;
  };
  return { title: "Basket", actions: [refreshButton(load)], content: [state, lines, sum, order], load };
}
