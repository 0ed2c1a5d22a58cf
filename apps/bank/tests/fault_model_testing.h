// SPDX-License-Identifier: Apache-2.0
//
// fault_model_testing.h - random customers of a bank, what each was told, and whether the books of the ledger agree.
//
//  1  An order to move money has a text of its own, and often a key. It is one operation, however many attempts it takes.
//  2  An attempt is acknowledged, refused or of unknown outcome (apps/kit/testing/history.h). An order with a key is repeated
//     until it has an answer. One without is booked once or not at all.
//  3  An entry of the books is explained by an order, a loan or the opening deposit, each by as many entries as it may have.
//  4  A balance that was read is the one of its version, which is not older than the newest version that anybody was told
//     before. A refusal is right if at a version of its time the account had too little.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/bank/tests/bank_testing.h"
#include "apps/kit/testing/actors.h"
#include "apps/kit/testing/history.h"
#include "apps/kit/testing/start_app.h"
#include "curtail/base/rng.h"

namespace curtail::bank {

// All entries of the ledger, read from its shards. Thread-compatible.
class Books {
 public:
  explicit Books(Client* client, const deploy::AppUnderTest& app);

  // Reads the entries since the last call. Fails the test if a posting does not sum to 0, or an entry is not the sum of those before.
  // REQUIRES: nothing is on its way.
  void Read();
  // In the order of their versions, from 1.
  const std::vector<Entry>& Of(uint64_t account) const;
  const std::map<uint64_t, std::vector<Entry>>& all() const { return accounts_; }
  int64_t CentsAt(uint64_t account, uint64_t version) const;

 private:
  std::vector<std::unique_ptr<Channel>> shards_;
  std::array<uint64_t, kShards> read_to_{};  // a posting
  std::map<uint64_t, std::vector<Entry>> accounts_;
};

class BankModelTest : public BankTest {
 protected:
  static constexpr size_t kUsers = 6, kAccounts = 4;  // of each
  static constexpr int64_t kLoanCents = 200'000;
  static constexpr uint32_t kLoanMonths = 24;
  // How far ahead payments are scheduled that are due if the clock is an hour ahead, and that are never due.
  static constexpr int64_t kSometimesMs = 1'800'000, kNeverMs = 36'000'000;
  // Of a call. Short, so that a service that stands still does not hold up the test.
  static constexpr Nanos kPatience = std::chrono::seconds(1);

  enum class Kind : uint8_t { kPayment, kPurchase, kCardPayment, kRepayment };
  struct Order {
    Kind kind = Kind::kPayment;
    size_t user = 0;
    std::string key;  // empty: it cannot be repeated
    uint64_t from = 0, to = 0;
    int64_t cents = 0;
    std::string text, iban;  // the text of its entries; the IBAN of `to`
    int64_t at_ms = 0;       // 0: at once
    int64_t ahead_ms = 0;    // of the time at which it was given
    uint32_t number = 0;     // of an instalment
    uint64_t before = 0;     // the newest version of `from` that anybody was told before

    // As users were told. Guarded by mu_.
    std::optional<Payment> booked = std::nullopt;  // or scheduled
    uint64_t told_at = 0;                          // the step
    bool refused = false, in_doubt = false, cancelled = false, begun = false;
  };
  // Of a user: applied for, accepted, and repaid one instalment after the other.
  struct Borrowed {
    std::string key;  // of the application
    uint64_t id = 0, account = 0;
    bool running = false;
    LoanQuote quote;
    Order* repayment = nullptr;  // the last one
    uint32_t repaid = 0;         // as the customer was told, before `repayment`
  };
  struct Opening {
    size_t user = 0;
    std::string key;
    std::optional<Account> account = std::nullopt;
  };

  static bool IsOfFault(const absl::Status& status) {
    return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
           absl::IsResourceExhausted(status);
  }

