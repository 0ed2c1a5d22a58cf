// SPDX-License-Identifier: Apache-2.0
// kit.mjs - what the tests with a browser share: commands, a browser, and what every page must be.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { chromium } from "playwright-core";

export const MAX_WAIT_MS = 60_000;

// The first match of `pattern` in what the program writes, which then runs on.
export function start(program, args, env, pattern) {
  const child = spawn(program, args, { env, stdio: ["ignore", "pipe", "pipe"] });
  const found = new Promise((resolve, reject) => {
    let text = "";
    const timer = setTimeout(() => reject(new Error(`no ${pattern} in: ${text}`)), MAX_WAIT_MS);
    const read = (bytes) => {
      const match = pattern.exec((text += bytes));
      if (match) clearTimeout(timer), resolve(match);
    };
    child.stdout.on("data", read), child.stderr.on("data", read);
    child.on("exit", (code) => reject(new Error(`${program} ${args[0]} ended with code ${code}: ${text}`)));
  });
  return { child, found };
}

// Ends what start() has started.
export async function end({ child }, signal = "SIGINT") {
  child.removeAllListeners("exit");
  const ended = new Promise((resolve) => child.once("exit", resolve));
  if (child.exitCode === null) child.kill(signal), await ended;
}

export function run(program, args, env, timeout = MAX_WAIT_MS) {
  const done = spawnSync(program, args, { env, encoding: "utf8", timeout });
  assert.equal(done.status, 0, `${program} ${args.join(" ")}: ${done.stdout}${done.stderr}`);
  return done.stdout;
}

export const launch = () => chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"] });

// Errors and warnings of the console go to `said`, with the address that they are about.
export async function openPage(context, url, said) {
  const page = await context.newPage({ viewport: { width: 1280, height: 900 } });
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && said.push(`${message.text()} ${message.location().url}`));
  page.on("pageerror", (error) => said.push(String(error)));
  // Not by a script of the page, which its Content-Security-Policy would refuse.
  await page.addInitScript(readFileSync(new URL("../node_modules/axe-core/axe.min.js", import.meta.url), "utf8"));
  await page.goto(url);
  return page;
}

export async function expectAccessible(page, where) {
  const found = await page.evaluate(async () => (await globalThis.axe.run()).violations.filter((v) => ["serious", "critical"].includes(v.impact)));
  assert.deepEqual(found.map((v) => [v.id, v.nodes.map((n) => n.html)]), [], `axe, ${where}`);
}

// The page does not scroll sideways, whatever its parts do.
async function expectFits(page, where) {
  const [content, width] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  assert.ok(content <= width, `${where}: ${content} px in a window of ${width} px`);
}

// In both themes, wide and at 400 px; pictures NAME-THEME-WIDTH.png go to the folder, if there is one.
export async function expectShown(page, name, pictures) {
  for (const [theme, width, height] of [["light", 1280, 900], ["dark", 1280, 900], ["light", 400, 800], ["dark", 400, 800]]) {
    const where = `${name}, ${theme}, ${width} px`;
    await page.emulateMedia({ colorScheme: theme });
    await page.setViewportSize({ width, height });
    await page.waitForTimeout(300); // a frame or two, for the picture
    await expectFits(page, where);
    await expectAccessible(page, where);
    if (pictures) await page.screenshot({ path: join(pictures, `${name}-${theme}-${width}.png`), fullPage: true });
  }
  await page.setViewportSize({ width: 1280, height: 900 });
}
