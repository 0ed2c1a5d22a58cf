// SPDX-License-Identifier: Apache-2.0
//
// The commands of `shop` that serve nothing.
#include <cstdio>
#include <string>
#include <vector>

#include "apps/kit/command.h"
#include "apps/kit/data/store_command.h"
#include "apps/shop/commands/audit.h"
#include "apps/shop/common/clerk.h"
#include "apps/shop/common/train.h"
#include "apps/shop/data.h"
#include "apps/shop/load/fill.h"

namespace curtail::shop {
namespace {

void AddFlags(Flags& flags, FillOptions& options) {
  apps::AddFillFlags(flags, &options);
  flags.Add("--users", &options.users, "How many", {1, 1e7});
  flags.Add("--products", &options.products, "How many to generate", {0, 1e6});
  flags.Add("--stock", &options.stock, "Of each product; 0: none", {0, 1e6});
  flags.Add("--orders", &options.orders, "How many users place", {0, 1e9});
  flags.Add("--pictures", &options.pictures, "fashion-mnist, a folder of such files, or none");
  flags.Add("--secret", &options.secret, "The file of the secret that signs tokens; by default in --data");
}

struct ClerkOptions {
  apps::DataOptions data = {.application = kApplication};
  int hours = 1;
};

void AddFlags(Flags& flags, ClerkOptions& options) {
  flags.Add("--data", &options.data.folder, "Folder of the stores");
  flags.Add("--secret", &options.data.secret,
            "The file of the secret that signs tokens; by default in --data");
  flags.Add("--hours", &options.hours, "How long the token is valid", {1, 24 * 365});
}

absl::Status PrintClerkToken(const ClerkOptions& options) {
  const absl::StatusOr<std::string> token = ClerkToken(options.data, options.hours);
  if (!token.ok()) return token.status();
  std::printf("%s\n", token->c_str());
  return std::fflush(stdout) == 0 ? absl::OkStatus() : absl::InternalError("the token cannot be written");
}

void AddFlags(Flags& flags, TrainOptions& options) {
  flags.Add("--data", &options.data, "Folder of the stores, which gets the model");
  flags.Add("--others", &options.others, "Products not bought, drawn for each that was", {1, 100});
  flags.Add("--rank", &options.products.rank, "Factors of a customer and of a product", {1, 256});
  flags.Add("--iterations", &options.products.iterations, "Turns of least squares", {1, 1000});
  flags.Add("--regularization", &options.products.regularization,
            "Weight of squared factors, for each product of a customer", {1e-6, 1e6});
  flags.Add("--seed", &options.products.seed,
            "Of the first factors, of what is drawn and of what is held out");
  flags.Add("--threads", &options.products.threads, "Threads", {1, 256});
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
          apps::CommandOf<ClerkOptions>(
              "clerk", "Print a token of the clerk, who enters products, stock and discounts",
              "shop clerk --data FOLDER", AddFlags, PrintClerkToken),
          apps::CommandOf<TrainOptions>(
              "train", "Learn which products customers buy together, and print how good that is",
              "shop train  # a recommender that is up uses it at once", AddFlags, Train),
          apps::PostgresqlCommand(kApplication)};
}

}  // namespace curtail::shop
