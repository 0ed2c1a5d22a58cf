// SPDX-License-Identifier: Apache-2.0
//
// What is judged while no customer acts.
#include <algorithm>
#include <cstdio>
#include <map>
#include <thread>

#include "apps/bank/common/books.h"
#include "apps/bank/tests/fault_model_testing.h"
#include "apps/kit/data/data.h"
#include "curtail/base/strings.h"

namespace curtail::bank {
namespace {

// Below it are accounts of the bank itself, also for other banks.
constexpr uint64_t kLeastGiven = 2 * kNostro;
// An order without its caller may wait for its caller's time, and for a pause after a failure.
constexpr Nanos kMaxIdleWait = kMaxTestWait + std::chrono::seconds(20);

}  // namespace

Books::Books(Client* client, const deploy::AppUnderTest& app) {
  for (size_t i = 0; i < kShards; ++i)
    shards_.push_back(std::make_unique<Channel>(client, app.AddressOf("posting", static_cast<int>(i))));
}

void Books::Read() {
  int64_t all = 0, in_transit = 0;
  for (size_t i = 0; i < kShards; ++i) {
    EntryList page;
    do {
      EntryPage request;
      request.set_after(read_to_[i]), request.set_limit(apps::kMostPage);
      page.Clear();
      Context ctx(kMaxTestWait);
      const absl::Status read = Posting::Stub(shards_[i].get()).Follow(ctx, request, &page);
      ASSERT_TRUE(read.ok()) << read;
      std::map<uint64_t, int64_t> sums;
      for (const Entry& entry : page.entries()) {
        sums[entry.posting()] += entry.cents();
        // Accounts of this number are there in each shard.
        const uint64_t account = entry.account() == apps::kInTransit ? i + 100 : entry.account();
        std::vector<Entry>& of = accounts_[account];
        EXPECT_EQ(entry.version(), of.size() + 1) << entry.ShortDebugString();
        EXPECT_EQ(entry.balance(), (of.empty() ? 0 : of.back().balance()) + entry.cents())
            << entry.ShortDebugString();
        of.push_back(entry);
        read_to_[i] = entry.posting();
      }
      for (const auto& [posting, sum] : sums) EXPECT_EQ(sum, 0) << "posting " << posting << " of shard " << i;
    } while (page.entries_size() > 0);
    in_transit += CentsAt(i + 100, Of(i + 100).size());
  }
  for (const auto& [_, entries] : accounts_) all += entries.back().balance();
  EXPECT_EQ(all, 0) << "over all accounts";
  EXPECT_EQ(in_transit, 0) << "in transit";
}

const std::vector<Entry>& Books::Of(uint64_t account) const {
  static const std::vector<Entry> none;
  const auto found = accounts_.find(account);
  return found == accounts_.end() ? none : found->second;
}

int64_t Books::CentsAt(uint64_t account, uint64_t version) const {
  const std::vector<Entry>& of = Of(account);
  if (version > of.size()) ADD_FAILURE() << "account " << account << " has no version " << version;
  return version == 0 || version > of.size() ? 0 : of[version - 1].balance();
}

void BankModelTest::JudgeAll() {
  Settle();
  AwaitIdle();
  if (HasFatalFailure()) return;
  books_->Read();
  if (HasFatalFailure()) return;
  history_.Judge();
  PrintOrders();
  std::erase_if(orders_, [this](const std::unique_ptr<Order>& order) { return Explain(*order); });
  for (size_t user = 0; user < kUsers; ++user) {
    for (const Borrowed& loan : loans_[user]) JudgeLoan(user, loan);
  }
  JudgeLines();
  JudgeAccounts();
  std::string text;
  EXPECT_EQ(Audit(&text), 0) << text;
}

void BankModelTest::PrintOrders() const {
  const auto count = [this](auto which) {
    return std::ranges::count_if(orders_, [&](const std::unique_ptr<Order>& order) { return which(*order); });
  };
  std::printf("%zu orders: %td acknowledged, %td refused, %td in doubt for good\n", orders_.size(),
              count([](const Order& order) { return order.booked.has_value(); }),
              count([](const Order& order) { return !order.booked && order.refused; }),
              count([](const Order& order) { return !order.booked && order.in_doubt; }));
}

// Repeats what has no answer yet. Nothing is on its way any more, so the answer stays.
void BankModelTest::Settle() {
  const absl::Status quiet = app_->AwaitQuiet(Deadline::In(kMaxTestWait));
  EXPECT_TRUE(quiet.ok()) << quiet;
  for (const std::unique_ptr<Order>& order : orders_) {
    if (!order->in_doubt || order->key.empty()) continue;
    Attempt(*order, /*insist=*/true);
    order->in_doubt = false;
  }
  for (Opening& opening : openings_) {
    if (opening.account) continue;
    Account account;
    const auto told = history_.Insist([&] {
      return As(opening.user, &Bank::Stub::OpenAccount, apps::TokenRequest(), &account, opening.key);
    });
    if (told.ok()) opening.account = account;
  }
  for (size_t user = 0; user < kUsers; ++user) {
    for (Borrowed& loan : loans_[user]) {
      if (!loan.running) history_.Insist([&] { return ApplyAndAccept(user, &loan); });
      if (loan.repayment != nullptr && loan.repayment->booked) {
        loan.repayment = nullptr;
        ++loan.repaid;
      }
    }
  }
}

// No order is open that is due, and no transfer is pending.
void BankModelTest::AwaitIdle() {
  const Deadline deadline = Deadline::In(kMaxIdleWait);
  std::string moving;
  do {
    moving.clear();
    const auto look = [&](const std::string& service, const std::string& from) {
      const absl::Status status = apps::LookAtData(Folder(), service, [&](SqlSession& s) {
        return s.Query("SELECT " + from, {}, [&](const SqlRow& row) {
          moving += Join(service, " ", row.Unsigned(0), " in state ", row.Integer(1), ", due ",
                         row.Integer(2), "\n");
        });
      });
      ASSERT_TRUE(status.ok()) << status;
    };
    for (const char* const service : {"payments", "credit-card", "card-payment", "loan-request"})
      look(service, Join("id, state, due_ms FROM payments WHERE open = 1 AND (state <> ",
                         static_cast<int>(Payment::SCHEDULED), " OR due_ms <= ", apps::NowMs(), ")"));
    look("loan-request", "id, state, due_ms FROM acceptances WHERE open = 1");
    for (uint32_t i = 0; i < kShards; ++i)
      look(BooksOf({i, kShards}), "posting, 0, 0 FROM transfers WHERE settled = 0");
    ASSERT_FALSE(deadline.Expired()) << "it is " << apps::NowMs() << " and these do not end:\n" << moving;
    if (!moving.empty()) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  } while (!moving.empty());
}

bool BankModelTest::Explain(const Order& order) {
  const testing::ScopedTrace trace(__FILE__, __LINE__, order.text);
  bool posted = order.booked.has_value();
  if (posted && order.at_ms > 0) {
    PaymentRequest request;
    request.set_id(order.booked->id());
    Payment now;
    const absl::Status read = As(order.user, &Bank::Stub::GetPayment, request, &now);
    EXPECT_TRUE(read.ok()) << read;
    const Payment::State state = now.state();
    const bool ended = state == Payment::ARRIVED || state == Payment::REFUSED;
    EXPECT_TRUE(!order.cancelled || state == Payment::CANCELLED) << state << " after it was cancelled";
    EXPECT_TRUE(!order.begun || ended || order.cancelled) << state << " after it could not be cancelled";
    EXPECT_TRUE(order.ahead_ms != kNeverMs || !ended) << state << " before its time";
    if (state == Payment::SCHEDULED && order.at_ms > apps::NowMs()) return false;
    EXPECT_TRUE(ended || state == Payment::CANCELLED) << state << " after its time";
    posted = state == Payment::ARRIVED;
  } else if (posted && order.booked->version() > 0) {
    const std::vector<Entry>& of = books_->Of(order.from);
    const uint64_t version = order.booked->version();
    if (version > of.size()) ADD_FAILURE() << "acknowledged, but the account lacks version " << version;
    else
      EXPECT_TRUE(of[version - 1].cents() == -order.cents && of[version - 1].text() == order.text)
          << of[version - 1].ShortDebugString();
  }
  const apps::Possible possible(/*n=*/!posted, /*y=*/posted || order.in_doubt);
  lines_[{order.from, -order.cents, order.to, order.text}].Add(possible);
  lines_[{order.to, order.cents, order.from, order.text}].Add(possible);
  for (const Borrowed& loan : loans_[order.user]) {
    if (loan.repayment == &order) return false;
  }
  return true;
}

void BankModelTest::JudgeLoan(size_t user, const Borrowed& loan) {
  PaymentRequest request;
  request.set_id(loan.id);
  Loan now;
  const absl::Status read = As(user, &Bank::Stub::GetLoan, request, &now);
  EXPECT_TRUE(read.ok()) << read;
  int64_t sum = 0, debt = 0;
  for (int i = 0; i < loan.quote.instalments_size(); ++i) {
    const Instalment& one = loan.quote.instalments(i);
    const bool paid = static_cast<uint32_t>(i) < loan.repaid;
    EXPECT_EQ(now.quote().instalments(i).paid(), paid) << "instalment " << i + 1 << " of loan " << loan.id;
    sum += one.cents();
    debt += paid ? 0 : one.cents() - one.interest_cents();
  }
  EXPECT_EQ(sum, loan.quote.cents() + loan.quote.interest_cents()) << loan.id;
  EXPECT_EQ(now.debt_cents(), debt) << loan.id;
  EXPECT_EQ(now.account(), loan.account) << loan.id;
  const auto once = [this](const Line& line) {
    lines_[line] = {};
    lines_[line].Add(true);
  };
  const std::string text = Join("loan ", loan.id);
  once({loan.id, -kLoanCents, loan.account, text});
  once({loan.account, kLoanCents, loan.id, text});
  for (uint32_t i = 0; i < loan.repaid; ++i) {
    const int64_t cents = loan.quote.instalments(static_cast<int>(i)).interest_cents();
    const uint64_t bank = BanksInterest(apps::PartOf(loan.id, kShards), kShards);
    if (cents > 0) once({loan.id, -cents, bank, Join("interest of instalment ", i + 1)});
  }
}

void BankModelTest::JudgeLines() {
  std::map<Line, uint64_t> counts;
  for (const auto& [account, entries] : books_->all()) {
    for (const Entry& entry : entries)
      if (account >= kLeastGiven) ++counts[{account, entry.cents(), entry.counterpart(), entry.text()}];
  }
  const auto name = [](const Line& line) {
    return Join(" entries of account ", line.account, ": ", line.cents, " cents, with ", line.counterpart,
                ", ", line.text);
  };
  for (auto& [line, possible] : lines_) {
    const auto found = counts.find(line);
    const uint64_t count = found == counts.end() ? 0 : found->second;
    EXPECT_TRUE(possible.MayBe(count))
        << count << name(line) << "; " << possible.least << " to " << possible.most;
    possible.least = possible.most = count;  // it stays so
  }
  for (const auto& [line, count] : counts) {
    EXPECT_TRUE(lines_.contains(line)) << "nobody ordered " << count << name(line);
    const Line mirror = {line.counterpart, -line.cents, line.account, line.text};
    if (mirror.account < kLeastGiven) continue;
    const auto found = counts.find(mirror);
    EXPECT_TRUE(found != counts.end() && found->second == count)
        << count << name(line) << "; not as many on the other";
  }
}

void BankModelTest::JudgeAccounts() {
  for (size_t user = 0; user < kUsers; ++user) {
    AccountList list;
    EXPECT_TRUE(As(user, &Bank::Stub::ListAccounts, apps::TokenRequest(), &list).ok());
    std::vector<std::string> listed, told;
    for (const Account& one : list.accounts()) listed.push_back(one.iban());
    for (size_t i = 0; i < kAccounts; ++i) told.push_back(all_[user * kAccounts + i].iban);
    for (const Opening& opening : openings_) {
      if (opening.user == user && opening.account) told.push_back(opening.account->iban());
    }
    std::ranges::sort(listed), std::ranges::sort(told);
    EXPECT_EQ(listed, told) << "the accounts of customer " << user;
  }
  for (const Own& own : all_) {
    ReadBalance(own, /*insist=*/true);
    ReadCard(own);
    for (const Entry& entry : books_->Of(own.id)) EXPECT_GE(entry.balance(), 0) << entry.ShortDebugString();
    JudgeActivity(own.id, [&](uint64_t before, Movements* page) {
      ActivityRequest request;
      request.set_account(own.id), request.set_before(before), request.set_limit(100);
      return As(UserOf(own), &Bank::Stub::ListActivity, request, page);
    });
    JudgeActivity(own.card, [&](uint64_t before, Movements* page) {
      CardRequest request;
      request.set_card(own.card), request.set_before(before), request.set_limit(100);
      return As(UserOf(own), &Bank::Stub::GetStatement, request, page);
    });
  }
  history_.Judge();
  for (const Opening& opening : openings_) {  // from now on they are used, too
    const auto same = [&](const Own& own) { return own.id == opening.account->id(); };
    if (!opening.account || std::ranges::any_of(all_, same)) continue;
    Own own = all_[opening.user * kAccounts];
    own.id = opening.account->id(), own.iban = opening.account->iban();
    all_.push_back(own);
  }
}

void BankModelTest::ExpectMovement(uint64_t account, const Movement& movement) {
  const std::vector<Entry>& of = books_->Of(account);
  ASSERT_TRUE(movement.version() > 0 && movement.version() <= of.size())
      << account << movement.ShortDebugString();
  const Entry& entry = of[movement.version() - 1];
  EXPECT_TRUE(movement.cents() == entry.cents() && movement.balance_cents() == entry.balance() &&
              movement.text() == entry.text() && movement.booked_ms() == entry.booked_ms())
      << movement.ShortDebugString() << " of " << entry.ShortDebugString();
}

// All movements that came since the last call, each once. The newest may come a moment later.
template <class Read>
void BankModelTest::JudgeActivity(uint64_t account, Read read) {
  uint64_t& judged = listed_[account];
  const uint64_t versions = books_->Of(account).size();
  const Deadline deadline = Deadline::In(kMaxTestWait);
  Movements page;
  do {
    const absl::Status status = read(0, &page);
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_FALSE(deadline.Expired()) << page.movements_size() << " movements of " << versions;
  } while (versions > 0 && (page.movements().empty() || page.movements(0).version() < versions));
  for (uint64_t next = versions; next > judged;) {
    for (const Movement& movement : page.movements()) {
      ASSERT_EQ(movement.version(), next--) << account;
      ExpectMovement(account, movement);
    }
    if (next <= judged) break;
    ASSERT_NE(page.next(), 0u) << "account " << account << " lacks version " << next;
    const absl::Status status = read(page.next(), &page);
    ASSERT_TRUE(status.ok()) << status;
  }
  judged = versions;
}

}  // namespace curtail::bank
