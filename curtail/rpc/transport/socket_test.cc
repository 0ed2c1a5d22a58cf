// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/transport/socket.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "curtail/base/strings.h"

namespace curtail::internal {
namespace {

TEST(Address, PrintsWhatItParsed) {
  for (const char* text : {"127.0.0.1:8080", "[::1]:80", "unix:/tmp/x.sock", "0.0.0.0:0"}) {
    const auto address = Address::Resolve(text);
    ASSERT_TRUE(address.ok()) << address.status();
    EXPECT_EQ(address->ToString(), text);
  }
}

TEST(Address, RefusesOtherForms) {
  const std::string long_path = "unix:" + std::string(200, 'p');
  for (const std::string& text :
       {std::string("host"), std::string("1.2.3.4:"), std::string("1.2.3.4:65536"), std::string("1.2.3.4:-1"),
        std::string("::1:80"), std::string("unix:"), long_path}) {
    EXPECT_EQ(Address::Resolve(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

TEST(Listen, TakesOverAUnixPathThatNobodyServes) {
  const auto address = Address::Resolve(Join("unix:", testing::TempDir(), "/curtail_socket_test.", getpid()));
  ASSERT_TRUE(address.ok());
  {
    const auto first = Listen(*address);
    ASSERT_TRUE(first.ok()) << first.status();
    EXPECT_EQ(Listen(*address).status().code(), absl::StatusCode::kAlreadyExists);
  }
  const auto second = Listen(*address);  // the path is still there, its server is not
  EXPECT_TRUE(second.ok()) << second.status();
  unlink(address->ToString().c_str() + 5);
}

TEST(Listen, LeavesOtherFilesAlone) {
  const std::string path = Join(testing::TempDir(), "/curtail_socket_test_file.", getpid());
  std::ofstream(path) << "precious";
  const auto address = Address::Resolve("unix:" + path);
  ASSERT_TRUE(address.ok());
  EXPECT_EQ(Listen(*address).status().code(), absl::StatusCode::kAlreadyExists);
  std::string content;
  std::ifstream(path) >> content;
  EXPECT_EQ(content, "precious");
  unlink(path.c_str());
}

}  // namespace
}  // namespace curtail::internal
