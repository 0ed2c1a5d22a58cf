// SPDX-License-Identifier: Apache-2.0
//
// Activity: the movements of all accounts, newest first. Follows the shards of the ledger: a page of a shard's postings and the
// mark behind it are one transaction, so that each posting is here once.
#include <algorithm>
#include <chrono>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "apps/bank/common/csv.h"
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
// Of an account, which a page looks at, or a summary of all accounts. They have no gaps.
constexpr uint64_t kVersionsAtOnce = 10'000;

struct ActivityService final : Activity::CoroutineService {
  ActivityService(SqlDatabase& d, Env& e)
      : db(d), env(e), follower([this](auto stopping) { return FollowAll(stopping); }, kLook) {
    follower.WorkWhileServing(env);
  }

  Coroutine List(Context& ctx, const ActivityQuery& request, Movements* reply) override {
    return Read(ctx, request, apps::LimitOf(request.limit()), reply);
  }

  Coroutine Export(Context& ctx, const ActivityQuery& request, ExportPart* reply) override {
    Movements page;
    if (absl::Status status = co_await Read(ctx, request, apps::kMostIds, &page); !status.ok())
      co_return status;
    std::string& lines = *reply->mutable_part()->mutable_data();
    if (request.before() == 0) lines = kCsvHead;
    for (const Movement& movement : page.movements()) AppendCsv(movement, &lines);
    reply->mutable_part()->set_content_type("text/csv; charset=utf-8");
    reply->set_next(page.next());
    co_return absl::OkStatus();
  }

