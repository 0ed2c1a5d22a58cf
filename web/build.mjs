// SPDX-License-Identifier: Apache-2.0
// Builds dashboard/ into a folder: node build.mjs [FOLDER], dist by default; or with --tests what `node --test` runs.
import { build } from "esbuild";
import { copyFileSync, mkdirSync, readdirSync } from "node:fs";

const common = { bundle: true, target: "es2022", logLevel: "warning", legalComments: "inline" };
if (process.argv[2] === "--tests") {
  const tests = readdirSync("dashboard").filter((name) => name.endsWith("_test.ts"));
  await build({ ...common, entryPoints: tests.map((name) => `dashboard/${name}`), outdir: "build/tests", platform: "node", format: "esm", outExtension: { ".js": ".mjs" } });
} else {
  const folder = process.argv[2] ?? "dist";
  mkdirSync(folder, { recursive: true });
  await build({ ...common, entryPoints: { dashboard: "dashboard/main.ts" }, outdir: folder, format: "iife", minify: true });
  await build({ ...common, entryPoints: ["dashboard/dashboard.css"], outdir: folder, minify: true });
  copyFileSync("dashboard/dashboard.html", `${folder}/dashboard.html`);
}
