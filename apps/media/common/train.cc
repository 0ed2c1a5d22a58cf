// SPDX-License-Identifier: Apache-2.0
#include "apps/media/common/train.h"

#include <cstdio>
#include <vector>

#include "apps/kit/clicks/shows.h"
#include "apps/kit/data/data.h"
#include "apps/kit/data/folder.h"
#include "apps/kit/data/model_file.h"
#include "apps/media/data.h"
#include "curtail/base/strings.h"

namespace curtail::media {

absl::Status Train(const TrainOptions& options) {
  const absl::StatusOr<std::string> folder = apps::DataFolder(kApplication, options.data);
  if (!folder.ok()) return folder.status();
  std::vector<apps::Liking> ratings;
  absl::Status status = apps::LookAtData(*folder, "rating", [&](SqlSession& s) {
    return s.Query(
        "SELECT author, movie, stars FROM ratings WHERE removed = 0 ORDER BY review", {},
        [&](const SqlRow& row) {
          ratings.push_back({row.Unsigned(0), row.Unsigned(1), static_cast<float>(row.Integer(2))});
        });
  });
  if (!status.ok()) return status;
  const absl::StatusOr<apps::HeldOutError> error = apps::ErrorOfHeldOut(ratings, options.movies);
  if (!error.ok()) return error.status();
  const absl::StatusOr<apps::TasteModel> model = apps::TrainTaste(ratings, options.movies);
  if (!model.ok()) return model.status();
  std::printf(
      "%zu reviews of %d movies by %d users: RMSE %.3f stars for %zu held out, %.3f by the mean of the "
      "others\n",
      ratings.size(), model->items_size(), model->users_size(), error->by_model, error->scores,
      error->by_mean);
  status = apps::WriteMessage(*model, Join(*folder, "/", kMovieModelFile));
  return status.ok() ? apps::LearnClicks(*folder, options.ads, /*quiet=*/false) : status;
}

}  // namespace curtail::media
