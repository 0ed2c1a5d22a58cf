// SPDX-License-Identifier: Apache-2.0
// orders.ts - what a user has ordered, and what has come of it: #/orders, #/order/ID.
import { element, replace } from "../common/dom";
import { onPress, say } from "../shell/act";
import { call, part, read, Refused } from "../shell/client";
import { pagedList } from "../shell/list";
import { euros } from "../shell/money";
import { refreshButton, type View } from "../shell/shell";
import type { Invoice, Order, Orders, Shipment } from "./api";
import { quoteFacts } from "./checkout";

const FIRST_PAUSE_MS = 250, MAX_PAUSE_MS = 8000; // between looks at an order
const STATES = {
  PLACED: "Placed: the shop is working on it",
  COMMITTED: "Ordered: it is paid, and will be sent",
  REJECTED: "Rejected: nothing was charged",
  REFUNDED: "Refunded: the total is given back",
};

const timeOf = (ms: string) => {
  const time = new Date(Number(ms));
  return element("time", { datetime: time.toISOString() }, time.toLocaleString());
};
const stateOf = ({ state }: Order) => STATES[state ?? "PLACED"];

const orderItem = (order: Order) => element("li", {},
  element("div", { class: "row" }, element("a", { href: `#/order/${part(order.id)}` }, order.number ? `Order ${order.number}` : "Order"), element("strong", {}, euros(order.quote.totalCents))),
  element("p", {}, stateOf(order)), element("div", { class: "row hint" }, timeOf(order.placedMs)));

export function orders(_: string, visit: AbortSignal): View {
  const list = pagedList<Order>({
    id: "orders", label: "Orders", empty: "You have not ordered anything yet.",
    async read(before) {
      const page = await read<Orders>(`orders?before=${before}`, visit);
      return { items: page.orders, next: page.next };
    },
    show: orderItem,
  });
  return { title: "Orders", actions: [refreshButton(list.load)], content: [list.element], load: list.load };
}

const pause = (ms: number, visit: AbortSignal) => new Promise<void>((done, end) => {
  const timer = setTimeout(done, ms);
  visit.addEventListener("abort", () => (clearTimeout(timer), end(visit.reason)), { once: true });
});

// Invoice and shipment follow the decision; undefined: not there yet.
const later = <T>(path: string, visit: AbortSignal) => read<T>(path, visit).catch((error: unknown) => {
  if (error instanceof Refused && error.status === 404) return undefined;
  throw error;
});

export function order(id: string, visit: AbortSignal): View {
  const state = element("p", { id: "state", role: "status" }), facts = element("div"), papers = element("dl");
  const show = (found: Order) => {
    replace(state, stateOf(found), ...(found.reason ? [`: ${found.reason}`] : []));
    replace(facts, ...quoteFacts(found.quote), ...(found.state ? [] : [cancel]));
  };
  const cancel = onPress(element("button", { type: "button", "data-key": "cancel" }, "Cancel the order"), async () => {
    show(await call<Order>("DELETE", `orders/${part(id)}`));
    say("note", "Cancelled.");
  });
  const showPapers = async (): Promise<boolean> => {
    const [invoice, shipment] = await Promise.all([later<Invoice>(`orders/${part(id)}/invoice`, visit), later<Shipment>(`orders/${part(id)}/shipment`, visit)]);
    const known = { ...(invoice && { Invoice: [invoice.number] }), ...(shipment && { Shipment: [shipment.tracking, ", with you by ", timeOf(shipment.dueMs)] }) };
    replace(papers, ...Object.entries(known).flatMap(([name, values]) => [element("dt", {}, name), element("dd", {}, ...values)]));
    return invoice !== undefined && shipment !== undefined;
  };
  // Looks until the order is decided and its papers are there, each time later.
  const load = async () => {
    for (let ms = FIRST_PAUSE_MS; ; ms = Math.min(2 * ms, MAX_PAUSE_MS)) {
      const found = await read<Order>(`orders/${part(id)}`, visit);
      show(found);
      if (found.state === "REJECTED" || (found.state && (await showPapers()))) return;
      await pause(ms, visit);
    }
  };
  return { title: "Order", actions: [refreshButton(load)], content: [state, facts, papers], load };
}
