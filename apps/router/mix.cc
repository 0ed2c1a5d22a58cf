// SPDX-License-Identifier: Apache-2.0
//
// The six core workloads of YCSB, and its .properties files (Java's format, without Unicode escapes).
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "apps/router/workload.h"
#include "curtail/base/strings.h"

namespace curtail::router {
namespace {

constexpr size_t kMaxFileBytes = 1 << 20;
constexpr uint64_t kMaxRecords = uint64_t{1} << 32;
constexpr uint64_t kMaxValue = uint64_t{1} << 20;

// CoreWorkload's properties that are about what is not done here, or is done elsewhere.
constexpr std::array<std::string_view, 22> kIgnored = {"workload",
                                                       "operationcount",
                                                       "table",
                                                       "readallfields",
                                                       "writeallfields",
                                                       "maxexecutiontime",
                                                       "threadcount",
                                                       "target",
                                                       "insertstart",
                                                       "insertcount",
                                                       "measurementtype",
                                                       "exporter",
                                                       "exportfile",
                                                       "dataintegrity",
                                                       "fieldnameprefix",
                                                       "maxscanlength",
                                                       "minscanlength",
                                                       "histogram.buckets",
                                                       "timeseries.granularity",
                                                       "scanlengthdistribution",
                                                       "db",
                                                       "core_workload_insertion_retry_limit"};

// Properties as they are read; a Mix has no place for scans.
struct Reading {
  Mix mix;
  double scan = 0;
};

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\f\r";
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

absl::Status SetShare(std::string_view text, double* share) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *share);
  if (error == std::errc() && end == text.data() + text.size() && *share >= 0 && *share <= 1) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(Join("\"", text, "\" is not a share; want a number from 0 to 1"));
}

absl::Status SetCount(std::string_view text, uint64_t most, uint64_t* count) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *count);
  if (error == std::errc() && end == text.data() + text.size() && *count >= 1 && *count <= most) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(Join("\"", text, "\" is not a count; want 1 to ", most));
}

absl::Status SetChoice(std::string_view text, std::initializer_list<std::string_view> choices,
                       std::string* choice) {
  std::string all;
  for (const std::string_view one : choices) {
    if (text == one) {
      *choice = one;
      return absl::OkStatus();
    }
    all += Join(all.empty() ? "" : ", ", one);
  }
  return absl::InvalidArgumentError(Join("\"", text, "\" is not offered; want one of ", all));
}

absl::Status SetProperty(std::string_view name, std::string_view value, Reading* reading) {
  Mix& mix = reading->mix;
  std::string choice;
  if (name == "readproportion") return SetShare(value, &mix.read);
  if (name == "updateproportion") return SetShare(value, &mix.update);
  if (name == "insertproportion") return SetShare(value, &mix.insert);
  if (name == "readmodifywriteproportion") return SetShare(value, &mix.read_modify_write);
  if (name == "scanproportion") return SetShare(value, &reading->scan);
  if (name == "recordcount") return SetCount(value, kMaxRecords, &mix.records);
  if (name == "fieldcount") return SetCount(value, kMaxValue, &mix.fields);
  if (name == "fieldlength") return SetCount(value, kMaxValue, &mix.field_bytes);
  if (name == "fieldlengthdistribution") return SetChoice(value, {"constant"}, &choice);
  if (name == "requestdistribution") {
    return SetChoice(value, {"uniform", "zipfian", "latest", "sequential"}, &mix.distribution);
  }
  if (name == "insertorder") {
    absl::Status status = SetChoice(value, {"hashed", "ordered"}, &choice);
    mix.hashed_keys = choice != "ordered";
    return status;
  }
  if (name == "zeropadding") return SetChoice(value, {"1"}, &choice);
  // Those with a dot belong to YCSB's bindings and exporters.
  const bool ignored = name.find('.') != std::string_view::npos ||
                       std::find(kIgnored.begin(), kIgnored.end(), name) != kIgnored.end();
  if (ignored) return absl::OkStatus();
  return absl::InvalidArgumentError("no such property of YCSB's core workload is known");
}

