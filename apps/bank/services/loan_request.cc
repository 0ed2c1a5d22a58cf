// SPDX-License-Identifier: Apache-2.0
//
// Loan requests: offers, loans that run, and their repayment.
//
//  1. Apply: a loan is quoted, scored and kept as an offer, or as declined.
//  2. Accept: a saga with the id of the loan, so that there is one. It opens the loan's account in the ledger, pays out from there,
//     and keeps the schedule.
//  3. Repay: an order (orders.h). Before its transfer it takes the instalment; then the loan pays its interest to the bank. An
//     instalment is taken by the order that it names while that, in the round named, is not refused: the state of its row decides.
#include "apps/bank/common/credit.h"
#include "apps/bank/common/leaving.h"
#include "apps/bank/common/orders.h"
#include "apps/bank/data.h"
#include "apps/kit/once.h"
#include "curtail/rpc/when_all.h"

namespace curtail::bank {

const char kLoansSchema[] =
    "CREATE TABLE loans(id INTEGER PRIMARY KEY, owner INTEGER NOT NULL, bytes BLOB NOT NULL) STRICT;"
    "CREATE TABLE instalments(loan INTEGER, number INTEGER, cents INTEGER NOT NULL, interest INTEGER NOT "
    "NULL,"
    " repayment INTEGER NOT NULL, round INTEGER NOT NULL, PRIMARY KEY(loan, number)) STRICT;"
    "CREATE INDEX instalments_of ON instalments(repayment)";
// An offer is open until then; 0: it is none.
const char kOffersSchema[] =
    "ALTER TABLE loans ADD COLUMN open_until_ms INTEGER NOT NULL DEFAULT 0;"
    "CREATE INDEX loans_of ON loans(owner, open_until_ms)";
constexpr char kAcceptances[] = "acceptances";
constexpr int64_t kOfferMs = 7 * int64_t{86'400'000};
constexpr double kLeastProbability = 0.6;

enum Acceptance { kAccepted, kPaidOut, kNotPaidOut };
static_assert(kPaidOut == 1);  // as SQL has it

struct LoanRequestService final : LoanRequests::CoroutineService {
  LoanRequestService(SqlDatabase& d, Env& e)
      : db(d),
        env(e),
        acceptances(d, kAcceptances, [this](Context& ctx, apps::SagaRow& row) { return PayOut(ctx, row); }),
        repayments(
            d, e, Payment::REFUSED,
            {.before = [this](Context& ctx, const apps::SagaRow& row,
                              const KeptPayment& kept) { return Take(ctx, row, kept); },
             .after = [this](Context& ctx, const KeptPayment& kept) { return BookInterest(ctx, kept); }},
            &access) {
    acceptances.WorkWhileServing(env);
  }

  Coroutine Apply(Context& ctx, const LoanOrder& request, Loan* reply) override {
    LoanQuoteRequest wanted;
    wanted.set_product(request.product());
    wanted.set_cents(request.cents());
    wanted.set_months(request.months());
    const absl::StatusOr<CreditFeatures> features = FeaturesOf(request);
    if (!features.ok()) co_return features.status();
    auto found = co_await WhenAllOk(ctx, Ask(loans, LoanInfo::kQuote, wanted),
                                    Ask(scoring, CreditScoring::kScore, *features),
                                    Ask(unique_id, apps::UniqueId::kNext, OneId()));
    if (!found.ok()) co_return found.status();
    const auto& [quote, score, ids] = *found;
    reply->set_id(ids.ids(0));
    *reply->mutable_quote() = quote;
    reply->set_probability(score.probability());
    *reply->mutable_reasons() = score.reasons();
    reply->set_refusal(request.refusal());
    if (reply->refusal().empty() && score.probability() < kLeastProbability)
      reply->set_refusal("repayment is not probable enough; the reasons lower it most");
    if (reply->refusal().empty()) reply->set_expires_ms(apps::NowMs() + kOfferMs);
    else reply->set_state(Loan::DECLINED);
    co_return co_await apps::WriteOnce(db, ctx, request.customer(), reply, [&](SqlSession& s) {
      absl::Status status = CheckOffers(s, request.customer());
      if (status.ok()) status = ForgetDeclined(s, request.customer());
      if (!status.ok()) return status;
      return s.Execute("INSERT INTO loans(id, owner, bytes, open_until_ms) VALUES (?1, ?2, ?3, ?4)",
                       {reply->id(), request.customer(), SqlValue::Bytes(reply->SerializeAsString()),
                        reply->expires_ms()});
    });
  }

