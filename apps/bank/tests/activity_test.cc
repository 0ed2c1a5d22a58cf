// SPDX-License-Identifier: Apache-2.0
//
// Filters and exports of movements, as customers of the bank use them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "apps/bank/common/csv.h"
#include "apps/bank/tests/bank_testing.h"
#include "curtail/base/rng.h"
#include "curtail/store/sql/sqlite.h"

namespace curtail::bank {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class ActivityTest : public BankTest {
 protected:
  absl::Status Filtered(const Own& own, const MovementFilter& filter, std::vector<Movement>* all,
                        uint32_t limit = 3) const {
    all->clear();
    ActivityRequest request;
    request.set_token(own.token), request.set_account(own.id), request.set_limit(limit);
    *request.mutable_filter() = filter;
    Movements page;
    do {
      request.set_before(page.next());
      page.Clear();
      absl::Status listed = Send(&Bank::Stub::ListActivity, request, &page);
      if (!listed.ok()) return listed;
      all->insert(all->end(), page.movements().begin(), page.movements().end());
    } while (page.next() != 0);
    return absl::OkStatus();
  }
  absl::Status Export(const Own& own, const MovementFilter& filter, std::string* text) const {
    ExportRequest request;
    request.set_token(own.token), request.set_account(own.id);
    *request.mutable_filter() = filter;
    Context ctx(kMaxTestWait);
    auto stream = Bank::Stub(front_.get()).ExportActivity(ctx, request);
    google::api::HttpBody part;
    text->clear();
    while (stream.Read(&part)) {
      EXPECT_THAT(part.content_type(), StartsWith("text/csv"));
      *text += part.data();
    }
    return stream.Finish();
  }
};

TEST_F(ActivityTest, AFilterPassesWhatMeetsAllItsConditions) {
  const Own &own = all_[0], &near = Other(own, true), &far = Other(own, false);
  Rng rng(TestSeed());
  int64_t left = kDeposit;
  for (int i = 0; i < 20; ++i) {
    const auto cents = static_cast<int64_t>(1 + rng.Below(50));
    const Own& other = rng.Below(2) == 0 ? near : far;
    const bool sends = rng.Below(2) == 0;
    left += sends ? -cents : cents;
    const absl::Status paid = Pay(sends ? PaymentOf(own, other, cents) : PaymentOf(other, own, cents));
    ASSERT_TRUE(paid.ok()) << paid;
  }
  AwaitCents(own, left);
  const std::vector<Movement> movements = AwaitMovements(own);
  const int64_t middle = movements[movements.size() / 2].booked_ms();
  const auto expect = [&](const MovementFilter& filter, const std::function<bool(const Movement&)>& passes) {
    for (const uint32_t limit : {3u, 100u}) {
      std::vector<Movement> listed;
      const absl::Status status = Filtered(own, filter, &listed, limit);
      ASSERT_TRUE(status.ok()) << status;
      std::string got, wanted;
      for (const Movement& one : listed) AppendCsv(one, &got);
      for (const Movement& one : movements)
        if (passes(one)) AppendCsv(one, &wanted);
      EXPECT_EQ(got, wanted) << filter.ShortDebugString();
    }
  };
  MovementFilter filter;
  expect(filter, [](const Movement&) { return true; });
  filter.set_direction(MovementFilter::RECEIVED);
  expect(filter, [](const Movement& one) { return one.cents() > 0; });
  filter.set_least_cents(25);
  expect(filter, [](const Movement& one) { return one.cents() >= 25; });
  filter.set_direction(MovementFilter::SENT);
  expect(filter, [](const Movement& one) { return one.cents() <= -25; });
  filter.set_direction(MovementFilter::BOTH);
  filter.set_iban(far.iban);
  expect(filter, [&](const Movement& one) { return std::abs(one.cents()) >= 25 && one.iban() == far.iban; });
  filter.Clear();
  filter.set_from_ms(middle);
  expect(filter, [&](const Movement& one) { return one.booked_ms() >= middle; });
  filter.Clear();
  filter.set_to_ms(middle);
  expect(filter, [&](const Movement& one) { return one.booked_ms() < middle; });
}

TEST_F(ActivityTest, RefusesAFilterThatIsWrong) {
  const Own& own = all_[0];
  const auto refused = [&](const std::function<void(MovementFilter*)>& spoil) {
    MovementFilter filter;
    spoil(&filter);
    std::vector<Movement> listed;
    std::string text;
    for (const absl::Status& status : {Filtered(own, filter, &listed), Export(own, filter, &text)})
      EXPECT_TRUE(absl::IsInvalidArgument(status)) << status << filter.ShortDebugString();
  };
  refused([](auto* f) { f->set_from_ms(-1); });
  refused([](auto* f) { f->set_to_ms(-1); });
  refused([](auto* f) { f->set_from_ms(5), f->set_to_ms(5); });
  refused([](auto* f) { f->set_least_cents(-1); });
  refused([](auto* f) { f->set_least_cents(apps::kMostCents + 1); });
  refused([](auto* f) { f->set_direction(static_cast<MovementFilter::Direction>(3)); });
  refused([](auto* f) { f->set_iban("DE00 0000"); });
  MovementFilter elsewhere;
  elsewhere.set_iban("DE89 3704 0044 0532 0130 00");
  std::vector<Movement> listed;
  EXPECT_TRUE(absl::IsNotFound(Filtered(own, elsewhere, &listed)));
}

// An account with more movements than a page looks at.
TEST_F(ActivityTest, ALongAccountIsListedAndExportedToItsEnd) {
  const Own& own = all_[0];
  AwaitMovements(own);
  constexpr int kMore = 25'000;
  const auto kept = internal::SqliteSession::Open({.path = Join(Folder(), "/activity.db")});
  ASSERT_TRUE(kept.ok()) << kept.status();
  const absl::Status added = (*kept)->Execute(
      "WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i <= ?2)"
      " INSERT INTO movements(account, version, posting, cents, balance, counterpart, purpose, booked_ms)"
      " SELECT ?1, i, i, 1, i, 0, '=1+1', 1000 * i FROM n",
      {own.id, kMore});
  ASSERT_TRUE(added.ok()) << added;
  std::string text;
  ASSERT_TRUE(Export(own, {}, &text).ok());
  EXPECT_THAT(text, StartsWith(kCsvHead));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), kMore + 2);
  EXPECT_THAT(text, HasSubstr(",\"'=1+1\"\r\n"));
  EXPECT_THAT(text, HasSubstr("opening deposit"));
  MovementFilter oldest;  // its match is behind pages that have none
  oldest.set_least_cents(kDeposit);
  std::vector<Movement> listed;
  ASSERT_TRUE(Filtered(own, oldest, &listed).ok());
  ASSERT_EQ(listed.size(), 1u);
  EXPECT_EQ(listed[0].version(), 1u);
  ASSERT_TRUE(Export(own, oldest, &text).ok());
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
}

TEST_F(ActivityTest, NobodyExportsAnothersMovements) {
  const Own &ann = all_[0], &bob = Other(ann, true);
  constexpr uint64_t kUnknown = 987654321;
  Own theirs = bob, unknown = ann;
  theirs.token = ann.token, unknown.id = kUnknown;
  std::string text;
  const absl::Status found = Export(theirs, {}, &text), missing = Export(unknown, {}, &text);
  EXPECT_TRUE(absl::IsNotFound(found)) << found;
  EXPECT_EQ(WordsOf(found, theirs.id), WordsOf(missing, kUnknown));
  EXPECT_EQ(text, "");
  theirs.token = "nobody";
  EXPECT_TRUE(absl::IsUnauthenticated(Export(theirs, {}, &text)));
}

}  // namespace
}  // namespace curtail::bank
