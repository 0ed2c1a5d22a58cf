// SPDX-License-Identifier: Apache-2.0
//
// Address book: where users have goods sent, and the cards that they pay with. The number of a card is not kept, not logged and
// in no answer: it becomes a token, which only the secret of the application makes of it, and its last four digits.
#include <algorithm>
#include <chrono>
#include <string>

#include "absl/strings/escaping.h"
#include "apps/kit/accounts/gone.h"
#include "apps/kit/data/secrets.h"
#include "apps/kit/luhn.h"
#include "apps/kit/wall_clock.h"
#include "apps/shop/data.h"
#include "customers.curtail.h"

namespace curtail::shop {

const char kAddressesSchema[] =
    "CREATE TABLE addresses(id INTEGER PRIMARY KEY AUTOINCREMENT, owner INTEGER NOT NULL, address BLOB NOT "
    "NULL) STRICT;"
    "CREATE INDEX addresses_of ON addresses(owner, id);"
    "CREATE TABLE cards(id INTEGER PRIMARY KEY AUTOINCREMENT, owner INTEGER NOT NULL, token TEXT NOT NULL,"
    " last_four TEXT NOT NULL, expires TEXT NOT NULL) STRICT;"
    "CREATE UNIQUE INDEX cards_of ON cards(owner, token);";
constexpr int kMostOfOwner = 20;
constexpr size_t kMostPartBytes = 100;
constexpr size_t kLeastDigits = 12, kMostDigits = 19, kShownDigits = 4, kTokenBytes = 16;

absl::Status CheckAddress(const Address& address) {
  for (const std::string* part : {&address.name(), &address.street(), &address.city(), &address.postcode()}) {
    if (part->empty() || part->size() > kMostPartBytes ||
        std::ranges::any_of(*part, [](unsigned char c) { return c < ' ' || c == 127; }))
      return absl::InvalidArgumentError(
          "name, street, city and postcode have 1 to 100 bytes, without control characters");
  }
  const std::string& country = address.country();
  if (country.size() == 2 && std::ranges::all_of(country, [](char c) { return c >= 'A' && c <= 'Z'; }))
    return absl::OkStatus();
  return absl::InvalidArgumentError("a country is two capital letters, as in ISO 3166-1");
}

std::string MonthNow() {
  const std::chrono::sys_days today = std::chrono::floor<std::chrono::days>(
      std::chrono::sys_time<std::chrono::milliseconds>(std::chrono::milliseconds(apps::NowMs())));
  const std::chrono::year_month_day date(today);
  const auto month = static_cast<unsigned>(date.month());
  return Join(static_cast<int>(date.year()), month < 10 ? "-0" : "-", month);
}

// The errors do not repeat the number, as clients may log them.
absl::Status CheckCard(const CardOrder& card) {
  const std::string& number = card.number();
  const bool digits = number.size() >= kLeastDigits && number.size() <= kMostDigits &&
                      std::ranges::all_of(number, [](char c) { return c >= '0' && c <= '9'; });
  if (!digits || apps::LuhnDigit(std::string_view(number).substr(0, number.size() - 1)) != number.back())
    return absl::InvalidArgumentError(
        "the number of a card has 12 to 19 digits, of which the last one checks");
  const std::string& month = card.expires();
  constexpr std::string_view kForm = "0000-00";
  const bool formed = month.size() == kForm.size() && month[4] == '-' &&
                      std::ranges::count_if(month, [](char c) { return c >= '0' && c <= '9'; }) == 6 &&
                      month.substr(5) >= "01" && month.substr(5) <= "12";
  if (!formed) return absl::InvalidArgumentError("a card expires in a month, YYYY-MM");
  return month >= MonthNow() ? absl::OkStatus() : absl::InvalidArgumentError("the card has expired");
}

struct AddressBookService final : AddressBook::CoroutineService {
  AddressBookService(SqlDatabase& d, std::string s) : db(d), secret(std::move(s)) {}

  Coroutine List(Context& ctx, const apps::UserId& request, AddressList* reply) override {
    co_return co_await db.Reading(ctx.deadline(), [&](SqlSession& s) {
      return s.Query("SELECT id, address FROM addresses WHERE owner = ?1 ORDER BY id", {request.user()},
                     [&](const SqlRow& row) { Put(row, reply->add_addresses()); });
    });
  }
  static void Put(const SqlRow& row, Address* address) {
    address->ParseFromString(std::string(row.Text(1)));
    address->set_id(row.Unsigned(0));
  }

  Coroutine Add(Context& ctx, const AddressOrder& request, Address* reply) override {
    if (absl::Status status = CheckAddress(request.address()); !status.ok()) co_return status;
    co_return co_await apps::WriteOnce(db, ctx, request.owner(), reply, [&](SqlSession& s) {
      *reply = request.address();
      reply->clear_id();
      absl::Status status = CheckRoom(s, request.owner(), "SELECT count(*) FROM addresses WHERE owner = ?1");
      if (!status.ok()) return status;
      const std::string bytes = reply->SerializeAsString();
      return s.Query("INSERT INTO addresses(owner, address) VALUES (?1, ?2) RETURNING id",
                     {request.owner(), SqlValue::Bytes(bytes)},
                     [&](const SqlRow& row) { reply->set_id(row.Unsigned(0)); });
    });
  }
  static absl::Status CheckRoom(SqlSession& s, uint64_t owner, std::string_view count) {
    int64_t have = 0;
    absl::Status status = apps::CheckThere(s, owner);
    if (status.ok()) status = s.Query(count, {owner}, [&](const SqlRow& row) { have = row.Integer(0); });
    if (status.ok() && have >= kMostOfOwner)
      status = absl::ResourceExhaustedError(Join("there are ", kMostOfOwner, " already: remove one first"));
    return status;
  }

