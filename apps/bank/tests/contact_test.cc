// SPDX-License-Identifier: Apache-2.0
//
// Bookings with representatives and messages to the bank, as its customers use them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "apps/bank/common/branches.h"
#include "apps/bank/tests/bank_testing.h"
#include "apps/kit/wall_clock.h"

namespace curtail::bank {
namespace {

using testing::HasSubstr;

constexpr int64_t kMinutesMs = 60'000, kHourMs = 60 * kMinutesMs, kDaysMs = 24 * kHourMs;

class ContactTest : public BankFaultTest {
 protected:
  std::vector<int64_t> SlotsOf(uint64_t representative) const {
    SlotQuery query;
    query.set_representative(representative);
    SlotList slots;
    const absl::Status status = Send(&Bank::Stub::ListSlots, query, &slots);
    EXPECT_TRUE(status.ok()) << status;
    return {slots.starts_ms().begin(), slots.starts_ms().end()};
  }
  absl::Status Book(const Own& who, uint64_t representative, int64_t starts_ms, Booking* reply,
                    const std::string& key = {}, Channel* by = nullptr, Nanos patience = kMaxTestWait) const {
    BookingRequest request;
    request.set_token(who.token), request.set_representative(representative),
        request.set_starts_ms(starts_ms);
    return Send(&Bank::Stub::BookSlot, request, reply, key, by, patience);
  }
  absl::Status CancelOf(const Own& who, uint64_t id, Booking* reply) const {
    PaymentRequest request;
    request.set_token(who.token), request.set_id(id);
    return Send(&Bank::Stub::CancelBooking, request, reply);
  }
  std::vector<Booking> BookingsOf(const Own& who) const {
    apps::TokenRequest request;
    request.set_token(who.token);
    BookingList list;
    EXPECT_TRUE(Send(&Bank::Stub::ListBookings, request, &list).ok());
    return {list.bookings().begin(), list.bookings().end()};
  }
  absl::Status Write(const Own& who, const std::string& text, WrittenMessage* reply,
                     const std::string& key = {}) const {
    MessageRequest request;
    request.set_token(who.token), request.set_text(text);
    return Send(&Bank::Stub::WriteMessage, request, reply, key);
  }
  const Own& Stranger(const Own& who) const { return Other(who, /*same_shard=*/true); }
};

using PartedContactTest = Parted<ContactTest>;

TEST_F(ContactTest, FindsRepresentativesByTopicAndPlace) {
  RepresentativeQuery query;
  query.set_topic("loans"), query.set_limit(5);
  const Place here = AllBranches()[41].place();
  *query.mutable_near() = here;
  RepresentativeList list;
  ASSERT_TRUE(Send(&Bank::Stub::ListRepresentatives, query, &list).ok());
  ASSERT_EQ(list.representatives_size(), 5);
  std::vector<double> distances;
  for (const Representative& one : list.representatives()) {
    EXPECT_EQ(one.topic(), "loans");
    distances.push_back(KilometresBetween(here, one.branch().place()));
  }
  EXPECT_TRUE(std::ranges::is_sorted(distances));
  double nearest = std::numeric_limits<double>::max();
  for (const Representative& one : AllRepresentatives())
    if (one.topic() == "loans") nearest = std::min(nearest, KilometresBetween(here, one.branch().place()));
  EXPECT_EQ(distances[0], nearest);

  query.set_topic("gardening");
  ASSERT_TRUE(Send(&Bank::Stub::ListRepresentatives, query, &list).ok());
  EXPECT_EQ(list.representatives_size(), 0);
  for (const auto& [latitude, longitude] :
       {std::pair{90.1, 0.0}, {0.0, -180.1}, {std::numeric_limits<double>::quiet_NaN(), 0.0}}) {
    query.mutable_near()->set_latitude(latitude), query.mutable_near()->set_longitude(longitude);
    EXPECT_TRUE(absl::IsInvalidArgument(Send(&Bank::Stub::ListRepresentatives, query, &list)));
  }
}

TEST(Branches, AreAsFarApartAsOnASphere) {
  Place pole, berlin, paris;
  pole.set_latitude(90);
  berlin.set_latitude(52.52), berlin.set_longitude(13.405);
  paris.set_latitude(48.8566), paris.set_longitude(2.3522);
  EXPECT_NEAR(KilometresBetween(berlin, paris), 878, 2);
  EXPECT_NEAR(KilometresBetween(pole, Place()), 10'008, 1);
  EXPECT_EQ(KilometresBetween(paris, paris), 0);
}

TEST_F(ContactTest, BooksAHalfHourOnceAndGivesItBack) {
  const Own &own = all_[0], &stranger = Stranger(own);
  const std::vector<int64_t> free = SlotsOf(1);
  // Ten days of any fourteen are from Monday to Friday.
  EXPECT_GE(free.size(), 10u * 16 - 1);
  EXPECT_LE(free.size(), 10u * 16 + 1);
  ASSERT_GT(free.size(), 21u);
  for (const int64_t ms : free) {
    EXPECT_GT(ms, apps::NowMs() - kMaxTestWait.count() / 1'000'000);
    EXPECT_GE(ms % kDaysMs, 9 * kHourMs);
    EXPECT_LE(ms % kDaysMs, 16 * kHourMs + 30 * kMinutesMs);
    EXPECT_NE((ms / kDaysMs + 4) % 7, 0) << "a Sunday";
    EXPECT_NE((ms / kDaysMs + 4) % 7, 6) << "a Saturday";
  }
  Booking booking, again, refused;
  ASSERT_TRUE(Book(own, 1, free[20], &booking, "k").ok());
  ASSERT_TRUE(Book(own, 1, free[20], &again, "k").ok());
  EXPECT_EQ(again.SerializeAsString(), booking.SerializeAsString());
  EXPECT_TRUE(absl::IsAlreadyExists(Book(own, 1, free[21], &refused, "k")));
  EXPECT_TRUE(absl::IsFailedPrecondition(Book(own, 1, free[20], &refused)));
  EXPECT_TRUE(absl::IsFailedPrecondition(Book(stranger, 1, free[20], &refused, "k")));
  EXPECT_FALSE(std::ranges::binary_search(SlotsOf(1), free[20]));
  ASSERT_TRUE(Book(stranger, 2, free[20], &refused).ok()) << "another representative is free";

  const absl::Status others = CancelOf(stranger, booking.id(), &refused),
                     unknown = CancelOf(own, 77, &refused);
  EXPECT_TRUE(absl::IsNotFound(others)) << others;
  EXPECT_EQ(WordsOf(others, booking.id()), WordsOf(unknown, 77));
  ASSERT_EQ(BookingsOf(own).size(), 1u);
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(CancelOf(own, booking.id(), &again).ok());
    EXPECT_TRUE(again.cancelled());
    EXPECT_EQ(again.starts_ms(), free[20]);
  }
  EXPECT_TRUE(BookingsOf(own).empty());
  EXPECT_TRUE(std::ranges::binary_search(SlotsOf(1), free[20]));
  ASSERT_TRUE(Book(stranger, 1, free[20], &again).ok());
  ASSERT_TRUE(CancelOf(own, booking.id(), &refused).ok()) << "which cancels nobody else's";
  EXPECT_FALSE(std::ranges::binary_search(SlotsOf(1), free[20]));
}

TEST_F(ContactTest, RefusesWhatIsNoHalfHourOfWorkAndTheSixthBooking) {
  const Own& own = all_[0];
  const std::vector<int64_t> free = SlotsOf(3);
  Booking booking;
  const int64_t midnight = free[30] / kDaysMs * kDaysMs;
  const int64_t monday = (free[30] / kDaysMs - (free[30] / kDaysMs + 3) % 7) * kDaysMs;
  for (const int64_t wrong :
       {int64_t{0}, int64_t{-1}, -15 * kHourMs, free[30] + 1, midnight + 8 * kHourMs + 30 * kMinutesMs,
        midnight + 17 * kHourMs, monday + 5 * kDaysMs + 10 * kHourMs, monday + 6 * kDaysMs + 10 * kHourMs,
        std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()})
    EXPECT_TRUE(absl::IsInvalidArgument(Book(own, 3, wrong, &booking))) << wrong;
  for (const int64_t far : {monday - 14 * kDaysMs + 10 * kHourMs, monday + 28 * kDaysMs + 10 * kHourMs})
    EXPECT_TRUE(absl::IsFailedPrecondition(Book(own, 3, far, &booking))) << far;
  for (const uint64_t nobody : {uint64_t{0}, AllRepresentatives().size() + 1, ~uint64_t{0}}) {
    EXPECT_TRUE(absl::IsNotFound(Book(own, nobody, free[30], &booking))) << nobody;
    SlotQuery query;
    query.set_representative(nobody);
    SlotList slots;
    EXPECT_TRUE(absl::IsNotFound(Send(&Bank::Stub::ListSlots, query, &slots)));
  }
  EXPECT_TRUE(BookingsOf(own).empty());
  for (size_t i = 0; i < 5; ++i) ASSERT_TRUE(Book(own, 3, free[20 + i], &booking).ok());
  Booking sixth;
  EXPECT_TRUE(absl::IsResourceExhausted(Book(own, 3, free[30], &sixth)));
  ASSERT_TRUE(CancelOf(own, booking.id(), &booking).ok());
  EXPECT_TRUE(Book(own, 3, free[30], &sixth).ok());
  EXPECT_EQ(BookingsOf(own).size(), 5u);
}

// Property: a half hour has one booking, whatever dies, and a customer who repeats a request knows whose it is.
TEST_F(PartedContactTest, BooksEachHalfHourOnceWhileTheServiceIsKilled) {
  constexpr uint64_t kRepresentative = 5;
  const std::vector<int64_t> free = SlotsOf(kRepresentative);
  std::vector<const Own*> who;
  for (const Own& own : all_)
    if (std::ranges::none_of(who, [&](const Own* one) { return one->token == own.token; }))
      who.push_back(&own);
  ASSERT_GE(who.size(), size_t{kCustomers});
  std::array<std::vector<std::pair<int64_t, uint64_t>>, kCustomers> booked;
  ActWhileKilled({"contact", "unique-id", "contact"}, [&](int me) {
    const std::unique_ptr<Channel> by = Connect();
    for (int i = 0; !stop_.load(); ++i) {
      const int64_t slot = free[static_cast<size_t>(i) % free.size()];
      Booking booking;
      const absl::Status status = Answered(
          [&] { return Book(*who[me], kRepresentative, slot, &booking, Join("k", i), by.get(), kPatience); });
      if (status.ok()) booked[me].emplace_back(slot, booking.id());
      else EXPECT_TRUE(absl::IsFailedPrecondition(status) || absl::IsResourceExhausted(status)) << status;
      if (!absl::IsResourceExhausted(status)) continue;
      for (const auto& [given_back, id] : booked[me])
        EXPECT_TRUE(Answered([&] { return CancelOf(*who[me], id, &booking); }).ok());
      booked[me].clear();
    }
  });
  const std::vector<int64_t> left = SlotsOf(kRepresentative);
  std::vector<int64_t> taken;
  for (int me = 0; me < kCustomers; ++me) {
    for (const auto& [slot, id] : booked[me]) {
      taken.push_back(slot);
      EXPECT_FALSE(std::ranges::binary_search(left, slot));
    }
    EXPECT_EQ(BookingsOf(*who[me]).size(), booked[me].size());
    EXPECT_LE(booked[me].size(), 5u);
  }
  std::ranges::sort(taken);
  EXPECT_EQ(std::ranges::adjacent_find(taken), taken.end()) << "two were told that a half hour is theirs";
}

TEST_F(ContactTest, KeepsMessagesOfEachCustomer) {
  const Own &own = all_[0], &stranger = Stranger(own);
  WrittenMessage first, again, more;
  ASSERT_TRUE(Write(own, "My card\nis lost", &first, "k").ok());
  ASSERT_TRUE(Write(own, "My card\nis lost", &again, "k").ok());
  EXPECT_EQ(again.SerializeAsString(), first.SerializeAsString());
  EXPECT_TRUE(absl::IsAlreadyExists(Write(own, "It is found", &again, "k")));
  ASSERT_TRUE(Write(stranger, "Hello", &again, "k").ok());
  ASSERT_TRUE(Write(own, std::string(4'000, 'x'), &more).ok());
  for (const std::string& wrong : {std::string(), std::string(4'001, 'x'), std::string("a\0b", 3),
                                   std::string("a\rb"), std::string("\x7f")})
    EXPECT_TRUE(absl::IsInvalidArgument(Write(own, wrong, &again))) << wrong;

  MessagePage page;
  page.set_token(own.token), page.set_limit(1);
  MessageList list;
  ASSERT_TRUE(Send(&Bank::Stub::ListMessages, page, &list).ok());
  ASSERT_EQ(list.messages_size(), 1);
  EXPECT_EQ(list.messages(0).SerializeAsString(), more.SerializeAsString());
  page.set_before(list.next()), page.set_limit(2);
  ASSERT_TRUE(Send(&Bank::Stub::ListMessages, page, &list).ok());
  ASSERT_EQ(list.messages_size(), 1);
  EXPECT_EQ(list.messages(0).SerializeAsString(), first.SerializeAsString());
  EXPECT_EQ(list.next(), 0u);
}

}  // namespace
}  // namespace curtail::bank
