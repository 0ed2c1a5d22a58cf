// SPDX-License-Identifier: Apache-2.0
// A guest and two customers of the shop's page: node shop_test.mjs CURTAIL [FOLDER OF PICTURES]
//
// A guest finds products by words, tags, prices and in orders, and fills a basket, once though the answer is lost. Then it registers, and the
// basket is its own. It adds an address in text like markup and a card, sees what an order costs, and pays that price. The order has an
// invoice and a shipment, and nobody else sees it. It shows a wishlist to a guest, gets recommendations, and deletes its account.
// app_kit.mjs has the rules for every page.
import assert from "node:assert/strict";
import { enter, expectRefusal, play, problem, said, within } from "./app_kit.mjs";
import { expectShown, MAX_WAIT_MS, run } from "./kit.mjs";

const [curtail, pictures] = process.argv.slice(2);
const HOSTILE = '<b onclick="document.title=1">Eve</b> & "so"';
const CARD = "4111 1111 1111 1111";
const items = (page) => page.locator("#products > li");
const heading = (page, name) => page.getByRole("heading", { name, level: 2 });
const link = (page, name) => page.getByRole("navigation").getByRole("link", { name, exact: true });
const press = (page, name) => page.getByRole("button", { name, exact: true }).click();
const centsOf = (text) => Number(text.replace(/[^\d]/g, ""));
const euros = (cents) => `${String(Math.floor(cents / 100)).replace(/\B(?=(\d{3})+$)/g, ",")}.${String(cents % 100).padStart(2, "0")} €`;

async function goTo(page, name, title = name) {
  await link(page, name).click();
  await heading(page, title).waitFor(within);
}

async function find(page, { text = "", tag = "", least = "", greatest = "", order = "" }) {
  for (const [id, value] of Object.entries({ text, tag, least, greatest })) await page.locator(`#${id}`).fill(value);
  await page.locator("#order").selectOption(order);
  await press(page, "Find");
}

// What a list shows once it has what was asked for.
async function found(page, query) {
  await Promise.all([page.waitForResponse(/\/v1\/(search|products)\?/, within), find(page, query)]);
  await page.waitForFunction(() => document.querySelector("#products").getAttribute("aria-busy") === null, null, within);
  return items(page).evaluateAll((all) => all.map((one) => ({ name: one.querySelector("a").textContent, price: one.querySelector("p").textContent })));
}

async function expectFinding(page) {
  await heading(page, "Products").waitFor(within);
  assert.equal(await page.getByRole("button", { name: "Log out" }).count(), 0, "nobody has logged in");
  await items(page).nth(19).waitFor(within);
  await press(page, "More");
  await items(page).nth(20).waitFor(within);
  const name = await items(page).first().getByRole("link").textContent();
  const deadline = Date.now() + MAX_WAIT_MS; // the index follows the products
  let hits;
  do {
    assert.ok(Date.now() < deadline, `the search does not find ${name}`);
    hits = await found(page, { text: name });
  } while (!hits.some((one) => one.name === name));
  for (const [order, sign] of [["CHEAPEST", 1], ["DEAREST", -1]]) {
    const prices = (await found(page, { order })).map((one) => sign * centsOf(one.price));
    assert.ok(prices.length === 20 && prices.every((price, i) => i === 0 || prices[i - 1] <= price), String(prices));
  }
  const bounded = await found(page, { least: "20", greatest: "60.00" });
  assert.ok(bounded.every((one) => centsOf(one.price) >= 2000 && centsOf(one.price) <= 6000), JSON.stringify(bounded));
  await find(page, { least: "1,234" });
  await page.locator("#least-error", { hasText: "euros and cents" }).waitFor(within);
  assert.deepEqual(await found(page, { text: "nothing of the kind" }), []);
  await page.getByText("There is no such product.").waitFor(within);
  await goTo(page, "Products");
  await items(page).first().waitFor(within);
  await expectShown(page, "shop-products", pictures);
}

