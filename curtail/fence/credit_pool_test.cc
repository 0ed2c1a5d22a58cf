// SPDX-License-Identifier: Apache-2.0
#include "curtail/fence/credit_pool.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "curtail/base/rng.h"

namespace curtail {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr AdmissionOptions kOptions = {
    .mode = AdmissionMode::kCredits, .target = milliseconds(20), .interval = milliseconds(5)};
constexpr uint32_t kMostOfAccount = CreditPool::kMostOfAccount;

// A pool whose intervals the test ends.
class CreditPoolTest : public testing::Test {
 protected:
  CreditPoolTest() { (void)pool_.Taken(Nanos(0), now_); }

  // An interval in which one request had waited for so long ends; returns the pool.
  uint32_t After(Nanos waited) {
    now_ += kOptions.interval;
    (void)pool_.Taken(waited, now_);
    return pool_.Sample().total;
  }
  void GrowTo(uint32_t total) {
    while (pool_.Sample().total < total) After(Nanos(0));
  }

  TimePoint now_ = TimePoint() + seconds(1000);
  CreditPool pool_{kOptions, 2};
  CreditAccount account_{&pool_};
};

TEST_F(CreditPoolTest, GrowsByACreditAnIntervalUpToTheTarget) {
  EXPECT_EQ(pool_.Sample().total, 2u);
  EXPECT_EQ(After(Nanos(0)), 3u);
  EXPECT_EQ(After(kOptions.target), 4u);
  EXPECT_TRUE(pool_.Taken(Nanos(0), now_ + kOptions.interval - Nanos(1)));
  EXPECT_EQ(pool_.Sample().total, 4u) << "the interval has not ended";
  for (uint32_t i = 0; i < 2 * kMostOfAccount; ++i) After(Nanos(0));
  EXPECT_EQ(pool_.Sample().total, kMostOfAccount) << "there is one account";
}

TEST_F(CreditPoolTest, TheFirstRequestBeginsTheFirstInterval) {
  EXPECT_EQ(pool_.Sample().total, 2u);
  (void)pool_.Taken(Nanos(0), now_ + kOptions.interval - Nanos(1));
  EXPECT_EQ(pool_.Sample().total, 2u);
  (void)pool_.Taken(Nanos(0), now_ + kOptions.interval);
  EXPECT_EQ(pool_.Sample().total, 3u);
}

TEST_F(CreditPoolTest, ShrinksByTheExcessAndByHalfAtMost) {
  GrowTo(200);
  EXPECT_EQ(After(2 * kOptions.target), 196u);
  EXPECT_EQ(After(1000 * kOptions.target), 98u);
  for (int i = 0; i < 20; ++i) After(1000 * kOptions.target);
  EXPECT_EQ(pool_.Sample().total, 2u);
}

TEST_F(CreditPoolTest, RefusesWhatWaitedForTwiceTheTarget) {
  EXPECT_TRUE(pool_.Taken(2 * kOptions.target, now_));
  EXPECT_FALSE(pool_.Taken(2 * kOptions.target + Nanos(1), now_));
}

TEST_F(CreditPoolTest, AnAccountGetsWhatItsClientWantsAndAShareOfWhatIsLeft) {
  GrowTo(100);
  ASSERT_TRUE(account_.Open(10));
  EXPECT_EQ(account_.Settle(), 100u) << "10 that wait, and its share of what is left";
  account_.Ended(100);
  EXPECT_EQ(pool_.Sample().issued, 100);
  CreditAccount other(&pool_);
  ASSERT_TRUE(other.Open(10));
  EXPECT_EQ(other.Settle(), 1u) << "none is left";
  other.Ended(1);
  ASSERT_TRUE(account_.Open(0));
  EXPECT_EQ(account_.Settle(), 99u) << "too many are given out";
  account_.Ended(99);
}

TEST_F(CreditPoolTest, AnAccountWithoutDemandGivesItsCreditsBackWithItsNextAnswer) {
  GrowTo(100);
  CreditAccount other(&pool_);
  ASSERT_TRUE(account_.Open(60));
  EXPECT_EQ(account_.Settle(), 100u);
  account_.Ended(100);
  GrowTo(102);
  ASSERT_TRUE(account_.Open(0));
  EXPECT_EQ(account_.Settle(), 1u) << "its share of two";
  account_.Ended(1);
  ASSERT_TRUE(other.Open(60));
  EXPECT_EQ(other.Settle(), 101u);
}

TEST_F(CreditPoolTest, AClaimCannotExceedTheBound) {
  std::vector<std::unique_ptr<CreditAccount>> others;
  for (int i = 0; i < 8; ++i) others.push_back(std::make_unique<CreditAccount>(&pool_));
  GrowTo(1000);
  ASSERT_TRUE(account_.Open(UINT32_MAX));
  EXPECT_EQ(account_.Settle(), kMostOfAccount);
}

TEST_F(CreditPoolTest, AClientMayHaveOpenWhatItWasToldLately) {
  for (uint32_t i = 0; i < CreditAccount::kFirst; ++i) EXPECT_TRUE(account_.Open(0)) << "before it was told";
  EXPECT_FALSE(account_.Open(0));
  for (uint32_t i = 0; i < CreditAccount::kFirst; ++i) account_.Ended(account_.Settle());
  GrowTo(50);
  ASSERT_TRUE(account_.Open(100));
  const uint32_t told = account_.Settle();
  account_.Ended(told);
  EXPECT_EQ(told, 50u);
  for (uint32_t i = 0; i < told; ++i) ASSERT_TRUE(account_.Open(0)) << i;
  EXPECT_FALSE(account_.Open(100));
}

TEST_F(CreditPoolTest, AClientThatKnowsNoCreditsIsHeldToItsAccount) {
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(account_.Open(std::nullopt));
  EXPECT_FALSE(account_.Open(std::nullopt)) << "the pool has two";
  GrowTo(4);
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(account_.Open(std::nullopt));
  EXPECT_FALSE(account_.Open(std::nullopt));
  CreditAccount other(&pool_);
  EXPECT_TRUE(other.Open(std::nullopt)) << "one is for everybody";
  EXPECT_FALSE(other.Open(std::nullopt));
}

// Clients that always have more to send, at a server that takes one request a millisecond.
struct Load {
  explicit Load(size_t clients) : known(clients, CreditAccount::kFirst) {
    for (size_t i = 0; i < clients; ++i) accounts.push_back(std::make_unique<CreditAccount>(&pool));
  }
  void Step() {
    now += milliseconds(1);
    for (size_t i = 0; i < accounts.size(); ++i) {
      while (accounts[i]->open() < known[i]) {
        ASSERT_TRUE(accounts[i]->Open(1000)) << "a client keeps to what it was told";
        queue.push_back({i, now});
      }
    }
    bool took = false;
    while (!took && !queue.empty()) {
      const auto [client, came] = queue.front();
      queue.pop_front();
      took = pool.Taken(now - came, now);
      took ? ++served : ++refused;
      if (took) waited += now - came;
      known[client] = accounts[client]->Settle();
      accounts[client]->Ended(known[client]);
    }
  }

