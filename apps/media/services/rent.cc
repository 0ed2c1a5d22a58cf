// SPDX-License-Identifier: Apache-2.0
//
// Rent: rentals, each of which is a saga (apps/kit/jobs/saga.h).
//
//  1  A rental is kept as PENDING, by its user and the name of the request.
//  2  payment-auth moves its price from the wallet into escrow. A refusal ends it as REFUSED.
//  3  One write makes it ACTIVE, with its dates: the decision. The row stays open, and so is the outbox of step 4.
//  4  payment-auth captures the price.
//
// If its caller is gone before 3, the thread asks payment-auth whether it has the price. If so, it goes on with 3. Otherwise one
// write gives the rental up, which excludes 3. Then the thread voids what may still come.
//
// A refund is a saga, too. It begins in the transaction that finds the rental ACTIVE and its movie not watched.
#include "apps/media/common/rentals.h"

#include "apps/kit/accounts/for_clients.h"
#include "apps/kit/jobs/saga.h"
#include "apps/kit/page.h"
#include "apps/kit/wall_clock.h"
#include "apps/media/data.h"
#include "rentals.curtail.h"

namespace curtail::media {

const char kShownRentals[] =
    "SELECT rents.id, state, bytes, watched, refunded, round FROM rentals JOIN rents ON rents.id = rentals.id"
    " WHERE rentals.user = ?1 AND ";

struct RentService final : Rent::CoroutineService {
  RentService(SqlDatabase& d, Env& e)
      : db(d),
        env(e),
        rents(d, "rents", [this](Context& ctx, apps::SagaRow& row) { return Step(ctx, row); }),
        refunds(d, "refunds", [this](Context& ctx, apps::SagaRow& row) { return GiveBack(ctx, row); }) {
    rents.WorkWhileServing(env);
    refunds.WorkWhileServing(env);
  }

  Coroutine Rent(Context& ctx, const RentOrder& request, Rental* reply) override {
    if (request.days() < 1 || request.days() > kMostDays)
      co_return absl::InvalidArgumentError(Join("a movie is rented for 1 to ", kMostDays, " days"));
    auto found = co_await WhenAllOk(ctx, Ask(info, MovieInfo::kRead, IdsOf(request.movie())),
                                    Ask(unique_id, apps::UniqueId::kNext, apps::OneId()));
    if (!found.ok()) co_return found.status();
    const auto& [movies, ids] = *found;
    if (movies.movies().empty()) co_return absl::NotFoundError("there is no such movie");
    KeptRental kept;
    kept.mutable_shown()->set_id(ids.ids(0));
    kept.mutable_shown()->set_movie(request.movie());
    kept.mutable_shown()->set_days(request.days());
    kept.mutable_shown()->set_cents(PriceOf(request.days()));
    apps::SagaRow row{.id = ids.ids(0), .owner = request.user(), .bytes = kept.SerializeAsString()};
    // For a repeated request, `row` is the first one's by then.
    const auto enter = [&](SqlSession& s) {
      return s.Execute(
          "INSERT INTO rentals(id, user, movie, watched, refunded) VALUES (?1, ?2, ?3, 0, 0) "
          "ON CONFLICT(id) DO NOTHING",
          {row.id, request.user(), request.movie()});
    };
    absl::Status status =
        co_await rents.Begin(ctx, apps::Once(ctx, request.user()), Rental::REFUSED, &row, enter);
    if (status.ok()) status = co_await rents.Finish(ctx, &row);
    if (row.state == Rental::ACTIVE) status = absl::OkStatus();  // decided; the thread takes step 4
    if (status.ok()) status = ReadRental(row.id, row.bytes, &kept);
    if (status.ok() && row.state == Rental::REFUSED)
      status =
          apps::ForClients(absl::Status(static_cast<absl::StatusCode>(kept.refusal_code()), kept.refusal()));
    *reply = kept.shown();
    reply->set_state(Rental::ACTIVE);
    co_return status;
  }

