// SPDX-License-Identifier: Apache-2.0
//
// Deposits: money for a term, with interest for each day. A deposit is an account of the ledger that is its own owner.
//
//  1. OpenTerm: an order (orders.h), whose money goes to the deposit's account. Who lacks the money is refused before the order: it
//     would leave an account in the books.
//  2. Accrue: `accrued` days have been decided, and `posted` of them are in the books, one day behind at most. The name of a
//     posting has its day, so a day accrues once. All of it comes from the bank's account for interest.
//  3. Break: a saga with the id of the deposit, so that there is one. Once its row is there, no further day is decided.
#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "apps/bank/common/interest.h"
#include "apps/bank/common/leaving.h"
#include "apps/bank/common/orders.h"
#include "apps/bank/data.h"
#include "apps/kit/jobs/finisher.h"
#include "apps/kit/run_here.h"
#include "curtail/rpc/when_all.h"

namespace curtail::bank {

const char kTermsSchema[] =
    "CREATE TABLE terms(id INTEGER PRIMARY KEY, owner INTEGER NOT NULL, account INTEGER NOT NULL, cents "
    "INTEGER NOT NULL,"
    " rate_bp INTEGER NOT NULL, days INTEGER NOT NULL, first_day INTEGER NOT NULL, accrued INTEGER NOT NULL,"
    " posted INTEGER NOT NULL) STRICT;"
    "CREATE INDEX terms_due ON terms(id) WHERE posted < days";
constexpr char kBreaks[] = "breaks";
constexpr uint64_t kTermsAtOnce = 64;
constexpr Nanos kLookForDays = std::chrono::seconds(10);

struct Term {
  uint64_t id = 0, owner = 0, account = 0;
  int64_t cents = 0;
  uint32_t rate_bp = 0, days = 0, first_day = 0, accrued = 0, posted = 0;

  int64_t Interest(uint32_t after_days) const { return DaysInterest(cents, rate_bp, after_days); }
};

// The terms that the bank offers, in days, and their rates.
constexpr std::array<std::pair<uint32_t, uint32_t>, 4> kTerms = {
    {{30, 100}, {90, 150}, {180, 200}, {365, 250}}};

struct DepositsService final : Deposits::CoroutineService {
  DepositsService(SqlDatabase& d, Env& e)
      : db(d),
        env(e),
        openings(d, e, Payment::REFUSED,
                 {.before = [this](Context& ctx, const apps::SagaRow& row,
                                   const KeptPayment& kept) { return Prepare(ctx, row, kept); },
                  .after = [this](Context& ctx, const KeptPayment& kept) { return Enter(ctx, kept); }}),
        breaks(d, kBreaks, [this](Context& ctx, apps::SagaRow& row) { return PayBack(ctx, row); }),
        accruer(
            [this](auto) {
              Context ctx(kStepTime);
              return apps::RunHere(AccrueTo(ctx, Today()));
            },
            kLookForDays) {
    breaks.WorkWhileServing(env);
    accruer.WorkWhileServing(env);
  }

  static uint32_t DayOf(int64_t ms) { return static_cast<uint32_t>(ms / 86'400'000); }
  static uint32_t Today() { return DayOf(apps::NowMs()); }

  static absl::StatusOr<uint32_t> RateOf(uint32_t days) {
    for (const auto& [term, rate_bp] : kTerms)
      if (term == days) return rate_bp;
    return absl::InvalidArgumentError("a term has 30, 90, 180 or 365 days");
  }

  Coroutine OpenTerm(Context& ctx, const TermOrder& request, Deposit* reply) override {
    if (absl::Status status = RateOf(request.days()).status(); !status.ok()) co_return status;
    PaymentOrder order;
    order.set_customer(request.customer());
    order.set_from(request.from());
    order.set_cents(request.cents());
    order.set_text(Join("deposit for ", request.days(), " days"));
    order.set_number(request.days());
    absl::Status status = Orders::Check(order);
    bool begins = true;
    if (status.ok()) status = co_await openings.WouldBegin(ctx, order, &begins);
    if (status.ok() && begins) status = co_await CheckMoney(ctx, order);
    if (!status.ok()) co_return status;
    auto [ids] = co_await WhenAll(ctx, Ask(unique_id, apps::UniqueId::kNext, OneId()));
    if (!ids.ok()) co_return ids.status();
    Payment opened;
    status = co_await openings.Give(ctx, order, ids->ids(0), request.customer(), ids->ids(0), &opened);
    if (status.ok()) status = co_await Look(ctx, request.customer(), opened.id(), reply);
    co_return status;
  }