  CreditPool pool{kOptions, 2};
  TimePoint now = TimePoint() + seconds(1000);
  std::vector<std::unique_ptr<CreditAccount>> accounts;
  std::vector<uint32_t> known;
  std::deque<std::pair<size_t, TimePoint>> queue;
  int served = 0, refused = 0;
  Nanos waited{0};
};

TEST(CreditPool, KeepsTheQueueAtTheTargetAndTheServerBusy) {
  for (const size_t clients : {1, 4, 12}) {
    SCOPED_TRACE(clients);
    Load load(clients);
    for (int i = 0; i < 5000; ++i) load.Step();
    load.served = load.refused = 0, load.waited = Nanos(0);
    constexpr int kSteps = 5000;
    for (int i = 0; i < kSteps; ++i) load.Step();
    EXPECT_GE(load.served, kSteps * 99 / 100);
    EXPECT_LE(load.refused, kSteps / 100);
    const double wait = InSeconds(load.waited) / load.served / InSeconds(kOptions.target);
    EXPECT_GE(wait, 0.5);
    EXPECT_LE(wait, 1.5);
  }
}

// Property: whatever clients say and do, the sum of the accounts is what the pool has given out, each account has what
// it has open and no more than the bound, and nothing stays when they have gone.
TEST(CreditPool, RandomClientsStayWithinTheRules) {
  const char* const given = std::getenv("CURTAIL_SEED");
  const uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10)
                                         : static_cast<uint64_t>(Now().time_since_epoch().count());
  Rng rng(seed);
  CreditPool pool(kOptions, 4);
  TimePoint now = TimePoint() + seconds(1000);
  std::vector<std::unique_ptr<CreditAccount>> accounts;
  for (int step = 0; step < 20'000; ++step) {
    SCOPED_TRACE(testing::Message() << "seed " << seed << ", step " << step);
    now += Nanos(static_cast<int64_t>(rng.Below(2'000'000)));
    const size_t at = rng.Below(accounts.size() + 1);
    if (at == accounts.size() || accounts[at] == nullptr) {
      if (accounts.size() < 40) accounts.push_back(std::make_unique<CreditAccount>(&pool));
      continue;
    }
    CreditAccount& account = *accounts[at];
    switch (rng.Below(8)) {
      case 0:
        accounts.erase(accounts.begin() + static_cast<std::ptrdiff_t>(at));
        break;
      case 1:
        (void)pool.Taken(Nanos(static_cast<int64_t>(rng.Below(100'000'000))), now);
        break;
      case 2:
      case 3:
        if (account.open() == 0) break;
        EXPECT_GE(account.Settle(), std::max(account.open() - 1, 1u));
        account.Ended(account.credits());
        break;
      case 4:
        (void)account.Open(std::nullopt);
        break;
      default:
        (void)account.Open(static_cast<uint32_t>(rng.Below(rng.Below(2) == 0 ? 4 : UINT32_MAX)));
    }
    int64_t sum = 0;
    for (const auto& each : accounts) {
      sum += each->credits();
      ASSERT_LE(each->credits(), kMostOfAccount);
      ASSERT_LE(each->open(), kMostOfAccount);
    }
    ASSERT_EQ(pool.Sample().issued, sum);
    ASSERT_GE(pool.Sample().total, 4u);
  }
  accounts.clear();
  EXPECT_EQ(pool.Sample().issued, 0);
  EXPECT_EQ(pool.Sample().accounts, 0u);
}

