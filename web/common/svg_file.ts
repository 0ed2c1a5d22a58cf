// SPDX-License-Identifier: Apache-2.0
// svg_file.ts - a chart as a file of its own, light in any viewer.
import { draw, shape, type Chart, type Shape } from "./chart";

const WIDTH = 920, HEADING = 48;

// What XML does not have becomes U+FFFD.
const escaped = (text: string) => text.replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, "\ufffd").replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);

export function markup({ name, attributes, children }: Shape): string {
  const written = Object.entries(attributes).map(([key, value]) => ` ${key}="${escaped(String(value))}"`).join("");
  return `<${name}${written}>${children.map((child) => (typeof child === "string" ? escaped(child) : markup(child))).join("")}</${name}>\n`;
}

// The chart's label is the heading, with `note` below it. `css` has the rules of chart.css and its colors.
export function svgFile(chart: Chart, note: string, css: string): string {
  const { attributes, children } = draw(chart, WIDTH), height = chart.height + HEADING;
  const heading = [shape("text", { class: "heading", x: 4, y: 20 }, chart.label), shape("text", { class: "tick", x: 4, y: 38 }, note)];
  const ground = shape("rect", { width: WIDTH, height, fill: "var(--panel)" });
  return `<!-- SPDX-License-Identifier: Apache-2.0 -->\n${markup(shape("svg", { xmlns: "http://www.w3.org/2000/svg", ...attributes, height, viewBox: `0 0 ${WIDTH} ${height}` }, shape("style", {}, css), ground, ...heading, shape("g", { transform: `translate(0 ${HEADING})` }, ...children)))}`;
}
