// SPDX-License-Identifier: Apache-2.0
#include "curtail/store/address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "curtail/base/strings.h"
#include "curtail/base/temp_dir_testing.h"

namespace curtail {
namespace {

using testing::HasSubstr;

std::string ErrorOf(const std::string& text) {
  return std::string(Message(StoreAddress::Parse(text).status()));
}

TEST(StoreAddress, ReadsUrls) {
  const auto plain = StoreAddress::Parse("redis://127.0.0.1:6379?user=ann&password-file=/run/secret");
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_EQ(plain->text, "redis://127.0.0.1:6379");
  EXPECT_EQ(plain->sockets.front().port(), 6379);
  EXPECT_EQ(plain->user, "ann");
  EXPECT_EQ(plain->password_file, "/run/secret");
  EXPECT_EQ(plain->tls, nullptr);
  const auto secure = StoreAddress::Parse("rediss://[::1]:6380/");
  ASSERT_TRUE(secure.ok()) << secure.status();
  EXPECT_EQ(secure->host, "::1");
  EXPECT_NE(secure->tls, nullptr);
  EXPECT_EQ(StoreAddress::Parse("127.0.0.1:1")->text, "127.0.0.1:1");
}

TEST(StoreAddress, RefusesWhatIsWrongInAUrl) {
  const TempDir dir;
  EXPECT_THAT(ErrorOf("redis://127.0.0.1"), HasSubstr("port"));
  EXPECT_THAT(ErrorOf("redis://127.0.0.1:1?colour=red"),
              HasSubstr("not known: colour; write rediss://HOST:PORT?"));
  EXPECT_THAT(ErrorOf("redis://127.0.0.1:1?user="), HasSubstr("has no value for user"));
  EXPECT_THAT(ErrorOf("redis://127.0.0.1:1?ca=x.pem"), HasSubstr("begin it with rediss://"));
  EXPECT_THAT(ErrorOf("rediss://127.0.0.1:1?ca=" + dir.Write("x.pem", "no certificate")),
              HasSubstr("x.pem cannot be used"));
  const std::string secret = ErrorOf("redis://ann:secret@127.0.0.1:1");
  EXPECT_THAT(secret, HasSubstr("REDIS_PASSWORD"));
  EXPECT_EQ(secret.find("secret@"), secret.npos) << secret;
}

}  // namespace
}  // namespace curtail
