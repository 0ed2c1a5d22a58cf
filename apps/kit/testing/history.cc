// SPDX-License-Identifier: Apache-2.0
#include "apps/kit/testing/history.h"

#include "curtail/base/strings.h"
#include "curtail/base/testing.h"

namespace curtail::apps {

Operation History::Do(absl::FunctionRef<absl::Status()> call, const std::set<absl::StatusCode>& refusals) {
  const uint64_t began = Step();
  const absl::Status status = call();
  const uint64_t ended = Step();
  if (status.ok()) return {status, Outcome::kAcknowledged, {began, ended}};
  if (refusals.contains(status.code())) return {status, Outcome::kRefused, {began, ended}};
  EXPECT_TRUE(is_fault_ != nullptr && is_fault_(status)) << status;
  return {status, Outcome::kUnknown, {began, Span::kOpen}};
}

Operation History::Insist(absl::FunctionRef<absl::Status()> call,
                          const std::set<absl::StatusCode>& refusals) {
  const Deadline deadline = Deadline::In(kMaxTestWait);
  Operation told = Do(call, refusals);
  const uint64_t began = told.span.began;
  while (told.outcome == Outcome::kUnknown && !deadline.Expired()) told = Do(call, refusals);
  EXPECT_NE(told.outcome, Outcome::kUnknown) << told.status;
  told.span.began = began;
  return told;
}

void History::Later(std::function<void()> judge) {
  const std::lock_guard lock(mu_);
  judges_.push_back(std::move(judge));
}

void History::Judge() {
  std::vector<std::function<void()>> judges;
  {
    const std::lock_guard lock(mu_);
    judges.swap(judges_);
  }
  for (const auto& judge : judges) judge();
}

std::string StepsOf(Span span) { return Join(" in the steps ", span.began, " to ", span.ended); }

void Expect(bool said, Possible possible, const std::string& what, Span span) {
  EXPECT_TRUE(possible.Is(said)) << what << ": " << (said ? "yes" : "no") << StepsOf(span);
}

void ExpectCount(PossibleCount possible, uint64_t count, const std::string& what, Span span) {
  EXPECT_TRUE(possible.MayBe(count)) << count << what << ", of " << possible.least << " to " << possible.most
                                     << StepsOf(span);
}

}  // namespace curtail::apps
