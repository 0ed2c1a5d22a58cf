// SPDX-License-Identifier: Apache-2.0
#include "curtail/base/internal/flag_units.h"

#include <gtest/gtest.h>

namespace curtail::internal {
namespace {

constexpr Nanos kMs = std::chrono::milliseconds(1), kSecond = std::chrono::seconds(1);

// Returns the changed `text`, or what is wrong with it.
std::string Time(Nanos unit, std::string text) {
  const std::string wrong = TimeToNumber(unit, &text);
  return wrong.empty() ? text : wrong;
}

std::string Size(std::string text) {
  const std::string wrong = SizeToNumber(&text);
  return wrong.empty() ? text : wrong;
}

TEST(FlagUnits, TimesBecomeNumbersOfTheFlagsUnit) {
  EXPECT_EQ(Time(kSecond, "10s"), "10");
  EXPECT_EQ(Time(kSecond, "1m30s"), "90");
  EXPECT_EQ(Time(kMs, "0.5ms"), "0.5");
  EXPECT_EQ(Time(kMs, "20us"), "0.02");
  EXPECT_EQ(Time(kSecond, "-5s"), "-5");
  EXPECT_EQ(Time(kMs, "20"), "20") << "a number is in the flag's unit";
  for (const char* wrong : {"10sec", "", "inf", "s"}) {
    EXPECT_EQ(Time(kSecond, wrong), "\"" + std::string(wrong) + "\" is not a time; write 10s or 500ms");
  }
}

TEST(FlagUnits, SizesBecomeBytes) {
  EXPECT_EQ(Size("4MB"), "4000000");
  EXPECT_EQ(Size("1.5MiB"), "1572864");
  EXPECT_EQ(Size("64kB"), "64000");
  EXPECT_EQ(Size("12B"), "12");
  EXPECT_EQ(Size("1234567890123"), "1234567890123");
  for (const char* wrong : {"4MX", "", "MB", "-4MB", "9999999999GB"}) {
    EXPECT_EQ(Size(wrong),
              "\"" + std::string(wrong) + "\" is not a number of bytes; write 4000000, 4MB or 4MiB");
  }
}

}  // namespace
}  // namespace curtail::internal
