// SPDX-License-Identifier: Apache-2.0
//
// One thread takes operation after operation, so the model is exact: an account is the list of its movements. Calls at once are
// repetitions of one request, of which one may have an effect, or equal payments from one account, of which as many succeed as it has
// money for. After each payment the check waits until the payee has the money.
#include "apps/bank/commands/check.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "apps/bank/commands/check_model.h"
#include "apps/bank/common/iban.h"
#include "bank.curtail.h"
#include "curtail/base/clock.h"
#include "curtail/base/rng.h"
#include "curtail/base/strings.h"
#include "curtail/rpc/channel.h"
#include "curtail/rpc/context.h"

namespace curtail::bank {
namespace {

constexpr size_t kCustomers = 3, kAtOnce = 6, kMostDifferences = 10;
constexpr size_t kMostOpened = 8;  // accounts of a customer
constexpr int64_t kMostPaidAtOnce = 50'000;
constexpr Nanos kCallTime = std::chrono::seconds(20), kPause = std::chrono::milliseconds(2);

class Checker {
 public:
  Checker(const CheckOptions& options, const ChannelOptions& channel, uint64_t seed)
      : options_(options), seed_(seed), rng_(seed), deadline_(Deadline::In(FromSeconds(options.seconds))) {
    for (size_t i = 0; i < kAtOnce; ++i)
      channels_.push_back(std::make_unique<Channel>(&client_, options.target.address, channel));
  }

  absl::Status Run() {
    for (size_t i = 0; fatal_.ok() && i < kCustomers; ++i) Begin(i);
    for (done_ = 0; GoesOn() && done_ < options_.operations; ++done_) Act();
    for (size_t i = 0; GoesOn() && i < known_.size(); ++i) {
      LookAtBalance(known_[i]);
      LookAtMovements(known_[i]);
    }
    for (size_t i = 0; GoesOn() && i < kCustomers; ++i) LookAtAccounts(i);
    std::printf("%zu operations of %zu customers on %zu accounts and cards: %zu differences\n", done_,
                kCustomers, known_.size(), differences_);
    if (differences_ > 0)
      return absl::DataLossError(Join(differences_, " answers differ from the model; --seed ", seed_));
    return fatal_;
  }

 private:
  using Stub = Bank::Stub;

  bool GoesOn() {
    if (fatal_.ok() && deadline_.Expired())
      fatal_ = absl::DeadlineExceededError(Join("after ", done_, " operations; --seconds gives more time"));
    return fatal_.ok() && differences_ < kMostDifferences;
  }

  template <class... Words>
  void Differ(const Words&... words) {
    ++differences_;
    std::printf("operation %zu: %s\n", done_, Join(words...).c_str());
  }
  bool IsEqual(const std::string& what, uint64_t got, uint64_t expected) {
    if (got != expected) Differ(what, " is ", got, ", not ", expected);
    return got == expected;
  }
  // An error of another code than `code` differs. One of the connection ends the check.
  bool Ended(const std::string& what, const absl::Status& status, absl::StatusCode code) {
    if (status.code() == code) return true;
    if (absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status)) fatal_.Update(status);
    else Differ(what, " ended with ", status.ToString(), ", not with ", absl::StatusCodeToString(code));
    return false;
  }
  bool IsOk(const std::string& what, const absl::Status& status) {
    return Ended(what, status, absl::StatusCode::kOk);
  }

