// SPDX-License-Identifier: Apache-2.0
// goods.ts - products and lists of them as elements: #/products/text=WORDS&tag=TAG&order=ORDER&least=CENTS&greatest=CENTS and #/product/ID.
import { element, replace } from "../common/dom";
import { onPress, say } from "../shell/act";
import { call, guest, keepGuest, once, part, read, Refused, session, type Session } from "../shell/client";
import { filterOf, queryOf, type Filter } from "../shell/filter";
import { form, valueOf, type Control, type Field } from "../shell/form";
import { pagedList } from "../shell/list";
import { centsOf, euros } from "../shell/money";
import { go, refreshButton, retitle, type View } from "../shell/shell";
import type { Discount, Discounts, Product, ProductPage, Products, Tags } from "./api";

const FILTERS = ["text", "tag", "order", "least", "greatest"] as const;
const ORDERS: [string, string][] = [["", "As they came"], ["NEWEST", "Newest first"], ["CHEAPEST", "Cheapest first"], ["DEAREST", "Dearest first"]];
const MAX_COUNT = 99;

const picture = ({ picture, name }: Product) =>
  picture ? [element("img", { src: `/v1/pictures/${picture}`, alt: `Picture of ${name}`, width: "84", height: "84", loading: "lazy" })] : [];
export const productLink = ({ id, name }: Pick<Product, "id" | "name">) => element("a", { href: `#/product/${part(id)}` }, name);
const tagLink = (tag: string) => element("a", { href: `#/products/${queryOf(FILTERS, { tag })}` }, tag);
export const productItem = (product: Product, ...more: HTMLElement[]) =>
  element("li", {}, ...picture(product), element("strong", {}, productLink(product)), element("p", { class: "hint" }, euros(product.cents)), ...more);

// ----- baskets, which guests have, too

// Without a session a guest's is opened, which the basket of the user adopts after the log-in.
async function ensureBasket(): Promise<void> {
  if (!session() && !guest()) keepGuest(await call<Session>("POST", "guests", {}));
}

const addOnce = once((body: { product: string; count: number }, key) => call("POST", "basket", body, { key }));

const addForm = (product: string) => form({
  id: "add-form",
  fields: [{ id: "count", label: "How many", attributes: { type: "number", required: "", min: "1", max: String(MAX_COUNT), step: "1", value: "1" } }],
  buttons: { "Add to basket": "" },
  async act() {
    await ensureBasket();
    await addOnce({ product, count: Number(valueOf("count")) });
    say("note", "It is in your basket.");
  },
});

// ----- finding products

const centsProblem = ({ value }: Control) => (value && centsOf(value) === null ? "An amount is euros and cents, like 12 or 12.50." : null);

function finder(filter: Filter<(typeof FILTERS)[number]>, tags: HTMLElement): HTMLElement {
  const price = (id: "least" | "greatest", label: string): Field => ({
    id, label, attributes: { value: filter[id] ?? "", inputmode: "decimal", autocomplete: "off" }, check: centsProblem,
  });
  const made = form({
    id: "find-form",
    fields: [
      { id: "text", label: "Words", hint: "Of the name or the description", attributes: { type: "search", value: filter.text ?? "", autocomplete: "off", maxlength: "256" } },
      { id: "tag", label: "Tag", attributes: { value: filter.tag ?? "", autocomplete: "off", maxlength: "32", list: tags.id, pattern: "[a-z0-9\\-]*" } },
      price("least", "From, in euros"), price("greatest", "To, in euros"),
      { id: "order", label: "Order", hint: "Of products without words and bounds", tag: "select", options: ORDERS, attributes: { value: filter.order ?? "" } },
    ],
    buttons: { Find: "" },
    async act() {
      go(`#/products/${queryOf(FILTERS, Object.fromEntries(FILTERS.map((name) => [name, valueOf(name)])))}`);
    },
  });
  made.setAttribute("role", "search");
  return made;
}

