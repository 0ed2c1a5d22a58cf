// SPDX-License-Identifier: Apache-2.0
//
// `social fill` as the Job of a rendered chart runs it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "apps/social/tests/social_testing.h"
#include "curtail/base/strings.h"
#include "curtail/rpc/transport/tls_testing.h"

namespace curtail::social {
namespace {

using testing::HasSubstr;

TEST(SocialFill, FillsOverTlsAndSaysThatItLearnsNothing) {
  const TempDir dir;
  const TestCertificate authority({.common_name = "an authority", .names = ""});
  const TestCertificate certificate({}, &authority);
  const std::string address = Join("unix:", dir.File("front-end"));
  const auto application = deploy::Process::Spawn(
      {.name = "social",
       .argv = {SOCIAL_PROGRAM, "--monolith", "--config", "FIB1", "--instances", "search-index=2", "--data",
                dir.File("data"), "--listen", address, "--tls-cert", certificate.file(), "--tls-key",
                certificate.key_file()}});
  ASSERT_TRUE(application.ok()) << application.status();
  ASSERT_TRUE((*application)->AwaitLine("ready ", Deadline::In(kMaxTestWait), nullptr).ok());
  const std::string said = dir.File("said");
  const auto fill = [&](const std::string& flags) {
    return std::system(Join(SOCIAL_PROGRAM,
                            " fill --quiet --users 4 --follows 2 --posts 2 --ads 0 --train --target ",
                            address, " --data ", dir.File("own"), " ", flags, " 2>", said)
                           .c_str());
  };
  EXPECT_NE(fill("--timeout 2"), 0) << "the server speaks TLS only";
  EXPECT_EQ(fill(Join("--tls --ca-file ", authority.file())), 0);
  std::ifstream in(said);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  EXPECT_THAT(text, HasSubstr("nothing is learned"));
  EXPECT_THAT(text, HasSubstr("on a cluster each has a volume of its own"));
  EXPECT_TRUE((*application)->End(kMaxTestWait).ok());
}

}  // namespace
}  // namespace curtail::social