// Property (B6): a client that keeps to what it heard last has no request refused, in whatever order answers leave, and
// however long they are on their way.
TEST(CreditPool, AClientThatKeepsToWhatItHeardIsNeverRefused) {
  struct Answer {
    bool settled = false;
    uint32_t told = 0;
  };
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    Rng rng(seed);
    CreditPool pool(kOptions, 4);
    CreditAccount other(&pool), account(&pool);
    TimePoint now = TimePoint() + seconds(1000);
    std::vector<Answer> at_server;
    std::deque<uint32_t> on_the_way;  // what answers tell
    uint32_t open = 0, heard = CreditAccount::kFirst;
    for (int step = 0; step < 2000; ++step) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << ", step " << step);
      now += milliseconds(1);
      (void)pool.Taken(rng.Below(3) == 0 ? 4 * kOptions.target : Nanos(0), now);
      if (rng.Below(2) == 0) {
        for (; open < heard; ++open) {
          ASSERT_TRUE(account.Open(static_cast<uint32_t>(rng.Below(40))));
          at_server.emplace_back();
        }
      }
      for (size_t i = rng.Below(4); i > 0 && !at_server.empty(); --i) {
        const size_t at = rng.Below(at_server.size());
        Answer& answer = at_server[at];
        if (!std::exchange(answer.settled, true)) {
          answer.told = account.Settle();
          continue;
        }
        account.Ended(answer.told);
        on_the_way.push_back(answer.told);
        at_server.erase(at_server.begin() + static_cast<std::ptrdiff_t>(at));
      }
      for (size_t i = rng.Below(4); i > 0 && !on_the_way.empty(); --i) {
        heard = on_the_way.front();
        on_the_way.pop_front();
        --open;
      }
      if (rng.Below(8) == 0 && other.Open(std::nullopt)) other.Settle(), other.Ended(0);
    }
  }
}

TEST_F(CreditPoolTest, ARefusedRequestIsToldOnlyWhatHolds) {
  for (uint32_t i = 0; i < CreditAccount::kFirst; ++i) ASSERT_TRUE(account_.Open(0));
  GrowTo(50);
  const uint32_t told = account_.Settle();  // its answer has not left
  ASSERT_GT(told, CreditAccount::kFirst);
  EXPECT_FALSE(account_.Open(0));
  EXPECT_EQ(account_.Refused(), told);
  for (uint32_t i = account_.open(); i < told; ++i) EXPECT_TRUE(account_.Open(0));
  EXPECT_FALSE(account_.Open(0));
}

TEST(Credits, AreWholeNumbersUpToTheBound) {
  EXPECT_EQ(ParseCredits("0"), 0u);
  EXPECT_EQ(ParseCredits("17"), 17u);
  EXPECT_EQ(ParseCredits("999999999"), kMostOfAccount);
  for (const char* text : {"", "-1", "+1", "1.5", " 1", "1 ", "x", "9999999999"})
    EXPECT_FALSE(ParseCredits(text)) << text;
}

TEST(AdmissionOptions, AreRead) {
  EXPECT_EQ(ParseAdmissionMode("off"), AdmissionMode::kOff);
  EXPECT_EQ(ParseAdmissionMode("credits"), AdmissionMode::kCredits);
  EXPECT_FALSE(ParseAdmissionMode("on"));
  EXPECT_TRUE(AdmissionOptions().Check().ok());
  EXPECT_FALSE((AdmissionOptions{.target = Nanos(0)}).Check().ok());
  EXPECT_FALSE((AdmissionOptions{.interval = Nanos(0)}).Check().ok());
}

}  // namespace
}  // namespace curtail
