// SPDX-License-Identifier: Apache-2.0
//
// Random histories of two shards, against a model of maps that has no database: each answer, each state and each entry is the
// same, whatever is refused, repeated, lost or late.
#include <gmock/gmock.h>

#include <map>
#include <memory>
#include <set>

#include "apps/kit/ledger/ledger.h"
#include "apps/kit/ledger/ledger_testing.h"
#include "curtail/base/rng.h"

namespace curtail::apps {
namespace {

using absl::StatusCode;

// The state that one shard must have. A copy undoes a refused step.
class ModelShard {
 public:
  struct Account {
    uint64_t owner = 0;
    int64_t limit = 0;
    bool open = true;
    uint64_t version = 0;
    int64_t balance = 0;
    std::vector<Booked> entries;
  };
  struct HoldState {
    uint64_t account = 0;
    int64_t cents = 0, expires_ms = 0;
    bool settled = false, taken = false;
  };
  struct Pending {
    Transfer transfer;
    TransferState state = TransferState::kPending;
  };

  int64_t Available(uint64_t id, int64_t now) const {
    const Account& account = accounts.at(id);
    int64_t available = account.balance + account.limit;
    for (const auto& [_, hold] : holds)
      if (hold.account == id && !hold.settled && hold.expires_ms > now) available -= hold.cents;
    return available;
  }

  // Books without conditions, but for those of the accounts.
  StatusCode Move(const Posting& posting, uint64_t remote, int64_t now, std::vector<Booked>* booked) {
    ++postings;
    for (const Entry& entry : posting.entries) {
      const auto found = accounts.find(entry.account);
      if (found == accounts.end()) return StatusCode::kNotFound;
      Account& account = found->second;
      if (!account.open) return StatusCode::kFailedPrecondition;
      if (entry.version && *entry.version != account.version) return StatusCode::kAborted;
      account.balance += entry.cents;
      if (entry.cents < 0 && Available(entry.account, now) < 0) return StatusCode::kFailedPrecondition;
      uint64_t counterpart = 0;
      if (posting.entries.size() == 2) {
        const bool first = &entry == &posting.entries[0];
        counterpart = remote != 0 ? remote : posting.entries[first ? 1 : 0].account;
      }
      account.entries.push_back({postings, entry.account, ++account.version, entry.cents, account.balance,
                                 counterpart, posting.text, now});
      booked->push_back(account.entries.back());
    }
    std::ranges::sort(*booked, {}, &Booked::account);
    return StatusCode::kOk;
  }

  StatusCode TakeHold(const Posting& posting, int64_t now) {
    const auto found = holds.find(posting.hold);
    if (found == holds.end()) return StatusCode::kNotFound;
    HoldState& hold = found->second;
    if (hold.settled || hold.expires_ms <= now) return StatusCode::kFailedPrecondition;
    int64_t taken = 0;
    for (const Entry& entry : posting.entries)
      if (entry.account == hold.account) taken = -entry.cents;
    if (taken <= 0 || taken > hold.cents) return StatusCode::kFailedPrecondition;
    hold.settled = hold.taken = true;
    return StatusCode::kOk;
  }

  StatusCode Post(uint32_t number, const Posting& posting, int64_t now, std::vector<Booked>* booked) {
    ModelShard next = *this;
    StatusCode code = posting.hold == 0 ? StatusCode::kOk : next.TakeHold(posting, now);
    if (code == StatusCode::kOk) code = next.Move(posting, posting.to ? posting.to->account : 0, now, booked);
    if (code != StatusCode::kOk) return code;
    if (posting.to) {
      Transfer transfer{
          .from_shard = number, .posting = next.postings, .to = *posting.to, .text = posting.text};
      for (const Entry& entry : posting.entries) {
        if (entry.cents < 0) transfer.sender = entry.account;
        if (entry.account == kInTransit) transfer.cents = entry.cents;
      }
      next.transfers.push_back({transfer});
    }
    *this = std::move(next);
    return code;
  }

  StatusCode Hold(uint64_t id, int64_t cents, int64_t expires_ms, int64_t now, uint64_t* hold) {
    const auto found = accounts.find(id);
    if (found == accounts.end()) return StatusCode::kNotFound;
    if (!found->second.open || Available(id, now) < cents) return StatusCode::kFailedPrecondition;
    *hold = ++last_hold;
    holds[*hold] = {.account = id, .cents = cents, .expires_ms = expires_ms};
    return StatusCode::kOk;
  }

