// SPDX-License-Identifier: Apache-2.0
// Two customers of the bank's page: node bank_test.mjs CURTAIL [FOLDER OF PICTURES]
//
// They register, open accounts, and one pays the other, whose account shows it. An amount that is none, too little money and an IBAN that the bank
// does not have are told. A large payment takes a code. A payment whose answer is lost is made once. Activity comes page by page, also after a page that failed. Nobody sees
// another's account. The activity is exported as a file. Offers are answered once. A customer who has money cannot leave; one who has none can, and does not come
// back. app_kit.mjs has the rules for every page.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { enter, expectRefusal, play, problem, said, within } from "./app_kit.mjs";
import { expectShown, MAX_WAIT_MS } from "./kit.mjs";

const [curtail, pictures] = process.argv.slice(2);
const TEXT = '<b>rent</b> & "more"';
const movement = (page, text) => page.locator("#activity > li", { hasText: text });

// Without the page, as a customer of `bank fill` that has money.
async function giver(env, url) {
  const [, , token, account] = readFileSync(join(env.XDG_STATE_HOME, "curtail/bank/load-users"), "ascii").split("\n")[0].split(" ");
  return async (iban, cents, text) => {
    const reply = await fetch(`${url}v1/payments`, { method: "POST", headers: { authorization: `Bearer ${token}`, "content-type": "application/json" }, body: JSON.stringify({ from: account, iban, cents: String(cents), text }) });
    assert.equal(reply.status, 200, await reply.text());
  };
}

// Registers, and opens an account, whose IBAN it returns.
async function begin(page, name) {
  await enter(page, name, `the password of ${name}`, "Register");
  await page.getByText("You have no account yet.").waitFor(within);
  await page.getByRole("button", { name: "Open account" }).click();
  const link = page.locator("#accounts > li", { hasText: "0.00 €" }).getByRole("link");
  await link.waitFor(within);
  const iban = await link.textContent();
  await link.click();
  await page.getByText("Nothing has moved yet.").waitFor(within);
  return iban;
}

// Presses Refresh until the movement is listed: activity follows the books.
async function awaitMovement(page, text) {
  const deadline = Date.now() + MAX_WAIT_MS;
  while ((await movement(page, text).count()) === 0) {
    assert.ok(Date.now() < deadline, `the activity does not get "${text}"`);
    await Promise.all([page.waitForResponse(/\/activity/), page.getByRole("button", { name: "Refresh" }).click()]);
  }
}

async function pay(page, iban, amount, text, code = "") {
  await page.getByLabel("To (IBAN)").fill(iban);
  await page.getByLabel("Amount in euros").fill(amount);
  await page.getByLabel("Text").fill(text);
  await page.getByLabel("Code").fill(code);
  await page.getByRole("button", { name: "Pay", exact: true }).click();
}

// As an app computes it: TOTP, RFC 6238.
function codeOf(secret) {
  const bits = [...secret].map((c) => "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".indexOf(c).toString(2).padStart(5, "0")).join("");
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(Math.floor(Date.now() / 30_000)));
  const mac = createHmac("sha1", Buffer.from(bits.match(/.{8}/g).map((byte) => parseInt(byte, 2)))).update(counter).digest();
  return String((mac.readUInt32BE(mac[19] & 15) & 0x7fffffff) % 1_000_000).padStart(6, "0");
}

// Returns the secret of the user's codes, who comes back to the account.
async function enrol(ann, name = "ann") {
  const account = ann.url();
  await ann.getByRole("link", { name: "Codes" }).click();
  await ann.locator("#codes-password").fill("the password of nobody");
  await expectRefusal(ann, 401, "the password is wrong", () => ann.getByRole("button", { name: "Make a secret" }).click());
  await ann.locator("#codes-password").fill(`the password of ${name}`);
  await ann.getByRole("button", { name: "Make a secret" }).click();
  const secret = await ann.locator("#content code").textContent(within);
  await expectShown(ann, "bank-codes", "");
  await ann.goto(account);
  await ann.getByLabel("To (IBAN)").waitFor(within);
  return secret;
}

