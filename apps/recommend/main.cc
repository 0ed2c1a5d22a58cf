// SPDX-License-Identifier: Apache-2.0
//
// recommend: one service of the rating prediction a process, and the offline tools around it.
#include <CLI/CLI.hpp>
#include <string>

#include "apps/common/serve_flags.h"
#include "apps/recommend/offline.h"
#include "apps/recommend/serve.h"

namespace {

using namespace curtail::recommend;
namespace apps = curtail::apps;

constexpr char kExamples[] = R"(Data (--data):
  FILE                              MovieLens u.data, ratings.dat or ratings.csv; plain, .gz or .bz2
  csv:FILE,user=U,item=I,rating=R   any CSV with a header, by the names of its columns
  synthetic:users=943,items=1682,ratings=100000,rank=4,noise=0.7,seed=1

Examples:
  recommend --service leaf --shard 0/4 --listen 127.0.0.1:7001 --config SIB1
  recommend --service mid-tier --leaf 127.0.0.1:7001 --leaf 127.0.0.1:7002 --leaf 127.0.0.1:7003 \
            --leaf 127.0.0.1:7004 --listen 127.0.0.1:7000 --config SDB1-16
  recommend train --data ratings.csv --shard 0/4 --out model-0.bin
  recommend --service leaf --shard 0/4 --model model-0.bin
  recommend evaluate --data ratings.csv --shards 4
  recommend generate --data synthetic:users=5000,items=2000,ratings=1000000 --out ratings.csv

Exit codes: 0 ok, 104 bad configuration (a flag, a file, an address).)";

void AddTrainFlags(CLI::App& app, TrainOptions* train) {
  app.add_option("--rank", train->rank, "Factors of a user and of an item")->capture_default_str();
  app.add_option("--iterations", train->iterations, "Turns of alternating least squares")
      ->capture_default_str();
  app.add_option("--regularization", train->regularization, "Weight of the squared factors")
      ->capture_default_str();
  app.add_option("--bias-damping", train->bias_damping, "Ratings a bias needs to count half")
      ->capture_default_str();
  app.add_option("--train-seed", train->seed, "Seed of the first factors")->capture_default_str();
}

void AddDataFlags(CLI::App& app, std::string* data, int* threads) {
  app.add_option("--data", *data, "The ratings; the same for all leaves")->capture_default_str();
  app.add_option("--threads", *threads, "Threads while loading, 0: one a CPU")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
}

void AddServiceFlags(CLI::App& app, ServeOptions* serve) {
  apps::AddServeFlags(app, serve);
  AddDataFlags(app, &serve->data, &serve->threads);
  app.add_option("--shard", serve->shard, "leaf: which part of the ratings, INDEX/COUNT")
      ->capture_default_str();
  app.add_option("--model", serve->model, "leaf: a file of `recommend train`, instead of training on --data");
  app.add_option("--neighbors", serve->neighbors, "leaf: similar users a prediction rests on")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  AddTrainFlags(app, &serve->train);
  app.add_option("--leaf", serve->leaves, "mid-tier: address of a leaf; repeat for all")
      ->allow_extra_args(false);
  app.add_option("--leaf-timeout", serve->leaf_timeout_ms, "mid-tier: ms a leaf may take")
      ->check(CLI::Range(0.1, 3.6e6))
      ->capture_default_str();
  app.add_option("--lanes", serve->lanes, "mid-tier: sets of connections to the leaves")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
}

int ExitCode(const absl::Status& status) { return apps::ExitCode("recommend", status); }

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Rating prediction: collaborative filtering over sharded leaves.", "recommend");
  app.footer(kExamples);
  ServeOptions serve;
  AddServiceFlags(app, &serve);

  TrainFileOptions train;
  CLI::App* train_command = app.add_subcommand("train", "Write the model of a leaf to a file");
  AddDataFlags(*train_command, &train.data, &train.threads);
  AddTrainFlags(*train_command, &train.train);
  train_command->add_option("--shard", train.shard, "Which part of the ratings, INDEX/COUNT")
      ->capture_default_str();
  train_command->add_option("--out", train.out, "The file")->required();

  EvaluateOptions evaluate;
  CLI::App* evaluate_command = app.add_subcommand("evaluate", "Predict ratings that training did not see");
  AddDataFlags(*evaluate_command, &evaluate.data, &evaluate.threads);
  AddTrainFlags(*evaluate_command, &evaluate.train);
  evaluate_command->add_option("--neighbors", evaluate.neighbors, "Similar users a prediction rests on")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  evaluate_command->add_option("--shards", evaluate.shards, "Leaves whose mean is taken")
      ->check(CLI::Range(size_t{1}, kMaxShards))
      ->capture_default_str();
  evaluate_command->add_option("--seed", evaluate.seed, "Which tenth is held out")->capture_default_str();

  std::string generate_data = kDefaultData, generate_path;
  CLI::App* generate_command = app.add_subcommand("generate", "Write any data as a MovieLens ratings.csv");
  generate_command->add_option("--data", generate_data, "What to write")->capture_default_str();
  generate_command->add_option("--out", generate_path, "The file")->required();

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : apps::kBadConfiguration;
  }
  if (*train_command) return ExitCode(TrainToFile(train));
  if (*evaluate_command) return ExitCode(PrintEvaluation(evaluate));
  if (*generate_command) return ExitCode(WriteRatings(generate_data, generate_path));
  return apps::RunTier(
      "recommend", serve,
      {{"leaf", [&] { return ServeLeaf(serve); }, [&] { return LeafMemory(serve); }},
       {"mid-tier", [&] { return ServeMidTier(serve); }, [&] { return MidTierMemory(serve); }}});
}
