// SPDX-License-Identifier: Apache-2.0
// checkout.ts - an order, from the address to the price that is paid: #/checkout. And what a user's account has: #/account.
import { element, replace } from "../common/dom";
import { onPress, say } from "../shell/act";
import { call, once, part, read, Refused, session } from "../shell/client";
import { form, nameField, passwordField, valueOf, type Field } from "../shell/form";
import { euros } from "../shell/money";
import { endSession, go, refreshButton, type View } from "../shell/shell";
import type { Address, Addresses, Card, Cards, Checkout, Order, Profile, Quote } from "./api";
import { titled } from "./goods";

export const addressText = ({ name, street, postcode, city, country }: Address) => `${name}, ${street}, ${postcode} ${city}, ${country}`;
export const cardText = ({ lastFour, expires }: Card) => `•••• ${lastFour}, until ${expires}`;

const addAddress = once((body: { address: Omit<Address, "id"> }, key) => call<Address>("POST", "addresses", body, { key }));
const addCard = once((body: { number: string; expires: string }, key) => call<Card>("POST", "cards", body, { key }));

const text = (id: string, label: string, autocomplete: string): Field => ({ id, label, attributes: { required: "", maxlength: "100", autocomplete } });

function addressForm(changed: () => Promise<unknown>): HTMLElement {
  const made = form({
    id: "address-form",
    fields: [
      text("address-name", "Who gets it", "name"), text("street", "Street", "street-address"), text("city", "City", "address-level2"), text("postcode", "Postcode", "postal-code"),
      { id: "country", label: "Country", hint: "Two capital letters, like DE", attributes: { required: "", pattern: "[A-Z]{2}", maxlength: "2", autocomplete: "country" } },
    ],
    buttons: { "Add address": "" },
    async act() {
      await addAddress({ address: { name: valueOf("address-name"), street: valueOf("street"), city: valueOf("city"), postcode: valueOf("postcode"), country: valueOf("country") } });
      made.reset();
      await changed();
      say("note", "The address was added.");
    },
  });
  return made;
}

// The page keeps no number longer than the form does.
function cardForm(changed: () => Promise<unknown>): HTMLElement {
  const made = form({
    id: "card-form",
    fields: [
      { id: "number", label: "Number of the card", attributes: { required: "", pattern: "[0-9 ]{12,25}", inputmode: "numeric", autocomplete: "cc-number" } },
      { id: "expires", label: "Expires", hint: "Year and month, like 2030-01", attributes: { required: "", pattern: "[0-9]{4}-[0-9]{2}", autocomplete: "cc-exp" } },
    ],
    buttons: { "Add card": "" },
    async act() {
      await addCard({ number: valueOf("number").replaceAll(" ", ""), expires: valueOf("expires") });
      made.reset();
      await changed();
      say("note", "The card was added.");
    },
  });
  return made;
}

// ----- an order

const place = once((body: { quote: string }, key) => call<Order>("POST", "orders", body, { key }));

export function quoteFacts(quote: Quote): HTMLElement[] {
  const facts: Record<string, string> = { Goods: euros(quote.goodsCents) };
  if (quote.discountCode) facts[`Discount ${quote.discountCode}`] = euros(-BigInt(quote.discountCents ?? "0"));
  Object.assign(facts, { [`Shipping, ${quote.shippingOption}`]: euros(quote.shippingCents ?? "0"), Total: euros(quote.totalCents), To: addressText(quote.address), Card: cardText(quote.card) });
  const lines = quote.lines.map((line) => element("li", { class: "row" }, element("span", {}, `${line.count} × ${line.name}`), element("strong", {}, euros(BigInt(line.cents) * BigInt(line.count)))));
  return [element("ul", { class: "list", "aria-label": "Products of the order" }, ...lines), element("dl", {}, ...Object.entries(facts).flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]))];
}

// The price is the one that was shown: a quote that has expired is asked for again.
function quoted(quote: Quote, again: () => Promise<unknown>): HTMLElement[] {
  const buy = onPress(element("button", { type: "button", "data-key": "order" }, `Order for ${euros(quote.totalCents)}`), async () => {
    const order = await place({ quote: quote.id }).catch(async (error: unknown) => {
      if (error instanceof Refused && error.status === 409) await again();
      throw error;
    });
    go(`#/order/${order.id}`);
  });
  return [element("h3", {}, "Your order"), ...quoteFacts(quote), buy];
}

