// SPDX-License-Identifier: Apache-2.0
// Builds the pages into a folder: node build.mjs [FOLDER], dist by default; or with --tests what `node --test` runs.
import { build } from "esbuild";
import { copyFileSync, mkdirSync, readdirSync, rmSync } from "node:fs";

const common = { bundle: true, target: "es2022", logLevel: "warning", legalComments: "inline" };
const node = { ...common, outdir: "build", platform: "node", format: "esm", outExtension: { ".js": ".mjs" } };

const option = process.argv[2] ?? "dist";
if (option === "--tests") {
  rmSync("build/tests", { recursive: true, force: true }); // those of before
  const tests = ["common", "dashboard", "social"].flatMap((folder) => readdirSync(folder).map((name) => `${folder}/${name}`)).filter((name) => name.endsWith("_test.ts"));
  await build({ ...node, entryPoints: tests, outdir: "build/tests", outbase: "." });
} else {
  mkdirSync(`${option}/social`, { recursive: true });
  await build({ ...common, entryPoints: { dashboard: "dashboard/main.ts", "social/app": "social/main.ts" }, outdir: option, format: "iife", minify: true });
  await build({ ...common, entryPoints: ["dashboard/dashboard.css", "social/app.css"].map((path) => ({ in: path, out: path.replace("dashboard/", "").replace(".css", "") })), outdir: option, minify: true });
  copyFileSync("dashboard/dashboard.html", `${option}/dashboard.html`);
  copyFileSync("social/index.html", `${option}/social/index.html`);
}
