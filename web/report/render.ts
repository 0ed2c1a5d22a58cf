// SPDX-License-Identifier: Apache-2.0
// render.ts - a page as elements. Texts of the data never become markup.
import { areaSwatch, ChartView } from "../common/chart_view";
import { element, head } from "../common/dom";
import type { Block, Cell, Page } from "./page";

const MAX_NUMBER = 24; // longer texts are words

function cellElement(cell: Cell, first: boolean): HTMLElement {
  const { text, range = "", mark = "", color } = typeof cell === "string" ? { text: cell } : cell;
  const kind = mark.trim() === "*" ? "best" : text.length > MAX_NUMBER ? "words" : "";
  const made = first ? element("th", { scope: "row" }) : element("td", kind ? { class: kind } : {});
  made.append(...(color ? [areaSwatch(color)] : []), text + mark, ...(range ? [element("span", { class: "range" }, range)] : []));
  return made;
}

function tableElement(caption: string, columns: string[], rows: Cell[][]): HTMLElement {
  const body = element("tbody", {}, ...rows.map((row) => element("tr", {}, ...row.map((cell, i) => cellElement(cell, i === 0)))));
  const made = element("table", { class: columns.length > 0 ? "" : "facts" }, element("caption", {}, caption), ...(columns.length > 0 ? [head(...columns)] : []), body);
  return element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption }, made);
}

function blockElement(block: Block): HTMLElement {
  switch (block.is) {
    case "text":
      return element("p", { class: block.kind }, block.text);
    case "list":
      return element("ul", {}, ...block.items.map((item) => element("li", {}, item)));
    case "box":
      return element("div", { class: `box ${block.kind}` }, ...block.lines.map((line) => element("p", {}, line)));
    case "tiles":
      return element("dl", { class: "tiles" }, ...block.tiles.map(({ name, value, detail }) => element("div", {}, element("dt", {}, name), element("dd", {}, value), element("dd", { class: "range" }, detail))));
    case "table":
      return tableElement(block.caption, block.columns, block.rows);
    case "chart":
      return new ChartView().show(block.chart);
    case "folded":
      return element("details", {}, element("summary", {}, block.summary), ...block.blocks.map(blockElement));
  }
}

// Sections without content are left out.
export function render(page: Page): HTMLElement[] {
  const sections = page.sections.filter(({ blocks }) => blocks.length > 0).map(({ heading, blocks }) => element("section", {}, ...(heading ? [element("h2", {}, heading)] : []), ...blocks.map(blockElement)));
  return [element("header", {}, element("h1", {}, page.title), element("p", { class: "hint" }, page.about)), element("main", {}, ...sections)];
}
