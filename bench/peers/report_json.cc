// SPDX-License-Identifier: Apache-2.0
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "ratios.h"
#include "report.h"
#include "spread.h"

namespace curtail::bench {
namespace {

std::string Quoted(absl::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      absl::StrAppendFormat(&out, "\\u%04x", c);
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string QuotedOrNull(absl::string_view text) { return text.empty() ? "null" : Quoted(text); }

std::string JsonNumber(std::optional<double> value) {
  return value ? absl::StrFormat("%.3f", *value) : "null";
}

std::string JsonSpread(absl::string_view name, const Rounds& rounds, double Measurement::* field) {
  const Spread spread = SpreadOf(rounds, field);
  return absl::StrFormat("\"%s\": {\"median\": %.3f, \"min\": %.3f, \"max\": %.3f}, ", name, spread.median,
                         spread.min, spread.max);
}

std::string JsonCell(const std::string& name, const Rounds& rounds) {
  return absl::StrCat("{\"load\": ", Quoted(name), ", \"rounds\": ", rounds.size(), ", ",
                      JsonSpread("p50_us", rounds, &Measurement::p50_us),
                      JsonSpread("p99_us", rounds, &Measurement::p99_us),
                      JsonSpread("answers_per_second", rounds, &Measurement::qps),
                      JsonSpread("failed_requests", rounds, &Measurement::failed),
                      JsonSpread("mid_cpu_us_per_request", rounds, &Measurement::mid_cpu_us),
                      JsonSpread("mid_context_switches_per_request", rounds, &Measurement::mid_switches),
                      JsonSpread("mid_resident_mib", rounds, &Measurement::mid_resident_mib),
                      "\"mid_user_instructions_per_request\": ",
                      JsonNumber(Median(rounds, &Measurement::mid_user_instructions)),
                      ", \"mid_kernel_instructions_per_request\": ",
                      JsonNumber(Median(rounds, &Measurement::mid_kernel_instructions)), "}");
}

std::string JsonSetup(const Setup& setup) {
  return absl::StrFormat(
      "{\"leaves\": %d, \"payload_bytes\": %d, \"connections\": %d, \"idle_connections\": %d}", setup.leaves,
      setup.payload, setup.connections, setup.idle);
}

std::string JsonStack(const Options& options, const StackResults& one) {
  std::vector<std::string> cells;
  for (const Cell& cell : options.cells) {
    if (const Rounds* rounds = Find(one, cell.Name()))
      cells.push_back(absl::StrCat("      ", JsonCell(cell.Name(), *rounds)));
  }
  const std::string error = one.first_error.ok() ? "" : one.first_error.ToString();
  return absl::StrCat("    {\"stack\": ", Quoted(one.stack.name), ", \"setup\": ", JsonSetup(one.setup),
                      ", \"missing\": ", QuotedOrNull(one.stack.missing),
                      ", \"first_error\": ", QuotedOrNull(error), ", \"loads\": [\n",
                      absl::StrJoin(cells, ",\n"), "\n    ]}");
}

std::string JsonRatio(const Ratio& ratio) {
  return absl::StrCat(
      "    {\"varied\": ", QuotedOrNull(ratio.setup), ", \"load\": ", Quoted(ratio.load),
      ", \"metric\": ", Quoted(ratio.metric), ", \"kind\": ", Quoted(ratio.kind),
      ", \"against\": ", Quoted(ratio.against), ", \"curtail\": ", Quoted(ratio.curtail),
      ", \"curtail_value\": ", JsonNumber(ratio.curtail_value), ", \"other\": ", Quoted(ratio.other),
      ", \"other_value\": ", JsonNumber(ratio.other_value), ", \"ratio\": ", JsonNumber(ratio.value()),
      ", \"rounds_overlap\": ", ratio.overlap ? "true}" : "false}");
}

}  // namespace

std::string ToJson(const Options& options, const Machine& machine, const std::vector<StackResults>& results) {
  std::vector<std::string> stacks;
  for (const StackResults& one : results) stacks.push_back(JsonStack(options, one));
  std::vector<std::string> ratios;
  for (const Ratio& ratio : RatiosOf(options, results)) ratios.push_back(JsonRatio(ratio));
  return absl::StrCat(
      "{\n  \"schema_version\": 2,\n  \"benchmark\": \"peers\",\n",
      absl::StrFormat(
          "  \"cpus\": %d,\n  \"load_average\": %.2f,\n  \"busy_cpus_before\": %.2f,\n  \"disturbed\": %s,\n",
          machine.cpus, machine.load_average, machine.busy_cpus, machine.Disturbed() ? "true" : "false"),
      absl::StrFormat("  \"rounds\": %d,\n  \"cell_seconds\": %.3f,\n  \"seed\": %d,\n", options.rounds,
                      options.seconds, options.seed),
      "  \"leaf_config\": ", Quoted(options.leaf_config), ",\n  \"stacks\": [\n",
      absl::StrJoin(stacks, ",\n"), "\n  ],\n  \"ratios\": [\n", absl::StrJoin(ratios, ",\n"), "\n  ]\n}\n");
}

std::string InstructionsToJson(const Options& options, const std::vector<Instructions>& results) {
  std::vector<std::string> stacks;
  for (const Instructions& one : results) {
    std::vector<std::string> counts;
    for (size_t i = 0; i < one.per_request.size(); ++i) {
      counts.push_back(absl::StrCat("{\"load\": \"closed-", kCountedLoads[i],
                                    "\", \"user_instructions_per_request\": ", JsonNumber(one.per_request[i]),
                                    "}"));
    }
    stacks.push_back(absl::StrCat(
        "    {\"stack\": ", Quoted(one.stack), ", \"varied\": ", QuotedOrNull(one.setup),
        ", \"note\": ", QuotedOrNull(one.note), ", \"loads\": [", absl::StrJoin(counts, ", "), "]}"));
  }
  return absl::StrCat("{\n  \"schema_version\": 2,\n  \"benchmark\": \"peers instructions\",\n  \"setup\": ",
                      JsonSetup(options.setup), ",\n  \"stacks\": [\n", absl::StrJoin(stacks, ",\n"),
                      "\n  ]\n}\n");
}

}  // namespace curtail::bench
