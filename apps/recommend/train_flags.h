// SPDX-License-Identifier: Apache-2.0
//
// train_flags.h - the flags of data and training, which the leaf and the offline commands share.
#pragma once

#include <string>

#include "apps/recommend/model/factorization.h"
#include "curtail/rpc/flags.h"

namespace curtail::recommend {

inline void AddTrainFlags(Flags& flags, TrainOptions* train) {
  flags.Add("--rank", &train->rank, "Factors of a user and of an item");
  flags.Add("--iterations", &train->iterations, "Turns of alternating least squares");
  flags.Add("--regularization", &train->regularization, "Weight of the squared factors");
  flags.Add("--bias-damping", &train->bias_damping, "Ratings a bias needs to count half");
  flags.Add("--train-seed", &train->seed, "Seed of the first factors");
}

inline void AddDataFlags(Flags& flags, std::string* data, int* threads) {
  flags.Add("--data", data, "The ratings; the same for all leaves");
  flags.Add("--threads", threads, "Threads while loading, 0: one a CPU", {0, 1024});
}

inline void AddNeighborsFlag(Flags& flags, size_t* neighbors) {
  flags.Add("--neighbors", neighbors, "Similar users a prediction rests on", {1, 100000});
}

}  // namespace curtail::recommend
