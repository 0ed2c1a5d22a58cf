// SPDX-License-Identifier: Apache-2.0
#include "curtail/fence/credit_pool.h"

#include <cmath>

namespace curtail {
namespace {

// The constants of the paper, of each interval.
constexpr double kGrowth = 0.001;  // credits for each account
constexpr double kShrink = 0.02;   // of the pool, for each target of wait beyond the target
constexpr double kLeastKept = 0.5;

}  // namespace

std::optional<AdmissionMode> ParseAdmissionMode(std::string_view text) {
  if (text == "off") return AdmissionMode::kOff;
  if (text == "credits") return AdmissionMode::kCredits;
  return std::nullopt;
}

absl::Status AdmissionOptions::Check() const {
  if (target <= Nanos::zero()) return absl::InvalidArgumentError("the target of admission is not above zero");
  if (interval <= Nanos::zero())
    return absl::InvalidArgumentError("the interval of admission is not above zero");
  return absl::OkStatus();
}

std::optional<uint32_t> ParseCredits(std::string_view text) {
  constexpr size_t kMostDigits = 9;
  if (text.empty() || text.size() > kMostDigits) return std::nullopt;
  uint32_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    value = 10 * value + static_cast<uint32_t>(c - '0');
  }
  return std::min(value, CreditPool::kMostOfAccount);
}

bool CreditPool::Taken(Nanos waited, TimePoint now) {
  wait_.fetch_add(waited.count(), std::memory_order_relaxed);
  taken_.fetch_add(1, std::memory_order_relaxed);
  int64_t end = end_.load(std::memory_order_relaxed);
  const int64_t at = now.time_since_epoch().count();
  if (at >= end &&
      end_.compare_exchange_strong(end, at + options_.interval.count(), std::memory_order_relaxed)) {
    if (end != kNotBegun) Adjust();
  }
  return waited <= 2 * options_.target;
}

void CreditPool::Adjust() {
  const auto waited = static_cast<double>(wait_.exchange(0, std::memory_order_relaxed));
  const uint32_t taken = taken_.exchange(0, std::memory_order_relaxed);
  if (taken == 0) return;
  const double target = static_cast<double>(options_.target.count());
  const double excess = waited / taken / target - 1;
  const uint32_t accounts = accounts_.load(std::memory_order_relaxed);
  double total = total_.load(std::memory_order_relaxed);
  if (excess <= 0) {
    total += std::max(1.0, std::floor(kGrowth * accounts));
  } else {
    total *= std::max(1 - kShrink * excess, kLeastKept);
  }
  const uint32_t most = std::max(floor_, kMostOfAccount * std::min(accounts, 1u << 20));
  total_.store(static_cast<uint32_t>(std::clamp<double>(total, floor_, most)), std::memory_order_relaxed);
}

CreditStats CreditPool::Sample() const {
  return {.total = total_.load(std::memory_order_relaxed),
          .issued = issued_.load(std::memory_order_relaxed),
          .accounts = accounts_.load(std::memory_order_relaxed)};
}

void CreditAccount::Settle(uint32_t pending, uint32_t demand) {
  const int64_t left = pool_.Left();
  int64_t credits = credits_;
  if (left > 0) {
    const uint32_t accounts = pool_.accounts_.load(std::memory_order_relaxed);
    const int64_t share = std::max<int64_t>(left / std::max(accounts, 1u), 1);
    credits = std::min(pending + demand + share, credits + left);
  } else if (left < 0) {
    --credits;
  }
  credits = std::clamp<int64_t>(std::max<int64_t>(credits, pending), 1, CreditPool::kMostOfAccount);  // B5
  pool_.issued_.fetch_add(credits - credits_, std::memory_order_relaxed);
  credits_ = static_cast<uint32_t>(credits);
}

uint32_t CreditAccount::Settle() {
  Settle(open_ - 1, demand_);
  return credits_;
}

bool CreditAccount::Open(std::optional<uint32_t> demand) {
  demand_ = std::min(demand.value_or(0), CreditPool::kMostOfAccount);
  if (!demand && open_ >= credits_) Settle(open_, 1);  // B7
  if (open_ >= (demand ? allowed_ : credits_)) return false;
  ++open_;
  return true;
}

}  // namespace curtail
