// SPDX-License-Identifier: Apache-2.0
//
// Several targets as one, such as the instances of a service.
#include <algorithm>
#include <utility>

#include "curtail/base/mutex.h"
#include "curtail/rpc/client/resolver/target.h"

namespace curtail::internal {
namespace {

class SeveralTargets final : public PartialResolver {
 public:
  explicit SeveralTargets(std::vector<std::unique_ptr<Resolver>> each)
      : each_(std::move(each)), last_(each_.size()) {}

  absl::StatusOr<std::vector<Address>> ResolveParts(bool* complete) override {
    absl::Status status;
    for (size_t i = 0; i < each_.size(); ++i) {
      absl::StatusOr<std::vector<Address>> found = each_[i]->Resolve();  // may block
      status.Update(found.status());
      MutexLock lock(mu_);
      if (found.ok()) last_[i] = *std::move(found);
    }
    *complete = status.ok();
    std::vector<Address> all;
    MutexLock lock(mu_);
    for (const std::vector<Address>& last : last_) all.insert(all.end(), last.begin(), last.end());
    if (all.empty()) return status;
    return all;
  }
  bool Changes() const override {
    return std::ranges::any_of(each_, [](const auto& one) { return one->Changes(); });
  }

 private:
  const std::vector<std::unique_ptr<Resolver>> each_;

  Mutex mu_;
  std::vector<std::vector<Address>> last_ CURTAIL_GUARDED_BY(mu_);  // what each has answered
};

}  // namespace

std::unique_ptr<PartialResolver> Together(std::vector<std::unique_ptr<Resolver>> each) {
  return std::make_unique<SeveralTargets>(std::move(each));
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
