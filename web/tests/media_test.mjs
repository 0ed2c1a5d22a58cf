// SPDX-License-Identifier: Apache-2.0
// Two users of the movie reviews' page: node media_test.mjs CURTAIL [FOLDER OF PICTURES]
//
// They register, find movies by words, genres and years, and review one in text like markup, once though the answer is lost. A part of a movie
// that could not be read is named. One pays into the wallet, rents a movie, and has the money given back; rents again, and plays the movie: it
// advances, is moved on, and shown in another quality. Without a rental there is no movie. app_kit.mjs has the rules for every page.
import assert from "node:assert/strict";
import { enter, expectRefusal, play, problem, said, within } from "./app_kit.mjs";
import { expectShown, MAX_WAIT_MS, run } from "./kit.mjs";

const [curtail, pictures] = process.argv.slice(2);
const HOSTILE = '<img src="x" onerror="document.title=1"> & "so" <b>good</b>';
const VIDEO_S = 24, TITLE = /^The Silent River \(\d{4}\)$/;
const review = (page, text) => page.locator("#reviews > li", { hasText: text });
const heading = (page, name) => page.getByRole("heading", { name, level: 2 });

async function find(page, words, genre = "", from = "", to = "") {
  await page.getByRole("link", { name: "Movies", exact: true }).click();
  await heading(page, "Movies").waitFor(within);
  for (const [label, value] of [["Words", words], ["Genre", genre], ["From year", from], ["To year", to]]) await page.getByLabel(label).fill(value);
  await page.getByRole("button", { name: "Find" }).click();
}

// The index follows the movies. Then the page shows the movie.
async function goToMovie(page) {
  const deadline = Date.now() + MAX_WAIT_MS, link = page.locator("#movies").getByRole("link", { name: TITLE }).first();
  do {
    assert.ok(Date.now() < deadline, "the search does not find the movie");
    await Promise.all([page.waitForResponse(/\/v1\/search/), find(page, "silent river")]);
  } while (!(await link.waitFor({ timeout: 1000 }).then(() => true, () => false)));
  await link.click();
  await heading(page, TITLE).waitFor(within);
}

async function expectFound(page) {
  await page.locator("#for-you > li").nth(4).waitFor(within);
  await page.locator("#movies > li").nth(19).waitFor(within); // all, the newest first
  await page.getByRole("button", { name: "More" }).click();
  await page.locator("#movies > li").nth(20).waitFor(within);
  await expectShown(page, "media-movies", "");
  const genre = await page.locator("#movies > li").first().getByRole("link").nth(1).textContent();
  await page.locator("#movies > li").first().getByRole("link", { name: genre }).first().click();
  await page.waitForFunction((it) => document.querySelector("#genre")?.value === it, genre, within); // the new page
  const items = page.locator("#movies > li");
  await items.first().waitFor(within);
  assert.equal(await items.filter({ has: page.getByRole("link", { name: genre }) }).count(), await items.count());
  await find(page, "", "", "1959", "year");
  await page.locator("#lastYear-error", { hasText: "four digits" }).waitFor(within);
  await find(page, "nothing of the kind");
  await page.getByText("There is no such movie.").waitFor(within);
}

async function writeReview(page, stars, text) {
  await page.getByLabel("Stars").fill(stars);
  await page.getByLabel("Review", { exact: true }).fill(text);
  await page.getByRole("button", { name: "Review", exact: true }).click();
}

// The review is there, and its answer is lost: the next press shows that review, and writes no other.
async function expectReviewedOnce(page) {
  await writeReview(page, "11", HOSTILE);
  await page.locator("#stars-error", { hasText: /\S/ }).waitFor(within);
  await page.route("**/v1/reviews", async (route) => (await route.fetch(), await route.abort()), { times: 1 });
  await writeReview(page, "9", HOSTILE);
  await problem(page).filter({ hasText: "does not answer" }).waitFor(within);
  assert.deepEqual(said.splice(0).map((line) => line.replace(/:.*/, "")), ["Failed to load resource"]);
  await page.getByRole("button", { name: "Review", exact: true }).click();
  await page.locator("#note", { hasText: "Reviewed." }).waitFor(within);
  assert.equal(await review(page, HOSTILE).count(), 1);
  assert.equal(await review(page, HOSTILE).locator("p").textContent(), HOSTILE);
  await review(page, HOSTILE).getByText("9 of 10").waitFor(within);
  assert.equal(await page.locator("#reviews img, #reviews b").count(), 0);
  await expectRefusal(page, 409, "reviewed", () => writeReview(page, "3", "Again."));
}

