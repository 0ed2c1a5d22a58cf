// SPDX-License-Identifier: Apache-2.0
// Two users of the social network's page: node social_test.mjs CURTAIL [FOLDER OF PICTURES]
//
// They register, post a text that looks like markup and a picture, and a video, mention, find, follow and like each other, read timelines, delete, and
// log out. One deletes its account. The deletion of the other's stops half way, and goes on without a session. A wrong password, a taken name and an
// expired token are told. What the page asks for is the gateway's, an inline script does not run, axe finds no serious fault, and the console is
// silent; in both themes and at 400 px.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { createHmac } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { enter, expectRefusal, play, problem, said, within } from "./app_kit.mjs";
import { expectAccessible, expectShown, MAX_WAIT_MS } from "./kit.mjs";

const [curtail, pictures] = process.argv.slice(2);

const HOSTILE = '<script>document.title="owned"</script><img src="x" onerror="document.title=1"> & "so" @bob see https://example.org/?a=&lt;b&gt;\'c<b>';
const post = (page, text) => page.locator("#posts > li", { hasText: text });

async function compose(page, text, buffer, mimeType = "image/png") {
  await page.getByLabel("Text").fill(text);
  if (buffer) await page.getByLabel("Picture or video").setInputFiles({ name: "file", mimeType, buffer });
  await page.getByRole("button", { name: "Post", exact: true }).click();
  await page.locator("#note", { hasText: "Posted." }).waitFor(within);
}

// A picture to post.
async function paint(browser) {
  const page = await browser.newPage({ viewport: { width: 480, height: 160 } });
  await page.setContent('<body style="margin: 0; background: linear-gradient(160deg, #1f66b8, #6cabf0 60%, #f0924f)">');
  const png = await page.screenshot();
  await page.close();
  return png;
}

// A video to post, which is larger than a request may be. What follows the last cluster is a Void element.
async function film(browser) {
  const page = await browser.newPage();
  await page.setContent('<canvas width="320" height="180"></canvas>');
  const webm = Buffer.from(await page.evaluate(async () => {
    const canvas = document.querySelector("canvas"), pen = canvas.getContext("2d"), parts = [];
    const recorder = new MediaRecorder(canvas.captureStream(), { mimeType: "video/webm" });
    recorder.ondataavailable = (event) => {
      parts.push(event.data);
      if (recorder.state === "recording") recorder.stop();
    };
    const stopped = new Promise((done) => { recorder.onstop = done; });
    let hue = 0;
    const drawing = setInterval(() => { pen.fillStyle = `hsl(${hue += 20} 80% 50%)`; pen.fillRect(0, 0, 320, 180); }, 20);
    recorder.start(200);
    await stopped;
    clearInterval(drawing);
    return [...new Uint8Array(await new Blob(parts).arrayBuffer())];
  }));
  await page.close();
  const padding = Buffer.alloc(5 * 2 ** 20, 0x61);
  const head = Buffer.from([0xec, 0x10, 0, 0, 0]); // four bytes of size
  head.writeUInt32BE(0x10000000 + padding.length, 1);
  return Buffer.concat([webm, head, padding]);
}

// Presses Refresh until the post has come: the fan-out goes on behind the author's back.
async function awaitPost(page, text) {
  const deadline = Date.now() + MAX_WAIT_MS;
  while ((await post(page, text).count()) === 0) {
    assert.ok(Date.now() < deadline, `the home timeline does not get "${text}"`);
    await Promise.all([page.waitForResponse(/\/v1\/home/), page.getByRole("button", { name: "Refresh" }).click()]);
  }
}

async function goHome(page) {
  await page.getByRole("link", { name: "Home" }).click();
  await page.getByRole("heading", { name: "Home", exact: true }).waitFor(within);
}

async function expectText(page) {
  const article = post(page, "document.title");
  await article.waitFor(within);
  assert.equal((await article.locator("p").first().textContent()).trim(), HOSTILE);
  assert.equal(await page.locator("#posts script, #posts img[src='x']").count(), 0);
  assert.match(await page.title(), /Social network$/);
  assert.equal(await article.getByRole("link", { name: "https://example.org" }).getAttribute("href"), "https://example.org/?a=&lt;b&gt;'c");
  assert.equal(await article.getByRole("link", { name: "@bob" }).getAttribute("href"), "#/user/bob");
  const picture = article.getByAltText("Picture by ann");
  await page.waitForFunction((image) => image.naturalWidth === 480, await picture.elementHandle(), within);
}