  StatusCode Void(uint64_t id) {
    const auto found = holds.find(id);
    if (found == holds.end()) return StatusCode::kNotFound;
    if (found->second.taken) return StatusCode::kFailedPrecondition;
    found->second.settled = true;
    return StatusCode::kOk;
  }

  StatusCode Close(uint64_t id, int64_t now) {
    const auto found = accounts.find(id);
    if (found == accounts.end()) return StatusCode::kNotFound;
    Account& account = found->second;
    bool free = account.balance == 0 && Available(id, now) == account.limit;
    for (const Pending& one : transfers)
      free = free && (one.transfer.sender != id || one.state != TransferState::kPending);
    if (!free) return StatusCode::kFailedPrecondition;
    account.open = false;
    return StatusCode::kOk;
  }

  bool Receive(const Transfer& transfer, int64_t now) {
    const auto [answer, first] = received.try_emplace({transfer.from_shard, transfer.posting}, false);
    if (!first) return answer->second;
    const auto to = accounts.find(transfer.to.account);
    if (to == accounts.end() || !to->second.open) return false;
    std::vector<Booked> booked;
    EXPECT_EQ(Move({.entries = {{kInTransit, -transfer.cents, {}}, {transfer.to.account, transfer.cents, {}}},
                    .text = transfer.text},
                   transfer.sender, now, &booked),
              StatusCode::kOk);
    return answer->second = true;
  }

  void Settle(Pending& one, bool arrived, int64_t now) {
    one.state = arrived ? TransferState::kArrived : TransferState::kReturned;
    if (arrived) return;
    const Transfer& transfer = one.transfer;
    std::vector<Booked> booked;
    EXPECT_EQ(Move({.entries = {{kInTransit, -transfer.cents, {}}, {transfer.sender, transfer.cents, {}}},
                    .text = transfer.text},
                   transfer.to.account, now, &booked),
              StatusCode::kOk);
  }

  // Forgets what later histories do not ask for.
  void Forget() {
    accounts = {{kInTransit, accounts.at(kInTransit)}};
    accounts.at(kInTransit).entries.clear();
    holds.clear();
    transfers.clear();
    received.clear();
  }

  std::map<uint64_t, Account> accounts = {{kInTransit, {.limit = kUnlimited}}};
  std::map<uint64_t, HoldState> holds;
  std::vector<Pending> transfers;
  std::map<std::pair<uint32_t, uint64_t>, bool> received;
  uint64_t postings = 0, last_hold = 0;
};

// One history after the other, in the same two shards, each with accounts of its own.
class Histories {
 public:
  Histories(const TempDir& dir, LedgerIn in, uint64_t seed)
      : rng_(seed),
        shards_{Shard(
                    0, [this] { return now_ms_; }, OpenLedger(dir, in, Join("model_a"))),
                Shard(1, [this] { return now_ms_; }, OpenLedger(dir, in, Join("model_b")))} {}

  void RunOne() {
    first_ += 10;
    requests_.clear();
    for (size_t side = 0; side < 2; ++side) {
      models_[side].Forget();
      begin_[side] = {models_[side].postings, models_[side].accounts.at(kInTransit).version,
                      models_[side].last_hold};
      const int64_t limits[] = {kUnlimited, 0, 0, static_cast<int64_t>(rng_.Below(200))};
      for (uint64_t i = 0; i < 4; ++i) {
        const int64_t limit = limits[i];
        ASSERT_TRUE(shards_[side].Open(first_ + i, limit, i).ok());
        models_[side].accounts[first_ + i] = {.owner = i, .limit = limit};
      }
    }
    const uint64_t steps = 5 + rng_.Below(40);
    for (uint64_t i = 0; i < steps && !testing::Test::HasFailure(); ++i) Step();
    for (size_t side = 0; side < 2; ++side) Deliver(side, Fault::kNone);
    for (size_t side = 0; side < 2; ++side) Compare(side);
    EXPECT_EQ(models_[0].accounts.at(kInTransit).balance + models_[1].accounts.at(kInTransit).balance, 0);
  }

  void Audit() {
    for (Shard& shard : shards_) {
      const absl::Status status = shard.Audit();
      EXPECT_TRUE(status.ok()) << status;
    }
  }

 private:
  enum class Fault : uint8_t { kNone, kRequestLost, kReplyLost };
  struct Answer {
    Posting posting;
    std::vector<Booked> booked;
    int64_t since_ms = 0;
  };

