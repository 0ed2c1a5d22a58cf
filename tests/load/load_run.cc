// SPDX-License-Identifier: Apache-2.0
#include "load_run.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

namespace curtail::bench {
namespace {

using Json = nlohmann::json;

constexpr Nanos kMaxRun = std::chrono::seconds(90);

// A file name of this process that is removed at the end.
class ScratchFile {
 public:
  ScratchFile() {
    static int number = 0;
    path_ = std::filesystem::temp_directory_path() /
            absl::StrCat("curtail-load-truth.", getpid(), ".", number++, ".json");
  }
  ~ScratchFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

void ReadLatency(const Json& latency, LoadRun* run) {
  run->p50_us = latency.at("p50");
  run->p90_us = latency.at("p90");
  run->p99_us = latency.at("p99");
  run->max_us = latency.at("max");
  for (const Json& bucket : latency.at("buckets")) run->buckets.push_back({bucket[0], bucket[1], bucket[2]});
}

void ReadSeries(const Json& series, LoadRun* run) {
  for (const Json& one : series) {
    LoadSecond second;
    second.end_s = one.at("end_s");
    second.length_s = one.at("length_s");
    second.sent = one.at("sent");
    second.failed = one.at("failed");
    second.p50_us = one.at("p50_us");
    second.in_flight = one.at("in_flight");
    run->series.push_back(second);
  }
}

// Throws Json::exception when something is not there.
void ReadResult(const Json& file, LoadRun* run) {
  // Version 1 is one run, from version 2 on there is a list of them.
  const Json& result = file.contains("runs") ? file.at("runs").at(0) : file;
  run->valid = result.at("valid");
  run->invalid_reasons = result.at("invalid_reasons").dump();
  const Json& requests = result.at("requests");
  run->scheduled = requests.at("scheduled");
  run->sent = requests.at("sent");
  run->failed = requests.at("failed");
  run->deadline_exceeded = result.at("codes").value("DEADLINE_EXCEEDED", 0);
  run->sent_per_s = result.at("rates_per_s").at("sent");
  run->send_lag_p99_us = result.at("send_lag_us").at("p99");
  ReadLatency(result.at("latency_us").at("all"), run);
  ReadSeries(result.at("series"), run);
}

}  // namespace

double LoadRun::ValueAtRank(uint64_t rank) const {
  for (const LatencyBucket& bucket : buckets) {
    if (rank <= bucket.count) return bucket.high_us;
    rank -= bucket.count;
  }
  return 0;
}

uint64_t LoadRun::CountAbove(double us) const {
  uint64_t count = 0;
  for (const LatencyBucket& bucket : buckets) {
    if (bucket.low_us > us) count += bucket.count;
  }
  return count;
}

absl::StatusOr<LoadRun> RunLoad(std::vector<std::string> words, std::optional<int> cpu, int nice) {
  const ScratchFile json;
  words.insert(words.begin(), {CURTAIL_COMMAND, "load"});
  words.insert(words.end(), {"--json", json.path().string()});
  absl::StatusOr<ProgramResult> process =
      RunProgram({.argv = std::move(words), .cpu = cpu, .nice = nice, .timeout = kMaxRun});
  if (!process.ok()) return process.status();
  LoadRun run;
  run.process = *std::move(process);
  std::ifstream file(json.path());
  try {
    ReadResult(Json::parse(file), &run);
  } catch (const Json::exception& error) {
    return absl::InternalError(absl::StrCat("no such result as was expected: ", error.what(), "; exit code ",
                                            run.process.exit_code, "\n", run.process.out, run.process.err));
  }
  return run;
}

}  // namespace curtail::bench
