// SPDX-License-Identifier: Apache-2.0
// main.ts - the bank's page: #/accounts, #/account/ID, #/payment/ID, #/offers, #/codes, #/leave. Its messages are those of apps/bank/bank.proto.
import { element, replace } from "../common/dom";
import { onPress, say } from "../shell/act";
import { call, once, part, read, readBytes, Refused, session } from "../shell/client";
import { form, nameField, passwordField, valueOf, type Control } from "../shell/form";
import { pagedList } from "../shell/list";
import { centsOf, euros } from "../shell/money";
import { save } from "../shell/save";
import { endSession, go, refreshButton, show, start, type View } from "../shell/shell";

interface Account { id: string; iban: string }
interface Accounts { accounts?: Account[] }
interface Balance { cents?: string; availableCents?: string }
interface Order { from: string; iban: string; cents: string; text: string }
interface Payment extends Order { id: string; state?: keyof typeof STATES; createdMs: string }
interface Movement { cents: string; balanceCents?: string; iban?: string; text?: string; bookedMs: string }
interface Movements { movements?: Movement[]; next?: string }
interface Offer { product: keyof typeof PRODUCTS; reason: string; expiresMs: string }

const MAX_CENTS = 10n ** 12n;
const MAX_CENTS_WITHOUT_CODE = 100_000n;
const FIRST_PAUSE_MS = 250, MAX_PAUSE_MS = 8000; // between looks at a payment
const STATES = {
  PENDING: "Accepted: the bank is working on it",
  BOOKED: "Sent: the money is on its way",
  REFUSED: "Refused: no money has moved",
  ARRIVED: "Arrived",
  RETURNED: "Returned: the payee's account is closed, and the money is back",
};

const PRODUCTS = {
  "term-deposit": "A deposit for a term",
  "credit-card": "A credit card",
  "personal-loan": "A personal loan",
  "electronic-mail": "Letters of the bank by email",
};

const spaced = (iban: string) => iban.replace(/(.{4})(?=.)/g, "$1 ");

function timeOf(ms: string): HTMLElement {
  const time = new Date(Number(ms));
  return element("time", { datetime: time.toISOString() }, time.toLocaleString());
}

// What is known of one thing, as pairs of names and values.
function facts(of: Record<string, string | HTMLElement>): HTMLElement[] {
  return Object.entries(of).flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]);
}

// ----- accounts

const balanceOf = (account: string, visit: AbortSignal) => read<Balance>(`accounts/${part(account)}/balance`, visit);

function accountItem([account, balance]: [Account, Balance]): HTMLElement {
  return element("li", { class: "row" }, element("a", { href: `#/account/${account.id}` }, spaced(account.iban)), element("strong", {}, euros(balance.cents ?? "0")));
}

const openAccount = once((body, key) => call<Account>("POST", "accounts", body, { key }));

function accounts(_: string, visit: AbortSignal): View {
  const list = pagedList<[Account, Balance]>({
    id: "accounts", label: "Accounts", empty: "You have no account yet.",
    async read() {
      const owned = (await read<Accounts>("accounts", visit)).accounts ?? [];
      return { items: await Promise.all(owned.map(async (one): Promise<[Account, Balance]> => [one, await balanceOf(one.id, visit)])), next: undefined };
    },
    show: accountItem,
  });
  const open = onPress(element("button", { type: "button", "data-key": "open" }, "Open account"), async () => {
    await openAccount({});
    await list.load();
    say("note", "Opened.");
  });
  return { title: "Accounts", actions: [refreshButton(list.load), open], content: [list.element], load: list.load };
}

// ----- codes, which large payments need

// The token that the bank gave for a code, and the session that it belongs to. A code is taken once, so it serves until it expires.
let proof: { of: string; token: string; expiresS: string } | null = null;

const proved = () => (proof && proof.of === session()?.token && Number(proof.expiresS) * 1000 > Date.now() + 5000 ? proof.token : "");

async function prove(code: string): Promise<void> {
  const of = session()?.token ?? "";
  proof = { ...(await call<{ token: string; expiresS: string }>("POST", "sessions/code", { code })), of };
}

