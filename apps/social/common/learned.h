// SPDX-License-Identifier: Apache-2.0
//
// learned.h - a model of whom users follow: trained from who follows whom, pure and repeatable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "models.pb.h"

namespace curtail::social {

// Who follows whom, by id.
using FollowOf = std::pair<uint64_t, uint64_t>;

struct FollowTraining {
  uint32_t rank = 16;
  uint32_t iterations = 10;
  // Weight of the squared factors, for each pair that a user has. Raise it when chance looks like taste.
  double regularization = 0.1;
  // Pairs that do not follow, drawn for each that does.
  uint32_t others = 3;
  uint64_t seed = 1;
  int threads = 1;
};

// Alternating least squares over follows, which count 1, and drawn pairs that do not follow, which count 0.
// Errors: INVALID_ARGUMENT (an option; fewer than two users).
[[nodiscard]] absl::StatusOr<FollowModel> TrainFollows(std::span<const FollowOf> follows,
                                                       const FollowTraining& training);
// How often a model ranks a follow that it has not seen above a pair that does not follow: trains on nine tenths.
// 0.5 is chance. Errors: those of TrainFollows().
[[nodiscard]] absl::StatusOr<double> HeldOutRank(std::span<const FollowOf> follows,
                                                 const FollowTraining& training);
// At most `count` other users, the best first; of users that the model does not know it says who is popular.
std::vector<uint64_t> BestFor(const FollowModel& model, uint64_t user, size_t count);
// DATA_LOSS unless the parts fit each other.
[[nodiscard]] absl::Status Check(const FollowModel& model);

}  // namespace curtail::social
