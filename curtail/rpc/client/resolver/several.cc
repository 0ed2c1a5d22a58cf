// SPDX-License-Identifier: Apache-2.0
//
// Several targets as one, such as the instances of a service.
#include <algorithm>
#include <utility>

#include "curtail/rpc/client/resolver/target.h"

namespace curtail::internal {
namespace {

class SeveralTargets final : public Resolver {
 public:
  explicit SeveralTargets(std::vector<std::unique_ptr<Resolver>> each) : each_(std::move(each)) {}

  absl::StatusOr<std::vector<Address>> Resolve() override {
    std::vector<Address> all;
    absl::Status status;
    for (const auto& one : each_) {
      const absl::StatusOr<std::vector<Address>> found = one->Resolve();
      status.Update(found.status());
      if (found.ok()) all.insert(all.end(), found->begin(), found->end());
    }
    if (all.empty()) return status;
    return all;
  }
  bool Changes() const override {
    return std::ranges::any_of(each_, [](const auto& one) { return one->Changes(); });
  }

 private:
  const std::vector<std::unique_ptr<Resolver>> each_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Resolver>> ParseTargets(const std::vector<std::string>& targets) {
  std::vector<std::unique_ptr<Resolver>> each;
  for (const std::string& text : targets) {
    absl::StatusOr<Target> target = ParseTarget(text);
    if (!target.ok()) return target.status();
    each.push_back(std::move(target->resolver));
  }
  return std::make_unique<SeveralTargets>(std::move(each));
}

}  // namespace curtail::internal
