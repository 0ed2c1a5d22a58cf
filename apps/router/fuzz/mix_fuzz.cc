// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as YCSB's .properties: what is accepted keeps the promises that the workload relies on.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "apps/router/workload.h"
#include "curtail/store/memcached_codec.h"

namespace {

using namespace curtail::router;

void Require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto mix = ParseMix({reinterpret_cast<const char*>(data), size}, "input");
  if (!mix.ok()) {
    Require(mix.status().code() == absl::StatusCode::kInvalidArgument);
    return 0;
  }
  Require(std::abs(mix->read + mix->update + mix->insert + mix->read_modify_write - 1) < 1e-3);
  Require(mix->records >= 1);
  Require(mix->value_bytes() >= kMinValueBytes && mix->value_bytes() <= curtail::memcached::kMaxValueBytes);
  Require(curtail::memcached::CheckKey(KeyOf(*mix, mix->records - 1)).ok());
  return 0;
}
