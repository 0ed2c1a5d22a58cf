// SPDX-License-Identifier: Apache-2.0
//
// Transaction id: numbers of payments without gaps, and ids for all services.
#include <algorithm>

#include "apps/kit/accounts/hosted.h"
#include "apps/kit/accounts/id_source.h"
#include "apps/kit/page.h"
#include "apps/shop/data.h"

namespace curtail::shop {

constexpr size_t kMostNameBytes = 64;

struct TransactionIdService final : TransactionId::CoroutineService {
  explicit TransactionIdService(SqlDatabase& d) : db(d) {}

  Coroutine Next(Context& ctx, const TransactionName& request, TransactionNumbers* reply) override {
    absl::Status status = apps::CheckCount(request.names_size(), kMostOrders, "names");
    const bool named = std::ranges::all_of(
        request.names(), [](const std::string& one) { return !one.empty() && one.size() <= kMostNameBytes; });
    if (status.ok() && !named) status = absl::InvalidArgumentError("a name has 1 to 64 bytes");
    if (!status.ok()) co_return status;
    co_return co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
      reply->clear_numbers();
      absl::Status numbered;
      for (const std::string& name : request.names()) {
        // Writers take turns, so that no two names get one number.
        numbered = s.Execute(
            "INSERT INTO numbers(name, number)"
            " VALUES (?1, (SELECT coalesce(max(number), 0) + 1 FROM numbers)) ON CONFLICT(name) DO NOTHING",
            {name});
        if (numbered.ok())
          numbered = s.Query("SELECT number FROM numbers WHERE name = ?1", {name},
                             [&](const SqlRow& row) { reply->add_numbers(row.Unsigned(0)); });
        if (!numbered.ok()) break;
      }
      return numbered;
    });
  }

  std::vector<DeclaredPath> Paths() const override { return {{"Next", {}}}; }

  SqlDatabase& db;
};

HostedService HostedTransactionId() {
  return apps::HostedOnData(
      kApplication, "transaction-id", [](Env& env, const apps::DataOptions& data) -> MadeService {
        const auto db = apps::OpenData(
            env, data, "transaction-id",
            {apps::kIdSchema,
             "CREATE TABLE numbers(name TEXT PRIMARY KEY, number INTEGER NOT NULL UNIQUE) STRICT"});
        if (!db.ok()) return db.status();
        env.AlsoServe(apps::MakeUniqueId(*db, /*machine=*/0));
        return std::make_unique<TransactionIdService>(**db);
      });
}

}  // namespace curtail::shop