// The basket of a guest gets what was added once, though the first answer is lost. Returns the name of the product and its price.
async function fillBasket(page) {
  await page.locator("#products img").first().waitFor(within);
  const first = items(page).filter({ has: page.locator("img") }).first();
  const name = await first.getByRole("link").textContent(), cents = centsOf(await first.locator("p").textContent());
  await first.getByRole("link").click();
  await heading(page, name).waitFor(within);
  await page.waitForFunction(() => document.querySelector("#picture img")?.naturalWidth > 0, null, within);
  const tag = await page.locator("dd").nth(1).getByRole("link").first().textContent();
  await page.getByLabel("How many").fill("100");
  await press(page, "Add to basket");
  await page.locator("#count-error", { hasText: /\S/ }).waitFor(within);
  await page.getByLabel("How many").fill("2");
  await page.route("**/v1/basket", async (route) => (await route.fetch(), await route.abort()), { times: 1 });
  await press(page, "Add to basket");
  await problem(page).filter({ hasText: "does not answer" }).waitFor(within);
  assert.deepEqual(said.splice(0).map((line) => line.replace(/:.*/, "")), ["Failed to load resource"]);
  await press(page, "Add to basket");
  await page.locator("#note", { hasText: "in your basket" }).waitFor(within);
  await expectShown(page, "shop-product", "");
  await page.getByRole("link", { name: tag, exact: true }).click();
  await items(page).filter({ hasText: name }).waitFor(within);
  assert.equal(await page.getByLabel("Tag").inputValue(), tag);
  await goTo(page, "Basket");
  await page.locator("#sum", { hasText: euros(2 * cents) }).waitFor(within);
  await page.getByLabel("How many").fill("3");
  await page.getByLabel("How many").blur();
  await page.locator("#sum", { hasText: euros(3 * cents) }).waitFor(within);
  await expectShown(page, "shop-basket", pictures);
  return { name, cents: 3 * cents };
}

async function addAddress(page) {
  for (const [label, value] of [["Who gets it", HOSTILE], ["Street", "Main Street 1"], ["City", "Berlin"], ["Postcode", "10115"], ["Country", "de"]]) await page.getByLabel(label).fill(value);
  await press(page, "Add address");
  await page.locator("#country-error", { hasText: /\S/ }).waitFor(within);
  await page.getByLabel("Country").fill("DE");
  await press(page, "Add address");
  await page.locator("#note", { hasText: "address was added" }).waitFor(within);
}

async function addCard(page) {
  const fill = async (number) => {
    await page.getByLabel("Number of the card").fill(number);
    await page.getByLabel("Expires").fill("2095-01");
  };
  await fill(CARD.replace(/1$/, "2"));
  await expectRefusal(page, 400, "12 to 19 digits", () => press(page, "Add card"));
  await fill(CARD);
  await press(page, "Add card");
  await page.locator("#note", { hasText: "card was added" }).waitFor(within);
}

// The price is shown, and paid.
async function order(page, { name, cents }) {
  await addAddress(page);
  await addCard(page);
  await page.getByLabel("Code of a discount").fill("NOSUCHCODE");
  await expectRefusal(page, 404, "no such code", () => press(page, "Show the price"));
  await page.getByLabel("Code of a discount").fill("");
  await press(page, "Show the price");
  await page.locator("#quote li", { hasText: `3 × ${name}` }).waitFor(within);
  assert.equal(await page.locator("#quote b").count(), 0);
  await page.locator("#quote dd", { hasText: HOSTILE }).waitFor(within);
  const total = centsOf(await page.locator("#quote dt", { hasText: "Total" }).locator("xpath=following-sibling::dd[1]").textContent());
  assert.ok(total > cents, `${total} has shipping, too`);
  await expectShown(page, "shop-checkout", pictures);
  // A price that has expired is asked for again.
  await page.route("**/v1/orders", (route) => route.fulfill({ status: 409, json: { message: "the quote has expired" } }), { times: 1 });
  const button = page.getByRole("button", { name: /^Order for/ });
  await Promise.all([page.waitForResponse(/\/v1\/quotes/, within), expectRefusal(page, 409, "has expired", () => button.click())]);
  await button.click();
  await heading(page, "Order").waitFor(within);
  await page.locator("#state", { hasText: "it is paid" }).waitFor({ timeout: MAX_WAIT_MS });
  await page.locator("dt", { hasText: "Shipment" }).waitFor({ timeout: MAX_WAIT_MS });
  await page.locator("dt", { hasText: "Invoice" }).waitFor(within);
  await page.locator("dd", { hasText: euros(total) }).waitFor(within);
  await expectShown(page, "shop-order", pictures);
  const url = page.url();
  await goTo(page, "Basket");
  await page.getByText("Your basket is empty.").waitFor(within);
  await goTo(page, "Orders");
  assert.equal(await page.locator("#orders > li").count(), 1);
  await page.locator("#orders > li", { hasText: euros(total) }).waitFor(within);
  return url;
}