// YCSB's own defaults, where a file says nothing.
Reading YcsbDefaults() {
  Reading reading;
  reading.mix.read = 0.95;
  reading.mix.update = 0.05;
  reading.mix.distribution = "uniform";
  return reading;
}

absl::Status CheckMix(const Reading& reading, std::string_view name) {
  const Mix& mix = reading.mix;
  if (reading.scan > 0) {
    return absl::InvalidArgumentError(
        Join("workload ", name,
             " has scans, which a store of hashed keys cannot do (YCSB's workload E); "
             "want a, b, c, d, f, or a file without scans"));
  }
  const double sum = mix.read + mix.update + mix.insert + mix.read_modify_write;
  if (std::abs(sum - 1) > 1e-6) {
    return absl::InvalidArgumentError(
        Join("the proportions of workload ", name, " add up to ", std::to_string(sum), "; want 1"));
  }
  if (mix.insert > 0 && mix.read_modify_write > 0) {
    return absl::InvalidArgumentError(
        Join("workload ", name, " has inserts and read-modify-writes; want one of the two"));
  }
  const uint64_t bytes = mix.value_bytes();
  if (bytes < kMinValueBytes || bytes > kMaxValue) {
    return absl::InvalidArgumentError(Join("the values of workload ", name, " have ", bytes, " bytes; want ",
                                           kMinValueBytes, " to ", kMaxValue));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return absl::InvalidArgumentError(
        Join("--queries: cannot open \"", path, "\"; write a, b, c, d, f or the path of a file"));
  }
  std::string text(kMaxFileBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  if (text.size() > kMaxFileBytes) {
    return absl::InvalidArgumentError(Join(path, " has more than 1 MiB; want a .properties file of YCSB"));
  }
  return text;
}

}  // namespace

absl::StatusOr<Mix> ParseMix(std::string_view text, std::string_view name) {
  Reading reading = YcsbDefaults();
  for (int number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = Trim(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line[0] == '#' || line[0] == '!') continue;
    const size_t split = line.find_first_of("=:");
    absl::Status status = absl::InvalidArgumentError("want NAME=VALUE");
    const std::string_view property = Trim(line.substr(0, split));
    if (split != std::string_view::npos) {
      status = SetProperty(property, Trim(line.substr(split + 1)), &reading);
    }
    if (!status.ok()) {
      return absl::InvalidArgumentError(
          Join(name, ", line ", number, ", ", property.substr(0, 80), ": ", Message(status)));
    }
  }
  if (absl::Status status = CheckMix(reading, name); !status.ok()) return status;
  return reading.mix;
}

absl::StatusOr<Mix> ReadMix(const std::string& workload) {
  if (workload == "a") return Mix{};
  if (workload == "b") return Mix{.read = 0.95, .update = 0.05};
  if (workload == "c") return Mix{.read = 1, .update = 0};
  if (workload == "d") return Mix{.read = 0.95, .update = 0, .insert = 0.05, .distribution = "latest"};
  if (workload == "e") {
    Reading scans;
    scans.scan = 0.95;
    return CheckMix(scans, workload);
  }
  if (workload == "f") return Mix{.read = 0.5, .update = 0, .read_modify_write = 0.5};
  absl::StatusOr<std::string> text = ReadFile(workload);
  if (!text.ok()) return text.status();
  return ParseMix(*text, workload);
}

absl::StatusOr<Mix> MixOf(const WorkloadOptions& options) {
  absl::StatusOr<Mix> mix = ReadMix(options.workload);
  if (!mix.ok()) return mix;
  if (options.records > kMaxRecords) {
    return absl::InvalidArgumentError(Join("records is ", options.records, "; want 1 to ", kMaxRecords));
  }
  if (options.records > 0) mix->records = options.records;
  if (options.value_bytes > 0) mix->fields = 1, mix->field_bytes = options.value_bytes;
  if (absl::Status status = CheckMix({.mix = *mix}, options.workload); !status.ok()) return status;
  return mix;
}

}  // namespace curtail::router
