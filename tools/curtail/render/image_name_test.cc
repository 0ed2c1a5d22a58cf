// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/render/image_name.h"

#include <gtest/gtest.h>

namespace curtail::tool {
namespace {

TEST(ImageNameTest, TakesWhatContainersAreNamed) {
  for (const char* good : {"shop", "shop:1.0", "registry.example/team/shop:V1_0", "localhost:5000/shop",
                           "shop@sha256:0123abcd", "Registry.example:5000/a-b/c_d:x"})
    EXPECT_TRUE(IsImageName(good)) << good;
  for (const char* bad :
       {"", "Bad Image!", "UPPER:tag", "shop:", "/shop", "a//b", "shop:a b", "shop@", "a/UPPER"})
    EXPECT_FALSE(IsImageName(bad)) << bad;
}

}  // namespace
}  // namespace curtail::tool
