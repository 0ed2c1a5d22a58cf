// SPDX-License-Identifier: Apache-2.0
// A browser looks at an application that runs: node live_test.mjs CURTAIL [FOLDER OF PICTURES]
//
// A switch shows, in marks of latency by load as well, the heat map is drawn and read by the keyboard, runs of the load generator come and go, a killed and a stopped leaf turn red and recover, a trace opens, axe finds no serious fault, and the console is
// silent; in both themes and at 400 px.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { end, expectAccessible, expectShown, launch, MAX_WAIT_MS, openPage, run, start } from "./kit.mjs";

const [curtail, pictures] = process.argv.slice(2);
const SHOWN_MS = 20_000; // from an event to the page, on a machine that is busy with other tests
const scratch = mkdtempSync(join(tmpdir(), "curtail-web-"));
const env = { ...process.env, XDG_RUNTIME_DIR: scratch, TMPDIR: scratch, NO_COLOR: "1" };

// Drawn once calm is known; read and chosen by the keyboard.
async function expectHeat(page) {
  const cells = (service, kind) => page.locator(`.heat-row[data-key="${service}"] .heat-${kind}[d^="M"]`);
  await cells("leaf", "0").waitFor({ state: "attached", timeout: MAX_WAIT_MS });
  await cells("mid-tier", "0").waitFor({ state: "attached", timeout: MAX_WAIT_MS });
  const row = page.locator('.heat-row[data-key="mid-tier"]');
  assert.match(await row.getAttribute("aria-label"), /^mid-tier: calm p99 \S+ (µs|ms|s), now [\d.]+ times calm, worst/);
  await row.focus();
  await page.keyboard.press("ArrowLeft");
  await page.keyboard.press("ArrowLeft");
  assert.match(await page.locator("#heat-cell").textContent(), /^mid-tier, \d.*: (p99|no calls)/);
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.locator("#tiles dd", { hasText: /^leaf$/ }).waitFor({ timeout: SHOWN_MS });
  assert.equal(await page.evaluate(() => document.activeElement.dataset.key), "leaf");
}

// Runs of the load generator are there while they run, and go however they end. A file that lies is text.
async function expectLoads(page) {
  const row = (pid) => page.locator(`#loads tr[data-pid="${pid}"]`);
  const within = { timeout: SHOWN_MS }, gone = { state: "detached", ...within };
  await row(load.pid).locator("td", { hasText: /^1\d\d$|^[89]\d(\.\d)?$/ }).first().waitFor({ timeout: MAX_WAIT_MS });
  assert.match(await row(load.pid).textContent(), /load hdsearch --rps 100/);

  const folder = join(scratch, "curtail", "hdsearch"), file = (pid) => join(folder, `load-${pid}.json`);
  const markup = '<img src="x" onerror="document.title=1"><script>document.title=2</script>';
  const real = JSON.parse(readFileSync(file(load.pid), "utf8"));
  writeFileSync(file(process.pid), JSON.stringify({ ...real, command: markup, label: "load" }));
  await row(process.pid).locator("td", { hasText: markup }).waitFor(within);
  assert.equal(await page.locator("#loads img, #loads script").count(), 0);
  rmSync(file(process.pid));
  await row(process.pid).waitFor(gone);

  const killed = spawn(curtail, ["load", "hdsearch", "--rps", "10", "--duration", "120s"], { env, stdio: "ignore" });
  const over = new Promise((resolve) => killed.once("exit", resolve));
  await row(killed.pid).waitFor({ timeout: MAX_WAIT_MS });
  killed.kill("SIGKILL");
  await over;
  await row(killed.pid).waitFor(gone);
  assert.ok(!existsSync(file(killed.pid)), "the file of a killed run is removed");
}

