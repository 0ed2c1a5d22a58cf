// SPDX-License-Identifier: Apache-2.0
#include "apps/recommend/commands.h"

#include <memory>
#include <string>

#include "apps/recommend/offline.h"
#include "apps/recommend/train_flags.h"

namespace curtail::recommend {
namespace {

HostCommand Train() {
  auto options = std::make_shared<TrainFileOptions>();
  return {.name = "train",
          .help = "Write the model of a leaf to a file",
          .flags =
              [options](Flags& flags) {
                AddDataFlags(flags, &options->data, &options->threads);
                AddTrainFlags(flags, &options->train);
                flags.Add("--shard", &options->shard, "Which part of the ratings, INDEX/COUNT");
                flags.Add("--out", &options->out, "The file").Required();
              },
          .run = [options] { return TrainToFile(*options); }};
}

HostCommand EvaluateRatings() {
  auto options = std::make_shared<EvaluateOptions>();
  return {.name = "evaluate",
          .help = "Predict ratings that training did not see",
          .flags =
              [options](Flags& flags) {
                AddDataFlags(flags, &options->data, &options->threads);
                AddTrainFlags(flags, &options->train);
                AddNeighborsFlag(flags, &options->neighbors);
                flags.Add("--shards", &options->shards, "Leaves whose mean is taken",
                          {1, static_cast<double>(kMaxShards)});
                flags.Add("--seed", &options->seed, "Which tenth is held out");
              },
          .run = [options] { return PrintEvaluation(*options); }};
}

HostCommand Generate() {
  struct Options {
    std::string data = kDefaultData, path;
  };
  auto options = std::make_shared<Options>();
  return {.name = "generate",
          .help = "Write any data as a MovieLens ratings.csv",
          .flags =
              [options](Flags& flags) {
                flags.Add("--data", &options->data, "What to write");
                flags.Add("--out", &options->path, "The file").Required();
              },
          .run = [options] { return WriteRatings(options->data, options->path); }};
}

}  // namespace

std::vector<HostCommand> Commands() { return {Train(), EvaluateRatings(), Generate()}; }

}  // namespace curtail::recommend
