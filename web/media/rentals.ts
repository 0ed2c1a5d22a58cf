// SPDX-License-Identifier: Apache-2.0
// rentals.ts - the wallet of a user, and the movies that it has paid for: #/rentals.
import { element, replace } from "../common/dom";
import { onPress, say } from "../shell/act";
import { call, once, part, read } from "../shell/client";
import { form, valueOf, type Control } from "../shell/form";
import { pagedList } from "../shell/list";
import { centsOf, euros } from "../shell/money";
import { go, refreshButton, type View } from "../shell/shell";
import type { MoviePage, Rental, Rentals, Wallet } from "./api";
import { movieLink, timeOf } from "./lists";

const MAX_DEPOSIT_CENTS = 10n ** 9n, RENTAL_CENTS = 200n, DAY_CENTS = 50n, MAX_DAYS = 30;
const STATES = { PENDING: "is being paid", ACTIVE: "may be watched", REFUSED: "was not paid", REFUNDED: "was refunded", EXPIRED: "has ended" };

const deposit = once((body: { cents: string }, key) => call<Wallet>("POST", "wallet/deposits", body, { key }));
const rent = once((body: { movie: string; days: number }, key) => call<Rental>("POST", "rentals", body, { key }));

function amountProblem({ value }: Control): string | null {
  const cents = centsOf(value);
  if (cents === null || cents === 0n) return "An amount is euros and cents, like 12 or 12.50.";
  return cents > MAX_DEPOSIT_CENTS ? `The most is ${euros(MAX_DEPOSIT_CENTS)}.` : null;
}

export const rentForm = (movie: string) => form({
  id: "rent-form",
  fields: [{
    id: "days", label: "Days", hint: `${euros(RENTAL_CENTS)}, and ${euros(DAY_CENTS)} for each day, from your wallet`,
    attributes: { type: "number", required: "", min: "1", max: String(MAX_DAYS), step: "1", value: "2" },
  }],
  buttons: { Rent: "" },
  async act() {
    await rent({ movie, days: Number(valueOf("days")) });
    go(`#/watch/${movie}`);
  },
});

function refundButton(rental: Rental, changed: () => Promise<unknown>): HTMLElement {
  return onPress(element("button", { type: "button", "data-key": `refund-${rental.id}` }, "Refund"), async () => {
    await call<Rental>("POST", `rentals/${part(rental.id)}/refund`);
    await changed();
    say("note", "The money is in your wallet again.");
  });
}

// The rental names its movie by an id alone.
async function titleOf(movie: string, visit: AbortSignal): Promise<HTMLElement> {
  return movieLink((await read<MoviePage>(`movies/${part(movie)}`, visit)).movie);
}

function rentalItem(rental: Rental, title: HTMLElement, changed: () => Promise<unknown>): HTMLElement {
  const state = rental.state ?? "PENDING", active = state === "ACTIVE";
  const facts = element("p", { class: "hint" }, `${euros(rental.cents)}, ${rental.days} days: ${STATES[state]}`);
  if (active && rental.endsMs) facts.append(" until ", timeOf(rental.endsMs));
  const item = element("li", {}, element("div", { class: "row" }, element("strong", {}, title)), facts);
  if (active) item.firstElementChild!.append(element("a", { href: `#/watch/${rental.movie}` }, "Watch"));
  if (active && !rental.watched) item.firstElementChild!.append(refundButton(rental, changed));
  return item;
}

export function rentals(_: string, visit: AbortSignal): View {
  const balance = element("p", { id: "balance", role: "status" });
  const list = pagedList<[Rental, HTMLElement]>({
    id: "rentals", label: "Rentals", empty: "You have not rented a movie yet.",
    async read(before) {
      const page = await read<Rentals>(`rentals?before=${before}`, visit);
      return { items: await Promise.all((page.rentals ?? []).map(async (one): Promise<[Rental, HTMLElement]> => [one, await titleOf(one.movie, visit)])), next: page.next };
    },
    show: ([rental, title]) => rentalItem(rental, title, load),
  });
  const show = ({ cents }: Wallet) => replace(balance, `In your wallet: ${euros(cents ?? "0")}`);
  const load = async () => {
    show(await read<Wallet>("wallet", visit));
    await list.load();
  };
  const fill = form({
    id: "deposit-form",
    fields: [{ id: "amount", label: "Amount in euros", hint: "12 or 12.50", attributes: { required: "", inputmode: "decimal", autocomplete: "off" }, check: amountProblem }],
    buttons: { Deposit: "" },
    async act() {
      show(await deposit({ cents: String(centsOf(valueOf("amount"))) }));
      fill.reset();
      say("note", "Deposited.");
    },
  });
  return { title: "Rentals", actions: [refreshButton(load)], content: [balance, fill, element("h3", {}, "Rentals"), list.element], load };
}
