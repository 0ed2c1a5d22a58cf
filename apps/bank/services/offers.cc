// SPDX-License-Identifier: Apache-2.0
//
// Offers: products that suit a customer, by the rules of offers.h, and the answers. A customer has at most one of each product, which
// is kept once it has been shown, so that it is the same until it expires, and is not made again once it was answered.
#include "apps/bank/common/offers.h"

#include <string>
#include <vector>

#include "apps/bank/data.h"
#include "apps/kit/once.h"
#include "curtail/rpc/when_all.h"

namespace curtail::bank {

const char kOfferedSchema[] =
    "CREATE TABLE offers(customer INTEGER, product TEXT, score INTEGER NOT NULL, reason TEXT NOT NULL,"
    " expires_ms INTEGER NOT NULL, state INTEGER NOT NULL, PRIMARY KEY(customer, product)) STRICT, WITHOUT "
    "ROWID";

struct OffersService final : Offers::CoroutineService {
  OffersService(SqlDatabase& d, Env& e) : db(d), env(e) {}

  Coroutine For(Context& ctx, const apps::UserId& request, OfferList* reply) override {
    auto found = co_await WhenAllOk(ctx, Ask(accounts, Accounts::kList, request),
                                    Ask(cards, CreditCards::kList, request),
                                    Ask(customers, CustomerInfo::kGet, request));
    if (!found.ok()) co_return found.status();
    const auto& [owned, issued, customer] = *found;
    SummaryQuery query;
    query.set_since_ms(apps::NowMs() - kOfferDays * kOfferDayMs);
    for (const Account& account : owned.accounts()) query.add_accounts(account.id());
    auto [summary] = co_await WhenAll(ctx, Ask(activity, Activity::kSummarize, query));
    if (!summary.ok()) co_return summary.status();
    const std::vector<Offer> made = OffersFor({.activity = *std::move(summary),
                                               .has_card = !issued.cards().empty(),
                                               .has_email = !customer.email().empty()});
    co_return co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
      const int64_t now = apps::NowMs();
      for (const Offer& one : made) {
        absl::Status status = s.Execute(
            "INSERT INTO offers(customer, product, score, reason, expires_ms, state)"
            " VALUES (?1, ?2, ?3, ?4, ?5, 0) ON CONFLICT(customer, product) DO UPDATE SET"
            " score = excluded.score, reason = excluded.reason, expires_ms = excluded.expires_ms"
            " WHERE offers.state = 0 AND offers.expires_ms <= ?6",
            {request.user(), one.product(), uint64_t{one.score()}, one.reason(),
             now + kOfferDays * kOfferDayMs, now});
        if (!status.ok()) return status;
      }
      return s.Query(Join(kColumns, " AND state = 0 AND expires_ms > ?2 ORDER BY score DESC, product"),
                     {request.user(), now}, [&](const SqlRow& row) { Put(row, reply->add_offers()); });
    });
  }

  Coroutine Answer(Context& ctx, const OfferAnswerOrder& request, Offer* reply) override {
    const Offer::State answer = request.accepted() ? Offer::ACCEPTED : Offer::DECLINED;
    co_return co_await apps::WriteOnce(db, ctx, request.customer(), reply, [&](SqlSession& s) {
      absl::Status status =
          s.Query(Join(kColumns, " AND product = ?2"), {request.customer(), request.product()},
                  [&](const SqlRow& row) { Put(row, reply); });
      if (!status.ok() || reply->state() == answer) return status;
      if (reply->product().empty()) return absl::NotFoundError("there is no such offer");
      if (reply->state() != Offer::OPEN)
        return absl::FailedPreconditionError(
            Join("the offer was ", reply->state() == Offer::ACCEPTED ? "accepted" : "declined", " before"));
      if (reply->expires_ms() <= apps::NowMs()) return absl::FailedPreconditionError("the offer has expired");
      reply->set_state(answer);
      return s.Execute("UPDATE offers SET state = ?3 WHERE customer = ?1 AND product = ?2",
                       {request.customer(), request.product(), answer});
    });
  }

  static constexpr char kColumns[] =
      "SELECT product, score, reason, expires_ms, state FROM offers WHERE customer = ?1";
  static void Put(const SqlRow& row, Offer* offer) {
    offer->set_product(std::string(row.Text(0)));
    offer->set_score(static_cast<uint32_t>(row.Unsigned(1)));
    offer->set_reason(std::string(row.Text(2)));
    offer->set_expires_ms(row.Integer(3));
    offer->set_state(static_cast<Offer::State>(row.Integer(4)));
  }

  std::vector<DeclaredPath> Paths() const override {
    return {{"For", {accounts, cards, customers, activity}}, {"Answer", {}}};
  }

  SqlDatabase& db;
  Env& env;
  const Accounts::Stub accounts = env.Stub<Accounts>("accounts");
  const Activity::Stub activity = env.Stub<Activity>("activity");
  const CreditCards::Stub cards = env.Stub<CreditCards>("credit-card");
  const CustomerInfo::Stub customers = env.Stub<CustomerInfo>("customer-info");
};

HostedService HostedOffers() {
  return apps::HostedWithData<OffersService>(kApplication, "offers", {kOfferedSchema, apps::kOnceSchema});
}

}  // namespace curtail::bank
