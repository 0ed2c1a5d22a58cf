// SPDX-License-Identifier: Apache-2.0
//
// A ledger in a file and in a real PostgreSQL: what it promises, one promise a test.
#include "apps/kit/ledger/ledger.h"

#include <gmock/gmock.h>

#include <thread>

#include "apps/kit/ledger/ledger_testing.h"

namespace curtail::apps {
namespace {

using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;

Posting Move(uint64_t from, uint64_t to, int64_t cents) {
  return {.entries = {{from, -cents, {}}, {to, cents, {}}}, .text = "rent"};
}
Posting Away(uint64_t from, Place to, int64_t cents) {
  Posting posting = Move(from, kInTransit, cents);
  posting.to = to;
  return posting;
}

class LedgerTest : public testing::TestWithParam<LedgerIn> {
 protected:
  LedgerTest() {
    for (Shard* shard : {&here_, &there_}) {
      EXPECT_TRUE(shard->Open(kBank, kUnlimited).ok());
      EXPECT_TRUE(shard->Open(kAnn).ok());
      EXPECT_TRUE(shard->Open(kBob).ok());
      EXPECT_TRUE(shard->Post("salary", Move(kBank, kAnn, 1000)).ok());
    }
  }
  ~LedgerTest() override {
    for (Shard* shard : {&here_, &there_}) {
      const absl::Status sound = shard->Audit();
      EXPECT_EQ(sound.ok(), !broken_) << sound;
    }
  }
  std::unique_ptr<SqlDatabase> OpenShard(std::string_view side) {
    const std::string test = testing::UnitTest::GetInstance()->current_test_info()->name();
    std::string name = Join(test.substr(0, test.find('/')), "_", side);
    for (char& c : name) c = static_cast<char>(std::tolower(c));
    return OpenLedger(dir_, GetParam(), name);
  }
  Shard OpenHere() {
    return {1, [this] { return now_ms_; }, OpenShard("here")};
  }

