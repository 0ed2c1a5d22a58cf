// SPDX-License-Identifier: Apache-2.0
#include "apps/recommend/offline.h"

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "apps/kit/output_file.h"
#include "apps/kit/parallel.h"
#include "apps/recommend/model/model.h"
#include "apps/recommend/model/predictor.h"
#include "curtail/base/strings.h"

namespace curtail::recommend {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Those of `ratings` that `keep` wants.
Ratings Filter(const Ratings& ratings, const std::function<bool(const Rating&)>& keep) {
  Ratings kept{{}, ratings.low, ratings.high, 0, ratings.fingerprint};
  for (const Rating& rating : ratings.list) {
    if (keep(rating)) kept.list.push_back(rating);
  }
  return kept;
}

double Rmse(const Ratings& held_out, int threads, const std::function<double(uint32_t, uint32_t)>& predict) {
  std::vector<double> errors(held_out.list.size());
  apps::ForRanges(0, errors.size(), threads, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const Rating& r = held_out.list[i];
      errors[i] = std::pow(r.value - predict(r.user, r.item), 2);
    }
    return absl::OkStatus();
  }).IgnoreError();
  double sum = 0;
  for (const double error : errors) sum += error;
  return std::sqrt(sum / static_cast<double>(errors.size()));
}

absl::StatusOr<std::vector<std::unique_ptr<Predictor>>> TrainShards(const Ratings& seen,
                                                                    const EvaluateOptions& options,
                                                                    bool quiet) {
  std::vector<std::unique_ptr<Predictor>> leaves;
  for (uint32_t i = 0; i < options.shards; ++i) {
    const Shard shard{i, static_cast<uint32_t>(options.shards)};
    const Ratings part = Filter(seen, [&](const Rating& r) { return Holds(shard, r.user, r.item); });
    if (part.list.empty()) {
      return absl::InvalidArgumentError(
          Join("no ratings for shard ", shard.ToString(), "; use fewer shards"));
    }
    leaves.push_back(std::make_unique<Predictor>(
        TrainModel(part, shard, options.train, apps::Threads(options.threads), quiet), options.neighbors));
  }
  return leaves;
}

void Print(const EvaluateOptions& options, const Evaluation& e) {
  std::printf("ratings      %zu of %zu users for %zu items, from %g to %g; %zu duplicates left out\n",
              e.trained + e.held_out, e.users, e.items, double{e.low}, double{e.high}, e.duplicates);
  std::printf("held out     %zu (seed %llu)\n", e.held_out, static_cast<unsigned long long>(options.seed));
  std::printf("RMSE         %.4f  the mean\n", e.by_mean);
  std::printf("             %.4f  biases of users and items\n", e.by_biases);
  std::printf("             %.4f  one model, trained in %.2f s\n", e.by_one, e.train_s);
  std::printf("             %.4f  the mean of %zu shards\n", e.by_shards, options.shards);
  std::printf("prediction   %.1f us a shard\n", e.predict_us);
}

}  // namespace

absl::Status TrainToFile(const TrainFileOptions& options) {
  const absl::StatusOr<DataSpec> spec = DataSpec::Parse(options.data);
  if (!spec.ok()) return spec.status();
  const absl::StatusOr<Shard> shard = Shard::Parse(options.shard);
  if (!shard.ok()) return shard.status();
  const absl::StatusOr<Model> model =
      TrainModel(*spec, *shard, options.train, ReadOptions{apps::Threads(options.threads), false});
  if (!model.ok()) return model.status();
  if (absl::Status status = WriteModel(*model, options.out); !status.ok()) return status;
  std::printf("%s: shard %s, %zu ratings of %zu users for %zu items, rank %u\n", options.out.c_str(),
              shard->ToString().c_str(), model->matrix.by_item.value.size(), model->matrix.users.size(),
              model->matrix.items.size(), model->train.rank);
  return absl::OkStatus();
}

absl::StatusOr<Evaluation> Evaluate(const EvaluateOptions& options, bool quiet) {
  if (absl::Status status = Check(options.train); !status.ok()) return status;
  const absl::StatusOr<DataSpec> spec = DataSpec::Parse(options.data);
  if (!spec.ok()) return spec.status();
  const int threads = apps::Threads(options.threads);
  const absl::StatusOr<Ratings> all = ReadRatings(*spec, Shard{}, ReadOptions{threads, quiet});
  if (!all.ok()) return all.status();
  const auto is_held_out = [&](const Rating& r) {
    return Mix(Mix(options.seed, 0x4e1d), uint64_t{r.user} << 32 | r.item) % 10 == 0;
  };
  const Ratings seen = Filter(*all, [&](const Rating& r) { return !is_held_out(r); });
  const Ratings held_out = Filter(*all, is_held_out);
  if (seen.list.empty() || held_out.list.empty()) {
    return absl::InvalidArgumentError(
        Join("data '", spec->text, "' has only ", all->list.size(), " ratings; too few to hold out a tenth"));
  }
  Evaluation e{.trained = seen.list.size(), .held_out = held_out.list.size(), .duplicates = all->duplicates};
  e.low = all->low, e.high = all->high;
  Clock::time_point start = Clock::now();
  const Predictor one(TrainModel(seen, Shard{}, options.train, threads, quiet), options.neighbors);
  e.train_s = SecondsSince(start);
  e.users = one.model().matrix.users.size(), e.items = one.model().matrix.items.size();
  const auto leaves = TrainShards(seen, options, quiet);
  if (!leaves.ok()) return leaves.status();

  e.by_mean = Rmse(held_out, threads, [&](uint32_t, uint32_t) { return one.model().factors.mean; });
  e.by_biases =
      Rmse(held_out, threads, [&](uint32_t u, uint32_t i) { return PredictByBiases(one.model(), u, i); });
  e.by_one = Rmse(held_out, threads, [&](uint32_t u, uint32_t i) { return one.Predict(u, i).rating; });
  start = Clock::now();
  e.by_shards = Rmse(held_out, threads, [&](uint32_t u, uint32_t i) {
    double sum = 0;
    for (const auto& leaf : *leaves) sum += leaf->Predict(u, i).rating;
    return sum / static_cast<double>(leaves->size());
  });
  e.predict_us =
      SecondsSince(start) * 1e6 * threads / static_cast<double>(held_out.list.size() * leaves->size());
  return e;
}

absl::Status PrintEvaluation(const EvaluateOptions& options) {
  const absl::StatusOr<Evaluation> evaluation = Evaluate(options, false);
  if (evaluation.ok()) Print(options, *evaluation);
  return evaluation.status();
}

absl::Status WriteRatings(const std::string& data, const std::string& path) {
  const absl::StatusOr<DataSpec> spec = DataSpec::Parse(data);
  if (!spec.ok()) return spec.status();
  const absl::StatusOr<Ratings> ratings = ReadRatings(*spec, Shard{}, ReadOptions{apps::Threads(0), false});
  if (!ratings.ok()) return ratings.status();
  apps::OutputFile file(path);
  if (absl::Status status = file.Write("userId,movieId,rating,timestamp\n"); !status.ok()) return status;
  char line[64];
  for (const Rating& r : ratings->list) {
    const int size = std::snprintf(line, sizeof line, "%u,%u,%.9g,0\n", r.user, r.item, double{r.value});
    if (absl::Status status = file.Write({line, static_cast<size_t>(size)}); !status.ok()) return status;
  }
  return file.Commit();
}

}  // namespace curtail::recommend
