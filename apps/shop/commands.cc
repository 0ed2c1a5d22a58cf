// SPDX-License-Identifier: Apache-2.0
//
// The commands of `shop` that serve nothing.
#include <string>
#include <vector>

#include "apps/kit/command.h"
#include "apps/kit/data/store_command.h"
#include "apps/shop/audit.h"
#include "apps/shop/data.h"
#include "apps/shop/fill.h"

namespace curtail::shop {
namespace {

void AddFlags(Flags& flags, FillOptions& options) {
  apps::AddFillFlags(flags, &options);
  flags.Add("--users", &options.users, "How many", {1, 1e7});
  flags.Add("--products", &options.products, "How many to generate", {0, 1e6});
  flags.Add("--stock", &options.stock, "Of each product; 0: none", {0, 1e6});
  flags.Add("--orders", &options.orders, "How many users place", {0, 1e9});
  flags.Add("--pictures", &options.pictures, "fashion-mnist, a folder of such files, or none");
  flags.Add("--clerk", &options.clerk, "The name of the user who enters products, as the front end has it");
}

void AddFlags(Flags& flags, std::string& data) { flags.Add("--data", &data, "Folder of the stores"); }

}  // namespace

std::vector<HostCommand> Commands() {
  return {apps::CommandOf<FillOptions>("fill", "Enter products with stock, register users, and have them buy",
                                       "shop fill --target 127.0.0.1:7000 --users 1000 --products 10000",
                                       AddFlags, Fill),
          apps::CommandOf<std::string>("audit",
                                       "Check orders, charges, stock, invoices and shipments, while no user "
                                       "buys; exit 99 names the first row "
                                       "that is wrong",
                                       "shop audit --data FOLDER", AddFlags, Audit),
          apps::PostgresqlCommand(kApplication)};
}

}  // namespace curtail::shop