  // All but the last ones, which nothing refers to.
  static absl::Status ForgetDeclined(SqlSession& s, uint64_t customer) {
    return s.Execute(
        "DELETE FROM loans WHERE owner = ?1 AND open_until_ms = 0 AND id < (SELECT id FROM loans"
        " WHERE owner = ?1 AND open_until_ms = 0 ORDER BY id DESC LIMIT 1 OFFSET ?2)"
        " AND NOT EXISTS (SELECT 1 FROM acceptances WHERE acceptances.id = loans.id)",
        {customer, kMostDeclined - 2});
  }

  static absl::Status CheckOffers(SqlSession& s, uint64_t customer) {
    uint64_t open = 0;
    absl::Status status = s.Query(
        "SELECT count(*) FROM loans WHERE owner = ?1 AND open_until_ms > ?2 AND NOT EXISTS"
        " (SELECT 1 FROM acceptances WHERE acceptances.id = loans.id AND state <> ?3)",
        {customer, apps::NowMs(), kNotPaidOut}, [&](const SqlRow& row) { open = row.Unsigned(0); });
    if (!status.ok() || open < kMostApplications) return status;
    return absl::ResourceExhaustedError(
        Join("the customer has ", open, " open offers of loans; accept one, or wait until one expires"));
  }

  Coroutine Accept(Context& ctx, const LoanAcceptanceOrder& request, Loan* reply) override {
    absl::Status status = co_await Look(ctx, request.customer(), request.id(), reply);
    if (!status.ok()) co_return status;
    if (reply->state() == Loan::DECLINED)
      co_return absl::FailedPreconditionError("the bank has declined this loan");
    if (reply->state() == Loan::EXPIRED)
      co_return absl::FailedPreconditionError("the offer has expired; apply again");
    if (reply->account() == 0) {
      BalanceQuery own;
      own.set_account(request.account());
      own.set_owner(request.customer());
      auto [owned] = co_await WhenAll(ctx, Ask(shards.Of(own.account()), Posting::kBalance, own));
      if (!owned.ok()) co_return owned.status();
    }
    // Before Begin(), which would go on with an acceptance that was refused.
    if (reply->account() != 0 && reply->account() != request.account()) co_return AcceptedFor(*reply);
    Loan accepted = *reply;
    accepted.set_account(request.account());
    apps::SagaRow row{.id = request.id(), .owner = request.customer(), .bytes = accepted.SerializeAsString()};
    // The decision. No client names this request: its id does.
    status = co_await acceptances.Begin(ctx, apps::Once(), kNotPaidOut, &row);
    if (status.ok()) status = Read(row.bytes, row.id, &accepted);
    if (status.ok() && accepted.account() != request.account()) status = AcceptedFor(accepted);
    if (status.ok()) status = co_await acceptances.Finish(ctx, &row);
    if (status.ok()) status = co_await Look(ctx, request.customer(), request.id(), reply);
    co_return status;
  }

  static absl::Status AcceptedFor(const Loan& loan) {
    return absl::FailedPreconditionError(Join("the loan was accepted for account ", loan.account()));
  }

