// SPDX-License-Identifier: Apache-2.0
// Builds the pages into a folder: node build.mjs [FOLDER], dist by default; with --tests what `node --test` runs; with --plot what draws files.
import { build } from "esbuild";
import { createHash } from "node:crypto";
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";

const common = { bundle: true, target: "es2022", logLevel: "warning", legalComments: "inline" };
const node = { ...common, outdir: "build", platform: "node", format: "esm", outExtension: { ".js": ".mjs" }, loader: { ".css": "text" } };

// One file: the style and the script are in it, and nothing else may run or load. Programs put the data where @report@ is.
async function report(folder) {
  const { outputFiles } = await build({ ...common, entryPoints: ["report/main.ts", "report/report.css"], outdir: folder, format: "iife", minify: true, write: false });
  const [script, style] = [".js", ".css"].map((ending) => outputFiles.find((file) => file.path.endsWith(ending)).text);
  const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
  const parts = { script, style, "script-hash": hash(script), "style-hash": hash(style) };
  const page = readFileSync("report/report.html", "utf8").replace(/@([a-z-]+)@/g, (whole, name) => parts[name] ?? whole);
  writeFileSync(`${folder}/report.html`, page);
}

const folders = readdirSync(".", { withFileTypes: true }).filter((one) => one.isDirectory()).map((one) => one.name).filter((name) => !["build", "dist", "node_modules"].includes(name));
const applications = folders.filter((name) => existsSync(`${name}/app.css`)); // each has a page in the shell

const option = process.argv[2] ?? "dist";
if (option === "--tests") {
  rmSync("build/tests", { recursive: true, force: true }); // those of before
  const tests = folders.flatMap((folder) => readdirSync(folder).map((name) => `${folder}/${name}`)).filter((name) => name.endsWith("_test.ts"));
  await build({ ...node, entryPoints: tests, outdir: "build/tests", outbase: "." });
} else if (option === "--plot") {
  await build({ ...node, entryPoints: ["report/plot.ts"] });
} else {
  mkdirSync(option, { recursive: true });
  const pages = [["dashboard/main.ts", "dashboard"], ["dashboard/dashboard.css", "dashboard"], ...applications.flatMap((name) => [[`${name}/main.ts`, `${name}/app`], [`${name}/app.css`, `${name}/app`]])];
  await build({ ...common, entryPoints: pages.map(([source, out]) => ({ in: source, out })), outdir: option, format: "iife", minify: true });
  await report(option);
  copyFileSync("dashboard/dashboard.html", `${option}/dashboard.html`);
  for (const name of applications) copyFileSync("shell/index.html", `${option}/${name}/index.html`);
}