function codes(): View {
  const made = element("div", { role: "status" });
  const enrol = form({
    id: "codes-form",
    fields: [passwordField("codes-password", "Password")],
    buttons: { "Make a secret": "" },
    async act() {
      const given = { name: session()?.name, password: valueOf("codes-password") };
      const { secret, uri } = await call<{ secret: string; uri: string }>("POST", "codes", given).catch((error: unknown) => {
        throw error instanceof Refused && error.status === 401 ? new Refused(0, error.message) : error;
      });
      replace(made, element("p", {}, "Give it to your app. Its first code makes it yours."),
        element("dl", {}, ...facts({ Secret: element("code", {}, secret), App: element("a", { href: uri }, "Open in an app") })));
    },
  });
  const about = element("p", {}, `An app for one-time codes shows six digits, which payments above ${euros(MAX_CENTS_WITHOUT_CODE)} need.`);
  return { title: "Codes", content: [about, enrol, made], load: async () => {} };
}

// ----- one account

// The token is not part of the order, whose repetition may have another one.
const pay = once((order: Order, key) => call<Payment>("POST", "payments", { ...order, token: proved() }, { key }));

function amountProblem({ value }: Control): string | null {
  const cents = centsOf(value);
  if (cents === null) return "An amount is euros and cents, like 12 or 12.50.";
  if (cents === 0n) return "The least amount is one cent.";
  return cents > MAX_CENTS ? `The most is ${euros(MAX_CENTS)}.` : null;
}

function codeProblem({ value }: Control): string | null {
  const cents = centsOf(valueOf("amount")), needed = cents !== null && cents > MAX_CENTS_WITHOUT_CODE && !proved();
  return needed && !value ? `Above ${euros(MAX_CENTS_WITHOUT_CODE)} the bank needs a code.` : null;
}

const payForm = (from: string) => form({
  id: "pay-form",
  fields: [
    { id: "iban", label: "To (IBAN)", attributes: { required: "", maxlength: "42", pattern: "\\s*[A-Za-z]{2}[0-9]{2}[A-Za-z0-9 ]+", autocomplete: "off", spellcheck: "false" } },
    { id: "amount", label: "Amount in euros", hint: "12 or 12.50", attributes: { required: "", inputmode: "decimal", autocomplete: "off" }, check: amountProblem },
    { id: "purpose", label: "Text", hint: "At most 140 characters", attributes: { maxlength: "140", autocomplete: "off" } },
    { id: "code", label: "Code", hint: `Of your app, for more than ${euros(MAX_CENTS_WITHOUT_CODE)}`, attributes: { pattern: "[0-9]{6}", inputmode: "numeric", autocomplete: "one-time-code" }, check: codeProblem },
  ],
  buttons: { Pay: "" },
  async act() {
    if (valueOf("code") && !proved()) await prove(valueOf("code"));
    const order = { from, iban: valueOf("iban").trim(), cents: String(centsOf(valueOf("amount"))), text: valueOf("purpose") };
    go(`#/payment/${(await pay(order)).id}`);
  },
});

function movementItem(movement: Movement): HTMLElement {
  const received = !movement.cents.startsWith("-"), other = movement.iban ? spaced(movement.iban) : "the bank";
  return element("li", {},
    element("div", { class: "row" }, element("span", {}, `${received ? "From" : "To"} ${other}`), element("strong", {}, (received ? "+" : "") + euros(movement.cents))),
    element("p", {}, movement.text ?? ""),
    element("div", { class: "row hint" }, timeOf(movement.bookedMs), element("span", {}, `Balance ${euros(movement.balanceCents ?? "0")}`)));
}

