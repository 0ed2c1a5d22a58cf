// SPDX-License-Identifier: Apache-2.0
// Builds the pages into a folder: node build.mjs [FOLDER], dist by default; or with --tests what `node --test` runs.
import { build } from "esbuild";
import { copyFileSync, mkdirSync, readdirSync } from "node:fs";

const common = { bundle: true, target: "es2022", logLevel: "warning", legalComments: "inline" };
if (process.argv[2] === "--tests") {
  const tests = ["dashboard", "social"].flatMap((folder) => readdirSync(folder).map((name) => `${folder}/${name}`)).filter((name) => name.endsWith("_test.ts"));
  await build({ ...common, entryPoints: tests, outdir: "build/tests", platform: "node", format: "esm", outExtension: { ".js": ".mjs" } });
} else {
  const folder = process.argv[2] ?? "dist";
  mkdirSync(`${folder}/social`, { recursive: true });
  await build({ ...common, entryPoints: { dashboard: "dashboard/main.ts", "social/app": "social/main.ts" }, outdir: folder, format: "iife", minify: true });
  await build({ ...common, entryPoints: ["dashboard/dashboard.css", "social/app.css"].map((path) => ({ in: path, out: path.replace("dashboard/", "").replace(".css", "") })), outdir: folder, minify: true });
  copyFileSync("dashboard/dashboard.html", `${folder}/dashboard.html`);
  copyFileSync("social/index.html", `${folder}/social/index.html`);
}
