// SPDX-License-Identifier: Apache-2.0
// plot.ts - a chart of a report as an SVG file, for documents: npm --prefix web run plot -- RESULT.json FILE.svg
//
// It takes what `models_bench --json` and `curtail provision --json` write.
import { readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { argv, env } from "node:process";
import base from "../common/base.css";
import chartCss from "../common/chart.css";
import { svgFile } from "../common/svg_file";
import { modelsChart, MODELS_NOTE, type Models } from "./models";
import { provisionChart, PROVISION_NOTE, type Provisioning } from "./provision";

const [from, to] = argv.slice(2).map((path) => resolve(env["INIT_CWD"] ?? ".", path)); // npm runs this in its own folder
if (!from || !to) throw new Error("usage: npm --prefix web run plot -- RESULT.json FILE.svg");
const result = JSON.parse(readFileSync(from, "utf8")) as Models | Provisioning;
const [chart, note] = "benchmark" in result ? [modelsChart(result), MODELS_NOTE] : [provisionChart(result), PROVISION_NOTE];
if (!chart) throw new Error(`${from} has nothing that was measured`);
writeFileSync(to, svgFile(chart, note, /:root \{[^}]*\}/.exec(base)![0] + chartCss));
