// SPDX-License-Identifier: Apache-2.0
#include "curtail/fence/path_id.h"

#include <gtest/gtest.h>

#include <string>

namespace curtail {
namespace {

TEST(PathId, IsOfTheMethodAndTravelsAsEightDigits) {
  const uint32_t id = PathIdOf("/shop.Front/Compose");
  EXPECT_EQ(id, PathIdOf("/shop.Front/Compose"));
  EXPECT_NE(id, PathIdOf("/shop.Front/Read"));
  EXPECT_NE(PathIdOf(""), 0u);
  char buffer[8];
  EXPECT_EQ(ParsePathId(FormatPathId(id, buffer)), id);
  EXPECT_EQ(FormatPathId(0x00c0ffee, buffer), "00c0ffee");
  EXPECT_EQ(FormatPathId(UINT32_MAX, buffer), "ffffffff");
  EXPECT_EQ(ParsePathId("00c0ffee"), 0x00c0ffeeu);
}

TEST(PathId, TakesNoOtherText) {
  for (const char* text :
       {"", "00000000", "0c0ffee", "000c0ffee", "00C0FFEE", "00c0ffeg", " 0c0ffee", "0x00ffee", "-0000001"}) {
    EXPECT_FALSE(ParsePathId(text)) << text;
  }
  EXPECT_FALSE(ParsePathId(std::string(1 << 20, 'a')));
}

}  // namespace
}  // namespace curtail