  bool Chance(int percent) { return rng_.Below(100) < static_cast<uint64_t>(percent); }
  // Now and then one that is not there.
  uint64_t AnyAccount() { return first_ + rng_.Below(Chance(5) ? 6 : 4); }
  // Of this history, or the next one, which is not there.
  uint64_t AnyHold(size_t side) {
    const uint64_t last = models_[side].last_hold;
    return last + 1 - rng_.Below(std::min<uint64_t>(4, last - begin_[side].hold + 1));
  }

  void Step() {
    const size_t side = rng_.Below(2);
    const uint64_t kind = rng_.Below(100);
    now_ms_ += static_cast<int64_t>(rng_.Below(10)) + (Chance(3) ? kRefusalKeptMs : 0);
    if (kind < 55) {
      Post(side);
    } else if (kind < 70) {
      Hold(side);
    } else if (kind < 76) {
      const uint64_t hold = AnyHold(side);
      EXPECT_EQ(shards_[side].Void(hold).code(), models_[side].Void(hold)) << hold;
    } else if (kind < 80) {
      const uint64_t account = first_ + 1 + rng_.Below(4);
      EXPECT_EQ(shards_[side].Close(account).code(), models_[side].Close(account, now_ms_)) << account;
    } else if (kind < 90) {
      Deliver(side, static_cast<Fault>(rng_.Below(3)));
    } else {
      Repeat(side);
    }
  }

  Posting AnyPosting(size_t side) {
    Posting posting{.text = Join("step ", rng_.Below(3))};
    const auto cents = static_cast<int64_t>(1 + rng_.Below(150));
    const uint64_t from = AnyAccount();
    posting.entries.push_back({from, -cents, {}});
    if (Chance(25)) {
      posting.to = Place{static_cast<uint32_t>(1 - side), AnyAccount()};
      posting.entries.push_back({kInTransit, cents, {}});
    } else {
      for (uint64_t to = AnyAccount(); posting.entries.size() < 2; to = AnyAccount())
        if (to != from) posting.entries.push_back({to, cents, {}});
    }
    if (Chance(20) && cents > 1) {  // a fee
      for (uint64_t to = first_; posting.entries.size() < 3; ++to)
        if (to != from && to != posting.entries[1].account) posting.entries.push_back({to, 1, {}});
      --posting.entries[1].cents;
    }
    if (Chance(15)) posting.hold = AnyHold(side);
    const auto known = models_[side].accounts.find(from);
    if (Chance(15) && known != models_[side].accounts.end())
      posting.entries[0].version = known->second.version - rng_.Below(2);
    return posting;
  }

  void Post(size_t side) {
    const Posting posting = AnyPosting(side);
    std::vector<Booked> booked, expected;
    const std::string name = Join(first_, " ", ++last_request_);
    const int64_t since_ms = Chance(50) ? now_ms_ : 0;
    const absl::Status status = shards_[side].Post(name, posting, &booked, since_ms);
    const StatusCode code = models_[side].Post(static_cast<uint32_t>(side), posting, now_ms_, &expected);
    ASSERT_EQ(status.code(), code) << status;
    if (!status.ok() && (code == StatusCode::kInvalidArgument || !Chance(50))) return;
    if (!status.ok()) {
      ASSERT_TRUE(shards_[side].Refuse(name, posting, &booked, since_ms).ok());
      expected.clear();
    }
    ASSERT_EQ(booked, expected);
    requests_[{side, name}] = {posting, booked, since_ms};
  }

  void Hold(size_t side) {
    const uint64_t account = AnyAccount();
    const auto cents = static_cast<int64_t>(1 + rng_.Below(100));
    const int64_t expires = Chance(50) ? Ledger::kNever : now_ms_ + static_cast<int64_t>(rng_.Below(100));
    uint64_t hold = 0, expected = 0;
    const std::string name = Join(first_, " ", ++last_request_);
    const absl::Status status = shards_[side].Hold(name, account, cents, &hold, expires);
    ASSERT_EQ(status.code(), models_[side].Hold(account, cents, expires, now_ms_, &expected)) << status;
    ASSERT_EQ(hold, expected);
    if (!status.ok()) return;
    ASSERT_TRUE(shards_[side].Hold(name, account, cents, &hold, expires).ok());
    EXPECT_EQ(hold, expected);
    EXPECT_TRUE(absl::IsAlreadyExists(shards_[side].Hold(name, account, cents + 1, &hold, expires)));
  }