  Coroutine Read(Context& ctx, const ActivityQuery& request, uint32_t limit, Movements* reply) {
    const MovementFilter& filter = request.filter();
    if (absl::Status status = Check(filter); !status.ok()) co_return status;
    uint64_t least_other = 0, most_other = apps::BeforeOf(0);
    if (!filter.iban().empty()) {
      Account other;
      other.set_iban(filter.iban());
      auto [found] = co_await WhenAll(ctx, Ask(accounts, Accounts::kResolve, other));
      if (!found.ok()) co_return found.status();
      least_other = most_other = found->id();
    }
    const int64_t least = std::max<int64_t>(filter.least_cents(), 1);
    const bool only_sent = filter.direction() == MovementFilter::SENT;
    const bool only_received = filter.direction() == MovementFilter::RECEIVED;
    apps::Ids others;
    uint64_t newest = 0, behind = 0;  // of the versions that this page looks at
    absl::Status status = co_await db.Reading(ctx.deadline(), [&](SqlSession& s) {
      absl::Status read =
          s.Query("SELECT coalesce(max(version), 0) FROM movements WHERE account = ?1 AND version < ?2",
                  {request.account(), apps::BeforeOf(request.before())},
                  [&](const SqlRow& row) { newest = row.Unsigned(0); });
      if (!read.ok()) return read;
      behind = newest - std::min(newest, kVersionsAtOnce);
      return s.Query(
          "SELECT version, cents, balance, counterpart, purpose, booked_ms FROM movements"
          " WHERE account = ?1 AND version <= ?2 AND version > ?3 AND booked_ms >= ?4 AND booked_ms < ?5"
          " AND (cents >= ?6 OR cents <= ?7) AND counterpart BETWEEN ?8 AND ?9 ORDER BY version DESC LIMIT "
          "?10",
          {request.account(), newest, behind, filter.from_ms(),
           filter.to_ms() == 0 ? INT64_MAX : filter.to_ms(), only_sent ? INT64_MAX : least,
           only_received ? INT64_MIN : -least, least_other, most_other, uint64_t{limit}},
          [&](const SqlRow& row) {
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
    const bool full = reply->movements_size() == static_cast<int>(limit);
    const uint64_t last = full ? reply->movements().rbegin()->version() : behind + 1;
    if (last > 1) reply->set_next(last);
    if (others.ids().empty()) co_return status;
    auto [named] = co_await WhenAll(ctx, Ask(accounts, Accounts::kById, others));
    if (!named.ok()) co_return named.status();
    std::unordered_map<uint64_t, const std::string*> ibans;
    for (const Account& account : named->accounts()) ibans[account.id()] = &account.iban();
    for (int i = 0; i < reply->movements_size(); ++i) {
      if (const auto found = ibans.find(others.ids(i)); found != ibans.end())
        reply->mutable_movements(i)->set_iban(*found->second);
    }
    co_return status;
  }

  static absl::Status Check(const MovementFilter& filter) {
    if (filter.from_ms() < 0 || filter.to_ms() < 0 ||
        (filter.to_ms() > 0 && filter.to_ms() <= filter.from_ms()))
      return absl::InvalidArgumentError("from_ms and to_ms are times since 1970, and to_ms is the later");
    if (filter.least_cents() < 0 || filter.least_cents() > apps::kMostCents)
      return absl::InvalidArgumentError(Join("least_cents is at least 0 and at most ", apps::kMostCents));
    if (MovementFilter::Direction_IsValid(filter.direction())) return absl::OkStatus();
    return absl::InvalidArgumentError("the direction is BOTH, RECEIVED or SENT");
  }

  Coroutine Summarize(Context& ctx, const SummaryQuery& request, ActivitySummary* reply) override {
    if (absl::Status status = apps::CheckCount(request.accounts_size(), apps::kMostIds, "accounts");
        !status.ok())
      co_return status;
    const std::unordered_set<uint64_t> own(request.accounts().begin(), request.accounts().end());
    const uint64_t each = kVersionsAtOnce / std::max<uint64_t>(own.size(), 1);
    co_return co_await db.Reading(ctx.deadline(), [&](SqlSession& s) {
      absl::Status status;
      for (const uint64_t account : own) {
        if (status.ok())
          status = SummarizeOne(s, account, request.since_ms(), each, own, reply->add_accounts());
      }
      return status;
    });
  }

  // Looks at the last `most` movements.
  static absl::Status SummarizeOne(SqlSession& s, uint64_t account, int64_t since_ms, uint64_t most,
                                   const std::unordered_set<uint64_t>& own, ActivitySummary::One* one) {
    one->set_account(account);
    uint64_t newest = 0;
    absl::Status status =
        s.Query("SELECT version, balance FROM movements WHERE account = ?1 ORDER BY version DESC LIMIT 1",
                {account}, [&](const SqlRow& row) {
                  newest = row.Unsigned(0);
                  one->set_lowest_cents(row.Integer(1));
                });
    if (!status.ok()) return status;
    return s.Query(
        "SELECT counterpart, CAST(sum(CASE WHEN cents > 0 THEN cents ELSE 0 END) AS INTEGER),"
        " sum(CASE WHEN cents < 0 THEN 1 ELSE 0 END), min(balance), min(balance - cents) FROM movements"
        " WHERE account = ?1 AND version > ?2 AND booked_ms >= ?3 GROUP BY counterpart",
        {account, newest - std::min(newest, most), since_ms}, [&](const SqlRow& row) {
          one->set_lowest_cents(std::min({one->lowest_cents(), row.Integer(3), row.Integer(4)}));
          if (own.contains(row.Unsigned(0))) return;
          one->set_received_cents(one->received_cents() + row.Integer(1));
          one->set_times_sent(one->times_sent() + row.Unsigned(2));
        });
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

  std::vector<DeclaredPath> Paths() const override {
    return {{"List", {accounts}}, {"Export", {accounts}}, {"Summarize", {}}};
  }

  SqlDatabase& db;
  Env& env;
  const Accounts::Stub accounts = env.Stub<Accounts>("accounts");
  const Shards shards{env};
  apps::Finisher follower;
};

HostedService HostedActivity() {
  return apps::HostedWithData<ActivityService>(kApplication, "activity", {kActivitySchema});
}

}  // namespace curtail::bank
