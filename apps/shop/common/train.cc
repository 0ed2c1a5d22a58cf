// SPDX-License-Identifier: Apache-2.0
#include "apps/shop/common/train.h"

#include <cstdio>
#include <set>
#include <utility>
#include <vector>

#include "apps/kit/data/data.h"
#include "apps/kit/data/folder.h"
#include "apps/kit/data/model_file.h"
#include "apps/shop/data.h"
#include "buying.pb.h"
#include "curtail/base/strings.h"

namespace curtail::shop {
namespace {

// Which products customers have bought, each once.
absl::Status ReadBought(const std::string& folder, std::vector<apps::Liking>* bought) {
  std::set<std::pair<uint64_t, uint64_t>> known;
  return apps::LookAtData(folder, "orders", [&](SqlSession& s) {
    return s.Query("SELECT owner, bytes FROM orders WHERE state = ?1 ORDER BY id", {int{Order::COMMITTED}},
                   [&](const SqlRow& row) {
                     KeptOrder order;
                     order.ParseFromString(std::string(row.Text(1)));
                     for (const QuotedLine& line : order.quote().lines())
                       if (known.emplace(row.Unsigned(0), line.product()).second)
                         bought->push_back({row.Unsigned(0), line.product(), 1});
                   });
  });
}

}  // namespace

absl::Status Train(const TrainOptions& options) {
  const absl::StatusOr<std::string> folder = apps::DataFolder(kApplication, options.data);
  if (!folder.ok()) return folder.status();
  std::vector<apps::Liking> bought;
  if (absl::Status status = ReadBought(*folder, &bought); !status.ok()) return status;
  if (bought.empty()) return absl::NotFoundError("there are no orders to learn from");
  const size_t pairs = bought.size();
  std::set<uint64_t> customers;
  for (const apps::Liking& one : bought) customers.insert(one.user);
  apps::TasteTraining training = options.products;
  apps::AddOthers(options.others, training.seed, &bought);
  training.regularization *= static_cast<double>(bought.size()) / static_cast<double>(customers.size());
  const absl::StatusOr<apps::HeldOutError> error = apps::ErrorOfHeldOut(bought, training);
  if (!error.ok()) return error.status();
  const absl::StatusOr<apps::TasteModel> model = apps::TrainTaste(bought, training);
  if (!model.ok()) return model.status();
  std::printf(
      "%zu products bought by %d customers, of %d products: RMSE %.3f for %zu pairs held out, %.3f by the "
      "mean of the others\n",
      pairs, model->users_size(), model->items_size(), error->by_model, error->scores, error->by_mean);
  return apps::WriteMessage(*model, Join(*folder, "/", kTasteModelFile));
}

}  // namespace curtail::shop