async function expectRefusals(ann, iban) {
  for (const [amount, error] of [["1,234", "euros and cents"], ["0.00", "least"], ["10000000000.01", "The most is 10,000,000,000.00 €"]]) {
    await pay(ann, iban, amount, TEXT);
    await ann.locator("#amount-error", { hasText: error }).waitFor(within);
    assert.deepEqual(await ann.evaluate(() => [document.activeElement.id, document.activeElement.getAttribute("aria-invalid")]), ["amount", "true"]);
  }
  await expectShown(ann, "bank-field", "");
  await ann.getByLabel("Amount in euros").fill("12");
  await ann.locator("#amount-error", { hasNotText: /./ }).waitFor({ state: "attached", ...within });
  await pay(ann, iban, "99999999.99", TEXT);
  await ann.locator("#code-error", { hasText: "Above 1,000.00 € the bank needs a code." }).waitFor(within);
  await expectRefusal(ann, 400, "enrol first", () => pay(ann, iban, "99999999.99", TEXT, "123456"));
  const secret = await enrol(ann);
  await expectRefusal(ann, 403, "the code is wrong", () => pay(ann, iban, "99999999.99", TEXT, String((Number(codeOf(secret)) + 1) % 1_000_000).padStart(6, "0")));
  await expectRefusal(ann, 400, "It did not work", () => pay(ann, iban, "99999999.99", TEXT, codeOf(secret)));
  await expectRefusal(ann, 400, "IBAN", () => pay(ann, iban.replace(/\d$/, (digit) => (Number(digit) + 1) % 10), "12", TEXT));
}

// The bank has the payment, and its answer is lost: the next press shows that payment, and makes no other.
async function expectPaidOnce(ann, iban) {
  const keys = [], payments = (url) => url.pathname === "/v1/payments";
  ann.on("request", (request) => payments(new URL(request.url())) && keys.push(request.headers()["idempotency-key"]));
  await ann.route(payments, async (route) => (await route.fetch(), await route.abort()), { times: 1 });
  await pay(ann, iban, "1234.5", TEXT);
  await problem(ann).filter({ hasText: "does not answer" }).waitFor(within);
  assert.deepEqual(said.splice(0).map((line) => line.replace(/:.*/, "")), ["Failed to load resource"]);
  let looks = 0; // at the payment, which the first finds on its way
  const onItsWay = async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, json: { ...(await response.json()), state: ++looks === 1 ? "BOOKED" : "ARRIVED" } });
  };
  await ann.route(/\/v1\/payments\/\d+$/, onItsWay, { times: 2 });
  await ann.getByRole("button", { name: "Pay", exact: true }).click();
  await ann.getByText("Arrived", { exact: true }).waitFor(within);
  assert.equal(looks, 2);
  await ann.getByText("1,234.50 €", { exact: true }).waitFor(within);
  assert.equal(keys.length, 2);
  assert.ok(keys[0] && keys[0] === keys[1], String(keys));
  await expectShown(ann, "bank-payment", "");
  await ann.reload();
  await ann.getByText("Arrived", { exact: true }).waitFor(within);
  await ann.getByRole("link", { name: "Your account" }).click();
  await ann.locator("dd", { hasText: "3,765.50 €" }).first().waitFor(within);
}

// A list that could not be read says so, and reads on. A call that the user has left is cancelled, and says nothing.
async function expectListRecovers(ann) {
  const activity = (url) => url.pathname.endsWith("/activity");
  await ann.route(activity, (route) => route.fulfill({ status: 503, json: { message: "not now" } }), { times: 1 });
  await expectRefusal(ann, 503, "not now", () => ann.reload());
  await ann.getByRole("button", { name: "Try again" }).click();
  await movement(ann, TEXT).waitFor(within);
  assert.equal(await problem(ann).textContent(), "");

  await ann.route(activity, () => {}, { times: 1 }); // no answer
  await Promise.all([ann.waitForRequest(/\/activity/, within), ann.getByRole("button", { name: "Refresh" }).click()]);
  await Promise.all([ann.waitForEvent("requestfailed", within), ann.getByRole("link", { name: "Accounts" }).click()]);
  await ann.locator("#accounts > li", { hasText: "3,765.50 €" }).waitFor(within);
  assert.equal(await problem(ann).textContent(), "");
  await ann.goBack();
  await movement(ann, TEXT).waitFor(within);
}

// The file has a line for each movement that the page lists, and the newest first.
async function expectExport(ann, iban) {
  const download = ann.waitForEvent("download", within);
  await ann.getByRole("button", { name: "Export as CSV" }).click();
  const file = await download;
  assert.match(file.suggestedFilename(), /^activity-\d+\.csv$/);
  const lines = readFileSync(await file.path(), "utf8").trimEnd().split("\r\n");
  assert.equal(lines[0], "version,booked,amount,balance,iban,text");
  assert.equal(lines.length, 1 + (await movement(ann, "").count()));
  assert.match(lines[1], new RegExp(`,-1234.50,3765.50,${iban.replaceAll(" ", "")},`));
  await ann.locator("#note", { hasText: "Exported." }).waitFor(within);
  const csv = (url) => url.pathname.endsWith("/activity.csv");
  await ann.route(csv, (route) => route.fulfill({ status: 503, json: { message: "not now" } }), { times: 1 });
  await expectRefusal(ann, 503, "not now", () => ann.getByRole("button", { name: "Export as CSV" }).click());
}

