// SPDX-License-Identifier: Apache-2.0
#include "apps/recommend/workload.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "apps/kit/parallel.h"
#include "apps/recommend/model/brute_force.h"
#include "apps/recommend/model/model.h"
#include "curtail/base/rng.h"
#include "curtail/base/strings.h"
#include "recommend.curtail.h"
#include "recommend.pb.h"

namespace curtail::recommend {
namespace {

constexpr size_t kMaxCount = 10'000'000;
constexpr double kTolerance = 1e-4;

class PredictWorkload final : public Workload {
 public:
  PredictWorkload(std::vector<std::string> requests, std::vector<double> truth)
      : requests_(std::move(requests)), truth_(std::move(truth)) {}

  std::string_view method() const override { return Recommend::kPredict.path; }
  std::string Request(uint64_t index) const override { return requests_[index % requests_.size()]; }
  uint64_t distinct() const override { return requests_.size(); }

  double Score(uint64_t index, std::string_view reply) const override {
    const size_t pair = index % requests_.size();
    if (pair >= truth_.size()) return std::numeric_limits<double>::quiet_NaN();
    PredictReply parsed;
    if (!parsed.ParseFromArray(reply.data(), static_cast<int>(reply.size()))) return 0;
    return std::fabs(parsed.rating() - truth_[pair]) <= kTolerance ? 1 : 0;
  }
  std::string_view score_name() const override { return truth_.empty() ? "" : "correct"; }

 private:
  // Immutable after construction.
  const std::vector<std::string> requests_;  // serialized
  const std::vector<double> truth_;          // of the first requests
};

// The user of one rating and the item of another: mostly pairs without a rating, of active users and
// popular items.
std::vector<Rating> DrawPairs(const Ratings& ratings, size_t count, uint64_t seed) {
  Rng rng(seed);
  std::vector<Rating> pairs(count);
  for (Rating& pair : pairs) {
    pair.user = ratings.list[rng.Below(ratings.list.size())].user;
    pair.item = ratings.list[rng.Below(ratings.list.size())].item;
  }
  return pairs;
}

// The answers that the servers must give to the first `judged` pairs.
std::vector<double> Judge(const Ratings& ratings, const std::vector<Rating>& pairs, size_t judged,
                          const WorkloadOptions& options, int threads) {
  std::vector<Model> models;
  for (uint32_t i = 0; i < options.leaves; ++i) {
    const Shard shard{i, static_cast<uint32_t>(options.leaves)};
    Ratings part{{}, ratings.low, ratings.high, 0};
    std::copy_if(ratings.list.begin(), ratings.list.end(), std::back_inserter(part.list),
                 [&](const Rating& r) { return Holds(shard, r.user, r.item); });
    if (part.list.empty()) return {};
    models.push_back(TrainModel(part, shard, options.train, threads, options.quiet));
  }
  std::vector<BruteForce> leaves;
  for (const Model& model : models) leaves.emplace_back(model, options.neighbors);
  std::vector<double> truth(std::min(judged, pairs.size()));
  apps::Progress progress("judging", truth.size(), options.quiet, "requests");
  apps::ForRanges(0, truth.size(), threads, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i, progress.Add(1)) {
      truth[i] = MeanPrediction(leaves, pairs[i].user, pairs[i].item);
    }
    return absl::OkStatus();
  }).IgnoreError();
  return truth;
}

std::string Serialize(const Rating& pair, bool allow_partial) {
  PredictRequest request;
  request.set_user(pair.user);
  request.set_item(pair.item);
  request.set_allow_partial(allow_partial);
  return request.SerializeAsString();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Workload>> MakeWorkload(const WorkloadOptions& options) {
  if (options.count < 1 || options.count > kMaxCount) {
    return absl::InvalidArgumentError(Join("count is ", options.count, "; want 1 to ", kMaxCount));
  }
  if (options.leaves < 1 || options.leaves > kMaxShards || options.neighbors < 1) {
    return absl::InvalidArgumentError(Join("want 1 to ", kMaxShards, " leaves and a neighbour, got ",
                                           options.leaves, " and ", options.neighbors));
  }
  if (absl::Status status = Check(options.train); !status.ok()) return status;
  const absl::StatusOr<DataSpec> spec = DataSpec::Parse(options.data);
  if (!spec.ok()) return spec.status();
  const int threads = apps::Threads(options.threads);
  const absl::StatusOr<Ratings> ratings = ReadRatings(*spec, Shard{}, ReadOptions{threads, options.quiet});
  if (!ratings.ok()) return ratings.status();
  const std::vector<Rating> pairs = DrawPairs(*ratings, options.count, options.seed);
  std::vector<double> truth;
  if (options.judged > 0) {
    truth = Judge(*ratings, pairs, options.judged, options, threads);
    if (truth.empty()) {
      return absl::InvalidArgumentError(
          Join("data '", spec->text, "' has no ratings for one of ", options.leaves, " leaves; use fewer"));
    }
  }
  std::vector<std::string> requests;
  for (const Rating& pair : pairs) requests.push_back(Serialize(pair, options.allow_partial));
  return std::make_unique<PredictWorkload>(std::move(requests), std::move(truth));
}

apps::AppRequests Requests() {
  return {.service = "curtail.recommend.Recommend", .options = {}, .make = [](const apps::RequestOptions& o) {
            WorkloadOptions options;
            options.data = o.data;
            options.count = o.count;
            options.leaves = static_cast<size_t>(o.leaves);
            options.judged = o.judged;
            options.quiet = o.quiet;
            return MakeWorkload(options);
          }};
}

}  // namespace curtail::recommend
