// SPDX-License-Identifier: Apache-2.0
#include "apps/kit/number_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "curtail/base/strings.h"

namespace curtail {
namespace {

struct Shape {
  uint32_t rows = 0;
  uint64_t seed = 1;
  double noise = 0.5;
};

absl::Status Read(std::string_view text, Shape* shape) {
  const NumberOption options[] = {
      {"rows", &shape->rows, 1, 1000}, {"seed", &shape->seed}, {"noise", &shape->noise, 0, 10}};
  return ReadNumberOptions(text, options);
}

TEST(NumberOptions, SetsThoseThatTheTextNames) {
  Shape shape;
  ASSERT_TRUE(Read("rows=1000,seed=18446744073709551615", &shape).ok());
  EXPECT_EQ(shape.rows, 1000u);
  EXPECT_EQ(shape.seed, 18446744073709551615u);
  EXPECT_EQ(shape.noise, 0.5);
}

TEST(NumberOptions, TheLastOfOneNameCounts) {
  Shape shape;
  ASSERT_TRUE(Read("rows=1,noise=2.5,rows=7", &shape).ok());
  EXPECT_EQ(shape.rows, 7u);
  EXPECT_EQ(shape.noise, 2.5);
}

TEST(NumberOptions, RefusesWhatIsNoOptionAndNumbersOutOfRange) {
  const struct {
    std::string_view text, says;
  } cases[] = {
      {"", "rows must be 1 to 1000"},  // its default stands for a number that the text must name
      {"rows=0", "rows must be 1 to 1000"},
      {"rows=1001", "rows must be 1 to 1000"},
      {"rows=1,noise=-1", "noise must be 0 to 10"},
      {"rows=1,noise=nan", "noise must be 0 to 10"},
      {"rows=4294967296", "'rows=4294967296' is none of rows=, seed=, noise= with a number that fits"},
      {"rows=1,seed=18446744073709551616", "'seed=18446744073709551616' is none of"},
      {"rows=1,,seed=2", "'' is none of"},
      {"rows=-1", "'rows=-1' is none of"},
      {"rows=1x", "'rows=1x' is none of"},
      {"rows= 1", "'rows= 1' is none of"},
      {"rows", "'rows' is none of"},
      {"row=1", "'row=1' is none of"},
  };
  for (const auto& [text, says] : cases) {
    Shape shape;
    const absl::Status status = Read(text, &shape);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(Message(status)), testing::HasSubstr(std::string(says))) << text;
  }
}

}  // namespace
}  // namespace curtail