// Returns the address of the list.
async function shareWish(page, { name }) {
  await goTo(page, "Products");
  await items(page).filter({ hasText: name }).first().getByRole("link").click();
  await heading(page, name).waitFor(within);
  await press(page, "Wish for it");
  await page.locator("#note", { hasText: "on your wishlist" }).waitFor(within);
  await goTo(page, "Wishlist");
  await page.locator("#wishes > li", { hasText: name }).waitFor(within);
  await press(page, "Share");
  const shared = page.locator("#share a");
  await shared.waitFor(within);
  await expectShown(page, "shop-wishlist", "");
  const address = await shared.evaluate((one) => one.href);
  return address;
}

async function expectLeaving(page) {
  await goTo(page, "Account");
  await page.locator("#since", { hasText: "ann, a customer since" }).waitFor(within);
  await page.locator("#addresses > li", { hasText: HOSTILE }).waitFor(within);
  await expectShown(page, "shop-account", "");
  await page.getByRole("button", { name: "Remove ••••" }).click();
  await page.locator("#cards").waitFor({ state: "detached", ...within });
  const leave = async (name, password) => {
    await page.locator("#leave-name").fill(name);
    await page.locator("#leave-password").fill(password);
    await press(page, "Delete the account");
  };
  await leave("bob", "the password of ann");
  await page.locator("#leave-name-error", { hasText: "not your name" }).waitFor(within);
  await expectRefusal(page, 401, "wrong", () => leave("ann", "another password"));
  await leave("ann", "the password of ann");
  await page.locator("#note", { hasText: "was deleted" }).waitFor(within);
  await expectRefusal(page, 401, "wrong", () => enter(page, "ann", "the password of ann", "Log in"));
}

await play(curtail, "shop", "Shop", ["users=6", "products=60", "orders=60"], async ({ ann, bob, env }) => {
  run("shop", ["train"], env);
  await expectFinding(ann);
  const bought = await fillBasket(ann);
  await ann.getByRole("link", { name: "Go to checkout" }).click();
  await ann.getByRole("heading", { name: "Log in, or register" }).waitFor(within);
  await enter(ann, "ann", "the password of ann", "Register");
  await heading(ann, "Checkout").waitFor(within);
  const url = await order(ann, bought);
  const list = await shareWish(ann, bought);

  await bob.goto(list);
  await heading(bob, "A wishlist").waitFor(within);
  await bob.locator("#wishes > li", { hasText: bought.name }).waitFor(within);
  await link(bob, "Log in").click();
  await enter(bob, "bob", "the password of bob", "Register");
  await heading(bob, "Account").waitFor(within);
  await goTo(bob, "Orders");
  await bob.getByText("You have not ordered anything yet.").waitFor(within);
  await expectRefusal(bob, 404, "order", () => bob.goto(url));
  await goTo(bob, "Products");
  await bob.locator("#for-you > li").nth(4).waitFor(within);

  await ann.getByRole("button", { name: `Remove ${bought.name}` }).click();
  await ann.getByText("There are no wishes yet.").waitFor(within);
  await expectLeaving(ann);
  await bob.getByRole("button", { name: "Log out" }).click();
  await bob.locator("#note", { hasText: "Logged out" }).waitFor(within);
  await goTo(bob, "Basket");
  await bob.getByText("Your basket is empty.").waitFor(within);
});
console.log("customers of the shop see what they should");
