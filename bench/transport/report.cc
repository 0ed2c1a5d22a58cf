// SPDX-License-Identifier: Apache-2.0
#include "report.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "bench/common/report.h"
#include "nlohmann/json.hpp"
#include "variants.h"

namespace curtail::bench {
namespace {

constexpr int kSchemaVersion = 2;

using Rounds = std::vector<Measurement>;

// The kernel's part of the CPU time, all rounds together: one round has too few ticks.
double SystemShare(const Rounds& rounds) {
  double user = 0, system = 0;
  for (const Measurement& round : rounds) user += round.user_ticks, system += round.system_ticks;
  return user + system > 0 ? system / (user + system) : 0;
}

const Rounds* Find(const VariantResults& results, const Load& cell) {
  const auto found = results.rounds.find(cell);
  return found == results.rounds.end() || found->second.empty() ? nullptr : &found->second;
}

// How `rounds` compares with `base`, round by round, which takes out what disturbed both.
std::string Ratio(const Rounds* base, const Rounds& rounds, double Measurement::* field) {
  if (base == nullptr || base == &rounds) return "";
  std::vector<double> ratios;
  for (size_t i = 0; i < std::min(base->size(), rounds.size()); ++i) {
    if ((*base)[i].*field > 0) ratios.push_back(rounds[i].*field / ((*base)[i].*field));
  }
  if (ratios.empty()) return "";
  const Spread spread = SpreadOf(std::move(ratios));
  return absl::StrFormat("%.2f+-%.2f", spread.median, spread.quartile);
}

std::string Number(const Spread& spread) {
  const int digits = spread.median < 100 ? 1 : 0;
  return absl::StrFormat("%.*f+-%.*f", digits, spread.median, digits, spread.quartile);
}

std::string Kilo(std::optional<double> instructions) {
  return instructions ? absl::StrFormat("%.1f", *instructions / 1000) : "-";
}

constexpr char kRow[] = "%-13s %14s %12s %14s %15s %12s %12s %5s %7s %7s %7s %7s\n";

std::string Header(const Load& cell) {
  return absl::StrCat("\n", cell.Name(), "\n",
                      absl::StrFormat(kRow, "variant", "p50 us", "p50 ratio", "p99 us", "answers/s", "CPU us",
                                      "CPU ratio", "sys%", "switch", "calls", "K ins u", "K ins k"));
}

std::string RowOf(const std::string& name, const Rounds* base, const Rounds& rounds) {
  return absl::StrFormat(
      kRow, name, Number(SpreadOf(rounds, &Measurement::p50_us)), Ratio(base, rounds, &Measurement::p50_us),
      Number(SpreadOf(rounds, &Measurement::p99_us)),
      Number(SpreadOf(rounds, &Measurement::answers_per_second)),
      Number(SpreadOf(rounds, &Measurement::cpu_us)), Ratio(base, rounds, &Measurement::cpu_us),
      absl::StrFormat("%.0f", 100 * SystemShare(rounds)),
      absl::StrFormat("%.2f", SpreadOf(rounds, &Measurement::context_switches).median),
      absl::StrFormat("%.2f", SpreadOf(rounds, &Measurement::system_calls).median),
      Kilo(Median(rounds, &Measurement::user_instructions)),
      Kilo(Median(rounds, &Measurement::kernel_instructions)));
}

// The base of ratios.
const Rounds* Base(const std::vector<VariantResults>& results, const Load& cell) {
  for (const VariantResults& each : results) {
    if (each.variant == (cell.kind == Load::Kind::kEcho ? "large-copy" : "epoll-et")) return Find(each, cell);
  }
  return nullptr;
}

std::string Notes(const std::vector<VariantResults>& results) {
  std::string text = "\n";
  for (const VariantResults& each : results) {
    absl::StrAppend(&text, absl::StrFormat("%-13s %s\n", each.variant, FindVariant(each.variant)->what));
    if (!each.first_error.ok()) {
      absl::StrAppend(&text, "              NOT MEASURED: ", each.first_error.ToString(), "\n");
    }
    for (const auto& [cell, rounds] : each.rounds) {
      const double copied = SpreadOf(rounds, &Measurement::copied).median;
      if (copied > 0) {
        absl::StrAppend(
            &text, absl::StrFormat("              %s: the kernel copied after all, in %.2f sends a message\n",
                                   cell.Name(), copied));
      }
    }
  }
  return absl::StrCat(text, BusyPollNote(), "\n");
}

Json JsonOf(const Spread& spread) {
  Json json = ToJson(spread);
  json["half_interquartile"] = spread.quartile;
  json["lower_quartile"] = spread.low;
  return json;
}

Json JsonOf(const Rounds& rounds) {
  return {{"rounds", rounds.size()},
          {"p50_us", JsonOf(SpreadOf(rounds, &Measurement::p50_us))},
          {"p99_us", JsonOf(SpreadOf(rounds, &Measurement::p99_us))},
          {"answers_per_second", JsonOf(SpreadOf(rounds, &Measurement::answers_per_second))},
          {"cpu_us_per_answer", JsonOf(SpreadOf(rounds, &Measurement::cpu_us))},
          {"system_share_of_cpu", SystemShare(rounds)},
          {"context_switches_per_answer", JsonOf(SpreadOf(rounds, &Measurement::context_switches))},
          {"system_calls_per_answer", JsonOf(SpreadOf(rounds, &Measurement::system_calls))},
          {"copied_zero_copy_sends_per_answer", JsonOf(SpreadOf(rounds, &Measurement::copied))},
          {"user_instructions_per_answer", OrNull(Median(rounds, &Measurement::user_instructions))},
          {"kernel_instructions_per_answer", OrNull(Median(rounds, &Measurement::kernel_instructions))}};
}

}  // namespace

std::string ToTable(const Options& options, const Machine& before, const Machine& after,
                    const std::vector<VariantResults>& results) {
  std::string text = absl::StrCat(
      before.kernel, "\nbefore: ", ToString(before), "\nafter: ", ToString(after), "\n",
      absl::StrFormat("%d rounds of %.2g s a cell, interleaved; median +- half the interquartile range; CPU, "
                      "switches, calls and instructions are the\nmid-tier's for each answer; ratios are to "
                      "epoll-et (large-copy for echo), round by round; %d callers; seed %d\n",
                      options.rounds, options.seconds, options.callers, options.seed));
  for (const Load& cell : options.cells) {
    std::string rows;
    for (const VariantResults& each : results) {
      if (const Rounds* rounds = Find(each, cell))
        absl::StrAppend(&rows, RowOf(each.variant, Base(results, cell), *rounds));
    }
    if (!rows.empty()) absl::StrAppend(&text, Header(cell), rows);
  }
  return absl::StrCat(text, Notes(results));
}

std::string ToJson(const Options& options, const Machine& before, const Machine& after,
                   const std::vector<VariantResults>& results) {
  Json json = ReportHead("transport", kSchemaVersion, options, before);
  json["machine_after"] = ToJson(after);
  json["seconds_per_cell"] = options.seconds;
  json["callers"] = options.callers;
  json["busy_poll"] = BusyPollNote();
  json["variants"] = Json::array();
  for (const VariantResults& each : results) {
    Json loads = Json::object();
    for (const auto& [cell, rounds] : each.rounds) loads[cell.Name()] = JsonOf(rounds);
    json["variants"].push_back({{"variant", each.variant},
                                {"what", FindVariant(each.variant)->what},
                                {"error", OrNull(each.first_error.ok() ? "" : each.first_error.ToString())},
                                {"loads", std::move(loads)}});
  }
  return Dump(json);
}

}  // namespace curtail::bench