  // NOT_FOUND: the customer has no such account. FAILED_PRECONDITION: it lacks the money.
  Coroutine CheckMoney(Context& ctx, const PaymentOrder& order) {
    BalanceQuery query;
    query.set_account(order.from()), query.set_owner(order.customer());
    auto [balance] = co_await WhenAll(ctx, Ask(shards.Of(order.from()), Posting::kBalance, query));
    if (!balance.ok()) co_return balance.status();
    const int64_t lacks = order.cents() - balance->available_cents();
    if (lacks <= 0) co_return absl::OkStatus();
    co_return absl::FailedPreconditionError(Join("account ", order.from(), " lacks ", lacks, " cents"));
  }

  Coroutine Prepare(Context& ctx, const apps::SagaRow& row, const KeptPayment& kept) {
    const uint64_t id = kept.payee();
    if (absl::Status stays = co_await CheckStays(ctx, db, row); !stays.ok()) co_return stays;
    OwnedAccount deposit, interest;
    deposit.set_account(id), deposit.set_owner(id);
    interest.set_account(shards.InterestBeside(id)), interest.set_owner(interest.account());
    interest.set_limit(apps::kUnlimited);
    auto opened = co_await WhenAllOk(ctx, Ask(shards.Of(id), Posting::kOpen, deposit),
                                     Ask(shards.Of(id), Posting::kOpen, interest));
    co_return opened.status();
  }

