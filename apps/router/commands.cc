// SPDX-License-Identifier: Apache-2.0
#include "apps/router/commands.h"

#include <memory>

#include "apps/router/fill.h"

namespace curtail::router {

std::vector<HostCommand> Commands() {
  auto options = std::make_shared<FillOptions>();
  return {{.name = "load",
           .help = "Set all records of a workload",
           .flags =
               [options](Flags& flags) {
                 apps::AddTargetFlags(flags, &options->target, "Address of the mid-tier");
                 flags.Add("--workload", &options->workload.workload,
                           "YCSB's a, b, c, d, f, or a .properties file");
                 flags.Add("--records", &options->workload.records,
                           "How many, 0: as the workload says (letters: 10000)");
                 flags.Add("--value-bytes", &options->workload.value_bytes,
                           "Of each, 0: as the workload says (letters: 1000)");
                 flags.Add("--in-flight", &options->in_flight, "Sets at once", {1, 4096});
                 flags.Add("--timeout", &options->timeout_s, "Seconds a set may take", {0.001, 3600});
                 flags.Add("--quiet", &options->quiet, "No progress on stderr");
               },
           .run = [options] { return Fill(*options); }}};
}

}  // namespace curtail::router
