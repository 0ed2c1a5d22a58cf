// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/load/kubectl.h"

#include <gtest/gtest.h>

namespace curtail::tool {
namespace {

TEST(KubectlTest, SaysItsLastWordOnce) {
  const std::string log =
      "E1130 06:11:36.813483   31141 memcache.go:265] \"Unhandled Error\" err=\"refused\"\n";
  EXPECT_EQ(KubectlSaid(log + log + "The connection to the server localhost:8080 was refused\n"),
            "The connection to the server localhost:8080 was refused; is a cluster set in kubectl config?");
  EXPECT_EQ(KubectlSaid("error: no context\n"), "no context");
  EXPECT_EQ(KubectlSaid("Error from server (NotFound): pods \"a\" not found"),
            "(NotFound): pods \"a\" not found");
  EXPECT_EQ(KubectlSaid(""), "");
}

}  // namespace
}  // namespace curtail::tool