  // A call. What has no answer is repeated: reads, and writes with a key.
  template <class Call, class Request, class Reply>
  absl::Status Send(Call call, const Request& request, Reply* reply, const std::string& key = {},
                    size_t channel = 0) const {
    const Deadline deadline = Deadline::In(kCallTime);
    while (true) {
      Context ctx(kCallTime);
      if (!key.empty()) ctx.AddMetadata("idempotency-key", key);
      reply->Clear();
      const absl::Status status = (Stub(channels_[channel].get()).*call)(ctx, request, reply, nullptr);
      const bool answered = !absl::IsUnavailable(status) && !absl::IsDeadlineExceeded(status);
      if (answered || deadline.Expired()) return status;
      std::this_thread::sleep_for(kPause);
    }
  }
  // Runs call(i) on a thread each.
  static void AtOnce(size_t count, const std::function<void(size_t)>& call) {
    std::vector<std::thread> threads;
    for (size_t i = 0; i < count; ++i) threads.emplace_back(call, i);
    for (std::thread& thread : threads) thread.join();
  }

  // Another one in each run: with the keys of a run before, the server would repeat its answers.
  std::string NewKey() { return Join("check ", run_, " ", ++keys_); }
  size_t AnyCustomer() { return rng_.Below(kCustomers); }
  size_t AnyKnown(bool card) {
    size_t i = rng_.Below(known_.size());
    while (known_[i].is_card() != card) i = rng_.Below(known_.size());
    return i;
  }
  const std::string& TokenOf(const Known& account) const { return tokens_[account.owner]; }

  // Registers a customer with two accounts and a card, which pays the first money.
  void Begin(size_t customer) {
    apps::Credentials credentials;
    credentials.set_name(Join("check_", seed_, "_", customer));
    credentials.set_password(Join("password ", seed_));
    apps::Session session;
    fatal_.Update(Send(&Stub::Register, credentials, &session, NewKey()));
    tokens_.push_back(session.token());
    CardApplication application;
    application.set_token(session.token());
    application.set_income_cents(kCardLimit);
    application.set_limit_cents(kCardLimit);
    Application issued;
    if (fatal_.ok()) fatal_.Update(Send(&Stub::ApplyForCard, application, &issued, NewKey()));
    if (!fatal_.ok()) return;
    if (issued.card().limit_cents() != kCardLimit)
      fatal_ = absl::FailedPreconditionError(Join("no card: ", issued.ShortDebugString()));
    known_.push_back({.id = issued.card().id(), .owner = customer});
    const size_t card = known_.size() - 1;
    for (int i = 0; i < 2; ++i) Open(customer);
    if (GoesOn()) Give({card, known_.size() - 1, kCardLimit / 2, "first money", NewKey()});
  }

  void Act() {
    switch (rng_.Below(12)) {
      case 0:
        return Open(AnyCustomer());
      case 1:
        return GiveTooMuchAtOnce();
      case 2:
        return Repeat();
      case 3:
        return GiveWrong();
      case 4:
        return AskForAnothers();
      case 5:
        return LookAtBalance(known_[rng_.Below(known_.size())]);
      case 6:
        return LookAtMovements(known_[rng_.Below(known_.size())]);
      case 7:
        return LookAtAccounts(AnyCustomer());
      case 8: {  // a purchase with a card, or a payment of the card by its owner
        size_t card = AnyKnown(/*card=*/true), account = AnyKnown(/*card=*/false);
        if (rng_.Below(2) == 0) return Give(AnyOrder(card, account));
        while (known_[account].owner != known_[card].owner) account = AnyKnown(/*card=*/false);
        return Give(AnyOrder(account, card));
      }
      default: {
        const size_t from = AnyKnown(/*card=*/false);
        size_t to = from;
        while (to == from) to = AnyKnown(/*card=*/false);
        return Give(AnyOrder(from, to));
      }
    }
  }

  // One in five or so is of more than there is.
  Order AnyOrder(size_t from, size_t to) {
    const auto most =
        static_cast<uint64_t>(std::clamp<int64_t>(known_[from].available() / 4, 1, kMostPaidAtOnce));
    const int64_t cents =
        rng_.Below(5) == 0 ? known_[from].available() + 1 : static_cast<int64_t>(1 + rng_.Below(most));
    return {from, to, std::min(cents, 2 * kMostPaidAtOnce), Join("text ", rng_.Below(1000)), NewKey()};
  }

