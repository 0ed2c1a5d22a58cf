// SPDX-License-Identifier: Apache-2.0
//
// Accounts: which there are, whose they are, and their IBANs. What is on them, `posting` knows.
//
// An account is in the books before it is listed. If the second step fails, its books are empty, and nobody finds it.
#include "apps/bank/common/iban.h"
#include "apps/bank/common/leaving.h"
#include "apps/bank/data.h"
#include "apps/kit/once.h"
#include "apps/kit/page.h"
#include "curtail/rpc/host.h"
#include "curtail/rpc/when_all.h"

namespace curtail::bank {

const char kAccountsSchema[] =
    "CREATE TABLE accounts(number INTEGER PRIMARY KEY, id INTEGER NOT NULL, owner INTEGER NOT NULL,"
    " iban TEXT NOT NULL) STRICT;"
    "CREATE UNIQUE INDEX accounts_by_id ON accounts(id);"
    "CREATE UNIQUE INDEX accounts_by_iban ON accounts(iban);"
    "CREATE INDEX accounts_of ON accounts(owner, number)";

struct AccountsService final : Accounts::CoroutineService {
  AccountsService(SqlDatabase& d, Env& e) : db(d), env(e) {}

  Coroutine Open(Context& ctx, const apps::UserId& request, Account* reply) override {
    apps::Once once(ctx, request.user());
    // Before the books have one more, which nobody takes away.
    absl::Status status = co_await db.Reading(ctx.deadline(), [&](SqlSession& s) {
      absl::Status looked = once.Look(s, reply);
      return looked.ok() && !once.repeated() ? CheckCount(s, request.user()) : looked;
    });
    if (!status.ok() || once.repeated()) co_return status;
    apps::IdCount one;
    one.set_count(1);
    auto [ids] = co_await WhenAll(ctx, Ask(unique_id, apps::UniqueId::kNext, one));
    if (!ids.ok()) co_return ids.status();
    OwnedAccount account;
    account.set_account(ids->ids(0));
    account.set_owner(request.user());
    auto [opened] = co_await WhenAll(ctx, Ask(shards.Of(account.account()), Posting::kOpen, account));
    if (!opened.ok()) co_return opened.status();
    co_return co_await apps::WriteOnce(db, ctx, request.user(), reply,
                                       [&](SqlSession& s) { return Enter(s, account, reply); });
  }

  static absl::Status CheckCount(SqlSession& s, uint64_t customer) {
    uint64_t owned = 0;
    absl::Status status = s.Query("SELECT count(*) FROM accounts WHERE owner = ?1", {customer},
                                  [&](const SqlRow& row) { owned = row.Unsigned(0); });
    if (!status.ok() || owned < kMostAccounts) return status;
    return absl::ResourceExhaustedError(Join("a customer has at most ", kMostAccounts, " accounts"));
  }

  // Writers take turns, so that numbers have no gaps.
  static absl::Status Enter(SqlSession& s, const OwnedAccount& account, Account* reply) {
    uint64_t number = 0;
    absl::Status status = CheckStays(s, account.owner());
    if (status.ok()) status = CheckCount(s, account.owner());
    if (!status.ok()) return status;
    status = s.Query("SELECT coalesce(max(number), 0) + 1 FROM accounts", {},
                     [&](const SqlRow& row) { number = row.Unsigned(0); });
    if (!status.ok()) return status;
    if (number > kMostNumber) return absl::ResourceExhaustedError("the bank has no more account numbers");
    reply->set_id(account.account());
    reply->set_iban(IbanOf(number));
    return s.Execute("INSERT INTO accounts(number, id, owner, iban) VALUES (?1, ?2, ?3, ?4)",
                     {number, account.account(), account.owner(), reply->iban()});
  }

  Coroutine List(Context& ctx, const apps::UserId& request, AccountList* reply) override {
    co_return co_await db.Reading(ctx.deadline(), [&](SqlSession& s) {
      return s.Query("SELECT id, iban FROM accounts WHERE owner = ?1 ORDER BY number", {request.user()},
                     [&](const SqlRow& row) { Put(row, reply->add_accounts()); });
    });
  }

  Coroutine Resolve(Context& ctx, const Account& request, Account* reply) override {
    const absl::StatusOr<std::string> iban = CheckedIban(request.iban());
    if (!iban.ok()) co_return iban.status();
    absl::Status status = co_await db.Reading(ctx.deadline(), [&](SqlSession& s) {
      return s.Query("SELECT id, iban FROM accounts WHERE iban = ?1", {*iban},
                     [&](const SqlRow& row) { Put(row, reply); });
    });
    if (!status.ok() || reply->id() != 0) co_return status;
    co_return absl::NotFoundError(Join("there is no account ", *iban, " at this bank"));
  }

  Coroutine ById(Context& ctx, const apps::Ids& request, AccountList* reply) override {
    if (absl::Status status = apps::CheckCount(request.ids_size(), apps::kMostIds, "ids"); !status.ok())
      co_return status;
    co_return co_await db.Reading(ctx.deadline(), [&](SqlSession& s) {
      return s.QueryEach("SELECT id, iban FROM accounts WHERE id = ?1", 1, apps::Each(request.ids()),
                         [&](size_t, const SqlRow& row) { Put(row, reply->add_accounts()); });
    });
  }

  static constexpr Held kHeld{.what = "account", .list = "SELECT id, owner FROM accounts WHERE owner = ?1"};
  Coroutine Leave(Context& ctx, const LeaveOrder& request, Holdings* reply) override {
    return LeaveService(ctx, db, kHeld, request, reply);
  }
  Coroutine Stay(Context& ctx, const LeaveOrder& request, Holdings* reply) override {
    return StayAtService(ctx, db, kHeld, request, reply);
  }

  static void Put(const SqlRow& row, Account* account) {
    account->set_id(row.Unsigned(0));
    account->set_iban(std::string(row.Text(1)));
  }

  std::vector<DeclaredPath> Paths() const override {
    return {{"Open", {unique_id, Posting::kServiceName}},
            {"List", {}},
            {"Resolve", {}},
            {"ById", {}},
            {"Leave", {}},
            {"Stay", {}}};
  }

  SqlDatabase& db;
  Env& env;
  const apps::UniqueId::Stub unique_id = env.Stub<apps::UniqueId>("unique-id");
  const Shards shards{env};
};

HostedService HostedAccounts() {
  return apps::HostedWithData<AccountsService>(kApplication, "accounts",
                                               {kAccountsSchema, apps::kOnceSchema, kLeavingSchema});
}

}  // namespace curtail::bank