async function expectMissingNamed(page) {
  const whole = (url) => /^\/v1\/movies\/\d+$/.test(url.pathname);
  await page.route(whole, async (route) => {
    const response = await route.fetch(), { cast, plot, ...rest } = await response.json();
    assert.ok(cast.length > 0 && plot, "the movie has these parts");
    await route.fulfill({ response, json: { ...rest, missing: ["cast", "plot"] } });
  }, { times: 1 });
  await page.getByRole("button", { name: "Refresh" }).click();
  await page.locator("#missing", { hasText: "Not readable now: cast, plot." }).waitFor(within);
  assert.equal(await page.getByText("Cast", { exact: true }).count() + await page.locator("#plot").count(), 0);
  await page.getByRole("button", { name: "Refresh" }).click();
  await page.getByText("Cast", { exact: true }).waitFor(within);
  assert.equal(await page.locator("#missing").count(), 0);
}

async function expectPromoted(page) {
  await page.getByRole("link", { name: "Movies", exact: true }).click();
  const ad = page.getByText("Promoted:").getByRole("link", { name: TITLE });
  const [clicked] = await Promise.all([page.waitForResponse(/\/v1\/ads\/\d+\/click/, within), ad.click()]);
  assert.equal(clicked.status(), 200);
  await heading(page, TITLE).waitFor(within);
}

async function expectRented(page) {
  const movie = page.url();
  await expectRefusal(page, 400, "cents", () => page.getByRole("button", { name: "Rent", exact: true }).click());
  await page.getByRole("link", { name: "Rentals" }).click();
  await page.getByText("In your wallet: 0.00 €").waitFor(within);
  await page.getByLabel("Amount in euros").fill("1,234");
  await page.getByRole("button", { name: "Deposit" }).click();
  await page.locator("#amount-error", { hasText: "euros and cents" }).waitFor(within);
  await page.getByLabel("Amount in euros").fill("10");
  await page.getByRole("button", { name: "Deposit" }).click();
  await page.getByText("In your wallet: 10.00 €").waitFor(within);
  await page.goto(movie);
  await page.getByRole("button", { name: "Rent", exact: true }).click();
  await heading(page, "Watch").waitFor(within);
  await page.locator("#video").waitFor(within);
  await page.getByRole("link", { name: "Rentals" }).click();
  await page.getByText("In your wallet: 7.00 €").waitFor(within);
  await expectShown(page, "media-rentals", "");
  await page.getByRole("button", { name: "Refund" }).click();
  await page.getByText("In your wallet: 10.00 €").waitFor(within);
  await page.locator("#rentals > li", { hasText: "was refunded" }).getByRole("link", { name: TITLE }).click();
  await page.getByRole("link", { name: "Watch" }).waitFor(within);
  await expectRefusal(page, 400, "rent", () => page.getByRole("link", { name: "Watch" }).click());
  await page.goto(movie);
  await page.getByLabel("Days").fill("1");
  await page.getByRole("button", { name: "Rent", exact: true }).click();
  await heading(page, "Watch").waitFor(within);
}

const playsPast = (page, seconds) => page.waitForFunction((s) => {
  const { currentTime, seeking } = document.querySelector("#video");
  return !seeking && currentTime > s;
}, seconds, { timeout: MAX_WAIT_MS });