  Coroutine PayOut(Context& ctx, apps::SagaRow& row) {
    Loan loan;
    if (absl::Status read = Read(row.bytes, row.id, &loan); !read.ok()) co_return read;
    if (absl::Status stays = co_await CheckStays(ctx, db, row); !stays.ok()) {
      row.open = !absl::IsFailedPrecondition(stays);
      if (!row.open) row.state = kNotPaidOut;
      co_return stays;
    }
    const LoanQuote& quote = loan.quote();
    OwnedAccount debt, interest;
    debt.set_account(row.id), debt.set_owner(row.id);
    debt.set_limit(quote.cents() + quote.interest_cents());
    interest.set_account(shards.InterestBeside(row.id)), interest.set_owner(interest.account());
    interest.set_limit(apps::kUnlimited);
    auto opened = co_await WhenAllOk(ctx, Ask(shards.Of(row.id), Posting::kOpen, debt),
                                     Ask(shards.Of(row.id), Posting::kOpen, interest));
    if (!opened.ok()) co_return opened.status();
    TransferOrder transfer;
    transfer.set_owner(row.id);
    transfer.set_request(row.RequestName("loan"));
    transfer.set_from(row.id);
    transfer.set_to(loan.account());
    transfer.set_cents(quote.cents());
    transfer.set_text(Join("loan ", row.id));
    auto [entry] = co_await WhenAll(ctx, Ask(shards.Of(row.id), Posting::kTransfer, transfer));
    if (!entry.ok() && !IsRefusal(entry.status())) co_return entry.status();
    std::vector<SqlValue> rows;
    for (int i = 0; i < quote.instalments_size(); ++i)
      rows.insert(rows.end(), {row.id, uint64_t(i) + 1, quote.instalments(i).cents(),
                               quote.instalments(i).interest_cents()});
    if (entry.ok()) {
      absl::Status kept = co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
        return s.QueryEach(
            "INSERT INTO instalments(loan, number, cents, interest, repayment, round)"
            " VALUES (?1, ?2, ?3, ?4, 0, 0) ON CONFLICT(loan, number) DO NOTHING",
            4, rows, [](size_t, const SqlRow&) {});
      });
      if (!kept.ok()) co_return kept;
    }
    row.state = entry.ok() ? kPaidOut : kNotPaidOut;
    row.open = false;
    co_return entry.status();
  }

  Coroutine Repay(Context& ctx, const RepaymentOrder& request, Payment* reply) override {
    Loan loan;
    absl::Status status = co_await Look(ctx, request.customer(), request.loan(), &loan);
    if (!status.ok()) co_return status;
    if (loan.state() != Loan::RUNNING && loan.state() != Loan::REPAID)
      co_return absl::FailedPreconditionError(Join("loan ", loan.id(), " has not been paid out"));
    if (request.number() == 0 || request.number() > loan.quote().months())
      co_return absl::InvalidArgumentError(
          Join("the number is that of an instalment, 1 to ", loan.quote().months()));
    auto [ids] = co_await WhenAll(ctx, Ask(unique_id, apps::UniqueId::kNext, OneId()));
    if (!ids.ok()) co_return ids.status();
    PaymentOrder order;
    order.set_customer(request.customer());
    order.set_from(request.from());
    order.set_cents(loan.quote().instalments(static_cast<int>(request.number()) - 1).cents());
    order.set_text(Join("loan ", loan.id(), ", instalment ", request.number()));
    order.set_number(request.number());
    order.set_stepped_up(request.stepped_up());
    uint64_t id = ids->ids(0);
    Permission permission;
    status = co_await repayments.Allow(ctx, order, &id, &permission);
    if (!status.ok()) co_return status;
    co_return co_await repayments.Give(ctx, order, id, request.customer(), loan.id(), reply);
  }

  Coroutine Take(Context& ctx, const apps::SagaRow& row, const KeptPayment& kept) {
    co_return co_await apps::DecideOnce(ctx, db, row.id, row.round, [&](SqlSession& s) {
      bool taken = false;
      absl::Status status = s.Query("SELECT 1 FROM instalments WHERE repayment = ?1 AND round = ?2",
                                    {row.id, uint64_t{row.round}}, [&](const SqlRow&) { taken = true; });
      if (!status.ok() || taken) return status;
      // An attempt that is late, after its order has ended, takes nothing.
      status = s.Execute(
          "UPDATE instalments SET repayment = ?2, round = ?3 WHERE loan = ?4 AND number = ?5 AND number ="
          " (SELECT min(i.number) FROM instalments i WHERE i.loan = ?4 AND NOT EXISTS"
          " (SELECT 1 FROM payments WHERE id = i.repayment AND round = i.round AND state <> ?1))"
          " AND EXISTS (SELECT 1 FROM payments WHERE id = ?2 AND round = ?3 AND state = ?6)",
          {Payment::REFUSED, row.id, uint64_t{row.round}, kept.payee(), uint64_t{kept.number()},
           Payment::PENDING});
      if (status.ok() && s.changes() == 0)
        return absl::FailedPreconditionError(Join("instalment ", kept.number(), " is not the next to pay"));
      return status;
    });
  }

  // The limit of the loan's account admits it, also before money from another shard has arrived.
  Coroutine BookInterest(Context& ctx, const KeptPayment& kept) {
    TransferOrder transfer;
    transfer.set_owner(kept.payee());
    transfer.set_request(Join("interest ", kept.number()));
    transfer.set_from(kept.payee());
    transfer.set_to(shards.InterestBeside(kept.payee()));
    transfer.set_text(Join("interest of instalment ", kept.number()));
    absl::Status status = co_await db.Reading(ctx.deadline(), [&](SqlSession& s) {
      return s.Query("SELECT interest FROM instalments WHERE loan = ?1 AND number = ?2",
                     {kept.payee(), uint64_t{kept.number()}},
                     [&](const SqlRow& row) { transfer.set_cents(row.Integer(0)); });
    });
    if (!status.ok() || transfer.cents() == 0) co_return status;
    auto [entry] = co_await WhenAll(ctx, Ask(shards.Of(transfer.from()), Posting::kTransfer, transfer));
    co_return entry.status();
  }

  Coroutine Status(Context& ctx, const PaymentQuery& request, Loan* reply) override {
    return Look(ctx, request.customer(), request.id(), reply);
  }
  Coroutine Repayment(Context& ctx, const PaymentQuery& request, Payment* reply) override {
    return repayments.Status(ctx, request, reply);
  }

  static constexpr Held kHeld{
      .what = "loan",
      .list = "SELECT id, id FROM acceptances WHERE owner = ?1 AND open = 0 AND state = 1",  // kPaidOut
      .busy = "SELECT id FROM acceptances WHERE owner = ?1 AND open = 1"};
  Coroutine Leave(Context& ctx, const LeaveOrder& request, Holdings* reply) override {
    return LeaveService(ctx, db, kHeld, request, reply);
  }
  Coroutine Stay(Context& ctx, const LeaveOrder& request, Holdings* reply) override {
    return StayAtService(ctx, db, kHeld, request, reply);
  }

  Coroutine Look(Context& ctx, uint64_t customer, uint64_t id, Loan* loan) {
    std::string offer, accepted;
    int acceptance = kNotPaidOut;
    std::vector<bool> paid;
    absl::Status status = co_await db.Reading(ctx.deadline(), [&](SqlSession& s) {
      absl::Status read = s.Query("SELECT bytes FROM loans WHERE id = ?1 AND owner = ?2", {id, customer},
                                  [&](const SqlRow& row) { offer = row.Text(0); });
      if (read.ok())
        read = s.Query("SELECT bytes, state FROM acceptances WHERE id = ?1 AND owner = ?2", {id, customer},
                       [&](const SqlRow& row) {
                         accepted = row.Text(0), acceptance = static_cast<int>(row.Integer(1));
                       });
      if (!read.ok()) return read;
      return s.Query(
          "SELECT (SELECT count(*) FROM payments WHERE id = repayment AND"
          " payments.round = instalments.round AND state = ?1) FROM instalments WHERE loan = ?2"
          " ORDER BY number",
          {Payment::BOOKED, id}, [&](const SqlRow& row) { paid.push_back(row.Integer(0) > 0); });
    });
    if (status.ok() && offer.empty()) status = absl::NotFoundError(Join("there is no loan ", id));
    if (status.ok()) status = Read(accepted.empty() ? offer : accepted, id, loan);
    if (!status.ok()) co_return status;
    if (accepted.empty() && loan->state() == Loan::OFFERED && loan->expires_ms() <= apps::NowMs())
      loan->set_state(Loan::EXPIRED);
    if (!accepted.empty()) loan->set_state(acceptance == kPaidOut ? Loan::REPAID : Loan::ACCEPTED);
    for (size_t i = 0; acceptance == kPaidOut && i < paid.size(); ++i) {
      Instalment& one = *loan->mutable_quote()->mutable_instalments(static_cast<int>(i));
      one.set_paid(paid[i]);
      if (paid[i]) continue;
      loan->set_state(Loan::RUNNING);
      loan->set_debt_cents(loan->debt_cents() + one.cents() - one.interest_cents());
    }
    co_return status;
  }

  static absl::Status Read(const std::string& bytes, uint64_t id, Loan* loan) {
    if (loan->ParseFromString(bytes)) return absl::OkStatus();
    return absl::DataLossError(Join("loan ", id, " is unreadable"));
  }

  std::vector<DeclaredPath> Paths() const override {
    constexpr auto kPosting = Posting::kServiceName;
    return {{"Apply", {loans, scoring, unique_id}},
            {"Accept", {kPosting}},
            {"Repay", {unique_id, access, kPosting}},
            {"Status", {}},
            {"Repayment", {kPosting}},
            {"Leave", {}},
            {"Stay", {}}};
  }

  SqlDatabase& db;
  Env& env;
  const LoanInfo::Stub loans = env.Stub<LoanInfo>("loan-info");
  const CreditScoring::Stub scoring = env.Stub<CreditScoring>("credit-scoring");
  const AccessControl::Stub access = env.Stub<AccessControl>("access-control");
  const apps::UniqueId::Stub unique_id = env.Stub<apps::UniqueId>("unique-id");
  const Shards shards{env};
  apps::Saga acceptances;
  Orders repayments;
};

HostedService HostedLoanRequest() {
  return apps::HostedWithData<LoanRequestService>(
      kApplication, "loan-request",
      {kLoansSchema, apps::kOnceSchema, apps::SagaSchema(kAcceptances), Orders::Schema(), kLeavingSchema,
       kOffersSchema, apps::kRefusalsSchema, Orders::OpenSchema(), Orders::RefusedSchema()});
}

}  // namespace curtail::bank