  void Open(size_t customer) {
    if (std::ranges::count(known_, customer, &Known::owner) > static_cast<int>(kMostOpened)) return;
    apps::TokenRequest request;
    request.set_token(tokens_[customer]);
    const std::string key = NewKey();
    std::vector<absl::Status> ended(1 + rng_.Below(3));
    std::vector<Account> opened(ended.size());
    AtOnce(ended.size(), [&](size_t i) { ended[i] = Send(&Stub::OpenAccount, request, &opened[i], key, i); });
    for (size_t i = 0; i < ended.size(); ++i) {
      if (!IsOk("OpenAccount", ended[i])) return;
      IsEqual("the account that a repetition opens", opened[i].id(), opened[0].id());
    }
    if (!CheckedIban(opened[0].iban()).ok()) Differ("the IBAN of an account is ", opened[0].iban());
    known_.push_back({.id = opened[0].id(), .iban = opened[0].iban(), .owner = customer});
  }

  absl::Status Send(const Order& order, Payment* reply, size_t channel = 0) const {
    const Known &from = known_[order.from], &to = known_[order.to];
    const auto send = [&](auto call, auto request) {
      request.set_token(TokenOf(from));
      request.set_cents(order.cents);
      if constexpr (requires { request.set_text(order.text); }) request.set_text(order.text);
      if constexpr (requires { request.set_iban(to.iban); }) request.set_iban(to.iban);
      if constexpr (requires { request.set_from(from.id); }) request.set_from(from.id);
      if constexpr (requires { request.set_card(to.id); }) request.set_card(from.is_card() ? from.id : to.id);
      return Send(call, request, reply, order.key, channel);
    };
    if (from.is_card()) return send(&Stub::Purchase, PurchaseRequest());
    if (to.is_card()) return send(&Stub::PayCard, PayCardRequest());
    return send(&Stub::Pay, PayRequest());
  }
  absl::Status Look(const Order& order, const std::string& token, uint64_t id, Payment* reply) const {
    PaymentRequest request;
    request.set_token(token);
    request.set_id(id);
    if (known_[order.from].is_card()) return Send(&Stub::GetPurchase, request, reply);
    if (known_[order.to].is_card()) return Send(&Stub::GetCardPayment, request, reply);
    return Send(&Stub::GetPayment, request, reply);
  }

  // Sends an order several times at once, with one key.
  void Give(const Order& order) {
    const bool enough = order.cents <= known_[order.from].available();
    std::vector<absl::Status> ended(1 + rng_.Below(4));
    std::vector<Payment> replies(ended.size());
    AtOnce(ended.size(), [&](size_t i) { ended[i] = Send(order, &replies[i], i); });
    for (size_t i = 0; i < ended.size(); ++i) {
      const std::string what = Join("a payment of ", order.cents, " of ", known_[order.from].available());
      const auto code = enough ? absl::StatusCode::kOk : absl::StatusCode::kFailedPrecondition;
      if (!Ended(what, ended[i], code)) return;
      if (enough && Lasting(replies[i]) != Lasting(replies[0]))
        Differ("a repetition has the answer ", replies[i].ShortDebugString(), ", the first one ",
               replies[0].ShortDebugString());
    }
    if (enough) Enter(order, replies[0]);
    LookAtBalance(known_[order.from]);
    LookAtBalance(known_[order.to]);
  }