async function expectQuality(page, option, size) {
  await page.getByLabel("Quality").selectOption(String(option));
  await page.locator("#shown-quality", { hasText: `Shown: ${size[0]}×${size[1]}` }).waitFor({ timeout: MAX_WAIT_MS });
  await page.waitForFunction((width) => document.querySelector("#video").videoWidth === width, size[0], { timeout: MAX_WAIT_MS });
}

async function expectPlays(page) {
  const video = page.locator("#video");
  await page.getByLabel("Quality").waitFor(within);
  await video.evaluate((one) => one.play());
  await playsPast(page, 0.5);
  assert.equal(Math.round(await video.evaluate((one) => one.duration)), VIDEO_S);
  await video.evaluate((one) => { one.currentTime = 9; });
  await playsPast(page, 9.5);
  for (const [option, size] of [[2, [1280, 720]], [0, [320, 180]]]) {
    await video.evaluate((one) => (one.currentTime = 2, one.play())); // the next segment has the other quality
    await expectQuality(page, option, size);
    const at = await video.evaluate((one) => one.currentTime);
    await playsPast(page, at + 0.3);
  }
  await video.evaluate((one) => one.pause());
  await expectShown(page, "media-watch", pictures);

  // Segments that are refused end the video, and the page says why.
  await page.route("**/*.ts", (route) => route.fulfill({ status: 403, json: { message: "the rental was refunded" } }));
  await page.reload();
  await page.getByLabel("Quality").waitFor(within);
  await video.evaluate((one) => void one.play().catch(() => {}));
  await problem(page).filter({ hasText: "Rent the movie again." }).waitFor({ timeout: MAX_WAIT_MS });
  await page.unroute("**/*.ts");
  assert.ok(said.length > 0 && said.splice(0).every((line) => line.includes("status of 403")), "the segments are refused");
  await page.getByRole("link", { name: "Rentals" }).click();
  await page.locator("#rentals > li", { hasText: "may be watched" }).waitFor(within);
  assert.equal(await page.getByRole("button", { name: "Refund" }).count(), 0);
}

await play(curtail, "media", "Movies", ["users=4", "movies=60", "reviews=60"], async ({ ann, bob, env }) => {
  run("media", ["render", "--videos", "1", "--seconds", String(VIDEO_S)], env, 2 * MAX_WAIT_MS);
  for (const [page, name] of [[ann, "ann"], [bob, "bob"]]) {
    const [forYou] = await Promise.all([page.waitForResponse(/\/v1\/recommendations/, within), enter(page, name, `the password of ${name}`, "Register")]);
    assert.deepEqual(await forYou.json(), { untrained: true });
    await heading(page, "Movies").waitFor(within);
  }
  const [similar] = await Promise.all([ann.waitForResponse(/\/v1\/movies\/\d+\/similar/, within), goToMovie(ann)]);
  assert.deepEqual(await similar.json(), { untrained: true });
  await ann.getByAltText(/^Picture of The Silent River/).waitFor(within);
  await ann.waitForFunction(() => document.querySelector("#content img").naturalWidth > 0, null, within);
  run("media", ["train"], env);
  await expectReviewedOnce(ann);
  await expectMissingNamed(ann);
  await expectShown(ann, "media", pictures);
  await goToMovie(bob);
  assert.equal(bob.url(), ann.url());
  await review(bob, HOSTILE).getByRole("link", { name: "ann" }).click();
  await heading(bob, "Reviews by ann").waitFor(within);
  await review(bob, HOSTILE).getByRole("link", { name: TITLE }).waitFor(within);
  await bob.goBack();
  await bob.getByRole("button", { name: "Promote" }).click();
  await bob.locator("#note", { hasText: "as an ad" }).waitFor(within);
  await bob.getByRole("link", { name: "Movies", exact: true }).click();
  await expectFound(bob);
  await expectPromoted(ann);
  await expectRented(ann);
  await expectPlays(ann);
  await ann.getByRole("button", { name: "Log out" }).click();
  await ann.locator("#note", { hasText: "Logged out" }).waitFor(within);
  assert.equal(await ann.locator("#content *").count(), 0);
});
console.log("two users of the movie reviews see what they should");