  // Takes step 2, 3 or 4.
  Coroutine Step(Context& ctx, apps::SagaRow& row) {
    KeptRental kept;
    if (absl::Status read = ReadRental(row.id, row.bytes, &kept); !read.ok()) co_return read;
    const Charge charge = ChargeOf(row.owner, row.round, kept.shown());
    if (row.state == Rental::ACTIVE) {
      auto [captured] = co_await WhenAll(ctx, Ask(payments, PaymentAuth::kCapture, charge));
      row.open = !captured.ok();
      co_return captured.status();
    }
    if (row.state == kGivenUp) {
      auto [voided] = co_await WhenAll(ctx, Ask(payments, PaymentAuth::kVoid, charge));
      if (voided.ok()) Refuse(absl::UnavailableError("the payment took too long; try again"), &row, &kept);
      co_return voided.status();
    }
    if (apps::NowMs() < row.due_ms) {
      auto [held] = co_await WhenAll(ctx, Ask(payments, PaymentAuth::kAuthorize, charge));
      if (absl::IsFailedPrecondition(held.status())) {
        Refuse(held.status(), &row, &kept);
        co_return absl::OkStatus();
      }
      if (!held.ok()) co_return held.status();
    } else {
      auto [looked] = co_await WhenAll(ctx, Ask(payments, PaymentAuth::kLook, charge));
      if (looked.ok() && looked->state() != Charge::HELD) row.state = kGivenUp;
      if (!looked.ok() || row.state == kGivenUp) co_return looked.status();
    }
    row.state = Rental::ACTIVE;
    kept.mutable_shown()->set_starts_ms(apps::NowMs());
    kept.mutable_shown()->set_ends_ms(kept.shown().starts_ms() + kept.shown().days() * kDayMs);
    row.bytes = kept.SerializeAsString();
    co_return absl::OkStatus();
  }

  static void Refuse(const absl::Status& why, apps::SagaRow* row, KeptRental* kept) {
    row->state = Rental::REFUSED;
    row->open = false;
    kept->set_refusal_code(why.raw_code());
    kept->set_refusal(std::string(Message(why)));
    row->bytes = kept->SerializeAsString();
  }

  Coroutine Refund(Context& ctx, const RentalQuery& request, Rental* reply) override {
    Charge charge;
    absl::Status status = co_await Find(ctx, request, reply, &charge);
    if (!status.ok()) co_return status;
    if (reply->state() != Rental::REFUNDED && (reply->state() != Rental::ACTIVE || reply->watched()))
      co_return NoRefund();
    apps::SagaRow row{.id = request.rental(), .owner = request.user(), .bytes = charge.SerializeAsString()};
    // A repetition finds the row.
    status = co_await refunds.Begin(ctx, apps::Once(), apps::Saga::kNeverAgain, &row, [&](SqlSession& s) {
      absl::Status marked =
          s.Execute("UPDATE rentals SET refunded = 1 WHERE id = ?1 AND watched = 0", {request.rental()});
      return marked.ok() && s.changes() == 0 ? NoRefund() : marked;
    });
    if (status.ok()) status = co_await refunds.Finish(ctx, &row);
    reply->set_state(Rental::REFUNDED);
    co_return status;
  }
  static absl::Status NoRefund() {
    return absl::FailedPreconditionError("only an active rental whose movie was not watched is refunded");
  }

  Coroutine GiveBack(Context& ctx, apps::SagaRow& row) {
    Charge charge;
    if (!charge.ParseFromString(row.bytes))
      co_return absl::DataLossError(Join("the refund of rental ", row.id, " is unreadable"));
    auto [refunded] = co_await WhenAll(ctx, Ask(payments, PaymentAuth::kRefund, charge));
    row.open = !refunded.ok();
    co_return refunded.status();
  }

  Coroutine State(Context& ctx, const RentalQuery& request, Rental* reply) override {
    Charge ignored;
    co_return co_await Find(ctx, request, reply, &ignored);
  }

  Coroutine Find(Context& ctx, const RentalQuery& query, Rental* reply, Charge* charge) {
    absl::Status unread;
    absl::Status status = co_await db.Reading(ctx.deadline(), [&](SqlSession& s) {
      return s.Query(Join(kShownRentals, "rentals.id = ?2"), {query.user(), query.rental()},
                     [&](const SqlRow& row) {
                       unread = Show(row, reply);
                       *charge = ChargeOf(query.user(), static_cast<uint32_t>(row.Unsigned(5)), *reply);
                     });
    });
    if (status.ok()) status = unread;
    if (status.ok() && reply->id() == 0) status = absl::NotFoundError("there is no such rental");
    co_return status;
  }