  // An earlier request comes again, late; or its name comes with another content. What was refused stays refused, also once the shard
  // may have forgotten it.
  void Repeat(size_t side) {
    if (requests_.empty()) return;
    auto one = requests_.begin();
    std::advance(one, static_cast<std::ptrdiff_t>(rng_.Below(requests_.size())));
    side = one->first.first;
    std::vector<Booked> booked;
    Posting posting = one->second.posting;
    const bool refused = one->second.booked.empty();
    const int64_t since_ms = one->second.since_ms;
    const bool forgotten = refused && since_ms > 0 && since_ms < now_ms_ - kRefusalKeptMs;  // it may be
    EXPECT_EQ(shards_[side].Post(one->first.second, posting, &booked, since_ms).code(),
              refused ? StatusCode::kFailedPrecondition : StatusCode::kOk);
    EXPECT_EQ(booked, one->second.booked);
    if (Chance(50)) {
      booked.clear();
      const absl::Status status = shards_[side].Refuse(one->first.second, posting, &booked, since_ms);
      ASSERT_TRUE(status.ok() || (forgotten && absl::IsFailedPrecondition(status))) << status;
      EXPECT_EQ(booked, one->second.booked);
    }
    posting.text += "!";
    const absl::Status other = shards_[side].Post(one->first.second, posting, nullptr, since_ms);
    EXPECT_TRUE(absl::IsAlreadyExists(other) || (forgotten && absl::IsFailedPrecondition(other))) << other;
  }

  void Deliver(size_t side, Fault fault) {
    const absl::Status status = shards_[side].Deliver(
        [&](const std::vector<Transfer>& transfers, std::vector<bool>* arrived) -> absl::Status {
          if (fault == Fault::kRequestLost) return absl::UnavailableError("lost");
          absl::Status received = shards_[1 - side].Receive(transfers, arrived);
          return fault == Fault::kReplyLost && received.ok() ? absl::UnavailableError("lost") : received;
        });
    bool pending = false;
    std::vector<std::pair<ModelShard::Pending*, bool>> answers;
    for (ModelShard::Pending& one : models_[side].transfers) {
      if (one.state != TransferState::kPending) continue;
      pending = true;
      if (fault != Fault::kRequestLost)
        answers.emplace_back(&one, models_[1 - side].Receive(one.transfer, now_ms_));
    }
    if (fault == Fault::kNone)
      for (const auto& [one, arrived] : answers) models_[side].Settle(*one, arrived, now_ms_);
    EXPECT_EQ(status.ok(), fault == Fault::kNone || !pending) << status;
  }

  void Compare(size_t side) {
    Shard& shard = shards_[side];
    const ModelShard& model = models_[side];
    std::vector<Booked> all;
    for (const auto& [id, account] : model.accounts) {
      const AccountState state = shard.Look(id);
      EXPECT_EQ(state.owner, account.owner);
      EXPECT_EQ(state.version, account.version);
      EXPECT_EQ(state.balance, account.balance);
      EXPECT_EQ(state.available, model.Available(id, now_ms_));
      EXPECT_EQ(state.open, account.open);
      EXPECT_EQ(shard.Entries(id, id == kInTransit ? begin_[side].version : 0), account.entries);
      all.insert(all.end(), account.entries.begin(), account.entries.end());
    }
    std::ranges::sort(all, {}, [](const Booked& b) { return std::pair(b.posting, b.account); });
    EXPECT_EQ(shard.Follow(begin_[side].posting), all);
    for (const ModelShard::Pending& one : model.transfers) {
      TransferState state = TransferState::kPending;
      ASSERT_TRUE(
          shard.Read([&](const Ledger& l, SqlSession& s) { return l.Look(s, one.transfer.posting, &state); })
              .ok());
      EXPECT_EQ(state, one.state);
    }
  }

  struct Begin {
    uint64_t posting = 0, version = 0, hold = 0;
  };
  Rng rng_;
  int64_t now_ms_ = 1;
  Shard shards_[2];
  ModelShard models_[2];
  Begin begin_[2];
  uint64_t first_ = 10, last_request_ = 0;
  std::map<std::pair<size_t, std::string>, Answer> requests_;
};

void RunHistories(LedgerIn in, int count) {
  const TempDir dir;
  Histories histories(dir, in, TestSeed());
  for (int i = 0; i < count && !testing::Test::HasFailure(); ++i) {
    SCOPED_TRACE(Join("history ", i));
    histories.RunOne();
  }
  histories.Audit();
}

TEST(LedgerModel, AFileIsAsAMapStress) { RunHistories(LedgerIn::kFile, Repeats(150, 100'000)); }
TEST(LedgerModel, APostgresqlIsAsAMapStress) { RunHistories(LedgerIn::kPostgresql, Repeats(15, 2000)); }

}  // namespace
}  // namespace curtail::apps
