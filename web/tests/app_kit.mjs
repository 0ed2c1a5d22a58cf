// SPDX-License-Identifier: Apache-2.0
// app_kit.mjs - what the tests of applications' pages share: the application, two users' browsers, and the rules for every page.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { launch, openPage, run } from "./kit.mjs";

const UP_MS = 180_000; // with its users, on a machine that is busy
export const within = { timeout: 30_000 }; // as long as a page waits for an answer
export const said = []; // what the consoles have
export const problem = (page) => page.locator("#problem");

// The browser writes of each refused request to the console: this one is expected, and no other.
export async function expectRefusal(page, status, text, act) {
  const told = async () => (await act(), await problem(page).filter({ hasText: text }).waitFor(within));
  await Promise.all([page.waitForEvent("console", within), told()]); // whichever fails, play() ends the application
  assert.deepEqual(said.splice(0).map((line) => line.replace(/\(.*/, "")), [`Failed to load resource: the server responded with a status of ${status} `]);
}

export async function enter(page, name, password, button) {
  await page.getByLabel("Name", { exact: true }).fill(name);
  await page.getByLabel("Password", { exact: true }).fill(password);
  await page.getByRole("button", { name: button }).click();
}

// What an attacker could get into the document does not run.
async function expectNoInlineScript(page, title) {
  await page.evaluate(() => {
    const script = document.createElement("script");
    script.textContent = 'document.title = "owned"';
    document.body.append(script);
  });
  assert.ok((await page.title()).endsWith(title), await page.title());
  const refusals = said.splice(0);
  assert.ok(refusals.length > 0 && refusals.every((line) => line.includes("Content Security Policy")), String(refusals));
}

// Starts the application in a `form`, with `settings`, and has two users play their parts: story({ ann, bob, browser, env, url,
// addressOf }). The page asks nothing but its gateway, and leaves the consoles silent.
export async function play(curtail, application, title, settings, story, form = ["--monolith"]) {
  const scratch = mkdtempSync(join(tmpdir(), "curtail-web-")), programs = join(dirname(curtail), "../../apps", application);
  const env = { ...process.env, XDG_RUNTIME_DIR: scratch, XDG_STATE_HOME: join(scratch, "state"), TMPDIR: scratch, NO_COLOR: "1", PATH: `${programs}:${process.env.PATH}` };
  run(curtail, ["up", application, ...form, "--detach", ...settings.flatMap((one) => ["--set", one])], env, UP_MS);
  let browser;
  try {
    const { processes } = JSON.parse(run(curtail, ["ps", "--json"], env))[0];
    const addressOf = (service) => processes.find((p) => p.service === service).address;
    const url = `http://${addressOf("load-balancer")}/`;
    browser = await launch();
    const [ann, bob] = [await openPage(browser, url, said), await openPage(browser, url, said)];
    for (const page of [ann, bob]) page.on("request", (request) => assert.ok(request.url().startsWith(url) || ["data:", `blob:${url}`].some((own) => request.url().startsWith(own)), request.url()));
    await story({ ann, bob, browser, env, url, addressOf }).catch(async (error) => {
      for (const page of [ann, bob]) console.error(`at ${page.url()}:`, await problem(page).allTextContents().catch(String));
      console.error("consoles:", said);
      console.error(run(curtail, ["ps"], env)); // a process that ended is a fault of its own
      throw error;
    });
    assert.deepEqual(said, [], "the console");
    await expectNoInlineScript(bob, title);
  } finally {
    await browser?.close();
    run(curtail, ["down", application], env);
    rmSync(scratch, { recursive: true, force: true });
  }
}