  // Moves the money in the model, and waits until the server has.
  void Enter(Order order, const Payment& reply) {
    Known &from = known_[order.from], &to = known_[order.to];
    order.reply = reply;
    const std::string text = to.is_card() ? "" : order.text;
    from.Move({-order.cents, to.iban, text});
    to.Move({order.cents, from.iban, text});
    IsEqual("the version of a payment", reply.version(), from.version());
    IsEqual("the account of a payment", reply.from(), from.id);
    IsEqual("the cents of a payment", static_cast<uint64_t>(reply.cents()),
            static_cast<uint64_t>(order.cents));
    if (reply.iban() != to.iban) Differ("the IBAN of a payment is ", reply.iban(), ", not ", to.iban);
    AwaitArrival(order);
    orders_.push_back(std::move(order));
  }
  void AwaitArrival(const Order& order) {
    const Deadline deadline = Deadline::In(kCallTime);
    Payment seen;
    do {
      if (!IsOk("looking at a payment", Look(order, TokenOf(known_[order.from]), order.reply.id(), &seen)))
        return;
      if (Lasting(seen) != Lasting(order.reply))
        return Differ("a payment is ", seen.ShortDebugString(), ", but was ", order.reply.ShortDebugString());
      if (seen.state() == Payment::ARRIVED) return;
      std::this_thread::sleep_for(kPause);
    } while (seen.state() == Payment::BOOKED && !deadline.Expired());
    Differ("a payment has not arrived: ", seen.ShortDebugString());
  }

  // Equal payments from one account: as many succeed as it has money for.
  void GiveTooMuchAtOnce() {
    const size_t from = AnyKnown(/*card=*/false);
    size_t to = from;
    while (to == from) to = AnyKnown(/*card=*/false);
    const int64_t cents = std::min(known_[from].cents / 3, kMostPaidAtOnce);
    if (cents == 0) return;
    const size_t enough = std::min(kAtOnce, static_cast<size_t>(known_[from].cents / cents));
    std::vector<Order> orders;
    for (size_t i = 0; i < kAtOnce; ++i) orders.push_back({from, to, cents, "at once", NewKey()});
    std::vector<absl::Status> ended(kAtOnce);
    AtOnce(kAtOnce, [&](size_t i) { ended[i] = Send(orders[i], &orders[i].reply, i); });
    std::vector<Order> paid;
    for (size_t i = 0; i < kAtOnce; ++i) {
      if (ended[i].ok()) paid.push_back(orders[i]);
      else if (!Ended("a payment of too much", ended[i], absl::StatusCode::kFailedPrecondition)) return;
    }
    if (!IsEqual("the number of payments that the account can pay", paid.size(), enough)) return;
    std::ranges::sort(paid, {}, [](const Order& order) { return order.reply.version(); });
    for (const Order& order : paid) Enter(order, order.reply);
    LookAtBalance(known_[from]);
    LookAtBalance(known_[to]);
  }

  // An order of before, again, and with another content.
  void Repeat() {
    if (orders_.empty()) return;
    const Order& order = orders_[rng_.Below(orders_.size())];
    Payment reply;
    if (!IsOk("a repetition", Send(order, &reply))) return;
    if (Lasting(reply) != Lasting(order.reply))
      Differ("a repetition has the answer ", reply.ShortDebugString(), ", the first one ",
             order.reply.ShortDebugString());
    Order other = order;
    ++other.cents;
    Ended("a key with another content", Send(other, &reply), absl::StatusCode::kAlreadyExists);
    LookAtBalance(known_[order.from]);
    LookAtBalance(known_[order.to]);
  }

  void GiveWrong() {
    constexpr int64_t kLeast = std::numeric_limits<int64_t>::min(),
                      kMost = std::numeric_limits<int64_t>::max();
    constexpr int64_t kCents[] = {0, -1, -kMostPaidAtOnce, 1'000'000'000'001, kLeast, kMost};
    Order order = AnyOrder(AnyKnown(/*card=*/rng_.Below(4) == 0), AnyKnown(/*card=*/false));
    Payment reply;
    auto code = absl::StatusCode::kInvalidArgument;
    order.cents = 1;
    const bool is_card = known_[order.from].is_card();
    switch (rng_.Below(is_card ? 2 : 4)) {
      case 0:
        order.cents = kCents[rng_.Below(std::size(kCents))];
        break;
      case 1:
        order.text = rng_.Below(2) == 0 ? std::string(141, 'a') : "two\nlines";
        break;
      case 2:
        order.to = order.from;
        break;
      default:
        order.cents = 2 * kMostPaidAtOnce + 1;
        code = absl::StatusCode::kPermissionDenied;
    }
    if (order.to == order.from && code != absl::StatusCode::kInvalidArgument) return;
    Ended(Join("a payment of ", order.cents, " with ", order.text.size(), " characters"), Send(order, &reply),
          code);
    LookAtBalance(known_[order.from]);
    LookAtBalance(known_[order.to]);
  }