  Coroutine Enter(Context& ctx, const KeptPayment& kept) {
    const absl::StatusOr<uint32_t> rate_bp = RateOf(kept.number());
    if (!rate_bp.ok()) co_return absl::DataLossError(Join("deposit ", kept.payee(), " has an unknown term"));
    // Not when the order was given: a refused one may be repeated a year later.
    const int64_t from_ms = kept.booked_ms() > 0 ? kept.booked_ms() : kept.shown().created_ms();
    co_return co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
      return s.Execute(
          "INSERT INTO terms(id, owner, account, cents, rate_bp, days, first_day, accrued, posted)"
          " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 0, 0) ON CONFLICT(id) DO NOTHING",
          {kept.payee(), kept.payer(), kept.shown().from(), kept.shown().cents(), uint64_t{*rate_bp},
           uint64_t{kept.number()}, uint64_t{DayOf(from_ms)}});
    });
  }

  Coroutine Accrue(Context& ctx, const AccrualDay& request, apps::Nothing*) override {
    if (request.day() > Today())
      co_return absl::InvalidArgumentError(Join("day ", request.day(), " has not begun"));
    co_return co_await AccrueTo(ctx, request.day());
  }

  // A deposit that fails does not hold up the others.
  Coroutine AccrueTo(Context& ctx, uint32_t day) {
    absl::Status first;
    uint64_t id = 0, seen = kTermsAtOnce;
    while (seen == kTermsAtOnce) {
      std::vector<Term> terms;
      absl::Status read = co_await db.Reading(ctx.deadline(), [&](SqlSession& s) {
        return s.Query(Join(kTermColumns,
                            " WHERE posted < days AND first_day + posted < ?1 AND id > ?2"
                            " AND NOT EXISTS (SELECT 1 FROM breaks WHERE breaks.id = terms.id)"
                            " ORDER BY id LIMIT ?3"),
                       {uint64_t{day}, id, kTermsAtOnce},
                       [&](const SqlRow& row) { terms.push_back(TermOf(row)); });
      });
      if (!read.ok()) co_return read;
      seen = terms.size();
      for (Term& term : terms) {
        id = term.id;
        first.Update(co_await AccrueTerm(ctx, term, std::min(term.days, day - term.first_day)));
      }
    }
    co_return first;
  }

  Coroutine AccrueTerm(Context& ctx, Term term, uint32_t days) {
    absl::Status status;
    while (status.ok() && term.posted < days) {
      bool decided = term.accrued > term.posted;
      if (!decided) {
        status = co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
          absl::Status written = s.Execute(
              "UPDATE terms SET accrued = accrued + 1 WHERE id = ?1 AND accrued = ?2"
              " AND NOT EXISTS (SELECT 1 FROM breaks WHERE breaks.id = ?1)",
              {term.id, uint64_t{term.accrued}});
          decided = s.changes() == 1;
          return written;
        });
        ++term.accrued;
      }
      if (!status.ok() || !decided) co_return status;  // it is broken, or another attempt goes on
      status = co_await Post(ctx, &term);
    }
    co_return status;
  }

  // Posts the interest of the day that was decided last, once.
  Coroutine Post(Context& ctx, Term* term) {
    TransferOrder transfer;
    transfer.set_owner(shards.InterestBeside(term->id));
    transfer.set_request(Join("deposit ", term->id, " day ", term->accrued));
    transfer.set_from(transfer.owner());
    transfer.set_to(term->id);
    transfer.set_cents(term->Interest(term->accrued) - term->Interest(term->accrued - 1));
    transfer.set_text(Join("interest of day ", term->accrued));
    if (transfer.cents() > 0) {
      auto [entry] = co_await WhenAll(ctx, Ask(shards.Of(term->id), Posting::kTransfer, transfer));
      if (!entry.ok()) co_return entry.status();
    }
    term->posted = term->accrued;
    co_return co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
      return s.Execute("UPDATE terms SET posted = ?2 WHERE id = ?1 AND posted = ?3",
                       {term->id, uint64_t{term->posted}, uint64_t{term->posted} - 1});
    });
  }

  Coroutine Break(Context& ctx, const PaymentQuery& request, Deposit* reply) override {
    Term term;
    absl::Status status = co_await Find(ctx, request.id(), &term);
    if (status.ok()) status = co_await Look(ctx, request.customer(), request.id(), reply);
    // Money from another shard comes a moment after the opening.
    Payment opened;
    if (status.ok()) status = co_await openings.Status(ctx, request, &opened);
    if (!status.ok()) co_return status;
    if (opened.state() != Payment::ARRIVED)
      co_return absl::UnavailableError("the money of the deposit is on its way; try again");
    apps::SagaRow row{.id = request.id(), .owner = request.customer()};
    // The decision. No client names this request: its id does.
    status = co_await breaks.Begin(ctx, apps::Once(), apps::Saga::kNeverAgain, &row);
    if (status.ok()) status = co_await breaks.Finish(ctx, &row);
    if (status.ok()) status = co_await Look(ctx, request.customer(), request.id(), reply);
    co_return status;
  }

  // Before its end, a deposit gives its interest back.
  Coroutine PayBack(Context& ctx, apps::SagaRow& row) {
    Term term;
    absl::Status status = co_await Find(ctx, row.id, &term);
    if (status.ok() && term.posted < term.accrued) status = co_await Post(ctx, &term);
    if (!status.ok()) co_return status;
    const int64_t interest = term.Interest(term.accrued);
    const bool early = term.accrued < term.days;
    TransferOrder back;
    back.set_owner(row.id);
    back.set_from(row.id);
    if (early && interest > 0) {
      back.set_request("interest back");
      back.set_to(shards.InterestBeside(row.id));
      back.set_cents(interest);
      back.set_text("interest back");
      auto [entry] = co_await WhenAll(ctx, Ask(shards.Of(row.id), Posting::kTransfer, back));
      if (!entry.ok()) co_return entry.status();
    }
    back.set_request("deposit back");
    back.set_to(term.account);
    back.set_cents(term.cents + (early ? 0 : interest));
    back.set_text(Join("deposit ", row.id));
    auto [entry] = co_await WhenAll(ctx, Ask(shards.Of(row.id), Posting::kTransfer, back));
    row.open = !entry.ok();
    co_return entry.status();
  }

  Coroutine Status(Context& ctx, const PaymentQuery& request, Deposit* reply) override {
    return Look(ctx, request.customer(), request.id(), reply);
  }

  Coroutine Look(Context& ctx, uint64_t customer, uint64_t id, Deposit* reply) {
    Term term;
    absl::Status status = co_await Find(ctx, id, &term);
    if (status.ok() && term.owner != customer) status = NoDeposit(id);
    apps::SagaRow broken;
    if (status.ok()) status = co_await breaks.Find(ctx, customer, id, &broken);
    if (!status.ok()) co_return status;
    const bool ended = term.accrued == term.days;
    reply->set_id(id);
    reply->set_from(term.account);
    reply->set_cents(term.cents);
    reply->set_days(term.days);
    reply->set_rate_bp(term.rate_bp);
    reply->set_accrued_days(term.accrued);
    reply->set_interest_cents(broken.id != 0 && !ended ? 0 : term.Interest(term.accrued));
    reply->set_state(broken.id != 0 ? (broken.open ? Deposit::BREAKING : Deposit::PAID_BACK)
                     : ended        ? Deposit::ENDED
                                    : Deposit::RUNNING);
    co_return status;
  }

  // The same for the deposit of another customer as for a deposit that does not exist.
  static absl::Status NoDeposit(uint64_t id) { return absl::NotFoundError(Join("there is no deposit ", id)); }

  Coroutine Find(Context& ctx, uint64_t id, Term* term) {
    absl::Status status = co_await db.Reading(ctx.deadline(), [&](SqlSession& s) {
      return s.Query(Join(kTermColumns, " WHERE id = ?1"), {id},
                     [&](const SqlRow& row) { *term = TermOf(row); });
    });
    co_return status.ok() && term->id == 0 ? NoDeposit(id) : status;
  }

  static constexpr char kTermColumns[] =
      "SELECT id, owner, account, cents, rate_bp, days, first_day, accrued, posted FROM terms";
  static Term TermOf(const SqlRow& row) {
    const auto small = [&](int column) { return static_cast<uint32_t>(row.Unsigned(column)); };
    return {row.Unsigned(0), row.Unsigned(1), row.Unsigned(2), row.Integer(3), small(4),
            small(5),        small(6),        small(7),        small(8)};
  }

  // An order is open until its term is listed.
  static constexpr Held kHeld{.what = "deposit",
                              .list = "SELECT id, id FROM terms WHERE owner = ?1",
                              .busy = "SELECT id FROM payments WHERE owner = ?1 AND open = 1"};
  Coroutine Leave(Context& ctx, const LeaveOrder& request, Holdings* reply) override {
    return LeaveService(ctx, db, kHeld, request, reply);
  }
  Coroutine Stay(Context& ctx, const LeaveOrder& request, Holdings* reply) override {
    return StayAtService(ctx, db, kHeld, request, reply);
  }

  std::vector<DeclaredPath> Paths() const override {
    constexpr auto kPosting = Posting::kServiceName;
    return {{"OpenTerm", {unique_id, kPosting}},
            {"Accrue", {kPosting}},
            {"Break", {kPosting}},
            {"Status", {}},
            {"Leave", {}},
            {"Stay", {}}};
  }

  SqlDatabase& db;
  Env& env;
  const apps::UniqueId::Stub unique_id = env.Stub<apps::UniqueId>("unique-id");
  const Shards shards{env};
  Orders openings;
  apps::Saga breaks;
  apps::Finisher accruer;
};

HostedService HostedDeposits() {
  return apps::HostedWithData<DepositsService>(
      kApplication, "deposits",
      {kTermsSchema, Orders::Schema(), apps::SagaSchema(kBreaks), kLeavingSchema, apps::kRefusalsSchema,
       Orders::OpenSchema(), Orders::RefusedSchema()});
}

}  // namespace curtail::bank
