// SPDX-License-Identifier: Apache-2.0
#include "apps/kit/clicks/shows.h"

#include <cstdio>
#include <vector>

#include "apps/kit/data/data.h"
#include "apps/kit/data/model_file.h"
#include "curtail/base/strings.h"

namespace curtail::apps {

absl::Status CountShown(SqlSession& session, uint64_t user, std::span<const uint64_t> ads) {
  return session.QueryEach(
      "INSERT INTO shows SELECT ?1, ?2, 1, 0 WHERE EXISTS (SELECT 1 FROM ads WHERE id = ?2) "
      "ON CONFLICT(user, ad) DO UPDATE SET shown = shows.shown + 1",
      2, EachWith(user, ads), [](size_t, const SqlRow&) {});
}

absl::Status CountClick(SqlSession& session, uint64_t user, uint64_t ad) {
  absl::Status status = session.Execute(
      "UPDATE shows SET clicked = clicked + 1 WHERE user = ?1 AND ad = ?2 AND clicked < shown", {user, ad});
  if (!status.ok() || session.changes() > 0) return status;
  return absl::FailedPreconditionError("the ad was not shown to the user so often");
}

absl::Status LearnClicks(const std::string& folder, const LogisticTraining& training, bool quiet) {
  std::vector<AdShown> shown;
  uint64_t all = 0, clicked = 0;
  absl::Status status = LookAtData(folder, "ads", [&](SqlSession& session) {
    return session.Query(
        "SELECT shows.user, ad, topic, shown, clicked FROM shows JOIN ads ON ads.id = ad", {},
        [&](const SqlRow& row) {
          shown.push_back({ClickFeaturesOf(row.Unsigned(0), row.Unsigned(1), row.Text(2)),
                           static_cast<uint32_t>(row.Unsigned(3)), static_cast<uint32_t>(row.Unsigned(4))});
          all += shown.back().shown, clicked += shown.back().clicked;
        });
  });
  if (!status.ok() || shown.empty()) return status;
  if (!quiet) {
    const HeldOutLoss loss = LossOfHeldOut(shown, training);
    std::printf(
        "ads shown %llu times, clicked %llu times: log loss of %llu held out %.4f, by the rate alone %.4f\n",
        static_cast<unsigned long long>(all), static_cast<unsigned long long>(clicked),
        static_cast<unsigned long long>(loss.showings), loss.by_model, loss.by_rate);
  }
  return WriteMessage(TrainClicks(shown, training), Join(folder, "/", kClickModelFile));
}

}  // namespace curtail::apps
