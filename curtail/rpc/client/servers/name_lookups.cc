// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/client/servers/name_lookups.h"

#include <algorithm>
#include <utility>

namespace curtail::internal {
namespace {

// Between looks without a reason.
constexpr Nanos kLongSleep = std::chrono::hours(1);

}  // namespace

bool NameLookups::At(TimePoint when, std::weak_ptr<Lookup> lookup) {
  {
    MutexLock lock(mu_);
    const auto same = [&](const Due& due) {
      return !due.lookup.owner_before(lookup) && !lookup.owner_before(due.lookup);
    };
    if (const auto known = std::find_if(due_.begin(), due_.end(), same); known == due_.end()) {
      due_.push_back({when, std::move(lookup)});
    } else {
      known->when = std::min(known->when, when);
    }
    if (!started_) {
      started_ = ticker_.Start("curtail-names", [this](TimePoint now) { return Tick(now); }).ok();
      if (!started_) due_.clear();
      return started_;
    }
  }
  ticker_.Wake();
  return true;
}

Nanos NameLookups::Tick(TimePoint now) {
  std::vector<std::weak_ptr<Lookup>> ready;
  Nanos sleep = kLongSleep;
  {
    MutexLock lock(mu_);
    std::erase_if(due_, [&](const Due& due) {
      if (due.when > now) {
        sleep = std::min(sleep, due.when - now);
        return false;
      }
      ready.push_back(due.lookup);
      return true;
    });
  }
  for (const std::weak_ptr<Lookup>& weak : ready) {
    if (const std::shared_ptr<Lookup> lookup = weak.lock()) lookup->LookUp();
  }
  return ready.empty() ? sleep : Nanos::zero();  // lookups take time: look at the clock again
}

}  // namespace curtail::internal
