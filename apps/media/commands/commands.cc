// SPDX-License-Identifier: Apache-2.0
//
// The commands of `media` that serve nothing.
#include <string>
#include <vector>

#include "apps/kit/command.h"
#include "apps/kit/data/store_command.h"
#include "apps/media/commands/audit.h"
#include "apps/media/commands/instances.h"
#include "apps/media/commands/maintain.h"
#include "apps/media/common/train.h"
#include "apps/media/common/videos.h"
#include "apps/media/data.h"
#include "apps/media/load/fill.h"

namespace curtail::media {
namespace {

void AddFlags(Flags& flags, FillOptions& options) {
  apps::AddFillFlags(flags, &options);
  flags.Add("--users", &options.users, "How many", {1, 1e7});
  flags.Add("--movies", &options.movies, "How many to generate", {0, 1e7});
  flags.Add("--films", &options.films,
            "Folder of the Wikipedia movie data, *.json.gz, in place of generated movies; or none");
  flags.Add("--reviews", &options.reviews, "How many", {0, 1e9});
  flags.Add("--deposit", &options.deposit, "Cents that each user pays in once; 0: none", {0, 1e9});
}

void AddFlags(Flags& flags, std::string& data) { flags.Add("--data", &data, "Folder of the stores"); }

void AddFlags(Flags& flags, RenderOptions& options) {
  options.data.application = kApplication;
  flags.Add("--data", &options.data.folder, "Folder of the stores");
  flags.Add("--videos", &options.videos, "How many; movies share them", {1, 1000});
  flags.Add("--seconds", &options.seconds, "The length of each", {1, 10'000});
  flags.Add("--ffmpeg", &options.ffmpeg, "The program");
}

void AddFlags(Flags& flags, TrainOptions& options) {
  flags.Add("--data", &options.data, "Folder of the stores, which gets the model");
  flags.Add("--rank", &options.movies.rank, "Factors of a user and of a movie", {1, 256});
  flags.Add("--iterations", &options.movies.iterations, "Turns of least squares", {1, 1000});
  flags.Add("--regularization", &options.movies.regularization, "Weight of squared factors", {1e-6, 1e6});
  flags.Add("--seed", &options.movies.seed, "Of the first factors and of what is held out");
  flags.Add("--threads", &options.movies.threads, "Threads", {1, 256});
}

void AddFlags(Flags& flags, MaintainOptions& options) {
  apps::AddTargetFlags(flags, &options.target, "Address of the service");
  flags
      .Add("--job", &options.job, "sums: of ratings; index: enter all movies again; books: check the wallets")
      .Required();
  flags.Add("--timeout", &options.timeout_s, "Seconds that it may take", {1, 86400});
}

void AddFlags(Flags& flags, InstancesOptions& options) {
  apps::AddTargetFlags(flags, &options.target, "Address of the service");
  flags.Add("--of", &options.service, "A service: front-end or streaming [all]");
}

void AddFlags(Flags& flags, NginxOptions& options) {
  options.data.application = kApplication;
  flags.Add("--data", &options.data.folder, "Folder of the stores");
  flags.Add("--listen", &options.listen, "HOST:PORT").Required();
  flags.Add("--check", &options.check, "HOST:PORT of the load balancer, which knows passes").Required();
  flags.Add("--nginx", &options.nginx, "The program");
}

}  // namespace

std::vector<HostCommand> Commands() {
  return {
      apps::CommandOf<FillOptions>("fill", "Register users, add movies, and write reviews",
                                   "media fill --target 127.0.0.1:7000 --users 1000 --films FOLDER", AddFlags,
                                   Fill),
      apps::CommandOf<std::string>(
          "audit", "Check wallets and rentals, while no user acts; exit 99 names the first row that is wrong",
          "media audit --data FOLDER", AddFlags, Audit),
      apps::CommandOf<InstancesOptions>(
          "instances",
          "List the addresses at which clients call services, as the service `service-discovery` has them",
          "media instances --target ADDRESS --of streaming  # as curtail ps shows it", AddFlags,
          PrintInstances),
      apps::CommandOf<RenderOptions>(
          "render", "Render the videos of the movies that are not there, by ffmpeg",
          "media render --data FOLDER --videos 8 --seconds 60", AddFlags, RenderVideos),
      apps::CommandOf<MaintainOptions>(
          "maintain", "Run a job of the service `maintenance`; exit 99 if it finds broken data",
          "media maintain --job index --target ADDRESS  # as curtail ps shows it", AddFlags, Maintain),
      apps::CommandOf<NginxOptions>(
          "nginx", "Serve the videos by an nginx in this process's place, to those who have a pass",
          "media nginx --listen 127.0.0.1:9000 --check 127.0.0.1:8000", AddFlags, BecomeNginx),
      apps::CommandOf<TrainOptions>(
          "train", "Learn which movies users like and which ads they click, and print how good that is",
          "media train  # a movie-recommender that is up uses it at once", AddFlags, Train),
      apps::PostgresqlCommand(kApplication)};
}

}  // namespace curtail::media
