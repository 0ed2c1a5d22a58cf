// SPDX-License-Identifier: Apache-2.0
//
// workload.h - YCSB's operation mixes for the load generator, with values that tell when an answer is wrong.
//
// The mixes are those of the Yahoo! Cloud Serving Benchmark (Cooper et al., SoCC 2010), its core workloads A
// to F.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "apps/kit/load/requests.h"
#include "curtail/load/message/workload.h"

namespace curtail::router {

// The mix of operations, and the keys they ask for. As YCSB's CoreWorkload has it.
struct Mix {
  double read = 0.5;
  double update = 0.5;
  double insert = 0;
  double read_modify_write = 0;
  // uniform, zipfian (0.99), latest (zipfian among the newest), sequential
  std::string distribution = "zipfian";
  uint64_t records = 10000;
  uint64_t fields = 10;
  uint64_t field_bytes = 100;
  // Keys are "user" and the hash of the record's number, not the number itself.
  bool hashed_keys = true;

  uint64_t value_bytes() const { return fields * field_bytes; }
};

struct WorkloadOptions {
  // a, b, c, d or f, or a file in YCSB's .properties format.
  std::string workload = "a";
  // Instead of what the mix says; 0: as it says (the letters: 10,000 records of 1,000 bytes).
  uint64_t records = 0;
  uint64_t value_bytes = 0;
  uint64_t seed = 1;
};

// Reads a mix by letter or from a file. Errors: INVALID_ARGUMENT with file and line (a property that is
// unknown or makes no sense, scans, proportions that do not add up to 1), NOT_FOUND.
[[nodiscard]] absl::StatusOr<Mix> ReadMix(const std::string& workload);
// The same for the text of a .properties file; `name` stands for it in errors. Any bytes.
[[nodiscard]] absl::StatusOr<Mix> ParseMix(std::string_view text, std::string_view name);

// The mix with what the options set instead. Errors: those of ReadMix(), and INVALID_ARGUMENT for sizes out
// of range.
[[nodiscard]] absl::StatusOr<Mix> MixOf(const WorkloadOptions& options);

// The key of a record.
std::string KeyOf(const Mix& mix, uint64_t record);
// A value of a record; each `edition` is another. `bytes` of it, at least kMinValueBytes.
inline constexpr size_t kMinValueBytes = 16;
std::string ValueOf(std::string_view key, uint64_t edition, size_t bytes);
// True if `value` is some edition of the key's value, whole and of that size.
bool IsValueOf(std::string_view key, std::string_view value, size_t bytes);

// A workload of Router.Get and Router.Set over records that `router load` has put there. The score of a get
// is 1 when the key is found and its value is one of the key's; sets are not judged. A read-modify-write is a
// get and a set of one key, sent one after the other, and counts as two requests; inserts come in even steps;
// "latest" means the newest of those whose insert was sent 4,096 requests ago or earlier. Errors: those of
// MixOf().
[[nodiscard]] absl::StatusOr<std::unique_ptr<Workload>> MakeWorkload(const WorkloadOptions& options);

// The application as the tools load it; see apps/kit/load/requests.h.
apps::AppRequests Requests();

}  // namespace curtail::router
