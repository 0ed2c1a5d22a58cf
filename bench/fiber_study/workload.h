// SPDX-License-Identifier: Apache-2.0
//
// workload.h - the posts that are composed: some words, addresses and names, and up to four media each.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "compose.pb.h"
#include "curtail/load/message/workload.h"

namespace curtail::study {

// A ComposeWorkload repeats a few posts drawn from a seed. Thread-safe.
class ComposeWorkload final : public Workload {
 public:
  explicit ComposeWorkload(uint64_t seed);
  std::string_view method() const override;
  std::string Request(uint64_t index) const override { return messages_[index % messages_.size()]; }

  // One of them, and whether `post` is what composing it must give: INTERNAL if not.
  const compose::PostRequest& sample() const { return sample_; }
  absl::Status CheckSample(const compose::Post& post) const;

 private:
  // Immutable after construction.
  std::vector<std::string> messages_;
  compose::PostRequest sample_;
};

}  // namespace curtail::study