function account(id: string, visit: AbortSignal): View {
  const about = element("dl");
  const activity = pagedList<Movement>({
    id: "activity", label: "Activity", empty: "Nothing has moved yet.",
    async read(before) {
      const page = await read<Movements>(`accounts/${part(id)}/activity?before=${before}`, visit);
      return { items: page.movements, next: page.next };
    },
    show: movementItem,
  });
  const load = async () => {
    const [balance, owned] = await Promise.all([balanceOf(id, visit), read<Accounts>("accounts", visit)]);
    const iban = owned.accounts?.find((one) => one.id === id)?.iban ?? "";
    replace(about, ...facts({ IBAN: spaced(iban), Balance: euros(balance.cents ?? "0"), Available: euros(balance.availableCents ?? "0") }));
    await activity.load();
  };
  const exported = onPress(element("button", { type: "button", "data-key": "export" }, "Export as CSV"), async () => {
    save(await readBytes(`accounts/${part(id)}/activity.csv`, visit), `activity-${id}.csv`);
    say("note", "Exported.");
  });
  const content = [about, element("h3", {}, "Pay"), payForm(id), element("h3", {}, "Activity"), activity.element];
  return { title: "Account", actions: [refreshButton(load), exported], content, load };
}

// ----- a payment

function pause(ms: number, visit: AbortSignal): Promise<void> {
  return new Promise((done, left) => {
    const timer = setTimeout(done, ms);
    visit.addEventListener("abort", () => (clearTimeout(timer), left(visit.reason)), { once: true });
  });
}

// Looks until the payment has come to its end, or the user leaves.
function payment(id: string, visit: AbortSignal): View {
  const state = element("p", { role: "status" }), about = element("dl");
  const load = async () => {
    for (let wait = FIRST_PAUSE_MS; ; wait = Math.min(2 * wait, MAX_PAUSE_MS)) {
      const made = await read<Payment>(`payments/${part(id)}`, visit), now = made.state ?? "PENDING";
      state.textContent = STATES[now];
      const back = element("a", { href: `#/account/${made.from}` }, "Your account");
      replace(about, ...facts({ Amount: euros(made.cents), To: spaced(made.iban), Text: made.text ?? "", Ordered: timeOf(made.createdMs), From: back }));
      if (now !== "PENDING" && now !== "BOOKED") return;
      await pause(wait, visit);
    }
  };
  return { title: "Payment", actions: [refreshButton(async () => show())], content: [state, about], load };
}

// ----- offers

function offers(_: string, visit: AbortSignal): View {
  const list = pagedList<Offer>({
    id: "offers", label: "Offers", empty: "The bank has no offer for you now.",
    read: async () => ({ items: (await read<{ offers?: Offer[] }>("offers", visit)).offers, next: undefined }),
    show: ({ product, reason, expiresMs }) => {
      const answer = (text: string, accepted: boolean) => onPress(element("button", { type: "button", "aria-describedby": `offer-${product}` }, text), async () => {
        await call("POST", `offers/${part(product)}/answer`, { accepted });
        await list.load();
        say("note", accepted ? "Accepted: the bank will come back to you." : "Declined: this offer does not come back.");
        document.getElementById("h-view")?.focus(); // the button is gone
      });
      return element("li", {},
        element("div", { class: "row" }, element("strong", { id: `offer-${product}` }, PRODUCTS[product] ?? product), element("span", {}, answer("Accept", true), " ", answer("Decline", false))),
        element("p", {}, `Because ${reason}.`),
        element("div", { class: "hint" }, "Until ", timeOf(expiresMs)));
    },
  });
  return { title: "Offers", actions: [refreshButton(list.load)], content: [list.element], load: list.load };
}

// ----- the end

const isMine = ({ value }: Control) => (value === session()?.name ? null : "This is not your name.");

function leave(): View {
  const about = element("p", {}, "The bank closes your accounts and cards, ends your sessions, cancels your bookings, and forgets your address and your messages. Each account, card, loan, deposit and stock has to be at 0. This cannot be undone.");
  const closing = form({
    id: "leave-form",
    fields: [{ ...nameField("leave-name", "Your name", "To confirm"), check: isMine }],
    buttons: { "Close my accounts, and leave": "" },
    async act() {
      await call("DELETE", "customer");
      history.replaceState(null, "", "#/accounts");
      endSession("Your accounts are closed, and you are no longer a customer.");
    },
  });
  return { title: "Leave the bank", content: [about, closing], load: async () => {} };
}

// [start]
start({
  title: "Bank",
  register: "customers",
  home: "accounts",
  views: { accounts, account, payment, offers, codes, leave },
  links: () => ({ Accounts: "#/accounts", Offers: "#/offers", Codes: "#/codes", Leave: "#/leave" }),
});
// [/start]
