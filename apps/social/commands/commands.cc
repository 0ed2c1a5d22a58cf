// SPDX-License-Identifier: Apache-2.0
//
// The commands of `social` that serve nothing.
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "apps/kit/command.h"
#include "apps/kit/data/store_command.h"
#include "apps/social/common/train.h"
#include "apps/social/data.h"
#include "apps/social/load/fill.h"
#include "curtail/base/log.h"
#include "curtail/base/strings.h"
#include "curtail/deploy/process/process.h"
#include "curtail/rpc/host.h"

namespace curtail::social {
namespace {

// Trains on the stores of a folder, or says that it has none: on a cluster every service has a folder of its own, and this
// command another.
absl::Status TrainOnStores(const std::string& data) {
  TrainOptions options;
  options.data = data;
  options.quiet = true;
  absl::Status trained = Train(options);
  if (!absl::IsNotFound(trained)) return trained;
  Log(Severity::kWarning,
      Join("nothing is learned: ", Message(trained),
           "\n--train wants a --data that has the stores of all services; on a cluster each has a volume of "
           "its own"),
      {}, /*from=*/"");
  return absl::OkStatus();
}

struct FillAndTrainOptions : FillOptions {
  bool train = false;
};

absl::Status FillAndTrain(const FillAndTrainOptions& options) {
  absl::Status filled = Fill(options);
  return filled.ok() && options.train ? TrainOnStores(options.data) : filled;
}

void AddFlags(Flags& flags, FillAndTrainOptions& options) {
  apps::AddFillFlags(flags, &options);
  flags.Add("--graph", &options.graph,
            "Edge list that says who follows whom, such as socfb-Reed98; none: generated");
  flags.Add("--users", &options.users, "Without --graph: how many", {2, 1e7});
  flags.Add("--follows", &options.follows, "Without --graph: how many", {0, 1e8});
  flags.Add("--posts", &options.posts, "How many new users compose in all", {0, 1e8});
  flags.Add("--ads", &options.ads, "How many there are in all", {0, 1000});
  flags.Add("--train", &options.train, "Then learn from it, as social train does, if --data has the stores");
}

void AddFlags(Flags& flags, TrainOptions& options) {
  flags.Add("--data", &options.data, "Folder of the stores, which gets the models");
  flags.Add("--rank", &options.follows.rank, "Factors of a user", {1, 256});
  flags.Add("--iterations", &options.follows.iterations, "Turns of least squares", {1, 1000});
  flags.Add("--regularization", &options.follows.regularization,
            "Weight of squared factors, a pair of a user", {1e-6, 1e6});
  flags.Add("--seed", &options.follows.seed, "Of the first factors and of drawn pairs");
  flags.Add("--threads", &options.follows.threads, "Threads", {1, 256});
  flags.Add("--quiet", &options.quiet, "Say nothing of how good it is");
}

// Starts redis-server in this process's place.
absl::Status BecomeRedis(const std::string& folder, const std::string& socket) {
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    return absl::FailedPreconditionError(Join(folder, ": ", std::strerror(errno)));
  }
  // Every acknowledged write is on the disk, as with SQLite.
  const absl::Status failed = deploy::BecomeProgram(
      {"redis-server", "--port", "0", "--unixsocket", socket, "--unixsocketperm", "700", "--dir", folder,
       "--save", "", "--appendonly", "yes", "--appendfsync", "always", "--loglevel", "warning"});
  return absl::FailedPreconditionError(Join(Message(failed), "; Debian has it in the package redis-server"));
}

}  // namespace

std::vector<HostCommand> Commands() {
  return {apps::CommandOf<FillAndTrainOptions>(
              "fill", "Register users, have them follow each other, compose posts and look at ads",
              "social fill --target 127.0.0.1:7000 --users 962 --follows 37624 --posts 5000\n"
              "  social fill --target 127.0.0.1:7000 --graph socfb-Reed98.mtx",
              AddFlags, FillAndTrain),
          apps::StoreCommand(kApplication, "redis", "redis-server", BecomeRedis),
          apps::PostgresqlCommand(kApplication),
          apps::CommandOf<TrainOptions>(
              "train", "Learn whom users may like to follow and which ads they click",
              "social train                      # the services that are up use it at once\n"
              "  social train --data FOLDER --rank 32",
              AddFlags, Train)};
}

}  // namespace curtail::social