  Coroutine Remove(Context& ctx, const OwnedId& request, apps::Nothing*) override {
    return RemoveOne(ctx, request, "DELETE FROM addresses WHERE id = ?1 AND owner = ?2", "address");
  }
  Coroutine RemoveCard(Context& ctx, const OwnedId& request, apps::Nothing*) override {
    return RemoveOne(ctx, request, "DELETE FROM cards WHERE id = ?1 AND owner = ?2", "card");
  }
  Coroutine RemoveOne(Context& ctx, const OwnedId& request, std::string_view sql, std::string_view what) {
    co_return co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
      absl::Status status = s.Execute(sql, {request.id(), request.owner()});
      return status.ok() && s.changes() == 0 ? NoSuch(what, request.id()) : status;
    });
  }
  static absl::Status NoSuch(std::string_view what, uint64_t id) {
    return absl::NotFoundError(Join("there is no ", what, " ", id));
  }

  static constexpr char kCardColumns[] = "SELECT id, last_four, expires, token FROM cards WHERE owner = ?1";
  static void Put(const SqlRow& row, Card* card) {
    card->set_id(row.Unsigned(0));
    card->set_last_four(std::string(row.Text(1)));
    card->set_expires(std::string(row.Text(2)));
  }

  Coroutine ListCards(Context& ctx, const apps::UserId& request, CardList* reply) override {
    co_return co_await db.Reading(ctx.deadline(), [&](SqlSession& s) {
      return s.Query(Join(kCardColumns, " ORDER BY id"), {request.user()},
                     [&](const SqlRow& row) { Put(row, reply->add_cards()); });
    });
  }

  // A card that the owner has already gets the new month.
  Coroutine AddCard(Context& ctx, const CardOrder& request, Card* reply) override {
    if (absl::Status status = CheckCard(request); !status.ok()) co_return status;
    const std::string token = TokenOf(request.number());
    const std::string last = request.number().substr(request.number().size() - kShownDigits);
    co_return co_await apps::WriteOnce(db, ctx, request.owner(), reply, [&](SqlSession& s) {
      absl::Status status = CheckRoom(s, request.owner(), "SELECT count(*) FROM cards WHERE owner = ?1");
      if (!status.ok()) return status;
      return s.Query(
          "INSERT INTO cards(owner, token, last_four, expires) VALUES (?1, ?2, ?3, ?4)"
          " ON CONFLICT(owner, token) DO UPDATE SET expires = excluded.expires RETURNING id, last_four, "
          "expires",
          {request.owner(), token, last, request.expires()}, [&](const SqlRow& row) { Put(row, reply); });
    });
  }
  // The same for all who have the card, so that `payment-auth` counts the payments of a card.
  std::string TokenOf(const std::string& number) const {
    return absl::BytesToHexString(apps::Mac(secret, "card " + number).substr(0, kTokenBytes));
  }

  Coroutine Look(Context& ctx, const DeliveryQuery& request, DeliveryPlace* reply) override {
    absl::Status status = co_await db.Reading(ctx.deadline(), [&](SqlSession& s) {
      absl::Status read = s.Query("SELECT id, address FROM addresses WHERE owner = ?1 AND id = ?2",
                                  {request.owner(), request.address()},
                                  [&](const SqlRow& row) { Put(row, reply->mutable_address()); });
      if (!read.ok()) return read;
      return s.Query(Join(kCardColumns, " AND id = ?2"), {request.owner(), request.card()},
                     [&](const SqlRow& row) {
                       Put(row, reply->mutable_card());
                       reply->mutable_card()->set_token(std::string(row.Text(3)));
                     });
    });
    if (!status.ok()) co_return status;
    if (!reply->has_address()) co_return NoSuch("address", request.address());
    if (!reply->has_card()) co_return NoSuch("card", request.card());
    if (reply->card().expires() < MonthNow()) co_return absl::FailedPreconditionError("the card has expired");
    co_return absl::OkStatus();
  }

  Coroutine Forget(Context& ctx, const apps::UserId& request, apps::Nothing*) override {
    co_return co_await apps::Forgetting(db, ctx.deadline(), request.user(), [&](SqlSession& s, bool*) {
      absl::Status status = s.Execute("DELETE FROM addresses WHERE owner = ?1", {request.user()});
      return status.ok() ? s.Execute("DELETE FROM cards WHERE owner = ?1", {request.user()}) : status;
    });
  }

  std::vector<DeclaredPath> Paths() const override {
    return {{"List", {}},    {"Add", {}},        {"Remove", {}}, {"ListCards", {}},
            {"AddCard", {}}, {"RemoveCard", {}}, {"Look", {}},   {"Forget", {}}};
  }

  SqlDatabase& db;
  const std::string secret;
};

HostedService HostedAddressBook() {
  return apps::HostedOnData(
      kApplication, "address-book", [](Env& env, const apps::DataOptions& data) -> MadeService {
        const auto db = apps::OpenData(env, data, "address-book",
                                       {kAddressesSchema, apps::kGoneSchema, apps::kOnceSchema},
                                       /*of=*/"address");
        if (!db.ok()) return db.status();
        auto secret = apps::TokenSecret(data);
        if (!secret.ok()) return secret.status();
        return std::make_unique<AddressBookService>(**db, *std::move(secret));
      });
}

}  // namespace curtail::shop
