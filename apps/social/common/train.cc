// SPDX-License-Identifier: Apache-2.0
#include "apps/social/common/train.h"

#include <cstdio>
#include <vector>

#include "apps/kit/clicks/shows.h"
#include "apps/kit/data/folder.h"
#include "apps/kit/data/model_file.h"
#include "apps/social/common/graph_store.h"
#include "apps/social/data.h"
#include "curtail/base/strings.h"

namespace curtail::social {
namespace {

absl::Status LearnFollows(const std::string& folder, const TrainOptions& options) {
  std::vector<FollowOf> follows;
  absl::Status status =
      ForEachFollow(folder, [&](uint64_t user, uint64_t other) { follows.emplace_back(user, other); });
  if (!status.ok()) return status;
  const absl::StatusOr<FollowModel> model = TrainFollows(follows, options.follows);
  if (!model.ok()) return model.status();
  if (!options.quiet) {
    const absl::StatusOr<double> rank = HeldOutRank(follows, options.follows);
    if (!rank.ok()) return rank.status();
    std::printf("%zu follows of %d users: a follow held out ranks above a random pair in %.1f %%\n",
                follows.size(), model->users_size(), 100 * *rank);
  }
  return apps::WriteMessage(*model, Join(folder, "/", kFollowModelFile));
}

}  // namespace

absl::Status Train(const TrainOptions& options) {
  const absl::StatusOr<std::string> folder = apps::DataFolder(kApplication, options.data);
  if (!folder.ok()) return folder.status();
  absl::Status status = LearnFollows(*folder, options);
  return status.ok() ? apps::LearnClicks(*folder, options.ads, options.quiet) : status;
}

}  // namespace curtail::social
