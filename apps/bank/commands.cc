// SPDX-License-Identifier: Apache-2.0
//
// The commands of `bank` that serve nothing.
#include <memory>
#include <string>
#include <vector>

#include "apps/bank/audit.h"
#include "apps/bank/data.h"
#include "apps/bank/fill.h"
#include "apps/kit/data/store_command.h"
#include "curtail/rpc/host.h"

namespace curtail::bank {
namespace {

HostCommand FillCommand() {
  auto options = std::make_shared<FillOptions>();
  return {.name = "fill",
          .help = "Register customers, open accounts with a deposit on each, and issue cards",
          .examples = "Examples:\n  bank fill --target 127.0.0.1:7000 --customers 1000 --accounts 3",
          .flags =
              [options](Flags& flags) {
                apps::AddFillFlags(flags, options.get());
                flags.Add("--customers", &options->customers, "How many", {1, 1e7});
                flags.Add("--accounts", &options->accounts, "Of each customer", {0, 100});
                flags.Add("--deposit", &options->deposit, "Cents on each account; 0: none", {0, 1e12});
              },
          .run = [options] { return Fill(*options); }};
}

HostCommand AuditCommand() {
  auto data = std::make_shared<std::string>("auto");
  return {
      .name = "audit",
      .help =
          "Check the books of all shards, while nothing is booked; exit 99 names the first row that is wrong",
      .examples = "Examples:\n  bank audit --data FOLDER",
      .flags = [data](Flags& flags) { flags.Add("--data", data.get(), "Folder of the stores"); },
      .run = [data] { return Audit(*data); }};
}

}  // namespace

std::vector<HostCommand> Commands() {
  return {FillCommand(), AuditCommand(), apps::PostgresqlCommand(kApplication)};
}

}  // namespace curtail::bank
