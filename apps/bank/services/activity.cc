// SPDX-License-Identifier: Apache-2.0
//
// Activity: the movements of all accounts, newest first. Follows the shards of the ledger: a page of a shard's postings and the
// mark behind it are one transaction, so that each posting is here once.
#include <chrono>

#include "apps/bank/data.h"
#include "apps/kit/jobs/finisher.h"
#include "apps/kit/page.h"
#include "curtail/rpc/when_all.h"

namespace curtail::bank {

const char kActivitySchema[] =
    "CREATE TABLE movements(account INTEGER, version INTEGER, posting INTEGER NOT NULL, cents INTEGER NOT "
    "NULL,"
    " balance INTEGER NOT NULL, counterpart INTEGER NOT NULL, purpose TEXT NOT NULL, booked_ms INTEGER NOT "
    "NULL,"
    " PRIMARY KEY(account, version)) STRICT, WITHOUT ROWID;"
    "CREATE TABLE followed(shard INTEGER PRIMARY KEY, posting INTEGER NOT NULL) STRICT";

constexpr Nanos kLook = std::chrono::milliseconds(500);
constexpr uint32_t kPostingsAtOnce = 500;

struct ActivityService final : Activity::CoroutineService {
  ActivityService(SqlDatabase& d, Env& e)
      : db(d), env(e), follower([this](auto stopping) { return FollowAll(stopping); }, kLook) {
    follower.WorkWhileServing(env);
  }

  Coroutine List(Context& ctx, const ActivityQuery& request, Movements* reply) override {
    const uint32_t limit = apps::LimitOf(request.limit());
    apps::Ids others;
    absl::Status status = co_await db.Reading(ctx.deadline(), [&](SqlSession& s) {
      return s.Query(
          "SELECT version, cents, balance, counterpart, purpose, booked_ms FROM movements"
          " WHERE account = ?1 AND version < ?2 ORDER BY version DESC LIMIT ?3",
          {request.account(), apps::BeforeOf(request.before()), uint64_t{limit}}, [&](const SqlRow& row) {
            Movement* const movement = reply->add_movements();
            movement->set_version(row.Unsigned(0));
            movement->set_cents(row.Integer(1));
            movement->set_balance_cents(row.Integer(2));
            others.add_ids(row.Unsigned(3));
            movement->set_text(std::string(row.Text(4)));
            movement->set_booked_ms(row.Integer(5));
          });
    });
    if (!status.ok()) co_return status;
    auto [named] = co_await WhenAll(ctx, Ask(accounts, Accounts::kById, others));
    if (!named.ok()) co_return named.status();
    for (int i = 0; i < reply->movements_size(); ++i) {
      for (const Account& account : named->accounts()) {
        if (account.id() == others.ids(i)) reply->mutable_movements(i)->set_iban(account.iban());
      }
    }
    if (reply->movements_size() == static_cast<int>(limit))
      reply->set_next(reply->movements().rbegin()->version());
    co_return absl::OkStatus();
  }

  // A shard that fails does not hold up the others.
  absl::Status FollowAll(absl::FunctionRef<bool()> stopping) {
    absl::Status first;
    for (size_t shard = 0; shard < shards.size(); ++shard) first.Update(FollowShard(shard, stopping));
    return first;
  }

  absl::Status FollowShard(size_t shard, absl::FunctionRef<bool()> stopping) {
    EntryPage page;
    page.set_limit(kPostingsAtOnce);
    absl::Status status = db.Read(Deadline::In(kStepTime), [&](SqlSession& s) {
      return s.Query("SELECT posting FROM followed WHERE shard = ?1", {uint64_t{shard}},
                     [&](const SqlRow& row) { page.set_after(row.Unsigned(0)); });
    });
    while (status.ok() && !stopping()) {
      Context ctx(kStepTime);
      EntryList news;
      status = shards.At(shard).Follow(ctx, page, &news);
      if (!status.ok() || news.entries().empty()) break;
      status = db.Write(Deadline::In(kStepTime),
                        [&](SqlSession& s) { return Take(s, shard, page.after(), news); });
      page.set_after(news.entries().rbegin()->posting());
    }
    return status;
  }

  static absl::Status Take(SqlSession& s, size_t shard, uint64_t after, const EntryList& news) {
    const uint64_t last = news.entries().rbegin()->posting();
    absl::Status status = s.Execute(
        "INSERT INTO followed(shard, posting) VALUES (?1, ?2) ON CONFLICT(shard) DO UPDATE SET posting = ?2"
        " WHERE followed.posting = ?3",
        {uint64_t{shard}, last, after});
    if (!status.ok()) return status;
    if (s.changes() == 0) return absl::AbortedError("another process follows, too");
    std::vector<SqlValue> rows;
    for (const Entry& e : news.entries()) {
      if (e.account() == apps::kInTransit) continue;  // each shard has one of this number
      rows.insert(rows.end(), {e.account(), e.version(), e.posting(), e.cents(), e.balance(), e.counterpart(),
                               e.text(), e.booked_ms()});
    }
    return s.QueryEach(
        "INSERT INTO movements(account, version, posting, cents, balance, counterpart, purpose, booked_ms)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        8, rows, [](size_t, const SqlRow&) {});
  }

  std::vector<DeclaredPath> Paths() const override { return {{"List", {accounts}}}; }

  SqlDatabase& db;
  Env& env;
  const Accounts::Stub accounts = env.Stub<Accounts>("accounts");
  const Shards shards{env};
  apps::Finisher follower;
};

HostedService HostedActivity() {
  auto data = std::make_shared<Data>();
  return {.name = "activity",
          .flags = [data](Flags& flags) { apps::AddDataFlags(flags, data.get()); },
          .make = [data](Env& env) -> MadeService {
            auto db = apps::OpenData(env, *data, "activity", {kActivitySchema});
            if (!db.ok()) return db.status();
            return std::make_unique<ActivityService>(**db, env);
          }};
}

}  // namespace curtail::bank
