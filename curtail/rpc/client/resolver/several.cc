// SPDX-License-Identifier: Apache-2.0
//
// Several targets as one, such as the instances of a service.
#include <algorithm>
#include <optional>
#include <utility>

#include "curtail/base/clock.h"
#include "curtail/base/mutex.h"
#include "curtail/rpc/client/resolver/target.h"

namespace curtail::internal {
namespace {

class SeveralTargets final : public PartialResolver {
 public:
  SeveralTargets(std::vector<std::unique_ptr<Resolver>> each, Nanos keeps)
      : each_(std::move(each)), keeps_(keeps), last_(each_.size()) {}

  absl::StatusOr<std::vector<Address>> ResolveParts(bool* complete) override {
    absl::Status status;
    for (size_t i = 0; i < each_.size(); ++i) {
      absl::StatusOr<std::vector<Address>> found = each_[i]->Resolve();  // may block
      status.Update(found.status());
      MutexLock lock(mu_);
      Answer& last = last_[i];
      if (found.ok()) {
        last = {.addresses = *std::move(found), .failing_since = std::nullopt};
        continue;
      }
      // An answer may be hours old: as long as all is well, nothing is looked up.
      const TimePoint now = Now();
      if (!last.failing_since) last.failing_since = now;
      if (now - *last.failing_since >= keeps_) last.addresses.clear();
    }
    *complete = status.ok();
    std::vector<Address> all;
    MutexLock lock(mu_);
    for (const Answer& last : last_) all.insert(all.end(), last.addresses.begin(), last.addresses.end());
    if (all.empty()) return status;
    return all;
  }
  bool Changes() const override {
    return std::ranges::any_of(each_, [](const auto& one) { return one->Changes(); });
  }
  Nanos max_age() const override {
    Nanos least = Nanos::zero();
    for (const auto& one : each_) {
      const Nanos age = one->max_age();
      if (age > Nanos::zero() && (least == Nanos::zero() || age < least)) least = age;
    }
    return least;
  }

 private:
  struct Answer {
    std::vector<Address> addresses;
    std::optional<TimePoint> failing_since;
  };

  const std::vector<std::unique_ptr<Resolver>> each_;
  const Nanos keeps_;

  Mutex mu_;
  std::vector<Answer> last_ CURTAIL_GUARDED_BY(mu_);  // of each
};

}  // namespace

std::unique_ptr<PartialResolver> Together(std::vector<std::unique_ptr<Resolver>> each, Nanos keeps) {
  return std::make_unique<SeveralTargets>(std::move(each), keeps);
}

absl::StatusOr<std::unique_ptr<Resolver>> ParseTargets(const std::vector<std::string>& targets) {
  std::vector<std::unique_ptr<Resolver>> each;
  for (const std::string& text : targets) {
    absl::StatusOr<Target> target = ParseTarget(text);
    if (!target.ok()) return target.status();
    each.push_back(std::move(target->resolver));
  }
  return Together(std::move(each));
}

}  // namespace curtail::internal
