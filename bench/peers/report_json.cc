// SPDX-License-Identifier: Apache-2.0
#include "absl/strings/str_cat.h"
#include "bench/common/report.h"
#include "nlohmann/json.hpp"
#include "ratios.h"
#include "report.h"

namespace curtail::bench {
namespace {

constexpr int kSchemaVersion = 3;

using Rounds = std::vector<Measurement>;

Json CellJson(const std::string& name, const Rounds& rounds) {
  const auto spread = [&rounds](double Measurement::* field) { return ToJson(SpreadOf(rounds, field)); };
  return {
      {"load", name},
      {"rounds", rounds.size()},
      {"p50_us", spread(&Measurement::p50_us)},
      {"p99_us", spread(&Measurement::p99_us)},
      {"answers_per_second", spread(&Measurement::qps)},
      {"failed_requests", spread(&Measurement::failed)},
      {"mid_cpu_us_per_request", spread(&Measurement::mid_cpu_us)},
      {"mid_context_switches_per_request", spread(&Measurement::mid_switches)},
      {"mid_resident_mib", spread(&Measurement::mid_resident_mib)},
      {"mid_user_instructions_per_request", OrNull(Median(rounds, &Measurement::mid_user_instructions))},
      {"mid_kernel_instructions_per_request", OrNull(Median(rounds, &Measurement::mid_kernel_instructions))}};
}

Json SetupJson(const Setup& setup) {
  return {{"leaves", setup.leaves},
          {"payload_bytes", setup.payload},
          {"connections", setup.connections},
          {"idle_connections", setup.idle}};
}

Json StackJson(const Options& options, const StackResults& one) {
  Json loads = Json::array();
  for (const Load& cell : options.cells) {
    if (const Rounds* rounds = Find(one, cell.Name())) loads.push_back(CellJson(cell.Name(), *rounds));
  }
  return {{"stack", one.stack.name},
          {"setup", SetupJson(one.setup)},
          {"missing", OrNull(one.stack.missing)},
          {"first_error", OrNull(one.first_error.ok() ? "" : one.first_error.ToString())},
          {"loads", std::move(loads)}};
}

Json RatioJson(const Ratio& ratio) {
  return {{"varied", OrNull(ratio.setup)},
          {"load", ratio.load},
          {"metric", ratio.metric},
          {"kind", ratio.kind},
          {"against", ratio.against},
          {"curtail", ratio.curtail},
          {"curtail_value", ratio.curtail_value},
          {"other", ratio.other},
          {"other_value", ratio.other_value},
          {"ratio", ratio.value()},
          {"rounds_overlap", ratio.overlap}};
}

}  // namespace

std::string ToJson(const Options& options, const Machine& machine, const std::vector<StackResults>& results) {
  Json json = ReportHead("peers", kSchemaVersion, options, machine);
  json["cell_seconds"] = options.seconds;
  json["leaf_config"] = options.leaf_config;
  json["stacks"] = Json::array();
  for (const StackResults& one : results) json["stacks"].push_back(StackJson(options, one));
  json["ratios"] = Json::array();
  for (const Ratio& ratio : RatiosOf(options, results)) json["ratios"].push_back(RatioJson(ratio));
  return Dump(json);
}

std::string InstructionsToJson(const Options& options, const Machine& machine,
                               const std::vector<Instructions>& results) {
  Json json = ReportHead("peers instructions", kSchemaVersion, options, machine);
  json["setup"] = SetupJson(options.setup);
  json["stacks"] = Json::array();
  for (const Instructions& one : results) {
    Json loads = Json::array();
    for (size_t i = 0; i < one.per_request.size(); ++i) {
      loads.push_back({{"load", absl::StrCat("closed-", kCountedLoads[i])},
                       {"user_instructions_per_request", OrNull(one.per_request[i])}});
    }
    json["stacks"].push_back({{"stack", one.stack},
                              {"varied", OrNull(one.setup)},
                              {"note", OrNull(one.note)},
                              {"loads", std::move(loads)}});
  }
  return Dump(json);
}

}  // namespace curtail::bench
