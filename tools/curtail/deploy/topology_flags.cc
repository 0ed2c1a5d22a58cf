// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/deploy/topology_flags.h"

namespace curtail::tool {

void AddTopologyFlags(CLI::App& command, deploy::TopologyChanges* changes) {
  command.add_option("--overlay", changes->overlay,
                     "A file with keys of its services, as curtail provision writes it");
  command.add_option("--set", changes->set, "NAME=VALUE: a variable of the topology, or SERVICE.KEY=VALUE")
      ->allow_extra_args(false);
  command
      .add_option("--use", changes->use, "SERVICE=ADDRESS,...: instances that run already, not to be started")
      ->allow_extra_args(false);
  command
      .add_option("--stores", changes->stores,
                  "STORE,...: optional stores of the topology, such as postgresql, where services keep data; "
                  "servers: all")
      ->delimiter(',')
      ->allow_extra_args(false);
  command
      .add_option("--scale", changes->scale,
                  "N: how many of each service that scales; without N as large as in the paper")
      ->expected(0, 1)
      ->default_str(deploy::kPaperScale);
  command.add_flag("--monolith", changes->monolith,
                   "All services in one process, which call each other there; stores stay processes");
}

}  // namespace curtail::tool