async function story(ann, bob, picture, video) {
  await ann.getByRole("heading", { name: "Log in, or register" }).waitFor(within);
  await expectShown(ann, "social-entry", "");
  await expectRefusal(ann, 401, "wrong", () => enter(ann, "ann", "not her password", "Log in"));
  await enter(ann, "ann", "a password", "Register");
  await ann.getByRole("heading", { name: "Home", exact: true }).waitFor(within);
  assert.equal(await ann.evaluate(() => document.activeElement.id), "h-view");
  await expectRefusal(bob, 409, "taken", () => enter(bob, "ann", "another password", "Register"));
  // By the keyboard: the first button is what Enter presses, the next is Register.
  await bob.getByLabel("Name", { exact: true }).fill("bob");
  await bob.keyboard.press("Tab");
  await bob.keyboard.type("b password");
  await bob.keyboard.press("Tab");
  await bob.keyboard.press("Tab");
  await bob.keyboard.press("Enter");
  await bob.getByRole("heading", { name: "Home", exact: true }).waitFor(within);

  await compose(ann, HOSTILE, picture);
  await ann.getByRole("heading", { name: "Posts of ann" }).waitFor(within);
  await expectText(ann);
  await awaitPost(bob, "document.title");
  await expectText(bob);
  assert.equal(await post(bob, "document.title").getByRole("button", { name: "Delete" }).count(), 0);
  await expectRefusal(ann, 400, "It did not work", async () => {
    await ann.getByLabel("Picture or video").setInputFiles({ name: "picture.png", mimeType: "image/png", buffer: Buffer.from("no png") });
    await ann.getByRole("button", { name: "Post", exact: true }).click();
  });
  await ann.getByLabel("Picture or video").setInputFiles([]);

  // The server does not answer for a while: the next press goes on with the upload.
  const begun = [];
  ann.on("request", (request) => request.method() === "POST" && /\/v1\/media/.test(request.url()) && begun.push(request.url()));
  const late = (url) => url.pathname.startsWith("/v1/media/") && Number(url.searchParams.get("from")) > 2 * 2 ** 20;
  await ann.route(late, (route) => route.fulfill({ status: 503, json: { message: "not now" } }));
  await ann.getByLabel("Text").fill("In motion.");
  await ann.getByLabel("Picture or video").setInputFiles({ name: "file", mimeType: "video/webm", buffer: video });
  await ann.getByRole("button", { name: "Post", exact: true }).click();
  const progress = ann.getByRole("progressbar", { name: "Upload" });
  await progress.waitFor(within);
  await ann.waitForFunction((bar) => bar.value > 2 * 2 ** 20, await progress.elementHandle(), within); // while a part is tried again
  await problem(ann).filter({ hasText: "not now" }).waitFor(within);
  await progress.waitFor({ state: "hidden", ...within });
  await ann.unroute(late);
  while (said.length < 4) await ann.waitForEvent("console", within); // a part is tried as often
  assert.ok(said.splice(0).every((line) => line.includes("status of 503")), "the parts are refused");
  await ann.getByRole("button", { name: "Post", exact: true }).click();
  await ann.locator("#note", { hasText: "Posted." }).waitFor(within);
  assert.equal(begun.length, 1);
  const shown = post(ann, "In motion.").getByLabel("Video by ann");
  await ann.waitForFunction((one) => one.videoWidth === 320, await shown.elementHandle(), within);

  // Bob finds Ann by her name, follows her, and sees what she posts from now on.
  await bob.getByLabel("Search").fill("an");
  await bob.keyboard.press("Enter");
  await bob.getByRole("link", { name: "ann", exact: true }).first().click();
  await bob.getByRole("heading", { name: "Posts of ann" }).waitFor(within);
  await bob.getByRole("button", { name: "Follow" }).click();
  await bob.getByRole("button", { name: "Unfollow" }).waitFor(within);
  await bob.locator("#about", { hasText: "followers: 1" }).waitFor(within);
  await compose(ann, "The second, for those who follow.");
  await goHome(bob);
  await awaitPost(bob, "The second");

  // He likes one, by the keyboard, and the page knows it when it is loaded again.
  const favorite = () => post(bob, "The second").getByRole("button", { name: /^Favourite/ });
  await favorite().focus();
  await bob.keyboard.press("Enter");
  await post(bob, "The second").getByRole("button", { name: "Favourite (1)", pressed: true }).waitFor(within);
  assert.match(await bob.evaluate(() => document.activeElement.dataset.key), /^favorite-/);
  await bob.reload();
  await post(bob, "The second").getByRole("button", { name: "Favourite (1)", pressed: true }).waitFor(within);
  await favorite().click();
  await post(bob, "The second").getByRole("button", { name: "Favourite (0)", pressed: false }).waitFor(within);

  const deadline = Date.now() + MAX_WAIT_MS;
  do {
    assert.ok(Date.now() < deadline, "the search does not find the post");
    await bob.getByLabel("Search").fill("second follow");
    await Promise.all([bob.waitForResponse(/\/v1\/search\/posts/), bob.getByRole("button", { name: "Find" }).click()]);
  } while ((await post(bob, "The second").count()) === 0);

  await ann.reload();
  await post(ann, "The second").waitFor(within);
  await expectShown(ann, "social", pictures);
  await bob.goto(`${new URL(bob.url()).origin}/#/user/ann`);
  await bob.getByRole("button", { name: "Unfollow" }).click();
  await bob.getByRole("button", { name: "Follow", exact: true }).waitFor(within);
  await expectRefusal(bob, 404, "no user", () => bob.evaluate(() => (location.hash = "#/user/nobody_here")));

  const own = post(ann, "document.title");
  await own.getByRole("button", { name: "Delete" }).click();
  await own.getByRole("button", { name: "Really delete?" }).click();
  await own.waitFor({ state: "detached", timeout: within.timeout });
  await ann.reload();
  await post(ann, "The second").waitFor(within);
  assert.equal(await own.count(), 0);
}