async function check(page) {
  const node = (name) => page.locator(`.node[data-key="${name}"]`);
  const within = { timeout: SHOWN_MS };
  await page.waitForFunction(() => /^\d/.test(document.querySelector(".node text:nth-of-type(2)")?.textContent ?? "") && !document.querySelector(".node text:nth-of-type(2)").textContent.startsWith("0 "), null, { timeout: MAX_WAIT_MS });
  run(curtail, ["switch", "hdsearch", "FIB1"], env);
  await page.locator("#switches li", { hasText: "SDB1-4 → FIB1" }).waitFor(within);
  await page.locator("#tiles dd", { hasText: "FIB1" }).waitFor(within);

  // Both configs have marks, and the switch leads from one to the other.
  await page.locator("#scatter-table tr", { hasText: /^SDB1-4/ }).waitFor({ timeout: MAX_WAIT_MS });
  await page.locator("#scatter-table tr", { hasText: /^FIB1/ }).waitFor({ timeout: MAX_WAIT_MS });
  await page.locator("#scatter-note", { hasText: "switches: 1." }).waitFor({ timeout: MAX_WAIT_MS });
  await expectHeat(page);
  await expectLoads(page);

  // By the keyboard alone.
  await node("leaf").focus();
  await page.keyboard.press("Enter");
  await page.locator("#tiles dd", { hasText: /^leaf$/ }).waitFor(within);
  await node("mid-tier").focus();
  await page.keyboard.press("Space");
  await page.locator("#tiles dd", { hasText: /^mid-tier$/ }).waitFor(within);

  await page.locator("#search").fill("mid-tier leaf");
  const first = page.locator("#traces tbody button").first();
  await first.waitFor({ timeout: MAX_WAIT_MS });
  await first.focus();
  await page.keyboard.press("Enter");
  await page.locator("#waterfall .bar-client").first().waitFor(within);
  assert.ok((await page.locator("#waterfall .bar-server").count()) >= 2, "the leaves' spans are in the trace of the mid-tier");

  await expectShown(page, "dashboard", pictures);

  await page.locator("#queue-now dt", { hasText: "Longest wait" }).waitFor(within);
  await page.locator("#pools tbody tr", { hasText: "mid-tier" }).first().waitFor(within);
  assert.match(await page.locator("#fence-text").textContent(), /^Fences/);

  // Killed, it is back soon and stays red for a while.
  const leaf = () => JSON.parse(run(curtail, ["ps", "--json"], env))[0].processes.find((p) => p.name === "leaf-1");
  const red = page.locator('.node.down[data-key="leaf"]'), fine = page.locator('.node[data-key="leaf"]:not(.down)');
  process.kill(leaf().pid, "SIGKILL");
  await red.waitFor(within);
  await page.locator('tr.down[data-instance="leaf-1"]', { hasText: "killed by signal 9" }).waitFor(within);
  await page.locator('.heat-row[data-key="leaf"] .heat-down[d^="M"]').waitFor({ state: "attached", timeout: SHOWN_MS });
  if (pictures) await page.screenshot({ path: join(pictures, "dashboard-killed.png"), fullPage: true });
  await fine.waitFor({ timeout: MAX_WAIT_MS });
  // Stopped, it answers nobody.
  process.kill(leaf().pid, "SIGSTOP");
  await red.waitFor(within);
  await page.locator('tr.down[data-instance="leaf-1"]', { hasText: "no answer in time" }).waitFor(within);
  await expectAccessible(page, "a stopped leaf");
  process.kill(leaf().pid, "SIGCONT");
  await fine.waitFor({ timeout: MAX_WAIT_MS });

  load.kill("SIGINT");
  await page.locator("#loads-note", { hasText: "None runs" }).waitFor(within);
  assert.equal(await page.locator("#loads tr").count(), 0);
}

const up = start(curtail, ["up", "hdsearch", "--set", "data=synthetic:N=2000,D=16,seed=1", "--set", "leaf.shards=2", "--config", "SDB1-4", "--trace-to", "memory", "--dashboard"], env, /see: +(http:\S+)/);
let load, browser;
try {
  const url = (await up.found)[1];
  load = spawn(curtail, ["load", "hdsearch", "--rps", "100", "--duration", "120s"], { env, stdio: "ignore" });
  browser = await launch();
  const said = [];
  const page = await openPage(browser, url, said);
  await check(page);
  assert.deepEqual(said, [], "the console");
  console.log("the dashboard shows what it should");
} finally {
  await browser?.close();
  load?.kill("SIGINT");
  await end(up);
  rmSync(scratch, { recursive: true, force: true });
}
