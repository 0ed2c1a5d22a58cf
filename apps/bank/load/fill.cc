// SPDX-License-Identifier: Apache-2.0
#include "apps/bank/load/fill.h"

#include <string>
#include <vector>

#include "apps/bank/common/books.h"
#include "apps/bank/common/leaving.h"
#include "apps/bank/data.h"
#include "apps/kit/data/folder.h"
#include "bank.curtail.h"
#include "curtail/base/strings.h"

namespace curtail::bank {
namespace {

constexpr uint64_t kLeave = 10;            // customers with a session that may end
constexpr int64_t kCardLimit = 1'000'000;  // cents, and the income of a month

class BankFiller {
 public:
  explicit BankFiller(const FillOptions& options) : options_(options), users_(options.customers) {}

  // Brings a customer to its accounts.
  absl::Status Enter(uint64_t number, const Bank::Stub& stub) {
    apps::Credentials credentials;
    credentials.set_name(Join("customer_", number));
    credentials.set_password(apps::PasswordOf(options_.seed, number));
    apps::Session session;
    bool is_new = false;
    absl::Status status = apps::Enter(options_, stub, credentials, &session, &is_new);
    apps::TokenRequest request;
    request.set_token(session.token());
    AccountList list;
    if (status.ok() && !is_new) {
      Context ctx(FromSeconds(options_.timeout_s));
      status = stub.ListAccounts(ctx, request, &list);
    }
    while (status.ok() && list.accounts_size() < static_cast<int>(options_.accounts)) {
      Context ctx(FromSeconds(options_.timeout_s));
      status = stub.OpenAccount(ctx, request, list.add_accounts());
    }
    uint64_t card = 0;
    if (status.ok()) status = FindCard(request, is_new, stub, &card);
    apps::Session other;
    other.set_token(kNoSession);
    if (status.ok() && number < kLeave) {
      Context ctx(FromSeconds(options_.timeout_s));
      status = stub.Login(ctx, credentials, &other);
    }
    if (!status.ok()) return status;
    apps::LoadUser& user = users_[number];
    user = {.id = session.user(), .name = session.name(), .token = session.token()};
    for (const Account& account : list.accounts())
      user.more.insert(user.more.end(), {std::to_string(account.id()), account.iban()});
    user.more.insert(user.more.end(), {std::to_string(card), credentials.password(), other.token()});
    return absl::OkStatus();
  }

  // The customer's first card, which it applies for if it has none.
  absl::Status FindCard(const apps::TokenRequest& customer, bool is_new, const Bank::Stub& stub,
                        uint64_t* card) const {
    CardList list;
    Context listing(FromSeconds(options_.timeout_s)), applying(FromSeconds(options_.timeout_s));
    absl::Status status = is_new ? absl::OkStatus() : stub.ListCards(listing, customer, &list);
    if (status.ok() && list.cards().empty()) {
      CardApplication wanted;
      wanted.set_token(customer.token());
      wanted.set_income_cents(kCardLimit);
      wanted.set_limit_cents(kCardLimit);
      Application application;
      status = stub.ApplyForCard(applying, wanted, &application);
      if (status.ok() && !application.has_card())
        status = absl::FailedPreconditionError(Join("no card: ", application.reason()));
      *list.add_cards() = application.card();
    }
    if (status.ok()) *card = list.cards(0).id();
    return status;
  }

  // The accounts of all customers that belong to a shard.
  std::vector<uint64_t> AccountsOf(const Shard& shard) const {
    std::vector<uint64_t> accounts;
    for (const apps::LoadUser& user : users_) {
      for (size_t i = 0; i + kWordsBeside < user.more.size(); i += 2) {
        const uint64_t account = std::stoull(user.more[i]);
        if (apps::PartOf(account, shard.count) == shard.index) accounts.push_back(account);
      }
    }
    return accounts;
  }

  const std::vector<apps::LoadUser>& users() const { return users_; }

 private:
  const FillOptions& options_;
  std::vector<apps::LoadUser> users_;  // by number; each written by one thread
};

// A request of the bank's own account is named by the account that it fills, so that each is filled once.
absl::Status DepositOn(SqlSession& s, const Shard& shard, uint64_t account, int64_t cents) {
  const apps::Ledger ledger(shard.index, apps::NowMs);
  const uint64_t own = BanksOwn(shard.index);
  absl::Status status = ledger.Open(s, {.id = own, .limit = apps::kUnlimited});
  if (!status.ok()) return status;
  std::vector<apps::Booked> booked;
  return ledger.Post(s, {own, Join("opening ", account)},
                     {.entries = {{own, -cents, {}}, {account, cents, {}}}, .text = "opening deposit"},
                     &booked);
}

absl::Status DepositOnAll(const FillOptions& options, const std::string& folder, const BankFiller& filler) {
  constexpr size_t kAtOnce = 100;  // customers' payments wait so long
  constexpr Nanos kTime = std::chrono::seconds(20);
  const absl::StatusOr<uint32_t> shards = ShardsIn(folder);
  if (!shards.ok()) return shards.status();
  const apps::DataOptions data{.application = kApplication, .folder = options.data};
  for (Shard shard{0, *shards}; shard.index < shard.count; ++shard.index) {
    const std::string books = BooksOf(shard);
    const auto db = apps::OpenData(data, books, BooksSchema(), apps::PlaceNoted(folder, books, "postgresql"));
    if (!db.ok()) return db.status();
    const std::vector<uint64_t> accounts = filler.AccountsOf(shard);
    for (size_t begin = 0; begin < accounts.size(); begin += kAtOnce) {
      absl::Status status = (*db)->Write(Deadline::In(kTime), [&](SqlSession& s) {
        absl::Status booked;
        for (size_t i = begin; booked.ok() && i < std::min(begin + kAtOnce, accounts.size()); ++i)
          booked = DepositOn(s, shard, accounts[i], static_cast<int64_t>(options.deposit));
        return booked;
      });
      if (!status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Fill(const FillOptions& options) {
  const absl::StatusOr<std::string> folder = apps::DataFolder(kApplication, options.data);
  if (!folder.ok()) return folder.status();
  BankFiller filler(options);
  absl::Status status =
      apps::ForAll(options, "customers", options.customers,
                   [&](uint64_t i, Channel& channel) { return filler.Enter(i, Bank::Stub(&channel)); });
  if (status.ok()) status = apps::WriteLoadUsers(*folder, filler.users());
  return status.ok() && options.deposit > 0 ? DepositOnAll(options, *folder, filler) : status;
}

}  // namespace curtail::bank
