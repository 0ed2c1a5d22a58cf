// SPDX-License-Identifier: Apache-2.0
//
// Payment auth: wallets, and what users are charged. A charge has a state, which changes in the transaction that moves its cents.
// Writers take turns, so each charge goes one way through these states:
//
//   NONE -> HELD -> CAPTURED -> REFUNDED      HELD -> REFUNDED, VOIDED      NONE -> REFUSED, VOIDED
#include <algorithm>

#include "apps/kit/wall_clock.h"
#include "apps/media/common/wallets.h"
#include "apps/media/data.h"
#include "curtail/base/strings.h"
#include "rentals.curtail.h"

namespace curtail::media {

constexpr uint64_t kWallet = 0;  // as a payer or a payee: the user's

// A way from one state to another, and the cents that move on it: none, if payer and payee are one.
struct ChargeStep {
  Charge::State from, to;
  uint64_t payer, payee;
};
constexpr ChargeStep kChargeSteps[] = {{Charge::NONE, Charge::HELD, kWallet, kEscrow},
                                       {Charge::NONE, Charge::VOIDED, kWallet, kWallet},
                                       {Charge::HELD, Charge::CAPTURED, kEscrow, kRevenue},
                                       {Charge::HELD, Charge::VOIDED, kEscrow, kWallet},
                                       {Charge::HELD, Charge::REFUNDED, kEscrow, kWallet},
                                       {Charge::CAPTURED, Charge::REFUNDED, kRevenue, kWallet}};

// A late repetition changes nothing.
bool HasBeen(Charge::State now, Charge::State state) {
  if (state == Charge::HELD) return now == Charge::HELD || now == Charge::CAPTURED || now == Charge::REFUNDED;
  if (state == Charge::CAPTURED) return now == Charge::CAPTURED || now == Charge::REFUNDED;
  return now == state || (state == Charge::VOIDED && now == Charge::REFUSED);
}

struct PaymentAuthService final : PaymentAuth::CoroutineService {
  PaymentAuthService(SqlDatabase& d, Env& e) : db(d), env(e) {}