  // The answer on another customer's account, card or payment is that on one that does not exist.
  void AskForAnothers() {
    const Known& theirs = known_[rng_.Below(known_.size())];
    const std::string& token = tokens_[(theirs.owner + 1 + rng_.Below(kCustomers - 1)) % kCustomers];
    const uint64_t unknown = 900'000'000 + rng_.Below(99'999'999);
    const auto compare = [&](const std::string& what, uint64_t id, auto ask) {
      const absl::Status found = ask(id), missing = ask(unknown);
      if (Ended(Join(what, " of another"), found, absl::StatusCode::kNotFound) &&
          WithoutNumber(found, id) != WithoutNumber(missing, unknown))
        Differ(what, " of another is ", found.ToString(), ", an unknown one ", missing.ToString());
    };
    const auto ask = [&](auto call, auto request, auto reply, auto set) {
      return [=, this](uint64_t id) mutable {
        request.set_token(token);
        set(request, id);
        return Send(call, request, &reply);
      };
    };
    const auto card = [](auto& request, uint64_t id) { request.set_card(id); };
    const auto account = [](auto& request, uint64_t id) { request.set_account(id); };
    const auto pay = [&](auto& request, uint64_t id) {
      request.set_from(id), request.set_cents(1);
      request.set_iban(known_[1].id == id ? known_[2].iban : known_[1].iban);
    };
    if (theirs.is_card()) {
      compare("the balance", theirs.id, ask(&Stub::GetCardBalance, CardRequest(), CardBalance(), card));
      compare("the statement", theirs.id, ask(&Stub::GetStatement, CardRequest(), Movements(), card));
    } else {
      compare("the balance", theirs.id, ask(&Stub::GetBalance, BalanceRequest(), Balance(), account));
      compare("the movements", theirs.id, ask(&Stub::ListActivity, ActivityRequest(), Movements(), account));
    }
    compare("the money", theirs.id, ask(&Stub::Pay, PayRequest(), Payment(), pay));
    for (const Order& order : orders_) {
      if (&known_[order.from] != &theirs) continue;
      compare("the payment", order.reply.id(), [&](uint64_t id) {
        Payment reply;
        return Look(order, token, id, &reply);
      });
      break;
    }
    BalanceRequest nobody;
    nobody.set_account(theirs.id);
    Balance balance;
    Ended("a call without a session", Send(&Stub::GetBalance, nobody, &balance),
          absl::StatusCode::kUnauthenticated);
    LookAtBalance(theirs);
  }

  void LookAtBalance(const Known& of) {
    const uint64_t at_least = rng_.Below(of.version() + 1);
    if (of.is_card()) {
      CardRequest request;
      request.set_token(TokenOf(of));
      request.set_card(of.id);
      request.set_at_least(at_least);
      CardBalance balance;
      if (!IsOk("GetCardBalance", Send(&Stub::GetCardBalance, request, &balance))) return;
      IsBalance(of, balance.version(), -balance.debt_cents(), balance.available_cents());
    } else {
      BalanceRequest request;
      request.set_token(TokenOf(of));
      request.set_account(of.id);
      request.set_at_least(at_least);
      Balance balance;
      if (!IsOk("GetBalance", Send(&Stub::GetBalance, request, &balance))) return;
      IsBalance(of, balance.version(), balance.cents(), balance.available_cents());
    }
  }
  void IsBalance(const Known& of, uint64_t version, int64_t cents, int64_t available) {
    if (version == of.version() && cents == of.cents && available == of.available()) return;
    Differ(of.is_card() ? "card " : "account ", of.id, " has ", cents, " cents, ", available,
           " available, at version ", version, ", not ", of.cents, ", ", of.available(), ", at ",
           of.version());
  }

