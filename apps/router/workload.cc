// SPDX-License-Identifier: Apache-2.0
#include "apps/router/workload.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "curtail/base/strings.h"
#include "router.curtail.h"
#include "router.pb.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace curtail::router {
namespace {

// Newer inserts than so many requests ago are not read: they may be under way.
constexpr uint64_t kSettled = 4096;
// Of zipfian distributions, YCSB's.
constexpr char kZipf[] = "zipf:0.99";

// The 64 bits that a request's random choice is made of; `what` keeps choices apart.
uint64_t Bits(uint64_t seed, uint64_t what, uint64_t index) {
  const uint64_t words[] = {what, index};
  return XXH3_64bits_withSeed(words, sizeof words, seed);
}

double Uniform01(uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }

// YCSB's hash of a record number (FNV-1a's constants, byte by byte).
uint64_t Fnv(uint64_t value) {
  uint64_t hash = 0xCBF29CE484222325u;
  for (int i = 0; i < 8; ++i, value >>= 8) hash = (hash ^ (value & 0xff)) * 1099511628211u;
  // As YCSB has it: the absolute value of a signed number.
  const auto signed_hash = static_cast<int64_t>(hash);
  return signed_hash < 0 ? ~hash + 1 : hash;
}

enum class Operation { kGet, kUpdate, kInsert };

struct Planned {
  Operation operation;
  uint64_t record;
};

class YcsbWorkload final : public Workload {
 public:
  YcsbWorkload(Mix mix, uint64_t seed, ItemChoice choice)
      : mix_(std::move(mix)), seed_(seed), choice_(std::move(choice)) {}

  std::string_view method() const override { return Router::kGet.path; }
  std::string_view MethodOf(uint64_t index) const override {
    return Plan(index).operation == Operation::kGet ? Router::kGet.path : Router::kSet.path;
  }

  std::string Request(uint64_t index) const override {
    const Planned planned = Plan(index);
    std::string key = KeyOf(mix_, planned.record);
    if (planned.operation == Operation::kGet) {
      GetRequest request;
      request.set_key(std::move(key));
      return request.SerializeAsString();
    }
    SetRequest request;
    request.set_value(ValueOf(key, index + 1, mix_.value_bytes()));
    request.set_key(std::move(key));
    return request.SerializeAsString();
  }

  double Score(uint64_t index, std::string_view reply) const override {
    const Planned planned = Plan(index);
    if (planned.operation != Operation::kGet) return std::numeric_limits<double>::quiet_NaN();
    GetReply parsed;
    if (!parsed.ParseFromArray(reply.data(), static_cast<int>(reply.size()))) return 0;
    const bool right =
        parsed.found() && IsValueOf(KeyOf(mix_, planned.record), parsed.value(), mix_.value_bytes());
    return right ? 1 : 0;
  }
  std::string_view score_name() const override { return "right"; }

 private:
  Planned Plan(uint64_t index) const {
    if (mix_.read_modify_write > 0) return PlanInPairs(index);
    // Inserts come in even steps, so that how many there were before a request is known without looking back.
    if (Inserts(index + 1) > Inserts(index)) return {Operation::kInsert, mix_.records + Inserts(index)};
    const double rest = 1 - mix_.insert;
    const bool read = Uniform01(Bits(seed_, 1, index)) * rest < mix_.read;
    return {read ? Operation::kGet : Operation::kUpdate, Record(index)};
  }

  // Requests 2n and 2n + 1 are a read-modify-write, or two operations.
  Planned PlanInPairs(uint64_t index) const {
    const uint64_t first = index & ~uint64_t{1};
    const double share = mix_.read_modify_write / (mix_.read_modify_write + (mix_.read + mix_.update) / 2);
    if (Uniform01(Bits(seed_, 2, first)) < share) {
      return {index == first ? Operation::kGet : Operation::kUpdate, Record(first)};
    }
    const bool read = Uniform01(Bits(seed_, 1, index)) * (mix_.read + mix_.update) < mix_.read;
    return {read ? Operation::kGet : Operation::kUpdate, Record(index)};
  }

  uint64_t Inserts(uint64_t before) const {
    return static_cast<uint64_t>(std::floor(static_cast<double>(before) * mix_.insert));
  }

  uint64_t Record(uint64_t index) const {
    const uint64_t item = choice_.Index(index);
    if (mix_.distribution != "latest") return item;
    const uint64_t settled = mix_.records + Inserts(index < kSettled ? 0 : index - kSettled);
    return settled - 1 - item;  // item < records
  }

  // Immutable after construction.
  const Mix mix_;
  const uint64_t seed_;
  const ItemChoice choice_;
};

}  // namespace

std::string KeyOf(const Mix& mix, uint64_t record) {
  return Join("user", mix.hashed_keys ? Fnv(record) : record);
}

std::string ValueOf(std::string_view key, uint64_t edition, size_t bytes) {
  std::string value(bytes, '\0');
  std::memcpy(value.data(), &edition, std::min(bytes, sizeof edition));
  // The edition is mixed with the key's hash, then every 8 bytes depend on both and on where they are.
  uint64_t state = XXH3_64bits_withSeed(key.data(), key.size(), edition);
  for (size_t at = sizeof edition; at < bytes; at += sizeof state) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const uint64_t word = state ^ state >> 29;
    std::memcpy(value.data() + at, &word, std::min(sizeof word, bytes - at));
  }
  return value;
}

bool IsValueOf(std::string_view key, std::string_view value, size_t bytes) {
  if (value.size() != bytes || bytes < kMinValueBytes) return false;
  uint64_t edition = 0;
  std::memcpy(&edition, value.data(), sizeof edition);
  return ValueOf(key, edition, bytes) == value;
}

absl::StatusOr<std::unique_ptr<Workload>> MakeWorkload(const WorkloadOptions& options) {
  absl::StatusOr<Mix> mix = MixOf(options);
  if (!mix.ok()) return mix.status();
  std::string spec = kZipf;
  if (mix->distribution == "uniform") spec = "uniform";
  if (mix->distribution == "sequential") spec = "in-turn";
  absl::StatusOr<ItemChoice> choice = ParseItemChoice(spec, mix->records, Bits(options.seed, 3, 0));
  if (!choice.ok()) return choice.status();
  return std::make_unique<YcsbWorkload>(*std::move(mix), options.seed, *std::move(choice));
}

apps::AppRequests Requests() {
  return {.service = "curtail.router.Router",
          .options = {{"queries", "YCSB's a, b, c, d, f or a file [a]"}, {"records", "keys of the mix"}},
          .make = [](const apps::RequestOptions& o) -> absl::StatusOr<std::unique_ptr<Workload>> {
            WorkloadOptions options;
            options.workload = o.Text("queries", options.workload);
            const absl::StatusOr<uint64_t> records = o.Number("records", 0);
            if (!records.ok()) return records.status();
            // A file says itself how many there are.
            if (options.workload.size() == 1) options.records = *records;
            return MakeWorkload(options);
          }};
}

}  // namespace curtail::router