  Coroutine Deposit(Context& ctx, const WalletDeposit& request, Wallet* reply) override {
    if (request.cents() < 1 || request.cents() > kMostDeposit)
      co_return absl::InvalidArgumentError(Join("a deposit is 1 to ", kMostDeposit, " cents"));
    const apps::Once once(ctx, request.user());
    auto [ids] = co_await WhenAll(ctx, Ask(unique_id, apps::UniqueId::kNext, apps::OneId()));
    if (!ids.ok()) co_return ids.status();
    const std::string name = once.named() ? Join("key ", once.name()) : Join("id ", ids->ids(0));
    co_return co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
      absl::Status status = ledger.Open(s, {.id = kDeposits, .owner = kDeposits, .limit = apps::kUnlimited});
      for (const uint64_t account : {kEscrow, kRevenue, request.user()})
        if (status.ok()) status = ledger.Open(s, {.id = account, .owner = account});
      std::vector<apps::Booked> booked;
      if (status.ok())
        status = Move(s, request.user(), name, request.cents(), kDeposits, request.user(), &booked);
      for (const apps::Booked& entry : booked) {
        if (entry.account != request.user()) continue;
        reply->set_cents(entry.balance);
        reply->set_version(entry.version);
      }
      return status;
    });
  }

  Coroutine Balance(Context& ctx, const apps::UserId& request, Wallet* reply) override {
    co_return co_await db.Reading(ctx.deadline(),
                                  [&](SqlSession& s) { return Show(s, request.user(), reply); });
  }

  Coroutine Authorize(Context& ctx, const Charge& request, apps::Nothing*) override {
    return Go(ctx, request, Charge::HELD);
  }
  Coroutine Capture(Context& ctx, const Charge& request, apps::Nothing*) override {
    return Go(ctx, request, Charge::CAPTURED);
  }
  Coroutine Void(Context& ctx, const Charge& request, apps::Nothing*) override {
    return Go(ctx, request, Charge::VOIDED);
  }
  Coroutine Refund(Context& ctx, const Charge& request, apps::Nothing*) override {
    return Go(ctx, request, Charge::REFUNDED);
  }

  Coroutine Go(Context& ctx, const Charge& charge, Charge::State to) {
    absl::Status refused;
    absl::Status status = co_await db.Writing(
        ctx.deadline(), [&](SqlSession& s) { return GoInTransaction(s, charge, to, &refused); });
    if (status.ok()) status = refused;
    co_return status;
  }

  // Sets `*refused` if this is OK and the charge does not go there.
  absl::Status GoInTransaction(SqlSession& s, const Charge& charge, Charge::State to, absl::Status* refused) {
    Charge::State from = Charge::NONE;
    absl::Status status = Read(s, charge, &from);
    if (!status.ok() || HasBeen(from, to)) return status;
    const ChargeStep* const step = std::ranges::find_if(
        kChargeSteps, [&](const ChargeStep& one) { return one.from == from && one.to == to; });
    if (step == std::end(kChargeSteps)) {
      *refused = absl::FailedPreconditionError(Join("the charge is ", Charge::State_Name(from)));
      return absl::OkStatus();
    }
    if (to == Charge::HELD) {
      Wallet wallet;
      status = Show(s, charge.user(), &wallet);
      if (status.ok() && wallet.cents() < charge.cents()) {
        *refused = absl::FailedPreconditionError(
            Join("the wallet has ", wallet.cents(), " cents, and this costs ", charge.cents()));
        to = Charge::REFUSED;
      }
    }
    const auto account = [&](uint64_t one) { return one == kWallet ? charge.user() : one; };
    std::vector<apps::Booked> ignored;
    if (status.ok() && to != Charge::REFUSED && step->payer != step->payee)
      status = Move(s, charge.user(),
                    Join("rental ", charge.rental(), ".", charge.round(), " ", Charge::State_Name(to)),
                    charge.cents(), account(step->payer), account(step->payee), &ignored);
    if (!status.ok()) return status;
    return s.Execute(
        "INSERT INTO charges(rental, round, user, cents, state) VALUES (?1, ?2, ?3, ?4, ?5)"
        " ON CONFLICT(rental, round) DO UPDATE SET state = ?5",
        {charge.rental(), uint64_t{charge.round()}, charge.user(), charge.cents(), int{to}});
  }

  static absl::Status Read(SqlSession& s, const Charge& charge, Charge::State* state) {
    bool same = true;
    absl::Status status = s.Query("SELECT state, user, cents FROM charges WHERE rental = ?1 AND round = ?2",
                                  {charge.rental(), uint64_t{charge.round()}}, [&](const SqlRow& row) {
                                    *state = static_cast<Charge::State>(row.Integer(0));
                                    same =
                                        row.Unsigned(1) == charge.user() && row.Integer(2) == charge.cents();
                                  });
    return same ? status : absl::AlreadyExistsError("the charge has another user or other cents");
  }

  absl::Status Move(SqlSession& s, uint64_t user, std::string_view name, int64_t cents, uint64_t payer,
                    uint64_t payee, std::vector<apps::Booked>* booked) const {
    return ledger.Post(s, {user, name}, {.entries = {{payer, -cents, {}}, {payee, cents, {}}}, .text = ""},
                       booked);
  }

  absl::Status Show(SqlSession& s, uint64_t user, Wallet* reply) const {
    apps::AccountState state;
    absl::Status status = ledger.Balance(s, user, 0, &state);
    reply->set_cents(state.balance);
    reply->set_version(state.version);
    return absl::IsNotFound(status) ? absl::OkStatus() : status;
  }

  Coroutine Look(Context& ctx, const Charge& request, Charge* reply) override {
    *reply = request;
    Charge::State state = Charge::NONE;
    absl::Status status =
        co_await db.Reading(ctx.deadline(), [&](SqlSession& s) { return Read(s, request, &state); });
    reply->set_state(state);
    co_return status;
  }

  Coroutine Audit(Context& ctx, const apps::Nothing&, apps::Nothing*) override {
    co_return co_await db.Reading(ctx.deadline(), [](SqlSession& s) { return AuditWallets(s); });
  }

  std::vector<DeclaredPath> Paths() const override {
    return {{"Deposit", {unique_id}}, {"Balance", {}}, {"Authorize", {}}, {"Capture", {}}, {"Void", {}},
            {"Refund", {}},           {"Look", {}},    {"Audit", {}}};
  }

  SqlDatabase& db;
  Env& env;
  const apps::UniqueId::Stub unique_id = env.Stub<apps::UniqueId>("unique-id");
  const apps::Ledger ledger{/*shard=*/0, apps::NowMs};
};

HostedService HostedPaymentAuth() {
  return apps::HostedWithData<PaymentAuthService>(
      kApplication, "payment-auth",
      {apps::kLedgerSchema,
       "CREATE TABLE charges(rental INTEGER, round INTEGER, user INTEGER NOT NULL, cents INTEGER NOT NULL,"
       " state INTEGER NOT NULL, PRIMARY KEY(rental, round)) STRICT"});
}

}  // namespace curtail::media
