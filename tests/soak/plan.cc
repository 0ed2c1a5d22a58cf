// SPDX-License-Identifier: Apache-2.0
#include "plan.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"

namespace curtail::soak {
namespace {

constexpr size_t kPool = 4u << 20;
// A caller's clock and its server's are one; a deadline that passes earlier is a fault.
constexpr std::chrono::milliseconds kEarly(2);
// Or else the server says that it did not run a call that waited for long and would end too late: rule D2 of
// curtail/rpc/server/server_call_refusals.cc.
constexpr char kNotRun[] = "too little time was left after the queue";

constexpr std::array kAskedFor = {absl::StatusCode::kNotFound, absl::StatusCode::kAborted,
                                  absl::StatusCode::kFailedPrecondition, absl::StatusCode::kDataLoss};

}  // namespace

Planner::Planner(uint64_t seed) : rng_(seed) {
  while (pool_.size() < kPool) {
    const uint64_t word = rng_.Next();
    pool_.append(reinterpret_cast<const char*>(&word), sizeof(word)).append(sizeof(word), 'c');
  }
}

std::string Planner::Payload(size_t most) {
  const size_t limit = Chance(0.8) ? 1u << 10 : Chance(0.9) ? 64u << 10 : 2u << 20;
  const size_t size = rng_.Below(std::min(limit, most) + 1);
  return pool_.substr(rng_.Below(kPool - size), size);
}

Plan Planner::Draw(const Route& route) {
  Plan plan;
  plan.route = route;
  plan.request.set_payload(Payload(SIZE_MAX));
  // From 0.1 ms to a second, each order of magnitude as likely.
  const auto some_time = [this] { return FromMillis(0.1 * std::pow(10, 4 * rng_.Uniform01())); };
  if (Chance(0.2)) plan.timeout = some_time();
  if (Chance(0.15)) plan.cancel_after = some_time();
  if (Chance(0.1)) plan.request.set_code(static_cast<int>(kAskedFor[rng_.Below(kAskedFor.size())]));
  if (Chance(0.3)) plan.text = absl::StrCat("text ", rng_.Next()), plan.bytes = Payload(300);
  if (Chance(0.2)) plan.request.set_delay_ms(static_cast<int>(rng_.Below(150)));
  return plan;
}

Verdict::Verdict(std::string kind, const Plan& plan, const Watch& watch, Tally& tally)
    : kind_(std::move(kind)), plan_(plan), watch_(watch), tally_(tally), stalls_(watch.stalls()) {}

bool Verdict::Permits(const absl::Status& status) const {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return plan_.request.code() == 0;
    case absl::StatusCode::kDeadlineExceeded:
      return (Now() >= begun_ + plan_.timeout - kEarly || status.message() == kNotRun) &&
             (plan_.timeout < kAmple || watch_.StalledSince(stalls_));
    case absl::StatusCode::kCancelled:
      return plan_.cancel_after || plan_.route.restarts;
    case absl::StatusCode::kUnavailable:
      return plan_.route.restarts;
    default:
      return plan_.request.code() == static_cast<int>(status.code()) && status.message() == "as asked";
  }
}

bool Verdict::Ended(const absl::Status& status) {
  tally_.Count(kind_, status.code(), Now() - begun_);
  if (!Permits(status)) Fault(absl::StrCat("ended with ", status.ToString()));
  return status.ok();
}

void Verdict::Expect(bool holds, const std::string& what) {
  if (!holds) Fault(what);
}

void Verdict::ExpectMetadata(const Metadata& metadata, const std::string& part) {
  if (plan_.text.empty()) return;
  Expect(metadata.Find("x-soak") == plan_.text && metadata.Find("x-soak-bin") == plan_.bytes,
         absl::StrCat(part, " metadata differs"));
}

void Verdict::Fault(const std::string& what) {
  tally_.Fault(absl::StrCat(kind_, " to ", plan_.route.name, ": ", what, " after ", InMillis(Now() - begun_),
                            " ms of ", InMillis(plan_.timeout), "; payload ", plan_.request.payload().size(),
                            ", delay ", plan_.request.delay_ms(), ", code ", plan_.request.code(),
                            plan_.cancel_after ? ", cancelled" : ""));
}

}  // namespace curtail::soak
