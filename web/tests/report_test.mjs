// SPDX-License-Identifier: Apache-2.0
// A browser looks at reports as files: node report_test.mjs CURTAIL [FOLDER OF PICTURES]
//
// A load test, a comparison and a provisioning are pages of headings, tables and charts, whose key follows the pointer. They load nothing,
// run nothing but their own script, and texts of servers stay texts. axe finds no serious fault, and the console is silent; in both themes,
// at 400 px and in print.
import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { build } from "esbuild";
import { end, expectShown, launch, MAX_WAIT_MS, openPage, run, start } from "./kit.mjs";

const [curtail, pictures] = process.argv.slice(2);
const COMPARE_MS = 120_000;
const scratch = mkdtempSync(join(tmpdir(), "curtail-report-"));
const env = { ...process.env, XDG_RUNTIME_DIR: scratch, TMPDIR: scratch, NO_COLOR: "1" };
const fileOf = (name) => join(scratch, name);
const urlOf = (name) => pathToFileURL(fileOf(name)).href;

// Until the load generator has been running for so long, as it tells the dashboard.
async function elapsed(pid, seconds) {
  const file = join(scratch, "curtail", "hdsearch", `load-${pid}.json`), limit = Date.now() + MAX_WAIT_MS;
  while (!existsSync(file) || JSON.parse(readFileSync(file, "utf8")).elapsed_s < seconds) {
    assert.ok(Date.now() < limit, `${file}: not ${seconds} s`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

// Two runs of a server whose config is switched, by `load` itself and by `report` from its JSON.
async function measure() {
  const up = start(curtail, ["up", "hdsearch", "--set", "data=synthetic:N=2000,D=16,seed=1", "--set", "leaf.shards=2", "--config", "SDB1-4"], env, /is ready|ready:|look:/);
  try {
    await up.found;
    const { admin } = JSON.parse(run(curtail, ["ps", "--json"], env))[0].processes.find((p) => p.name === "mid-tier");
    const load = start(curtail, ["load", "hdsearch", "--rps", "200", "--warmup", "1s", "--duration", "7s", "--repeat", "2", "--admin", admin, "--json", fileOf("run.json"), "--html", fileOf("run.html")], env, /^load .*/m);
    const ended = new Promise((resolve) => load.child.once("exit", resolve));
    await load.found;
    await elapsed(load.child.pid, 2);
    run(curtail, ["switch", "hdsearch", "FIB1"], env);
    await ended;
    run(curtail, ["report", fileOf("run.json"), "--html", fileOf("again.html")], env);
    assert.ok(readFileSync(fileOf("run.html")).equals(readFileSync(fileOf("again.html"))), "the JSON has all of the page");
  } finally {
    await end(up);
  }
}

const compare = () => run(curtail, ["compare", "hdsearch", "--corpus", "synthetic:N=2000,D=16", "--policies", "static:FIB1,static:SDB1-4", "--scenarios", "flash-crowd", "--flash-crowd", "50..200", "--quick", "--html", fileOf("compare.html")], env, COMPARE_MS);

// Documents that are made up, as `curtail` would put them into a page.
async function makeUp() {
  const { outputFiles } = await build({ entryPoints: ["report/testing.ts"], absWorkingDir: new URL("..", import.meta.url).pathname, bundle: true, format: "esm", write: false });
  const made = await import(`data:text/javascript,${encodeURIComponent(outputFiles[0].text)}`);
  const [before, after] = readFileSync(new URL("../dist/report.html", import.meta.url), "utf8").split("@report@");
  const write = (name, document) => writeFileSync(fileOf(name), before + JSON.stringify(document).replaceAll("<", "\\u003c") + after);
  write("provision.html", made.provisioning());
  const hostile = made.runOf({ codes: { [made.HOSTILE]: 1 }, warnings: [made.HOSTILE], series: made.runOf().series.map((s) => ({ ...s, config: made.HOSTILE })) });
  write("hostile.html", made.loadReport([hostile], { command: made.HOSTILE }));
  return made.HOSTILE;
}

// Opens a report; everything that it asks for is in `asked`.
async function open(browser, name, said, asked) {
  const page = await openPage(browser, "about:blank", said);
  page.on("request", (request) => asked.push(request.url()));
  await page.goto(urlOf(name));
  return page;
}

const texts = (page, selector) => page.locator(selector).allTextContents();

async function expectRun(page) {
  assert.equal(await page.title(), "Load test of /curtail.hdsearch.Search/Query");
  assert.deepEqual((await texts(page, "h2")).slice(0, 3), ["Result", "Latency by percentile", "Over time, run 1"]);
  assert.match((await texts(page, ".tiles div"))[0], /^p50[\d.]+ (µs|ms)(median of [12]|no valid run)/);
  const rows = await texts(page, "tbody tr");
  assert.ok(rows.some((row) => /^run 2( \(void\))?\d+/.test(row)) && rows.some((row) => row.startsWith("target127.0.0.1:")), rows.join("\n"));
  const charts = page.locator('svg[role="img"]:visible');
  await charts.nth(3).waitFor();
  assert.equal(await charts.count(), 4);
  for (const label of await charts.evaluateAll((all) => all.map((chart) => chart.getAttribute("aria-label")))) assert.ok(label.length > 5, label);
  const latency = page.locator("figure", { hasText: "Latency of calls that ended" }).first();
  assert.deepEqual(await latency.locator(".strip-name").allTextContents(), ["SDB1-4", "FIB1"], "the switch");

  await latency.locator("svg.plot").hover();
  assert.match(await latency.locator(".key").textContent(), /p50 [\d.]+ (µs|ms).*p99 [\d.]+ (µs|ms).*at [\d.]+$/);
  await page.locator("h1").hover();
  assert.match(await latency.locator(".key").textContent(), /^p50 p99 SDB1-4FIB1$/);

  assert.equal(await page.locator("details svg.plot").count(), 0, "what is folded is not drawn");
  await page.locator("summary").click();
  await page.locator("details svg.plot").nth(2).waitFor();
  await page.emulateMedia({ media: "print", colorScheme: "dark" });
  assert.equal(await page.evaluate(() => getComputedStyle(document.documentElement).getPropertyValue("--panel")), "#fff", "paper is white");
  await page.emulateMedia({ media: "screen" });
}

async function expectComparison(page) {
  assert.equal(await page.title(), "Comparison of policies: hdsearch");
  const headings = await texts(page, "h2");
  for (const heading of ["Verdict", "Over time: flash-crowd", "How to read this", "What was measured"]) assert.ok(headings.includes(heading), headings.join("\n"));
  await page.locator("svg.plot").nth(2).waitFor(); // the load and two policies
  assert.ok((await texts(page, "tbody tr")).some((row) => row.startsWith("FIB1")));
}

async function expectProvisioning(page) {
  assert.deepEqual(await texts(page, "h2"), ["Outcome", "Rounds", "Shares", "What was measured"]);
  await page.locator("svg.plot .name").nth(1).waitFor();
  assert.equal(await page.locator("svg.plot .name").count(), 2);
}

async function expectHarmless(page, hostile) {
  assert.equal(await page.locator("img").count(), 0);
  assert.equal(await page.locator("body script").count(), 2, "the data and the page's own");
  assert.ok((await texts(page, "td")).some((text) => text === hostile), "it stands there as it is");
}

async function expectWithoutScripts(browser) {
  const page = await (await browser.newContext({ javaScriptEnabled: false })).newPage();
  await page.goto(urlOf("run.html"));
  assert.match(await page.locator("body").innerText(), /as JSON/);
}

let browser;
try {
  await measure();
  compare();
  const hostile = await makeUp();
  browser = await launch();
  const said = [];
  for (const [name, expect] of [["run", expectRun], ["compare", expectComparison], ["provision", expectProvisioning], ["hostile", expectHarmless]]) {
    const asked = [], page = await open(browser, `${name}.html`, said, asked);
    await expect(page, hostile);
    await expectShown(page, `report-${name}`, pictures);
    assert.deepEqual(asked, [urlOf(`${name}.html`)], "it loads nothing else");
  }
  await expectWithoutScripts(browser);
  assert.deepEqual(said, [], "the console");
  console.log("reports show what they should");
} finally {
  await browser?.close();
  rmSync(scratch, { recursive: true, force: true });
}