  int64_t now_ms_ = 1000;
  bool broken_ = false;
  TempDir dir_;
  Shard here_ = OpenHere();
  Shard there_{2, [this] { return now_ms_; }, OpenShard("there")};
};

INSTANTIATE_TEST_SUITE_P(Stores, LedgerTest, testing::Values(LedgerIn::kFile, LedgerIn::kPostgresql),
                         [](const auto& info) {
                           return info.param == LedgerIn::kFile ? "File" : "Postgresql";
                         });

TEST_P(LedgerTest, BooksAPostingOnce) {
  std::vector<Booked> first, again;
  ASSERT_TRUE(here_.Post("rent", Move(kAnn, kBob, 300), &first).ok());
  now_ms_ += 5;
  ASSERT_TRUE(here_.Post("rent", Move(kAnn, kBob, 300), &again).ok());
  EXPECT_THAT(first, ElementsAre(Booked{2, kAnn, 2, -300, 700, kBob, "rent", 1000},
                                 Booked{2, kBob, 1, 300, 300, kAnn, "rent", 1000}));
  EXPECT_EQ(again, first);
  EXPECT_EQ(here_.Look(kAnn).balance, 700);
}

TEST_P(LedgerTest, AnotherContentOfARequestIsRefused) {
  ASSERT_TRUE(here_.Post("rent", Move(kAnn, kBob, 300)).ok());
  uint64_t hold = 0;
  EXPECT_TRUE(absl::IsAlreadyExists(here_.Post("rent", Move(kAnn, kBob, 301))));
  EXPECT_TRUE(absl::IsAlreadyExists(here_.Post("rent", Away(kAnn, {2, kBob}, 300))));
  EXPECT_TRUE(absl::IsAlreadyExists(here_.Hold("rent", kAnn, 300, &hold)));
  Posting other = Move(kAnn, kBob, 300);
  other.text = "tip";
  EXPECT_TRUE(absl::IsAlreadyExists(here_.Post("rent", other)));
  EXPECT_EQ(here_.Look(kAnn).balance, 700);
}

TEST_P(LedgerTest, ARequestThatFailedMayBeTriedAgain) {
  EXPECT_TRUE(absl::IsFailedPrecondition(here_.Post("rent", Move(kBob, kAnn, 1))));
  ASSERT_TRUE(here_.Post("gift", Move(kAnn, kBob, 1)).ok());
  EXPECT_TRUE(here_.Post("rent", Move(kBob, kAnn, 1)).ok());
}

// Property: between a failure and Refuse() the request may be booked, after it never.
TEST_P(LedgerTest, ARefusalStandsAndABookingToo) {
  std::vector<Booked> booked;
  const Posting rent = Move(kBob, kAnn, 1);
  EXPECT_TRUE(absl::IsFailedPrecondition(here_.Post("rent", rent)));
  ASSERT_TRUE(here_.Refuse("rent", rent, &booked).ok());
  EXPECT_TRUE(booked.empty());
  ASSERT_TRUE(here_.Post("gift", Move(kAnn, kBob, 1)).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(here_.Post("rent", rent)));
  EXPECT_TRUE(absl::IsAlreadyExists(here_.Refuse("rent", Move(kBob, kAnn, 2), &booked)));
  EXPECT_EQ(here_.Look(kBob).balance, 1);

  std::vector<Booked> first;
  ASSERT_TRUE(here_.Post("fee", rent, &first).ok());
  ASSERT_TRUE(here_.Refuse("fee", rent, &booked).ok());
  EXPECT_EQ(booked, first);
  EXPECT_EQ(here_.Look(kBob).balance, 0);
  EXPECT_TRUE(here_.Audit().ok());
}

TEST_P(LedgerTest, ChecksItsConditions) {
  EXPECT_TRUE(absl::IsFailedPrecondition(here_.Post("a", Move(kAnn, kBob, 1001))));
  EXPECT_TRUE(absl::IsNotFound(here_.Post("a", Move(kAnn, 99, 1))));
  EXPECT_TRUE(absl::IsNotFound(here_.Post("a", Move(99, kAnn, 1))));
  Posting seen = Move(kAnn, kBob, 1);
  seen.entries[0].version = 2;
  EXPECT_TRUE(absl::IsAborted(here_.Post("a", seen)));
  seen.entries[0].version = 1;
  seen.entries[1].version = 0;
  EXPECT_TRUE(here_.Post("a", seen).ok());
  ASSERT_TRUE(here_.Open(20, 50).ok());
  EXPECT_TRUE(here_.Post("b", Move(20, kBob, 50)).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(here_.Post("c", Move(20, kBob, 1))));
  EXPECT_EQ(here_.Look(20).available, 0);
}

TEST_P(LedgerTest, OpensAndClosesAccountsOnce) {
  EXPECT_TRUE(here_.Open(kBob).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(here_.Open(kBob, 1)));
  EXPECT_TRUE(absl::IsAlreadyExists(here_.Open(kBob, 0, 5)));
  EXPECT_TRUE(absl::IsFailedPrecondition(here_.Close(kAnn))) << "it has a balance";
  EXPECT_TRUE(absl::IsNotFound(here_.Close(99)));
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(here_.Close(kBob).ok());
  EXPECT_FALSE(here_.Look(kBob).open);
  EXPECT_TRUE(here_.Open(kBob).ok()) << "a repetition, which opens nothing";
  uint64_t hold = 0;
  EXPECT_TRUE(absl::IsFailedPrecondition(here_.Post("a", Move(kAnn, kBob, 1))));
  EXPECT_TRUE(absl::IsFailedPrecondition(here_.Hold("b", kBob, 1, &hold)));
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(here_.Reopen(kBob).ok());
  EXPECT_TRUE(absl::IsNotFound(here_.Reopen(99)));
  EXPECT_TRUE(here_.Look(kBob).open);
  EXPECT_TRUE(here_.Post("c", Move(kAnn, kBob, 1)).ok());
}

TEST_P(LedgerTest, HeldMoneyIsNotAvailable) {
  uint64_t hold = 0, again = 0;
  ASSERT_TRUE(here_.Hold("card", kAnn, 600, &hold).ok());
  ASSERT_TRUE(here_.Hold("card", kAnn, 600, &again).ok());
  EXPECT_EQ(hold, again);
  EXPECT_EQ(here_.Look(kAnn).balance, 1000);
  EXPECT_EQ(here_.Look(kAnn).available, 400);
  EXPECT_TRUE(absl::IsFailedPrecondition(here_.Post("a", Move(kAnn, kBob, 401))));
  EXPECT_TRUE(absl::IsFailedPrecondition(here_.Hold("b", kAnn, 401, &again)));
  EXPECT_TRUE(here_.Post("c", Move(kAnn, kBob, 400)).ok());
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(here_.Void(hold).ok());
  EXPECT_EQ(here_.Look(kAnn).available, 600);
}

TEST_P(LedgerTest, APostingTakesAHoldOnce) {
  uint64_t hold = 0;
  ASSERT_TRUE(here_.Hold("card", kAnn, 1000, &hold).ok());
  Posting sale = Move(kAnn, kBob, 1001);
  sale.hold = hold;
  EXPECT_TRUE(absl::IsFailedPrecondition(here_.Post("sale", sale)));
  sale = Move(kBank, kBob, 10);
  sale.hold = hold;
  EXPECT_TRUE(absl::IsFailedPrecondition(here_.Post("sale", sale))) << "it takes nothing from the account";
  sale = Move(kAnn, kBob, 900);
  sale.hold = hold;
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(here_.Post("sale", sale).ok());
  EXPECT_EQ(here_.Look(kAnn).available, 100);
  EXPECT_TRUE(absl::IsFailedPrecondition(here_.Post("second sale", sale)));
  EXPECT_TRUE(absl::IsFailedPrecondition(here_.Void(hold)));
  EXPECT_TRUE(absl::IsNotFound(here_.Void(hold + 1)));
  sale.hold = hold + 1;
  EXPECT_TRUE(absl::IsNotFound(here_.Post("third sale", sale)));
}

TEST_P(LedgerTest, AHoldExpiresForEver) {
  uint64_t hold = 0, next = 0;
  ASSERT_TRUE(here_.Hold("card", kAnn, 900, &hold, 2000).ok());
  now_ms_ = 1999;
  EXPECT_EQ(here_.Look(kAnn).available, 100);
  EXPECT_TRUE(absl::IsFailedPrecondition(here_.Post("a", Move(kAnn, kBob, 101))));
  now_ms_ = 2000;
  EXPECT_EQ(here_.Look(kAnn).available, 1000);
  Posting sale = Move(kAnn, kBob, 900);
  sale.hold = hold;
  EXPECT_TRUE(absl::IsFailedPrecondition(here_.Post("sale", sale)));
  EXPECT_TRUE(here_.Hold("next", kAnn, 950, &next).ok());
  now_ms_ = 1999;  // another process, whose clock is behind
  EXPECT_TRUE(absl::IsFailedPrecondition(here_.Post("sale", sale)));
  EXPECT_EQ(here_.Look(kAnn).available, 50);
  EXPECT_TRUE(here_.Void(hold).ok());
}

TEST_P(LedgerTest, LooksAtAVersionThatIsThere) {
  const auto look = [&](uint64_t at_least) {
    AccountState state;
    return here_.Read([&](const Ledger& l, SqlSession& s) { return l.Balance(s, kAnn, at_least, &state); });
  };
  EXPECT_TRUE(look(1).ok());
  const absl::Status ahead = look(2);
  EXPECT_TRUE(absl::IsUnavailable(ahead));
  EXPECT_THAT(std::string(Message(ahead)), HasSubstr("has version 1 here, not 2 yet"));
  AccountState state;
  EXPECT_TRUE(absl::IsNotFound(
      here_.Read([&](const Ledger& l, SqlSession& s) { return l.Balance(s, 99, 0, &state); })));
}

TEST_P(LedgerTest, PagesHaveEachEntryOnce) {
  for (int i = 1; i <= 5; ++i) ASSERT_TRUE(here_.Post(Join(i), Move(kAnn, kBob, i)).ok());
  std::vector<Booked> paged, followed;
  for (std::vector<Booked> page; !(page = here_.Entries(kAnn, paged.size(), 2)).empty();)
    paged.insert(paged.end(), page.begin(), page.end());
  EXPECT_EQ(paged, here_.Entries(kAnn));
  EXPECT_EQ(paged.size(), 6u);
  for (std::vector<Booked> page;
       !(page = here_.Follow(followed.empty() ? 0 : followed.back().posting, 2)).empty();)
    followed.insert(followed.end(), page.begin(), page.end());
  EXPECT_EQ(followed, here_.Follow(0));
  EXPECT_EQ(followed.size(), 12u);
  EXPECT_THAT(here_.Follow(~uint64_t{0}), IsEmpty());
}

TEST_P(LedgerTest, ATransferArrivesOnce) {
  std::vector<Booked> booked;
  ASSERT_TRUE(here_.Post("rent", Away(kAnn, {2, kBob}, 300), &booked).ok());
  EXPECT_EQ(booked.back().counterpart, kBob);
  const auto state = [&] {
    TransferState found = TransferState::kReturned;
    EXPECT_TRUE(here_.Read([&](const Ledger& l, SqlSession& s) { return l.Look(s, 2, &found); }).ok());
    return found;
  };
  EXPECT_EQ(state(), TransferState::kPending);
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(here_.DeliverTo(there_).ok());
  EXPECT_EQ(state(), TransferState::kArrived);
  EXPECT_THAT(there_.Entries(kBob), ElementsAre(Booked{2, kBob, 1, 300, 300, kAnn, "rent", 1000}));
  EXPECT_EQ(here_.Look(kInTransit).balance + there_.Look(kInTransit).balance, 0);
  TransferState none;
  EXPECT_TRUE(absl::IsNotFound(
      here_.Read([&](const Ledger& l, SqlSession& s) { return l.Look(s, uint64_t{1}, &none); })));
}

TEST_P(LedgerTest, ATransferToAClosedAccountComesBack) {
  ASSERT_TRUE(there_.Close(kBob).ok());
  ASSERT_TRUE(here_.Post("rent", Away(kAnn, {2, kBob}, 900)).ok());
  ASSERT_TRUE(here_.Post("toll", Away(kAnn, {2, 99}, 100)).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(here_.Close(kAnn))) << "what may come back needs it";
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(here_.DeliverTo(there_).ok());
  EXPECT_EQ(here_.Look(kAnn).balance, 1000);
  EXPECT_THAT(here_.Entries(kAnn, 3), ElementsAre(Booked{4, kAnn, 4, 900, 900, kBob, "rent", 1000},
                                                  Booked{5, kAnn, 5, 100, 1000, 99, "rent", 1000}));
  EXPECT_EQ(here_.Look(kInTransit).balance, 0);
}

// The receiver refuses, its answer is lost, and the account is opened before it is asked again.
TEST_P(LedgerTest, ARefusalOfATransferStands) {
  ASSERT_TRUE(here_.Post("rent", Away(kAnn, {2, 99}, 300)).ok());
  const auto lost = [&](const std::vector<Transfer>& transfers, std::vector<bool>* arrived) {
    const absl::Status status = there_.Receive(transfers, arrived);
    return status.ok() ? absl::UnavailableError("lost") : status;
  };
  EXPECT_TRUE(absl::IsUnavailable(here_.Deliver(lost)));
  ASSERT_TRUE(there_.Open(99).ok());
  EXPECT_TRUE(here_.DeliverTo(there_).ok());
  EXPECT_EQ(here_.Look(kAnn).balance, 1000);
  EXPECT_EQ(there_.Look(99).balance, 0);
}

TEST_P(LedgerTest, AShardThatIsAwayHoldsUpNoOther) {
  constexpr int kTransfers = 70;  // more than one page
  for (int i = 0; i < kTransfers; ++i)
    ASSERT_TRUE(here_.Post(Join(i), Away(kAnn, {i < kTransfers - 1 ? 3u : 2u, kBob}, 1)).ok());
  int away = 0;
  const absl::Status status =
      here_.Deliver([&](const std::vector<Transfer>& transfers, std::vector<bool>* arrived) -> absl::Status {
        if (transfers[0].to.shard == 2) return there_.Receive(transfers, arrived);
        ++away;
        return absl::UnavailableError("away");
      });
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_EQ(away, 1);
  EXPECT_EQ(there_.Look(kBob).balance, 1);
}

// Property: writers of two databases, as two processes have them, post what one would; and one request has one answer.
TEST_P(LedgerTest, WritersTakeTurnsStress) {
  constexpr int kThreads = 4, kEach = 25;
  Shard other = OpenHere();
  std::vector<std::vector<std::vector<Booked>>> answers(kThreads);
  const auto run = [&](size_t thread) {
    Shard& shard = thread % 2 == 0 ? here_ : other;
    for (int i = 0; i < kEach; ++i) {
      answers[thread].emplace_back();
      const absl::Status status = shard.Post(Join(i), Move(kAnn, kBob, 7), &answers[thread].back());
      EXPECT_TRUE(status.ok()) << status;
      const absl::Status own = shard.Post(Join("own ", thread, " ", i), Move(kAnn, kBob, 20));
      EXPECT_TRUE(own.ok() || absl::IsFailedPrecondition(own)) << own;  // the money is enough for some
    }
  };
  ASSERT_TRUE(here_.Post("for all", Move(kBank, kAnn, kEach * 7)).ok());
  run(0);  // alone first
  std::vector<std::thread> threads;
  for (size_t t = 1; t < kThreads; ++t) threads.emplace_back(run, t);
  for (std::thread& thread : threads) thread.join();
  for (const auto& answer : answers) EXPECT_EQ(answer, answers[0]);
  EXPECT_LT(here_.Look(kAnn).balance, 20);
  EXPECT_GE(here_.Look(kAnn).balance, 0);
}

// One worker has sent the transfers and not settled them when another one delivers them from first to last.
TEST_P(LedgerTest, TwoWorkersDeliverATransferOnce) {
  ASSERT_TRUE(here_.Post("rent", Away(kAnn, {2, kBob}, 300)).ok());
  ASSERT_TRUE(here_.Post("toll", Away(kAnn, {2, 99}, 100)).ok());
  const auto meanwhile = [&](const std::vector<Transfer>& transfers, std::vector<bool>* arrived) {
    const absl::Status other = here_.DeliverTo(there_);  // from first to last
    return other.ok() ? there_.Receive(transfers, arrived) : other;
  };
  EXPECT_TRUE(here_.Deliver(meanwhile).ok());
  EXPECT_EQ(here_.Look(kAnn).balance, 700);
  EXPECT_EQ(there_.Look(kBob).balance, 300);
}

TEST_P(LedgerTest, RefusesBadInput) {
  const auto post = [&](const Posting& posting) { return here_.Post("bad", posting); };
  const auto of = [](std::vector<Entry> entries) { return Posting{.entries = std::move(entries)}; };
  std::vector<Entry> many;
  for (uint64_t i = 0; i <= kMostEntries; ++i) many.push_back({100 + i, i == 0 ? -16 : 1, {}});
  std::string umlauts;
  for (size_t i = 0; i < kMostTextCharacters; ++i) umlauts += "\xc3\xa4";
  const auto text = [](std::string words) {
    Posting posting = Move(kAnn, kBob, 1);
    posting.text = std::move(words);
    return posting;
  };
  const Posting bad[] = {
      of({}),
      of({{kAnn, 1, {}}}),
      of({{kAnn, -1, {}}, {kBob, 2, {}}}),
      of({{kAnn, 0, {}}, {kBob, 0, {}}}),
      of({{kAnn, -1, {}}, {kAnn, 1, {}}}),
      of({{kAnn, -kMostCents - 1, {}}, {kBob, kMostCents + 1, {}}}),
      of({{kAnn, std::numeric_limits<int64_t>::min(), {}}, {kBob, 1, {}}}),
      of({{0, -1, {}}, {kBob, 1, {}}}),
      of({{kAnn, -1, {}}, {~uint64_t{0}, 1, {}}}),
      of(many),
      Move(kAnn, kInTransit, 1),
      Move(kInTransit, kAnn, 1),
      Away(kAnn, {1, kBob}, 1),
      Away(kAnn, {2, kInTransit}, 1),
      Away(kAnn, {2, 0}, 1),
      Away(kAnn, {2, kBob}, -1),
      text(umlauts + "a"),
      text("a\nb"),
      text("a\x7f"),
      text("a\xc2\x85"),
      text(std::string(1, '\0')),
  };
  for (const Posting& posting : bad) {
    const absl::Status status = post(posting);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << &posting - bad << ": " << status;
  }
  Posting elsewhere = Move(kAnn, kBob, 1);
  elsewhere.to = Place{2, kBob};
  EXPECT_TRUE(absl::IsInvalidArgument(post(elsewhere)));
  EXPECT_TRUE(absl::IsInvalidArgument(here_.Post("", Move(kAnn, kBob, 1))));
  EXPECT_TRUE(
      absl::IsInvalidArgument(here_.Post(std::string(kMostRequestBytes + 1, 'a'), Move(kAnn, kBob, 1))));
  EXPECT_TRUE(post(text(umlauts)).ok());
  for (const uint64_t caller : {uint64_t{0}, ~uint64_t{0}}) {
    std::vector<Booked> booked;
    EXPECT_TRUE(absl::IsInvalidArgument(here_.Write([&](const Ledger& l, SqlSession& s) {
      return l.Post(s, {caller, "a"}, Move(kAnn, kBob, 1), &booked);
    })));
  }
  uint64_t hold = 0;
  for (const int64_t cents : {int64_t{0}, int64_t{-1}, kMostCents + 1})
    EXPECT_TRUE(absl::IsInvalidArgument(here_.Hold("h", kAnn, cents, &hold)));
  EXPECT_TRUE(absl::IsInvalidArgument(here_.Hold("h", kInTransit, 1, &hold)));
  EXPECT_TRUE(absl::IsInvalidArgument(here_.Open(kInTransit)));
  EXPECT_TRUE(absl::IsInvalidArgument(here_.Open(50, -1)));
  EXPECT_TRUE(absl::IsInvalidArgument(here_.Open(50, kUnlimited + 1)));
  EXPECT_TRUE(absl::IsInvalidArgument(here_.Close(kInTransit)));
  std::vector<bool> arrived;
  const Transfer good{1, 5, kAnn, {2, kBob}, 1, "rent"};
  EXPECT_TRUE(absl::IsInvalidArgument(here_.Receive({good}, &arrived))) << "it is for the other shard";
  EXPECT_TRUE(there_.Receive({good}, &arrived).ok());
  Transfer other = good;
  other.cents = 2;
  EXPECT_TRUE(absl::IsAlreadyExists(there_.Receive({other}, &arrived)));
  other.cents = 0;
  EXPECT_TRUE(absl::IsInvalidArgument(there_.Receive({other}, &arrived)));
  other = good;
  other.sender = ~uint64_t{0};
  EXPECT_TRUE(absl::IsInvalidArgument(there_.Receive({other}, &arrived)));
}

TEST_P(LedgerTest, BalancesHaveABound) {
  ASSERT_TRUE(here_.Open(60, kUnlimited).ok());
  ASSERT_TRUE(here_
                  .Write([](const Ledger&, SqlSession& s) {
                    return s.Execute("UPDATE accounts SET balance = ?1 WHERE id = 60", {kUnlimited - 5});
                  })
                  .ok());
  broken_ = true;
  EXPECT_TRUE(here_.Post("a", Move(kAnn, 60, 5)).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(here_.Post("b", Move(kAnn, 60, 1))));
  std::vector<bool> arrived;
  EXPECT_TRUE(here_.Receive({{2, 5, kAnn, {1, 60}, 1, ""}}, &arrived).ok());
  EXPECT_THAT(arrived, ElementsAre(false));
  ASSERT_TRUE(there_.Open(60, kUnlimited).ok());
  ASSERT_TRUE(there_
                  .Write([](const Ledger&, SqlSession& s) {
                    return s.Execute("UPDATE accounts SET balance = ?1 WHERE id = 60", {5 - kUnlimited});
                  })
                  .ok());
  EXPECT_TRUE(there_.Post("a", Move(60, kAnn, 5)).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(there_.Post("b", Move(60, kAnn, 1))));
}

TEST_P(LedgerTest, AuditNamesWhatIsBroken) {
  uint64_t hold = 0, taken = 0;
  ASSERT_TRUE(here_.Hold("card", kAnn, 100, &hold).ok());
  ASSERT_TRUE(here_.Hold("cash", kAnn, 50, &taken).ok());
  Posting sale = Move(kAnn, kBob, 50);
  sale.hold = taken;
  ASSERT_TRUE(here_.Post("sale", sale).ok());
  ASSERT_TRUE(here_.Post("rent", Away(kAnn, {2, kBob}, 300)).ok());
  ASSERT_TRUE(here_.Post("toll", Away(kAnn, {2, 99}, 100)).ok());
  ASSERT_TRUE(here_.DeliverTo(there_).ok());
  ASSERT_TRUE(here_.Audit().ok());
  const struct {
    std::vector<const char*> sql;
    const char* named;
  } breaks[] = {
      {{"DELETE FROM postings WHERE id = 2"}, "posting 3, account 0, version 0: the posting before it"},
      {{"UPDATE entries SET cents = -51 WHERE posting = 2 AND account = 11"},
       "posting 2, account 0, version 0: its entries"},
      {{"DELETE FROM entries WHERE posting = 2 AND account = 12"},
       "posting 2, account 0, version 0: its entries"},
      {{"DELETE FROM postings WHERE id = 5"}, "posting 5, account 1, version 3: it is not there"},
      {{"UPDATE entries SET posting = 9 WHERE posting = 2"}, "posting 2, account 0, version 0: its entries"},
      {{"UPDATE entries SET account = 77 WHERE posting = 2 AND account = 12"},
       "posting 2, account 77, version 1: its balance is below"},
      {{"UPDATE entries SET balance = balance + 1 WHERE account = 11 AND version = 2"},
       "posting 2, account 11, version 2: its balance is not"},
      {{"UPDATE entries SET version = version + 9 WHERE account = 12"},
       "posting 2, account 12, version 10: its balance is not"},
      {{"UPDATE accounts SET lowest = 700 WHERE id = 11"},
       "posting 3, account 11, version 3: its balance is below"},
      {{"UPDATE accounts SET balance = balance + 1 WHERE id = 11"},
       "posting 0, account 11, version 5: its state"},
      {{"UPDATE accounts SET version = 4 WHERE id = 11"}, "posting 0, account 11, version 4: its state"},
      {{"UPDATE accounts SET version = 0 WHERE id = 12", "UPDATE accounts SET balance = 0 WHERE id = 12"},
       "posting 0, account 12, version 0: its state"},
      {{"UPDATE accounts SET open = 0 WHERE id = 11"}, "posting 0, account 11, version 5: it is closed"},
      {{"UPDATE holds SET cents = 700 WHERE settled = 0"}, "posting 0, account 11, version 5: its holds"},
      {{"UPDATE holds SET cents = 49 WHERE settled > 0"},
       "posting 2, account 11, version 0: it took another"},
      {{"UPDATE holds SET settled = 1 WHERE settled = 2"},
       "posting 1, account 11, version 0: it took another"},
      {{"UPDATE transfers SET cents = 299 WHERE posting = 3"},
       "posting 3, account 11, version 0: its transfer is of"},
      {{"UPDATE transfers SET sender = 12 WHERE posting = 3"},
       "posting 3, account 12, version 0: its transfer is of"},
      {{"UPDATE transfers SET settled = 2 WHERE posting = 4"},
       "posting 4, account 11, version 0: its transfer was not"},
      {{"DELETE FROM transfers WHERE posting = 3"}, "posting 3, account 1, version 1: it has money"},
  };
  for (const auto& planted : breaks) {
    absl::Status found;
    // Ends with an error, so that the next one finds sound books.
    EXPECT_TRUE(absl::IsCancelled(here_.Write([&](const Ledger&, SqlSession& s) -> absl::Status {
      for (const char* sql : planted.sql) {
        const absl::Status done = s.Execute(sql);
        EXPECT_TRUE(done.ok()) << done;
      }
      found = Ledger::Audit(s);
      return absl::CancelledError("undo");
    })));
    EXPECT_TRUE(absl::IsDataLoss(found)) << planted.sql[0] << ": " << found;
    EXPECT_THAT(std::string(Message(found)), HasSubstr(planted.named)) << planted.sql[0];
  }
}

}  // namespace
}  // namespace curtail::apps