function quoteForm({ addresses = [], cards = [], shipping = [] }: Checkout, shown: HTMLElement): HTMLElement {
  const choice = (id: string, label: string, options: [string, string][]): Field => ({ id, label, tag: "select", options });
  const ask = async () => {
    const asked = { address: valueOf("address"), card: valueOf("card"), shipping: valueOf("shipping"), code: valueOf("code").trim() };
    replace(shown, ...quoted(await call<Quote>("POST", "quotes", asked), ask));
  };
  return form({
    id: "quote-form",
    fields: [
      choice("address", "Send it to", addresses.map((one) => [one.id, addressText(one)])),
      choice("card", "Pay with", cards.map((one) => [one.id, cardText(one)])),
      choice("shipping", "Shipping", shipping.map(({ name, days, cents }) => [name, `${name}: ${days} days, ${euros(cents ?? "0")}`])),
      { id: "code", label: "Code of a discount", attributes: { autocomplete: "off", maxlength: "32" } },
    ],
    buttons: { "Show the price": "" },
    act: ask,
  });
}

export function checkout(_: string, visit: AbortSignal): View {
  const choose = element("div"), shown = element("div", { id: "quote" }), more = element("div");
  const load = async () => {
    const page = await read<Checkout>("checkout", visit), { basket, addresses = [], cards = [] } = page;
    const needs = [...(addresses.length === 0 ? [element("h3", {}, "Where should it go?"), addressForm(load)] : []), ...(cards.length === 0 ? [element("h3", {}, "How do you pay?"), cardForm(load)] : [])];
    const empty = (basket?.lines ?? []).length === 0;
    replace(choose, ...(empty ? [element("p", { class: "hint", role: "status" }, "Your basket is empty.")] : needs.length > 0 ? [] : [quoteForm(page, shown)]));
    replace(more, ...needs);
    replace(shown);
  };
  return { title: "Checkout", actions: [refreshButton(load)], content: [choose, shown, more], load };
}

// ----- the account

function removable(text: string, path: string, changed: () => Promise<unknown>): HTMLElement {
  const remove = onPress(element("button", { type: "button", "aria-label": `Remove ${text}` }, "Remove"), async () => {
    await call("DELETE", path);
    await changed();
  });
  return element("li", { class: "row" }, element("span", {}, text), remove);
}

const leaveForm = () => form({
  id: "leave-form",
  fields: [
    { ...nameField("leave-name", "Name"), check: ({ value }) => (value === session()?.name ? null : "This is not your name.") },
    passwordField("leave-password", "Password"),
  ],
  buttons: { "Delete the account": "" },
  async act() {
    await call("DELETE", "account", { name: valueOf("leave-name"), password: valueOf("leave-password") }).catch((error: unknown) => {
      throw error instanceof Refused && error.status === 401 ? new Refused(0, error.message) : error;
    });
    endSession("Your account was deleted.");
  },
});

export function account(_: string, visit: AbortSignal): View {
  const since = element("p", { class: "hint", id: "since" }), places = element("div"), payments = element("div");
  const load = async () => {
    const [profile, { addresses = [] }, { cards = [] }] = await Promise.all([read<Profile>("account", visit), read<Addresses>("addresses", visit), read<Cards>("cards", visit)]);
    since.textContent = `${profile.name}, a customer since ${new Date(Number(profile.sinceMs)).toLocaleDateString()}`;
    replace(places, ...titled("addresses", "Addresses", addresses.map((one) => removable(addressText(one), `addresses/${part(one.id)}`, load))));
    replace(payments, ...titled("cards", "Cards", cards.map((one) => removable(cardText(one), `cards/${part(one.id)}`, load))));
  };
  const content = [since, places, element("h3", {}, "Another address"), addressForm(load), payments, element("h3", {}, "Another card"), cardForm(load), element("h3", {}, "Leave"), element("p", { class: "hint" }, "Basket, wishes, addresses and cards are deleted; orders and invoices are kept."), leaveForm()];
  return { title: "Account", actions: [refreshButton(load)], content, load };
}