  void SetUp() override;
  // An act of any customer.
  apps::Actors::Did Act(Rng& rng);
  // Repeats what is in doubt, waits until the bank is idle, and judges all that was told since the last call. REQUIRES: no user
  // acts, and no fault lasts.
  void JudgeAll();
  // Of all accounts. Fails the test if the bank does not answer.
  void ReadBalances();

 private:
  using Did = apps::Actors::Did;
  // An entry, but for its version and balance: the account, the cents, the other account, and the text.
  struct Line {
    uint64_t account = 0;
    int64_t cents = 0;
    uint64_t counterpart = 0;
    std::string text;
    auto operator<=>(const Line&) const = default;
  };

  // A call in the session of a user, which logs in again if its session has expired.
  template <class Method, class Request, class Reply>
  absl::Status As(size_t user, Method method, Request request, Reply* reply, const std::string& key = {}) {
    for (int attempt = 0;; ++attempt) {
      request.set_token(TokenOf(user));
      reply->Clear();
      const absl::Status status = Send(method, request, reply, key, nullptr, kPatience);
      if (!absl::IsUnauthenticated(status)) return status;
      if (attempt > 0 || !LogIn(user)) return absl::UnavailableError("no session");
    }
  }
  std::string TokenOf(size_t user) const;
  bool LogIn(size_t user);

  size_t UserOf(const Own& own) const;
  const Own& Any(Rng& rng) const { return all_[rng.Below(all_.size())]; }
  const Own& AnyBut(Rng& rng, const Own& one) const;
  uint64_t Version(uint64_t account) const;
  void Note(uint64_t account, uint64_t version);

  Order& New(Order order, bool with_key);
  // An attempt, and what it has told.
  apps::Operation Attempt(Order& order, bool insist = false);
  absl::Status Call(const Order& order, Payment* reply);
  void Record(Order& order, const apps::Operation& told, const Payment& reply);
  void ExpectRefusable(const Order& order);
  // Several attempts at once, or one after the other, if the order has a key.
  Did Give(Rng& rng, Order& order);
  static Did DidOf(const absl::Status& status);

  Order PaymentTo(const Own& from, const Own& to, int64_t cents) const;
  static int64_t SomeCents(Rng& rng);
  Did Pay(Rng& rng);
  Did Race(Rng& rng);
  Did Schedule(Rng& rng);
  Did Cancel(Rng& rng);
  Did Repeat(Rng& rng);
  Did Purchase(Rng& rng);
  Did PayCard(Rng& rng);
  Did Borrow(Rng& rng);
  Did Open(Rng& rng);
  absl::Status ApplyAndAccept(size_t user, Borrowed* loan);
  void ReadBalance(const Own& own, bool insist);
  void ReadCard(const Own& own);
  void ReadActivity(const Own& own);
  void Trespass(Rng& rng);
  // One with a key that is not old, or null.
  template <class Wanted>
  Order* AnyOrder(Rng& rng, Wanted wanted);

  void ExpectMovement(uint64_t account, const Movement& movement);

  void AwaitIdle();
  void Settle();
  void PrintOrders() const;
  // False: it is scheduled, and not due.
  bool Explain(const Order& order);
  void JudgeLoan(size_t user, const Borrowed& loan);
  void JudgeLines();
  void JudgeAccounts();
  template <class Read>
  void JudgeActivity(uint64_t account, Read read);

  apps::History history_{IsOfFault};
  std::optional<Books> books_;

  mutable std::mutex mu_;
  // Guarded by mu_ while users act.
  std::vector<std::string> tokens_;
  std::map<uint64_t, uint64_t> versions_;  // the newest that anybody was told
  std::deque<std::unique_ptr<Order>> orders_;
  std::deque<Opening> openings_;
  uint64_t last_ = 0;  // number in a key or a text

  std::array<std::mutex, kUsers> borrowing_;
  // Each guarded by the mutex of its user while users act.
  std::array<std::deque<Borrowed>, kUsers> loans_;

  // Of the thread that judges.
  std::map<Line, apps::PossibleCount> lines_;
  std::map<uint64_t, uint64_t> listed_;  // by account: the versions whose movements were judged
};

}  // namespace curtail::bank