// A token like those of the service, but of an hour ago.
function expiredToken(user, env) {
  const now = Math.floor(Date.now() / 1000), encode = (json) => Buffer.from(JSON.stringify(json)).toString("base64url");
  const text = `${encode({ alg: "HS256", typ: "JWT" })}.${encode({ iss: "curtail-social", sub: user, iat: now - 7200, exp: now - 3600 })}`;
  const secret = readFileSync(join(env.XDG_STATE_HOME, "curtail", "social", "secret"));
  return `${text}.${createHmac("sha256", secret).update(text).digest("base64url")}`;
}

async function expectSessionEnds(ann, bob, env) {
  await ann.evaluate((token) => {
    const key = Object.keys(sessionStorage)[0];
    sessionStorage.setItem(key, JSON.stringify({ ...JSON.parse(sessionStorage.getItem(key)), token }));
  }, expiredToken("1", env));
  await ann.reload();
  await ann.locator("#note", { hasText: "Your session has ended" }).waitFor(within);
  await ann.getByRole("button", { name: "Log in" }).waitFor(within);
  assert.equal(await ann.evaluate(() => sessionStorage.length), 0);
  assert.ok(said.length > 0 && said.splice(0).every((line) => line.includes("status of 401")), "the token is refused");

  const ended = bob.waitForResponse((reply) => reply.request().method() === "DELETE" && reply.url().endsWith("/v1/sessions"), within);
  await bob.getByRole("button", { name: "Log out" }).click();
  assert.equal((await ended).status(), 200);
  await bob.locator("#note", { hasText: "Logged out" }).waitFor(within);
  assert.equal(await bob.evaluate(() => sessionStorage.length), 0);
  await bob.goBack();
  await bob.getByRole("button", { name: "Log in" }).waitFor(within);
  assert.equal(await bob.locator("#posts li").count(), 0);
  await expectAccessible(bob, "after the session");
}

async function endAccount(page, password) {
  await page.getByLabel("Your password").fill(password);
  await page.getByRole("button", { name: "Delete my account" }).click();
}

async function expectAccountEnds(bob) {
  await enter(bob, "bob", "b password", "Log in");
  await bob.getByRole("link", { name: "My posts" }).click();
  await bob.getByRole("heading", { name: "Posts of bob" }).waitFor(within);
  await bob.getByText("Delete account").click();
  await expectAccessible(bob, "before the account is deleted");
  await expectRefusal(bob, 401, "wrong", () => endAccount(bob, "not his password"));
  await endAccount(bob, "b password");
  await bob.locator("#note", { hasText: "Your account is deleted." }).waitFor(within);
  assert.equal(await bob.locator("#account details[open]").count(), 0);
  assert.equal(await bob.evaluate(() => sessionStorage.length), 0);
  await expectRefusal(bob, 401, "wrong", () => enter(bob, "bob", "b password", "Log in"));
}

// The first step of a deletion is done, and no other.
async function expectDeletionGoesOn(ann, user, env) {
  const data = JSON.stringify({ name: "ann", password: "a password" });
  const call = (method) => spawnSync(curtail, ["load", user, "--method", `curtail.apps.User/${method}`, "--data", data, "--requests", "1", "--rps", "10"], { env, timeout: MAX_WAIT_MS });
  call("Close");
  await expectRefusal(ann, 401, "wrong", () => enter(ann, "ann", "a password", "Log in"));
  await ann.getByText("Delete account").click();
  await ann.getByLabel("Your name").fill("ann");
  await expectAccessible(ann, "before the deletion goes on");
  await expectRefusal(ann, 401, "wrong", () => endAccount(ann, "not her password"));
  // The front end looks for such deletions every two seconds, and goes on by itself. If it comes first, there is no such user.
  for (const limit = Date.now() + MAX_WAIT_MS; ; call("Register"), call("Close")) {
    const [reply] = await Promise.all([ann.waitForResponse(/\/v1\/deletions/, within), endAccount(ann, "a password")]);
    if (reply.ok()) break;
    assert.equal(reply.status(), 401);
    assert.ok(Date.now() < limit, "the page never comes first");
  }
  await ann.locator("#note", { hasText: "Your account is deleted." }).waitFor(within);
  assert.deepEqual(said.splice(0).filter((line) => !line.includes("status of 401")), []);
  await enter(ann, "ann", "another password", "Register"); // the name is free
  await ann.getByRole("heading", { name: "Home", exact: true }).waitFor(within);
}

await play(curtail, "social", "Social network", ["users=12", "follows=30", "posts=30"], async ({ ann, bob, browser, env, addressOf }) => {
  await story(ann, bob, await paint(browser), await film(browser));
  await expectSessionEnds(ann, bob, env);
  await expectAccountEnds(bob);
  await expectDeletionGoesOn(ann, addressOf("user"), env);
}, []); // processes: clients of a monolith do not reach its other services
console.log("two users of the social network see what they should");
