// SPDX-License-Identifier: Apache-2.0
// main.ts - shows the document that the page carries, as `curtail` wrote it there.
import { byId } from "../common/dom";
import { comparisonPage, type Comparison } from "./comparison";
import { loadPage, type LoadReport } from "./load";
import { provisionPage, type Provisioning } from "./provision";
import { render } from "./render";

type Document_ = Comparison | Provisioning | (LoadReport & { kind?: undefined });

function pageOf(report: Document_) {
  switch (report.kind) {
    case "policy_comparison":
      return comparisonPage(report);
    case "provision":
      return provisionPage(report);
    default:
      return loadPage(report);
  }
}

const page = pageOf(JSON.parse(byId("report").textContent!) as Document_);
document.title = page.title;
document.body.append(...render(page));
