// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/load/load_share.h"

#include <chrono>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace curtail::tool {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

TEST(LoadShare, IsANumberOfSoMany) {
  const absl::StatusOr<LoadShare> share = ParseShare("2/3");
  ASSERT_TRUE(share.ok()) << share.status();
  EXPECT_EQ(share->number, 2);
  EXPECT_EQ(share->of, 3);
  for (const char* text : {"", "2", "0/3", "4/3", "1/0", "-1/-1", "1/2/3", "a/b", "1/1001", "1/99999999999"})
    EXPECT_FALSE(ParseShare(text).ok()) << text;
}

TEST(StartAt, IsATimeOfTheNextDay) {
  const Nanos now = seconds(1769860800);  // 2026-01-31T12:00:00Z
  for (const auto& [text, wait] :
       {std::pair("2026-01-31T12:00:05Z", Nanos(seconds(5))),
        std::pair("2026-01-31T14:00:05+02:00", Nanos(seconds(5))), std::pair("1769860807", Nanos(seconds(7))),
        std::pair("2026-01-31T12:00:00.25Z", Nanos(milliseconds(250))),
        std::pair("2026-02-01T12:00:00Z", Nanos(hours(24)))}) {
    const absl::StatusOr<Nanos> start = ParseStartAt(text, now);
    ASSERT_TRUE(start.ok()) << text << ": " << start.status();
    EXPECT_EQ(*start - now, wait) << text;
  }
  for (const auto& [text, why] :
       {std::pair("soon", "is not a time"), std::pair("", "is not a time"),
        std::pair("12:00", "is not a time"), std::pair("nan", "a day from now"),
        std::pair("inf", "a day from now"), std::pair("-inf", "choose a later time"),
        std::pair("1769860799", "was 1s ago"),
        std::pair("2026-02-01T12:00:01Z", "more than a day from now")}) {
    EXPECT_THAT(ParseStartAt(text, now).status().message(), HasSubstr(why)) << text;
  }
}

LoadSetup SetupOf(const LoadFlags& flags, absl::Status* status) {
  LoadSetup setup;
  setup.duration = seconds(10);
  *status = SetShare(flags, &setup);
  return setup;
}

TEST(SetShare, RunsStartAtKnownTimesAfterEachOther) {
  LoadFlags flags;
  flags.share = "1/2";
  flags.repeat = 3;
  const Nanos now = std::chrono::system_clock::now().time_since_epoch();
  flags.start_at = std::to_string(now / seconds(1) + 60);
  absl::Status status;
  const LoadSetup setup = SetupOf(flags, &status);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(setup.share.of, 2);
  ASSERT_TRUE(setup.start_at.has_value());
  EXPECT_GT(*setup.start_at, Now());
  EXPECT_EQ(setup.between_starts, seconds(2 + 10 + 1 + 5));
  flags.requests = 100;
  (void)SetupOf(flags, &status);
  EXPECT_THAT(status.message(), HasSubstr("--duration in place of -n"));
}

// Three steps with pauses that add up to `pauses`.
class Paused final : public Journey {
 public:
  explicit Paused(Nanos pauses) : pauses_(pauses) {}
  std::string_view method() const override { return "paused"; }
  size_t steps() const override { return 3; }
  std::string_view StepName(size_t) const override { return "step"; }
  std::string_view StepMethod(size_t) const override { return "/a.B/C"; }
  Nanos PauseBefore(size_t, uint64_t) const override { return pauses_ / 2; }
  Nanos longest_pauses() const override { return pauses_; }
  absl::StatusOr<std::string> StepRequest(size_t, uint64_t, const KeptValues&) const override { return ""; }
  absl::Status Keep(size_t, std::string_view, KeptValues*) const override { return absl::OkStatus(); }

 private:
  const Nanos pauses_;
};

TEST(AllowForJourney, RunsStartAfterTheLastJourneysAndTheFirst) {
  for (const auto& [pauses, wanted] : {std::pair(milliseconds(600), milliseconds(2 * 1000 + 2 * 600)),
                                       std::pair(milliseconds(9000), milliseconds(2 * 1000 + 9000 + 2000))}) {
    LoadSetup setup;
    setup.options.timeout = seconds(1);
    setup.between_starts = seconds(18);
    AllowForJourney(Paused(pauses), &setup);
    EXPECT_EQ(setup.between_starts, seconds(18) + wanted);
  }
}

TEST(SetShare, EachSenderNeedsSomethingToSend) {
  LoadFlags flags;
  flags.share = "3/3";
  flags.threads = 2;
  flags.closed = 6;
  absl::Status status;
  (void)SetupOf(flags, &status);
  EXPECT_TRUE(status.ok()) << status;
  flags.closed = 5;
  (void)SetupOf(flags, &status);
  EXPECT_THAT(status.message(), HasSubstr("--closed must be at least --threads times the shares, 6"));
  flags.closed = 0;
  flags.arrivals = "constant";
  (void)SetupOf(flags, &status);
  EXPECT_THAT(status.message(), HasSubstr("leave --arrivals constant"));
}

}  // namespace
}  // namespace curtail::tool
