// SPDX-License-Identifier: Apache-2.0
#include "curtail/load/report/internal/html_page.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "curtail/load/report/internal/svg_chart.h"

namespace curtail::internal {
namespace {

// Takes the title, the rules of charts and further rules.
constexpr char kHead[] = R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>%s</title>
<style>
:root { color-scheme: light dark; --bg: #fff; --fg: #1b1f24; --muted: #57606a; --line: #d0d7de; --grid: #e8ebef;
  --card: #f6f8fa; --bad: #b42318; --badbg: #fff1f0; --warn: #7a5600; --warnbg: #fff8e5; --good: #1a7f37;
  --c0: #1f6feb; --c1: #d9480f; --c2: #2b8a3e; --c3: #862e9c; --c4: #8d96a0; --c5: #0b7285; }
@media screen and (prefers-color-scheme: dark) { :root { --bg: #0f1318; --fg: #e3e8ee; --muted: #9aa4b0; --line: #333c47;
  --grid: #222932; --card: #171d25; --bad: #ff8a80; --badbg: #3a1413; --warn: #f0c25a; --warnbg: #33280c;
  --good: #57c274; --c0: #6ea8fe; --c1: #ff9351; --c2: #5fce7c; --c3: #cf8ae6; --c4: #7d8792; --c5: #4fc3d9; } }
body { margin: 0 auto; padding: 24px; max-width: 960px; background: var(--bg); color: var(--fg);
  font: 14px/1.5 system-ui, sans-serif; }
h1 { font-size: 22px; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 16px; margin: 32px 0 8px; }
p { margin: 4px 0; }
.sub { color: var(--muted); overflow-wrap: anywhere; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(160px, 1fr)); gap: 12px; margin: 20px 0; }
.tile { background: var(--card); border: 1px solid var(--line); border-radius: 6px; padding: 10px 14px; }
.tile b { display: block; font-size: 24px; line-height: 1.3; }
.tile span { color: var(--muted); font-size: 12px; }
.box { border-radius: 6px; padding: 10px 14px; margin: 12px 0; border: 1px solid; overflow-wrap: anywhere; }
.void { color: var(--bad); background: var(--badbg); border-color: var(--bad); }
.warning { color: var(--warn); background: var(--warnbg); border-color: var(--warn); }
.ok { color: var(--good); } .failed { color: var(--bad); font-weight: 600; }
.scroll { overflow-x: auto; margin-bottom: 12px; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: 3px 14px 3px 0; border-bottom: 1px solid var(--grid); text-align: left; vertical-align: top; }
th { color: var(--muted); font-weight: 500; white-space: nowrap; }
td { overflow-wrap: anywhere; }
.numbers td, .numbers thead th { text-align: right; white-space: nowrap; }
.numbers thead th:first-child, .numbers td.text { text-align: left; }
.numbers td.text { white-space: normal; }
summary { cursor: pointer; margin: 8px 0; }
svg { display: block; width: 100%%; height: auto; margin: 8px 0 16px; }
.chart { overflow-x: auto; }
%s.swatch { display: inline-block; width: 12px; height: 12px; margin-right: 6px; vertical-align: -1px; }
.config, .swatch { opacity: .6; } .unknown { fill: var(--line); background: var(--line); }
@media screen and (max-width: 720px) { body { padding: 12px; } .chart svg { min-width: 640px; } }
@media print { :root { color-scheme: light; } body { max-width: none; padding: 0; font-size: 12px; }
  .scroll, .chart { overflow: visible; } svg, tr, .box { break-inside: avoid; } h2 { break-after: avoid; }
  th, td { padding-right: 8px; } * { print-color-adjust: exact; } }
%s</style>
</head>
<body>
)";

}  // namespace

std::string HtmlHead(std::string_view title, std::string_view css) {
  return absl::StrFormat(kHead, Escape(title), kChartCss, css);
}

std::string HtmlTile(std::string_view name, std::string_view value, std::string_view detail) {
  return absl::StrFormat("<div class=\"tile\"><span>%s</span><b>%s</b><span>%s</span></div>\n", Escape(name),
                         Escape(value), Escape(detail));
}

std::string HtmlFact(std::string_view name, std::string_view value) {
  if (value.empty()) return {};
  return absl::StrCat("<tr><th>", Escape(name), "</th><td>", Escape(value), "</td></tr>\n");
}

std::string MachineText(const Machine& machine) {
  return absl::StrFormat("%d CPUs, %s, %s; load average before %.2f", machine.cpus, machine.cpu_model,
                         machine.kernel, machine.load_average_before);
}

}  // namespace curtail::internal
