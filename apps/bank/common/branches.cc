// SPDX-License-Identifier: Apache-2.0
#include "apps/bank/common/branches.h"

#include <array>
#include <cmath>
#include <numbers>

#include "curtail/base/rng.h"
#include "curtail/base/strings.h"

namespace curtail::bank {
namespace {

constexpr uint64_t kBranchSeed = 7;
constexpr int kBranches = 200, kRepresentativesOfBranch = 3;
constexpr std::array kTopics = {"accounts", "cards", "loans", "mortgages", "deposits", "wealth"};

std::vector<Branch> MakeBranches() {
  Rng rng(kBranchSeed);
  std::vector<Branch> all(kBranches);
  for (int i = 0; i < kBranches; ++i) {
    all[i].set_id(i + 1);
    all[i].set_name(Join("Branch ", i + 1));
    all[i].mutable_place()->set_latitude(47 + 8 * rng.Uniform01());  // a box in the middle of Europe
    all[i].mutable_place()->set_longitude(6 + 9 * rng.Uniform01());
  }
  return all;
}

std::vector<Representative> MakeRepresentatives() {
  std::vector<Representative> all;
  for (const Branch& branch : AllBranches()) {
    for (int i = 0; i < kRepresentativesOfBranch; ++i) {
      Representative& one = all.emplace_back();
      one.set_id(all.size());
      one.set_name(Join("Representative ", all.size()));
      one.set_topic(kTopics[(all.size() - 1) % kTopics.size()]);
      *one.mutable_branch() = branch;
    }
  }
  return all;
}

}  // namespace

const std::vector<Branch>& AllBranches() {
  static const std::vector<Branch> all = MakeBranches();
  return all;
}

const std::vector<Representative>& AllRepresentatives() {
  static const std::vector<Representative> all = MakeRepresentatives();
  return all;
}

double KilometresBetween(const Place& a, const Place& b) {
  constexpr double kRadian = std::numbers::pi / 180, kEarthRadius = 6371;
  const double north = std::sin((b.latitude() - a.latitude()) * kRadian / 2);
  const double east = std::sin((b.longitude() - a.longitude()) * kRadian / 2);
  const double square =
      north * north + std::cos(a.latitude() * kRadian) * std::cos(b.latitude() * kRadian) * east * east;
  return 2 * kEarthRadius * std::asin(std::sqrt(std::fmin(square, 1)));
}

absl::Status CheckPlace(const Place& place) {
  // A degree that is not a number fails each comparison.
  if (std::abs(place.latitude()) <= 90 && std::abs(place.longitude()) <= 180) return absl::OkStatus();
  return absl::InvalidArgumentError("latitudes are -90 to 90 degrees, and longitudes -180 to 180");
}

}  // namespace curtail::bank