  static absl::Status Show(const SqlRow& row, Rental* rental) {
    KeptRental kept;
    absl::Status status = ReadRental(row.Unsigned(0), row.Text(2), &kept);
    rental->Swap(kept.mutable_shown());
    rental->set_watched(row.Integer(3) != 0);
    const bool active = row.Integer(1) == Rental::ACTIVE;
    rental->set_state(!active && row.Integer(1) != Rental::REFUSED ? Rental::PENDING
                      : !active                                    ? Rental::REFUSED
                      : row.Integer(4) != 0                        ? Rental::REFUNDED
                      : rental->ends_ms() <= apps::NowMs()         ? Rental::EXPIRED
                                                                   : Rental::ACTIVE);
    return status;
  }

  Coroutine Current(Context& ctx, const RentOrder& request, Rental* reply) override {
    constexpr uint64_t kNewest = 100;  // rentals of one movie that are looked at
    absl::Status unread;
    absl::Status status = co_await db.Reading(ctx.deadline(), [&](SqlSession& s) {
      return s.Query(Join(kShownRentals, "rentals.movie = ?2 ORDER BY rentals.id DESC LIMIT ?3"),
                     {request.user(), request.movie(), kNewest}, [&](const SqlRow& row) {
                       Rental one;
                       unread.Update(Show(row, &one));
                       if (one.state() == Rental::ACTIVE && one.ends_ms() > reply->ends_ms())
                         reply->Swap(&one);
                     });
    });
    if (status.ok()) status = unread;
    if (status.ok() && reply->id() == 0)
      status = absl::FailedPreconditionError("you have no active rental of this movie");
    co_return status;
  }

  Coroutine Watched(Context& ctx, const RentalQuery& request, Rental* reply) override {
    Charge ignored;
    absl::Status status = co_await Find(ctx, request, reply, &ignored);
    if (!status.ok() || reply->state() != Rental::ACTIVE || reply->watched()) co_return status;
    status = co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
      return s.Execute("UPDATE rentals SET watched = 1 WHERE id = ?1 AND refunded = 0", {request.rental()});
    });
    if (!status.ok()) co_return status;
    co_return co_await Find(ctx, request, reply, &ignored);
  }

  Coroutine Mine(Context& ctx, const RentalsOf& request, RentalList* reply) override {
    const uint64_t limit = apps::LimitOf(request.limit());
    absl::Status unread;
    absl::Status status = co_await db.Reading(ctx.deadline(), [&](SqlSession& s) {
      return s.Query(Join(kShownRentals, "rentals.id < ?2 ORDER BY rentals.id DESC LIMIT ?3"),
                     {request.user(), apps::BeforeOf(request.before()), limit},
                     [&](const SqlRow& row) { unread.Update(Show(row, reply->add_rentals())); });
    });
    if (status.ok() && static_cast<uint64_t>(reply->rentals_size()) == limit)
      reply->set_next(reply->rentals().rbegin()->id());
    co_return status.ok() ? unread : status;
  }

  std::vector<DeclaredPath> Paths() const override {
    return {{"Rent", {info, unique_id, payments}},
            {"Refund", {payments}},
            {"Mine", {}},
            {"State", {}},
            {"Current", {}},
            {"Watched", {}}};
  }

  SqlDatabase& db;
  Env& env;
  const MovieInfo::Stub info = env.Stub<MovieInfo>("movie-info");
  const apps::UniqueId::Stub unique_id = env.Stub<apps::UniqueId>("unique-id");
  const PaymentAuth::Stub payments = env.Stub<PaymentAuth>("payment-auth");
  apps::Saga rents, refunds;
};

HostedService HostedRent() {
  return apps::HostedWithData<RentService>(
      kApplication, "rent",
      {Join(apps::SagaSchema("rents"), ";", apps::SagaSchema("refunds"),
            ";CREATE TABLE rentals(id INTEGER PRIMARY KEY, user INTEGER NOT NULL, movie INTEGER NOT NULL,"
            " watched INTEGER NOT NULL, refunded INTEGER NOT NULL) STRICT;"
            "CREATE INDEX rentals_of ON rentals(user, id);"
            "CREATE INDEX rentals_to_watch ON rentals(user, movie, id)")});
}

}  // namespace curtail::media