// bob has no email, which the bank offers to use; he declines once.
async function expectOffers(bob) {
  await bob.getByRole("link", { name: "Offers" }).click();
  const mail = bob.locator("#offers > li", { hasText: "Letters of the bank by email" });
  await mail.getByText("Because the bank has no email address.").waitFor(within);
  await expectShown(bob, "bank-offers", pictures);
  const before = await bob.locator("#offers > li").count();
  await mail.getByRole("button", { name: "Decline" }).click();
  await bob.locator("#note", { hasText: "Declined" }).waitFor(within);
  assert.equal(await mail.count(), 0);
  assert.equal(await bob.locator("#offers > li").count(), before - 1);
  assert.equal(await bob.evaluate(() => document.activeElement.id), "h-view");
  await bob.reload();
  await bob.getByText("Offers", { exact: true }).first().waitFor(within);
  await bob.waitForLoadState("networkidle");
  assert.equal(await mail.count(), 0);
}

// Presses the button for leaving, with the name that confirms it.
async function leave(page, name) {
  await page.getByRole("link", { name: "Leave" }).click();
  await page.getByLabel("Your name").fill(name);
  await page.getByRole("button", { name: "and leave" }).click();
}

// Once all that bob has is with ann.
async function expectLeaving(ann, bob, bobIban, annIban) {
  await leave(bob, "ann");
  await bob.locator("#leave-name-error", { hasText: "not your name" }).waitFor(within);
  await expectShown(bob, "bank-leave", pictures);
  await expectRefusal(bob, 400, "cents, not 0", () => leave(bob, "bob"));
  await bob.getByRole("link", { name: "Accounts" }).click();
  await bob.getByRole("link", { name: bobIban }).click();
  const rest = (await bob.locator("dd", { hasText: "€" }).first().textContent(within)).replace(/[ €,]/g, "");
  const secret = await enrol(bob, "bob");
  await pay(bob, annIban, rest, "the rest", codeOf(secret));
  await bob.getByText("Arrived", { exact: true }).waitFor(within);
  await leave(bob, "bob");
  await bob.locator("#note", { hasText: "no longer a customer" }).waitFor(within);
  await expectRefusal(bob, 401, "the password is wrong", () => enter(bob, "bob", "the password of bob", "Log in"));
  await awaitMovement(ann, "the rest");
}

await play(curtail, "bank", "Bank", ["customers=2", "deposit=1000000"], async ({ ann, bob, env, url }) => {
  const give = await giver(env, url), [annIban, bobIban] = [await begin(ann, "ann"), await begin(bob, "bob")];
  for (let number = 0; number < 5; ++number) await give(annIban, 100000, "a gift");
  await awaitMovement(ann, "a gift");
  await ann.locator("dd", { hasText: "5,000.00 €" }).first().waitFor(within);
  await expectRefusals(ann, bobIban);
  await expectPaidOnce(ann, bobIban);
  await awaitMovement(ann, TEXT);
  assert.equal(await movement(ann, TEXT).count(), 1);
  await movement(ann, "−1,234.50 €").getByText(`To ${bobIban}`).waitFor(within);
  await awaitMovement(bob, TEXT);
  await movement(bob, "+1,234.50 €").getByText(`From ${annIban}`).waitFor(within);
  assert.equal(await bob.locator("#activity b").count(), 0);
  await expectListRecovers(ann);
  await expectShown(ann, "bank", pictures);
  await expectExport(ann, bobIban);

  for (let number = 1; number <= 22; ++number) await give(bobIban, number, `gift ${number}.`);
  await awaitMovement(bob, "gift 22.");
  assert.equal(await movement(bob, "").count(), 20);
  await bob.getByRole("button", { name: "More" }).click();
  await movement(bob, TEXT).waitFor(within);
  assert.equal(await movement(bob, "").count(), 23);
  assert.ok(await bob.evaluate(() => document.activeElement.matches("#activity > li:nth-child(21)")), "the first of the next page has the focus");
  await bob.getByRole("button", { name: "More" }).waitFor({ state: "hidden", ...within });

  const own = bob.url();
  await expectRefusal(bob, 404, "there is no account", () => bob.goto(ann.url()));
  await bob.goto(own);
  await movement(bob, "gift 22.").waitFor(within);
  await expectOffers(bob);
  await expectLeaving(ann, bob, bobIban, annIban);
  await ann.getByRole("button", { name: "Log out" }).click();
  await ann.locator("#note", { hasText: "Logged out" }).waitFor(within);
  await ann.goBack();
  await ann.getByRole("button", { name: "Log in" }).waitFor(within);
  assert.equal(await ann.locator("#content *").count(), 0);
});
console.log("two customers of the bank see what they should");
