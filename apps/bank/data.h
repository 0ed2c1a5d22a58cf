// SPDX-License-Identifier: Apache-2.0
//
// data.h - the name of this application, the accounts of the bank itself, and the shards of its ledger.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "accounts.curtail.h"
#include "apps/kit/accounts/id_source.h"
#include "apps/kit/data/data.h"
#include "apps/kit/ledger/ledger.h"
#include "apps/kit/wall_clock.h"
#include "curtail/base/clock.h"
#include "curtail/base/strings.h"
#include "curtail/rpc/host.h"
#include "services.curtail.h"

namespace curtail::bank {

inline constexpr char kApplication[] = "bank";
inline constexpr int kMostAccounts = 100;  // of a customer
inline constexpr int kMostCards = 5;       // of a customer
// Of a customer: offers of loans that are neither accepted nor expired, and applications for cards that are not decided.
inline constexpr uint64_t kMostApplications = 5;
// The unfinished orders of a customer at a service (orders.h): scheduled ones, and the rest.
inline constexpr uint64_t kMostScheduled = 100, kMostUnfinished = 100;
// The attempts at payments of a customer that a service refuses within an hour, repetitions included.
inline constexpr uint64_t kMostRefused = 1000;
// The denials and grants of a customer that `access-control` keeps of an hour.
inline constexpr uint64_t kMostUnpaid = 1000;
// Of a customer: declined ones that are kept, of loans and of cards. Those of cards are kept for a day, too.
inline constexpr uint64_t kMostDeclined = 20;
// For a step of work that no request waits for.
inline constexpr Nanos kStepTime = std::chrono::seconds(5);
inline constexpr int64_t kAnHourMs = 3'600'000, kADayMs = 24 * kAnHourMs;

// The bank's own account in a shard, which has no limit: the other side of deposits.
inline uint64_t BanksOwn(size_t shard) { return apps::kInTransit + 1 + shard; }

// The bank's account for interest in a shard of `shards`, which has no limit and is its own owner. Its id is in that shard, so that
// transfers find it.
inline uint64_t BanksInterest(size_t shard, size_t shards) {
  uint64_t id = 1'000'000;  // above BanksOwn(), and below all ids that are given
  while (apps::PartOf(id, shards) != shard) ++id;
  return id;
}

// The bank's account for investments in a shard of `shards`: the other side of trades. Otherwise as BanksInterest().
inline uint64_t BanksInvestments(size_t shard, size_t shards) {
  uint64_t id = 2'000'000;
  while (apps::PartOf(id, shards) != shard) ++id;
  return id;
}

// The accounts for what other banks get are from kNostro to below twice that: below all ids that are given, which have the milliseconds
// since 2024 in their upper bits.
inline constexpr uint64_t kNostro = uint64_t{1} << 54;
inline bool IsNostro(uint64_t account) { return account >= kNostro && account < 2 * kNostro; }
// This bank's account in a shard of `shards` for all payments to the bank with a BIC, of whatever branch. It is its own owner.
// REQUIRES: the BIC has eight digits and capitals or more.
inline uint64_t NostroOf(std::string_view bic, size_t shard, size_t shards) {
  uint64_t id = 0;
  for (const char c : bic.substr(0, 8))
    id = 36 * id + static_cast<uint64_t>(c <= '9' ? c - '0' : c - 'A' + 10);
  id = kNostro + id * 4096;  // below 36^8 * 4096 < kNostro; the next 4096 ids are this bank's, too
  while (apps::PartOf(id, shards) != shard) ++id;
  return id;
}

// The same for the account of another customer as for an account that does not exist.
inline absl::Status NoAccount(uint64_t account) {
  return absl::NotFoundError(Join("there is no account ", account));
}

// The shards, for a service that calls `posting`.
class Shards {
 public:
  explicit Shards(Env& env) : channels_(env.Channels("posting")) {}

  size_t IndexOf(uint64_t account) const { return apps::PartOf(account, channels_.size()); }
  Posting::Stub Of(uint64_t account) const { return At(IndexOf(account)); }
  Posting::Stub At(size_t shard) const { return Posting::Stub(channels_[shard]); }
  size_t size() const { return channels_.size(); }
  // The bank's account for interest in the shard of `account`.
  uint64_t InterestBeside(uint64_t account) const { return BanksInterest(IndexOf(account), size()); }
  uint64_t NostroBeside(uint64_t account, std::string_view bic) const {
    return NostroOf(bic, IndexOf(account), size());
  }
  // The bank's account for investments there.
  uint64_t InvestmentsBeside(uint64_t account) const { return BanksInvestments(IndexOf(account), size()); }

 private:
  const std::vector<Channel*> channels_;
};

}  // namespace curtail::bank