// The pages of a list count on by themselves, the ones of a search by what was skipped.
function pathOf(filter: Filter<(typeof FILTERS)[number]>, from: string): string {
  const { text, tag, order, least, greatest } = filter, cents = (euro: string | undefined) => String(centsOf(euro ?? "") ?? "");
  const asked = text || least || greatest
    ? { text, tag, least: cents(least), greatest: cents(greatest), skip: from }
    : { tags: tag, order, page: from };
  const given = Object.entries({ ...asked, limit: "20" }).filter(([, value]) => value) as [string, string][];
  return `${"skip" in asked ? "search" : "products"}?${new URLSearchParams(given)}`;
}

const worth = ({ percent, centsOff, leastCents }: Discount) =>
  `${percent ? `${percent} %` : euros(centsOff ?? "0")} off${Number(leastCents ?? 0) > 0 ? ` from ${euros(leastCents!)}` : ""}`;

// Products that the service chose. There may be none, and there are none before the operator has run `shop train`.
export async function chosen(path: string, visit: AbortSignal): Promise<Product[]> {
  const found = await read<Products>(path, visit).catch((error: unknown) => {
    if (error instanceof Refused && error.status === 400) return {} as Products;
    throw error;
  });
  return found.products ?? [];
}

export const titled = (id: string, title: string, items: HTMLElement[]) =>
  items.length === 0 ? [] : [element("h3", { id: `h-${id}` }, title), element("ul", { id, class: "list", "aria-labelledby": `h-${id}` }, ...items)];

export function products(query: string, visit: AbortSignal): View {
  const filter = filterOf(FILTERS, query), tags = element("datalist", { id: "tags" }), offers = element("div"), forYou = element("div");
  const list = pagedList<Product>({
    id: "products", label: "Products", empty: "There is no such product.",
    async read(from) {
      const page = await read<Products>(pathOf(filter, from), visit);
      return { items: page.products, next: page.next ? String(page.next) : undefined };
    },
    show: (product) => productItem(product),
  });
  const load = async () => {
    await list.load();
    replace(tags, ...((await read<Tags>("tags", visit)).tags ?? []).map(({ name }) => element("option", { value: name })));
    const { discounts = [] } = await read<Discounts>("discounts", visit);
    replace(offers, ...titled("offers", "Discounts", discounts.map((one) => element("li", {}, element("strong", {}, one.code), ` ${worth(one)}`))));
    if (session() && query === "") replace(forYou, ...titled("for-you", "For you", (await chosen("recommendations?limit=5", visit)).map((one) => productItem(one))));
  };
  return { title: "Products", actions: [refreshButton(load)], content: [finder(filter, tags), tags, offers, forYou, element("h3", {}, "Products"), list.element], load };
}

// ----- a product

function aboutProduct({ product, available, missing = [] }: ProductPage): HTMLElement[] {
  const lost = missing.length > 0 ? [element("p", { id: "missing", class: "error", role: "status" }, `Not readable now: ${missing.join(", ")}. Refresh to try again.`)] : [];
  const facts: Record<string, (HTMLElement | string)[]> = { Price: [euros(product.cents)], Tags: (product.tags ?? []).flatMap((tag) => [tagLink(tag), " "]) };
  if (!missing.includes("inventory")) facts["In stock"] = [Number(available ?? 0) > 0 ? String(available) : "Sold out"];
  return [...lost, element("p", { id: "description" }, product.description ?? ""), element("dl", {}, ...Object.entries(facts).flatMap(([name, values]) => [element("dt", {}, name), element("dd", {}, ...values)]))];
}

export function product(id: string, visit: AbortSignal): View {
  const shown = element("div", { id: "picture" }), about = element("div"), similar = element("div");
  const load = async () => {
    const page = await read<ProductPage>(`products/${part(id)}`, visit);
    retitle(page.product.name);
    replace(shown, ...picture(page.product));
    replace(about, ...aboutProduct(page));
    replace(similar, ...titled("similar", "Similar products", (page.similar ?? []).map((one) => productItem(one))));
  };
  const wish = onPress(element("button", { type: "button", "data-key": "wish" }, "Wish for it"), async () => {
    await call("POST", "wishlist", { product: id });
    say("note", "It is on your wishlist.");
  });
  return { title: "Product", actions: session() ? [refreshButton(load), wish] : [refreshButton(load)], content: [shown, about, addForm(id), similar], load };
}