  // A page, which `before` may continue.
  absl::Status List(const Known& of, uint64_t before, uint32_t limit, Movements* page) const {
    const auto list = [&](auto call, auto request) {
      request.set_token(TokenOf(of));
      request.set_before(before);
      request.set_limit(limit);
      if constexpr (requires { request.set_card(of.id); }) request.set_card(of.id);
      else request.set_account(of.id);
      return Send(call, request, page);
    };
    return of.is_card() ? list(&Stub::GetStatement, CardRequest())
                        : list(&Stub::ListActivity, ActivityRequest());
  }
  void LookAtMovements(const Known& of) {
    const auto limit = static_cast<uint32_t>(1 + rng_.Below(7));
    const Deadline deadline = Deadline::In(kCallTime);
    Movements page;
    do {  // movements are listed a moment later
      if (!IsOk("listing movements", List(of, 0, limit, &page))) return;
      if (page.movements_size() == 0 ? of.version() == 0 : page.movements(0).version() >= of.version()) break;
      std::this_thread::sleep_for(kPause);
    } while (!deadline.Expired());
    uint64_t version = of.version();
    int64_t cents = of.cents;
    while (true) {
      for (const Movement& one : page.movements()) {
        if (version == 0) return Differ("account ", of.id, " lists too much: ", one.ShortDebugString());
        const Moved& moved = of.moved[version - 1];
        if (one.version() != version || one.cents() != moved.cents || one.balance_cents() != cents ||
            one.iban() != moved.iban || (!moved.text.empty() && one.text() != moved.text))
          return Differ("movement ", version, " of account ", of.id, " is ", one.ShortDebugString(),
                        ", not of ", moved.cents, " cents to ", cents, ", with ", moved.iban, ", '",
                        moved.text, "'");
        cents -= moved.cents, --version;
      }
      if (page.next() == 0 || page.movements().empty()) break;
      if (!IsOk("listing movements", List(of, page.next(), limit, &page))) return;
    }
    if (version > 0) Differ("account ", of.id, " does not list its first ", version, " movements");
  }

  void LookAtAccounts(size_t customer) {
    apps::TokenRequest request;
    request.set_token(tokens_[customer]);
    AccountList list;
    if (!IsOk("ListAccounts", Send(&Stub::ListAccounts, request, &list))) return;
    std::string got, expected;
    for (const Account& account : list.accounts()) got += Join(account.id(), " ", account.iban(), ", ");
    for (const Known& one : known_) {
      if (one.owner == customer && !one.is_card()) expected += Join(one.id, " ", one.iban, ", ");
    }
    if (got != expected) Differ("a customer has the accounts ", got, "not ", expected);
  }

  const CheckOptions& options_;
  const uint64_t seed_;
  const uint64_t run_ = std::random_device()();
  Rng rng_;
  const Deadline deadline_;
  Client client_;
  std::vector<std::unique_ptr<Channel>> channels_;  // one for each call at once
  std::vector<std::string> tokens_;                 // of the customers
  std::vector<Known> known_;
  std::vector<Order> orders_;  // that were paid
  uint64_t keys_ = 0;
  size_t done_ = 0, differences_ = 0;
  absl::Status fatal_;
};

}  // namespace

absl::Status CheckBank(const CheckOptions& options) {
  const absl::StatusOr<ChannelOptions> channel = apps::ChannelOptionsOf(options.target);
  if (!channel.ok()) return channel.status();
  const uint64_t seed = options.seed != 0 ? options.seed : std::random_device()();
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  return Checker(options, *channel, seed).Run();
}

}  // namespace curtail::bank
