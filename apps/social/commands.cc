// SPDX-License-Identifier: Apache-2.0
//
// The commands of `social` that serve nothing.
#include <memory>
#include <vector>

#include "apps/social/fill.h"
#include "apps/social/train.h"
#include "curtail/rpc/host.h"

namespace curtail::social {
namespace {

HostCommand FillCommand() {
  struct Options : FillOptions {
    bool train = false;
  };
  auto options = std::make_shared<Options>();
  return {.name = "fill",
          .help = "Register users, have them follow each other, compose posts and look at ads",
          .examples = R"(Examples:
  social fill --target 127.0.0.1:7000 --users 962 --follows 37624 --posts 5000
  social fill --target 127.0.0.1:7000 --graph socfb-Reed98.mtx)",
          .flags =
              [options](Flags& flags) {
                flags.Add("--target", &options->target, "Address of the front end").Required();
                flags.Add("--data", &options->data, "Folder that gets the sessions for load tests");
                flags.Add("--graph", &options->graph,
                          "Edge list that says who follows whom, such as socfb-Reed98");
                flags.Add("--users", &options->users, "Without --graph: how many", {2, 1e7});
                flags.Add("--follows", &options->follows, "Without --graph: how many", {0, 1e8});
                flags.Add("--posts", &options->posts, "How many new users compose in all", {0, 1e8});
                flags.Add("--ads", &options->ads, "How many there are in all", {0, 1000});
                flags.Add("--train", &options->train, "Then learn from it, as social train does with --data");
                flags.Add("--seed", &options->seed, "Of what is generated, passwords included");
                flags.Add("--threads", &options->threads, "Calls at once", {1, 256});
                flags.Add("--timeout", &options->timeout_s, "Seconds a call may take", {0.001, 3600});
                flags.Add("--quiet", &options->quiet, "No progress on stderr");
              },
          .run = [options]() -> absl::Status {
            absl::Status filled = Fill(*options);
            if (!filled.ok() || !options->train) return filled;
            TrainOptions train;
            train.data = options->data;
            train.quiet = true;
            return Train(train);
          }};
}

HostCommand TrainCommand() {
  auto options = std::make_shared<TrainOptions>();
  return {.name = "train",
          .help = "Learn whom users may like to follow and which ads they click",
          .examples = R"(Examples:
  social train                      # the services that are up use it at once
  social train --data FOLDER --rank 32)",
          .flags =
              [options](Flags& flags) {
                flags.Add("--data", &options->data, "Folder of the stores, which gets the models");
                flags.Add("--rank", &options->follows.rank, "Factors of a user", {1, 256});
                flags.Add("--iterations", &options->follows.iterations, "Turns of least squares", {1, 1000});
                flags.Add("--regularization", &options->follows.regularization,
                          "Weight of squared factors, a pair of a user", {1e-6, 1e6});
                flags.Add("--seed", &options->follows.seed, "Of the first factors and of drawn pairs");
                flags.Add("--threads", &options->follows.threads, "Threads", {1, 256});
                flags.Add("--quiet", &options->quiet, "Say nothing of how good it is");
              },
          .run = [options] { return Train(*options); }};
}

}  // namespace

std::vector<HostCommand> Commands() { return {FillCommand(), TrainCommand()}; }

}  // namespace curtail::social
