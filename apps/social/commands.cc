// SPDX-License-Identifier: Apache-2.0
//
// The commands of `social` that serve nothing.
#include <memory>
#include <vector>

#include "apps/social/fill.h"
#include "curtail/rpc/host.h"

namespace curtail::social {

std::vector<HostCommand> Commands() {
  auto options = std::make_shared<FillOptions>();
  return {{.name = "fill",
           .help = "Register users, have them follow each other and compose posts",
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
                 flags.Add("--seed", &options->seed, "Of what is generated, passwords included");
                 flags.Add("--threads", &options->threads, "Calls at once", {1, 256});
                 flags.Add("--timeout", &options->timeout_s, "Seconds a call may take", {0.001, 3600});
                 flags.Add("--quiet", &options->quiet, "No progress on stderr");
               },
           .run = [options] { return Fill(*options); }}};
}

}  // namespace curtail::social
