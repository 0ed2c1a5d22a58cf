// SPDX-License-Identifier: Apache-2.0
#include "output.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "nlohmann/json.hpp"
#include "truth.h"

namespace curtail::bench {
namespace {

constexpr double kEmptyMessageBytes = 5;

absl::Status Unexpected(absl::string_view what, absl::string_view text) {
  return absl::InvalidArgumentError(absl::StrCat("expected ", what, ", got: ", text.substr(0, 500)));
}

// The number that follows `label` and perhaps white space.
absl::StatusOr<double> NumberAfter(absl::string_view text, absl::string_view label) {
  const size_t at = text.find(label);
  if (at == absl::string_view::npos) return Unexpected(absl::StrCat("\"", label, "\""), text);
  absl::string_view rest = text.substr(at + label.size());
  rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
  double value = 0;
  if (!absl::SimpleAtod(rest.substr(0, rest.find_first_not_of("0123456789.")), &value)) {
    return Unexpected(absl::StrCat("a number after \"", label, "\""), rest);
  }
  return value;
}

// The number before `label` and after the last space before that.
absl::StatusOr<double> NumberBefore(absl::string_view text, absl::string_view label) {
  const size_t end = text.find(label);
  if (end == absl::string_view::npos) return Unexpected(absl::StrCat("\"", label, "\""), text);
  const size_t space = text.find_last_of(" (", end == 0 ? 0 : end - 1);
  const size_t begin = space == absl::string_view::npos ? 0 : space + 1;
  double value = 0;
  if (!absl::SimpleAtod(text.substr(begin, end - begin), &value)) {
    return Unexpected(absl::StrCat("a number before \"", label, "\""), text);
  }
  return value;
}

// Calls read(), which may throw what the JSON library throws.
template <class Read>
absl::StatusOr<GeneratorRun> ReadJson(const std::string& text, Read read) {
  try {
    GeneratorRun run;
    read(nlohmann::json::parse(text), run);
    return run;
  } catch (const nlohmann::json::exception& error) {
    return Unexpected(absl::StrCat("its JSON (", error.what(), ")"), text);
  }
}

}  // namespace

Percentiles PercentilesOf(const std::vector<Nanos>& values) {
  const auto ms = [&values](double percent) {
    return static_cast<double>(PercentileOf(values, percent).count()) / 1e6;
  };
  return {ms(50), ms(90), ms(99), ms(99.9), ms(100)};
}

absl::StatusOr<GeneratorRun> ParseCurtail(const std::string& json) {
  return ReadJson(json, [](const nlohmann::json& file, GeneratorRun& run) {
    const nlohmann::json& result = file.contains("runs") ? file.at("runs").at(0) : file;
    run.valid = result.at("valid");
    run.answered = result.at("requests").at("ok");
    run.rate_per_s = result.at("rates_per_s").at("good");
    const nlohmann::json& all = result.at("latency_us").at("all");
    const auto ms = [&all](const char* name) { return all.at(name).get<double>() / 1e3; };
    run.latency = {ms("p50"), ms("p90"), ms("p99"), ms("p99_9"), ms("max")};
  });
}

absl::StatusOr<GeneratorRun> ParseGhzJson(const std::string& json) {
  return ReadJson(json, [](const nlohmann::json& result, GeneratorRun& run) {
    std::vector<Nanos> latencies;
    for (const nlohmann::json& one : result.at("details")) {
      latencies.emplace_back(one.at("latency").get<int64_t>());
      run.answered += one.at("status") == "OK" ? 1 : 0;
    }
    run.rate_per_s = result.at("rps");
    run.latency = PercentilesOf(latencies);
  });
}

absl::StatusOr<GeneratorRun> ParseGhzSummary(const std::string& text) {
  const absl::StatusOr<double> answered = NumberAfter(text, "[OK]");
  if (!answered.ok()) return answered.status();
  const absl::StatusOr<double> rate = NumberAfter(text, "Requests/sec:");
  if (!rate.ok()) return rate.status();
  GeneratorRun run;
  run.answered = static_cast<uint64_t>(*answered);
  run.rate_per_s = *rate;
  return run;
}

absl::StatusOr<GeneratorRun> ParseH2load(const std::string& text) {
  const absl::StatusOr<double> answered = NumberBefore(text, " succeeded");
  if (!answered.ok()) return answered.status();
  const absl::StatusOr<double> rate = NumberBefore(text, " req/s,");
  if (!rate.ok()) return rate.status();
  // It counts replies with HTTP status 200, which gRPC's errors have too; but those carry no message.
  const absl::StatusOr<double> data = NumberBefore(text, ") data");
  if (!data.ok()) return data.status();
  if (*data < kEmptyMessageBytes * *answered) return Unexpected("a message in each reply", text);
  GeneratorRun run;
  run.answered = static_cast<uint64_t>(*answered);
  run.rate_per_s = *rate;
  return run;
}

absl::StatusOr<Percentiles> ParseH2loadLog(const std::string& log) {
  std::vector<Nanos> latencies;
  for (const absl::string_view line : absl::StrSplit(log, '\n', absl::SkipEmpty())) {
    const std::vector<absl::string_view> fields = absl::StrSplit(line, '\t');
    int64_t us = 0;
    if (fields.size() < 3 || fields[1] != "200" || !absl::SimpleAtoi(fields[2], &us)) {
      return Unexpected("time, 200, microseconds", line);
    }
    latencies.push_back(std::chrono::microseconds(us));
  }
  return PercentilesOf(latencies);
}

}  // namespace curtail::bench
